package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// usualPlaces are where packages put servers that a reduced PATH does not reach: cron, systemd and IDEs have such.
var usualPlaces = []string{
	"/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/local/bin", "/snap/bin",
}

// findServer returns the absolute path of the server's binary. One that is named and missing is an error, not a reason to take
// another: the caller wants to know what was tested.
func findServer(named string) (string, error) {
	from := "Options.Server"
	if named == "" {
		from, named = "SHARDKIT_SERVER", os.Getenv("SHARDKIT_SERVER")
	}
	if named != "" {
		path, err := exec.LookPath(named)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", fmt.Errorf("harness: %s: %w: name a binary that can be run, by an absolute path", from, err)
		}
		return path, nil
	}
	var looked []string
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
		looked = append(looked, name+" in PATH")
		for _, dir := range usualPlaces {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	looked = append(looked, usualPlaces...)
	return "", &NoServerError{Looked: looked, Install: installCommand()}
}
