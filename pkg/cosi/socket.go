package cosi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	socketMode = 0o660 // the sidecar may run under another user, in the same group
	socketDir  = 0o750
	// probeTimeout bounds the question whether a socket is alive.
	probeTimeout = 2 * time.Second
	// takeoverPoll is how often the turn to look at a socket is asked for.
	takeoverPoll = 20 * time.Millisecond
)

// listen takes the socket at path: it makes the directory if there is none,
// replaces a socket that nobody serves any more, and refuses one that somebody
// does, and whatever is not a socket.
func listen(ctx context.Context, path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	// Of two processes that start at once only one may judge and replace.
	done, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	return bind(ctx, path)
}

// makeDir leaves an existing directory as it is: its owner chose its mode.
func makeDir(dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("socket directory %s is not a directory", dir)
		}
		return nil
	}
	if err := os.MkdirAll(dir, socketDir); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	// MkdirAll obeys the umask, which may have taken the group's rights.
	if err := os.Chmod(dir, socketDir); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	return nil
}

// lockDir waits for the advisory lock of the directory, which needs no file
// beside the socket. A file system without such locks is used unlocked.
func lockDir(ctx context.Context, dir string) (done func(), err error) {
	f, err := os.Open(dir) //nolint:gosec // the directory of the socket is configuration
	if err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	unlock := func() { _ = f.Close() } // closing releases the lock
	tick := time.NewTicker(takeoverPoll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return unlock, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("socket directory %s: another process is starting in it: %w", dir, ctx.Err())
		}
	}
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: there is something else of that name (%s); remove it or choose another endpoint", path, st.Mode().Type())
	}
	d := net.Dialer{Timeout: probeTimeout}
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		defer func() { _ = conn.Close() }()
		return fmt.Errorf("socket %s: %s serves it already; stop it, or choose another endpoint", path, peer(conn))
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("stale socket: %w", err)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("socket %s: cannot tell whether it is served: %w; remove it if it is not", path, err)
	}
}

// closedSocket gives an unbound socket the mode of its file to be.
func closedSocket(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) })
}

// bind makes the socket with its mode. On Linux the file is born with the mode
// of the unbound socket less the umask, so that it is at no moment open to
// more than that; where the first call is refused, the last one does it.
func bind(ctx context.Context, path string) (net.Listener, error) {
	lc := net.ListenConfig{Control: closedSocket}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	// The server removes the file itself, before it stops to listen.
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		_ = os.Remove(path)
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
