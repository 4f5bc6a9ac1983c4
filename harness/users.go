package harness

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// usersFile lists a server's users, in its data folder.
const usersFile = "users.acl"

func checkUsers(users map[string]string) error {
	for name, rules := range users {
		switch {
		case name == "default":
			return fmt.Errorf("harness: Options.Users names the default user, as whom the harness itself works: set Options.Password for it")
		case name == "" || strings.ContainsAny(name, " \t\r\n\x00"):
			return fmt.Errorf("harness: Options.Users: %q is no user's name: want one without spaces", name)
		case strings.ContainsAny(rules, "\r\n\x00"):
			return fmt.Errorf("harness: Options.Users: the rules of %s have a line break: separate them by spaces", name)
		}
	}
	return nil
}

// usersText is the content of an ACL file. The default user is named as well, or it would lose its password when the file is
// read; by the password's hash, since a file has no way to write one with a space.
func usersText(users map[string]string, password string) string {
	var b strings.Builder
	login := "nopass"
	if password != "" {
		login = fmt.Sprintf("#%x", sha256.Sum256([]byte(password)))
	}
	fmt.Fprintf(&b, "user default on %s ~* &* +@all\n", login)
	for _, name := range slices.Sorted(maps.Keys(users)) {
		fmt.Fprintf(&b, "user %s %s\n", name, users[name])
	}
	return b.String()
}
