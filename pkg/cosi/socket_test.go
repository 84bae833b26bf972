package cosi

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestSocketPath(t *testing.T) {
	for in, want := range map[string]string{
		"unix:///var/lib/cosi/cosi.sock":      "/var/lib/cosi/cosi.sock",
		"unix:///run//x/../cosi.socket":       "/run/cosi.socket",
		"unix:///" + strings.Repeat("a", 106): "/" + strings.Repeat("a", 106),
	} {
		if got, err := socketPath(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"":                                    "want unix://",
		"/var/lib/cosi/cosi.sock":             "want unix://",
		"tcp://127.0.0.1:1":                   "want unix://",
		"unix://var/lib/cosi.sock":            "three slashes",
		"unix:///var/lib/cosi/":               "names a directory",
		"unix:///":                            "names a directory",
		"unix:///a\x00b":                      "NUL",
		"unix:///" + strings.Repeat("a", 107): "108 bytes, a unix socket's may have 107",
	} {
		_, err := socketPath(in)
		if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.30q: %v, want %q", in, err, why)
		}
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	st, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode()
}

// TestModes: the directory and socket have their modes whatever the umask is.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		path := filepath.Join(t.TempDir(), "a", "b", "cosi.sock")
		old := syscall.Umask(umask)
		l, err := listen(t.Context(), path)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		if m := mode(t, path); m != fs.ModeSocket|0o660 {
			t.Errorf("umask %o: socket %v", umask, m)
		}
		if m := mode(t, filepath.Dir(path)); m != fs.ModeDir|0o750 {
			t.Errorf("umask %o: directory %v", umask, m)
		}
		_ = l.Close()
	}
}

// TestSocketIsBornClosed: at no moment is the socket open to everybody.
func TestSocketIsBornClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cosi.sock")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	lc := net.ListenConfig{Control: closedSocket}
	l, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if m := mode(t, path); m != fs.ModeSocket|0o660 {
		t.Errorf("before any chmod: %v", m)
	}
}

func TestExistingDirectoryKeepsItsMode(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o775); err != nil {
		t.Fatal(err)
	}
	l, err := listen(t.Context(), filepath.Join(dir, "cosi.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if m := mode(t, dir); m != fs.ModeDir|0o775 {
		t.Errorf("directory %v", m)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the socket: %v, %v", entries, err)
	}
}

// TestStaleSocketIsReplaced as a killed process leaves one.
func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cosi.sock")
	for range 3 {
		l, err := listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if m := mode(t, path); m.Type() != fs.ModeSocket {
			t.Fatalf("the socket is gone: %v", m)
		}
	}
}

func TestLiveSocketIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cosi.sock")
	l, err := listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = listen(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "serves it already") || !strings.Contains(err.Error(), peerName()) {
		t.Errorf("got %v, want one that names %s", err, peerName())
	}
	if m := mode(t, path); m.Type() != fs.ModeSocket {
		t.Error("the live socket was removed")
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	file, link, sub := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "sub")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, sub} {
		if _, err := listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "something else") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b, err := os.ReadFile(link); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := listen(t.Context(), filepath.Join(file, "cosi.sock")); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file as directory: %v", err)
	}
}

// TestOneOfManyStartsWins: processes that find the same stale socket at once.
func TestOneOfManyStartsWins(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "cosi.sock")
		l, err := listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		var won atomic.Int32
		var wg sync.WaitGroup
		var mu sync.Mutex
		var open []net.Listener
		for range 8 {
			wg.Go(func() {
				l, err := listen(t.Context(), path)
				if err != nil {
					return
				}
				won.Add(1)
				mu.Lock()
				open = append(open, l)
				mu.Unlock()
			})
		}
		wg.Wait()
		for _, l := range open {
			_ = l.Close()
		}
		if n := won.Load(); n != 1 {
			t.Fatalf("%d of 8 took the socket", n)
		}
	}
}

// TestLockedDirectoryObeysContext: whoever holds the directory blocks a start
// no longer than its context lives.
func TestLockedDirectoryObeysContext(t *testing.T) {
	dir := t.TempDir()
	done, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), takeoverPoll*3)
	defer cancel()
	if _, err := lockDir(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	done()
	again, err := lockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
