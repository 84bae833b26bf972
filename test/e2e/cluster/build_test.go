package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// watched is a log that may be written to at once.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// tiny is a module like those under test/tools, in a repository of its own.
func tiny(t *testing.T, source string) (m module, root, cache string) {
	t.Helper()
	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	root, cache = t.TempDir(), t.TempDir()
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // where other systems than Linux have it
	dir := filepath.Join(root, "test", "tools", "tiny")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module tiny\n\ngo 1.26.0\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return module{name: "tiny", packages: map[string]string{"tiny": "."}}, root, cache
}

// TestBuildOnce: of many at once, one builds; a changed source is built anew.
func TestBuildOnce(t *testing.T) {
	m, root, _ := tiny(t, "package main\n\nfunc main() { print(`one`) }\n")
	var log watched
	var all sync.WaitGroup
	targets := make([]string, 5)
	for i := range targets {
		all.Go(func() {
			var err error
			if targets[i], err = m.build(t.Context(), root, &log); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(log.text.String(), "built tiny in "); n != 1 {
		t.Errorf("built %d times:\n%s", n, &log.text)
	}
	for _, target := range targets {
		if target != targets[0] {
			t.Errorf("%s and %s", target, targets[0])
		}
	}
	run := func(dir, want string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "tiny")).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
	run(targets[0], "one")
	if err := os.WriteFile(filepath.Join(root, "test", "tools", "tiny", "main.go"), []byte("package main\n\nfunc main() { print(`two`) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := m.build(t.Context(), root, &log)
	if err != nil {
		t.Fatal(err)
	}
	run(other, "two")
}

// TestBuildFails: the error has what the compiler says, and nothing is left that
// a later build would take for the program.
func TestBuildFails(t *testing.T) {
	m, root, cache := tiny(t, "package main\n\nfunc main() { missing() }\n")
	_, err := m.build(t.Context(), root, &watched{})
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") || !strings.Contains(err.Error(), "building tiny in ") {
		t.Errorf("%v", err)
	}
	left, _ := filepath.Glob(filepath.Join(cache, "*", "tiny-*"))
	if len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}
