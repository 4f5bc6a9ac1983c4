package harness

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Version is what a server says it is.
type Version struct {
	Name   string // "redis" or "valkey"
	Number string // such as "7.0.15"
}

// String returns the form "redis 7.0.15".
func (v Version) String() string { return v.Name + " " + v.Number }

// AtLeast reports whether the version is major.minor or later. Redis and Valkey count apart: ask v.Name first where it
// matters.
func (v Version) AtLeast(major, minor int) bool {
	parts := strings.SplitN(v.Number, ".", 3)
	var got [2]int
	for i := 0; i < len(got) && i < len(parts); i++ {
		got[i], _ = strconv.Atoi(parts[i])
	}
	return got[0] > major || got[0] == major && got[1] >= minor
}

// parseVersion reads the reply of INFO server. Valkey claims to be Redis 7.2.4 in redis_version, for the sake of old
// clients, so its own fields are asked first.
func parseVersion(info string) (Version, error) {
	if n := infoField(info, "valkey_version"); n != "" {
		return Version{"valkey", n}, nil
	}
	if n := infoField(info, "redis_version"); n != "" {
		name := infoField(info, "server_name")
		if name == "" {
			name = "redis"
		}
		return Version{name, n}, nil
	}
	return Version{}, fmt.Errorf("harness: INFO server names no version: %.80q", info)
}

var versionLine = regexp.MustCompile(`(?m)^(\w+) server v=([0-9][^ ]*)`)

// ParseVersion reads what a server prints when it is run with --version, such as "Redis server v=7.0.15 sha=...".
func ParseVersion(text string) (Version, error) {
	m := versionLine.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("harness: --version names no version: %.80q", text)
	}
	return Version{strings.ToLower(m[1]), m[2]}, nil
}

// infoField returns a field of an INFO reply, or "".
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
