package harness

import (
	"os"
	"runtime"
	"strings"
)

// installCommand returns the one command that installs a server on this system.
func installCommand() string {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		release, _ = os.ReadFile("/usr/lib/os-release")
	}
	return installCommandFor(runtime.GOOS, string(release), os.Geteuid() == 0)
}

func installCommandFor(goos, osRelease string, root bool) string {
	if goos == "darwin" {
		return "brew install redis"
	}
	var ids []string
	for _, key := range []string{"ID", "ID_LIKE"} { // the system itself first, then what it descends from
		for line := range strings.Lines(osRelease) {
			if value, ok := strings.CutPrefix(line, key+"="); ok {
				ids = append(ids, strings.Fields(strings.Trim(strings.TrimSpace(value), `"'`))...)
			}
		}
	}
	command := ""
	for _, id := range ids {
		switch id {
		case "debian", "ubuntu":
			command = "apt-get install -y redis-server"
		case "alpine":
			command = "apk add redis"
		case "fedora":
			command = "dnf install -y valkey"
		case "rhel", "centos", "rocky", "almalinux", "amzn":
			command = "dnf install -y redis"
		case "arch":
			command = "pacman -S --noconfirm valkey"
		case "suse", "opensuse":
			command = "zypper install -y redis"
		case "nixos":
			return "nix-env -iA nixos.redis"
		default:
			continue
		}
		break
	}
	switch {
	case command == "" && goos == "freebsd":
		command = "pkg install -y redis"
	case command == "":
		return "your package manager to install redis-server or valkey-server"
	}
	if !root {
		command = "sudo " + command
	}
	return command
}
