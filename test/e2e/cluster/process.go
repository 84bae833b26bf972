package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// How long a process may take.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 40 * time.Second
)

var errEnded = errors.New("nobody had asked it to")

// Process is a program of the cluster that can be stopped and started again. Its
// methods are not safe for concurrent use, but for Log.
type Process struct {
	// Name is that of the log, too.
	Name string
	// Extra are more arguments, from the next start on.
	Extra []string

	path    string
	args    []string
	env     []string
	ready   func(ctx context.Context) error
	logPath string
	starter *starter

	cmd    *exec.Cmd
	ended  chan struct{}
	failed error // why the last run ended, once ended is closed
}

// starter starts processes from one thread that lives as long as the cluster:
// the kernel ends a tethered child together with the thread that started it.
type starter struct {
	work chan func()
	once sync.Once
}

func newStarter() *starter {
	s := &starter{work: make(chan func())}
	go func() {
		// Never unlocked, so that the thread ends with the goroutine.
		runtime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *starter) do(f func() error) (err error) {
	done := make(chan struct{})
	s.work <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

// close ends whatever still runs.
func (s *starter) close() { s.once.Do(func() { close(s.work) }) }

// Start starts the program and returns once it is ready.
func (p *Process) Start(ctx context.Context) error {
	if p.Running() {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, slices.Concat(p.args, p.Extra)...) //nolint:gosec,noctx // it outlives the call; Stop and Kill end it
	cmd.Dir, cmd.Env = filepath.Dir(p.logPath), p.env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = tether()
	if err := p.starter.do(cmd.Start); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended, p.failed = cmd, ended, nil
	go func() {
		p.failed = cmd.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s is not ready after %s", p.Name, startTimeout))
	defer cancel()
	for {
		last := p.ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s ended at once: %w\n%s", p.Name, errors.Join(p.failed, last), p.Tail(20))
		case <-ctx.Done():
			p.Kill()
			return fmt.Errorf("%w: %w\n%s", context.Cause(ctx), last, p.Tail(20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Running reports whether the program was started and has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Stop asks the program to end and waits. It is an error if the program had
// ended before, ends with another exit code than 0, or has to be killed.
func (p *Process) Stop() error {
	if p.cmd == nil {
		return nil
	}
	if !p.Running() {
		return fmt.Errorf("%s had ended by itself: %w\n%s", p.Name, errors.Join(errEnded, p.failed), p.Tail(20))
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s did not end within %s\n%s", p.Name, stopTimeout, p.Tail(20))
	}
	p.cmd = nil
	if p.failed != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, p.failed, p.Tail(20))
	}
	return nil
}

// Kill ends the program at once, as kill -9 does, and whatever it started.
func (p *Process) Kill() {
	if !p.Running() {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
	p.cmd = nil
}

// PID is the number of the running process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is everything the program has written, over all its runs.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
