//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A workdir is a temporary folder that belongs to this program. Its file "owner" holds the program's pid for the reader, and is
// locked for as long as the program lives: the kernel drops the lock however it ends, where a pid alone may have been
// given to another, or belong to another container that shares the folder.
type workdir struct {
	path  string
	owner *os.File
}

const (
	workdirPrefix = "shardkit-harness-"
	ownerFile     = "owner"
)

func newWorkdir() (*workdir, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", workdirPrefix)
	if err != nil {
		return nil, fmt.Errorf("harness: make a temporary folder: %w", err)
	}
	owner, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		// Written only once locked: a sweeper leaves an empty marker alone.
		_, err = owner.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		owner.Close()
		os.RemoveAll(dir)
		return nil, fmt.Errorf("harness: mark the folder %s: %w", dir, err)
	}
	return &workdir{dir, owner}, nil
}

func (w *workdir) remove() error {
	return errors.Join(os.RemoveAll(w.path), w.owner.Close())
}

// sweep deletes the folders of programs that are gone. It reports nothing: what it cannot delete may belong to another
// user, and is not in the way.
func sweep(tempDir string) {
	dirs, _ := filepath.Glob(filepath.Join(tempDir, workdirPrefix+"*"))
	for _, dir := range dirs {
		if ownerGone(filepath.Join(dir, ownerFile)) {
			os.RemoveAll(dir)
		}
	}
}

func ownerGone(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() == 0 {
		return false
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
