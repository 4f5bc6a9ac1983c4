//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Processes returns the provider that runs servers as processes of this machine, on 127.0.0.1, with their data in a
// folder under os.TempDir.
func Processes() Provider { return processes{} }

type processes struct{}

func (processes) Open(_ context.Context, o Options) (Launcher, error) {
	binary, err := findServer(o.Server)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkdir()
	if err != nil {
		return nil, err
	}
	return &processLauncher{binary: binary, dir: dir, thread: newThread()}, nil
}

type processLauncher struct {
	binary string
	dir    *workdir
	thread *thread

	procs []*process
	once  sync.Once
	err   error
}

func (l *processLauncher) Describe(v Version) string {
	return fmt.Sprintf("process: %s-server %s (%s)", v.Name, v.Number, l.binary)
}

// versionTimeout bounds the wait for a binary to say what it is, and what it leaves open is closed so much later.
const versionTimeout = 5 * time.Second

func (l *processLauncher) Version(ctx context.Context) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.binary, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Version{}, fmt.Errorf("harness: %s --version: %w: %.200s", l.binary, errors.Join(ctx.Err(), err), out)
	}
	return ParseVersion(string(out))
}

func (l *processLauncher) Launch(ctx context.Context, specs []Spec) ([]Server, error) {
	servers := make([]Server, 0, len(specs))
	for _, spec := range specs {
		p := &process{spec: spec, binary: l.binary, dir: filepath.Join(l.dir.path, spec.Name), thread: l.thread}
		l.procs = append(l.procs, p)
		if err := p.prepare(); err != nil {
			return nil, err
		}
		if err := p.Start(ctx, false); err != nil {
			return nil, err
		}
		servers = append(servers, p)
	}
	return servers, nil
}

func (l *processLauncher) Close() error {
	l.once.Do(func() {
		var errs []error
		for _, p := range l.procs {
			errs = append(errs, p.end())
		}
		l.thread.end()
		errs = append(errs, l.dir.remove())
		l.err = errors.Join(errs...)
	})
	return l.err
}

// A process is one server. Its folder holds data/, where the server lives, and log.
type process struct {
	spec   Spec
	binary string
	dir    string
	thread *thread

	mu    sync.Mutex
	run   *run // nil before the first start
	ended bool // Close has come by: nothing starts any more
}

// A run is the life of one process.
type run struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has been waited for
	err  error         // how it ended; to be read after gone
}

func (p *process) prepare() error {
	if err := os.MkdirAll(p.dataDir(), 0o700); err != nil {
		return fmt.Errorf("harness: make a folder for %s: %w", p.spec.Name, err)
	}
	for name, content := range p.spec.Files {
		if err := os.WriteFile(filepath.Join(p.dataDir(), name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("harness: write a file for %s: %w", p.spec.Name, err)
		}
	}
	return nil
}

func (p *process) dataDir() string { return filepath.Join(p.dir, "data") }
func (p *process) logFile() string { return filepath.Join(p.dir, "log") }

func (p *process) Start(_ context.Context, wipe bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return fmt.Errorf("harness: %s: closed", p.spec.Name)
	case p.run != nil && p.run.exited() == nil:
		return fmt.Errorf("harness: %s: it runs already: kill it first", p.spec.Name)
	}
	if wipe {
		if err := p.wipe(); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("harness: open the log of %s: %w", p.spec.Name, err)
	}
	defer log.Close()

	args := append([]string{"--bind", "127.0.0.1", "--dir", p.dataDir()}, p.spec.Flags...)
	cmd := exec.Command(p.binary, args...)
	cmd.Dir = p.dataDir()
	cmd.Stdout, cmd.Stderr = log, log
	release, err := p.thread.start(cmd)
	if err != nil {
		return fmt.Errorf("harness: start %s: %w", p.binary, err)
	}
	r := &run{cmd: cmd, gone: make(chan struct{})}
	go func() {
		defer close(r.gone)
		cmd.Wait()
		release()
		r.err = errors.New(cmd.ProcessState.String())
		if bytes.Contains(tail(p.logFile(), 4096), []byte("ddress already in use")) {
			r.err = fmt.Errorf("%w: %w", r.err, ErrAddrInUse)
		}
	}()
	p.run = r
	return nil
}

func (p *process) wipe() error {
	entries, err := os.ReadDir(p.dataDir())
	for _, e := range entries {
		if _, keep := p.spec.Files[e.Name()]; !keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.dataDir(), e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("harness: empty the folder of %s: %w", p.spec.Name, err)
	}
	return nil
}

// current returns the process's current or last life.
func (p *process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (r *run) exited() error {
	select {
	case <-r.gone:
		return r.err
	default:
		return nil
	}
}

// signal reaches only our own child: until it has been waited for its pid is not given to another, and os.Process
// knows when it has.
func (r *run) signal(sig syscall.Signal) error {
	err := r.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *process) Kill() error {
	r := p.current()
	if r == nil {
		return nil
	}
	if err := r.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-r.gone
	return nil
}

func (p *process) end() error {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	return p.Kill()
}

func (p *process) Freeze() error { return p.current().signal(syscall.SIGSTOP) }
func (p *process) Thaw() error   { return p.current().signal(syscall.SIGCONT) }
func (p *process) Exited() error { return p.current().exited() }
func (p *process) PID() int      { return p.current().cmd.Process.Pid }

func (p *process) LogTail(lines int) string {
	all := strings.Split(strings.TrimRight(string(tail(p.logFile(), 64<<10)), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// tail returns up to n last bytes of a file, or nothing if it cannot be read: a log is only ever read to explain something else.
func tail(file string, n int64) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > n {
		f.Seek(-n, 2)
	}
	buf := make([]byte, n)
	got, _ := f.Read(buf)
	return buf[:got]
}
