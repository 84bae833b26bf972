package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// patience bounds every wait of the tests.
const patience = 30 * time.Second

// childVariable makes the test binary run the command instead of the tests.
const childVariable = "RUN_AS_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// outcomeOf is what a command did.
type outcomeOf struct {
	code           int
	stdout, stderr string
}

// command runs one command line to its end.
func command(t *testing.T, env environment, args ...string) outcomeOf {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, env, &stdout, &stderr)
	if err := ctx.Err(); err != nil {
		t.Fatalf("zuber %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return outcomeOf{code, stdout.String(), stderr.String()}
}

// watched is a stream that a test can wait on.
type watched struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newWatched() *watched { return &watched{changed: make(chan struct{})} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	close(w.changed)
	w.changed = make(chan struct{})
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// line waits for a line that holds the text and returns it.
func (w *watched) line(t *testing.T, text string) string {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		all, changed := w.text.String(), w.changed
		w.mu.Unlock()
		for _, line := range strings.SplitAfter(all, "\n") {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				return line
			}
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("%q was not written within %s; there is:\n%s", text, patience, all)
		}
	}
}

// background is a command that runs until it is stopped.
type background struct {
	stdout, stderr *watched
	cancel         context.CancelFunc
	done           chan struct{}
	code           int
}

// start runs a command in the background; the test's end stops it.
func start(t *testing.T, env environment, args ...string) *background {
	t.Helper()
	return startFunc(t, func(ctx context.Context, b *background) int { return run(ctx, args, env, b.stdout, b.stderr) })
}

// startFunc runs a function in the background as start runs a command.
func startFunc(t *testing.T, f func(ctx context.Context, b *background) int) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &background{stdout: newWatched(), stderr: newWatched(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.code = f(ctx, b)
	}()
	t.Cleanup(func() {
		cancel()
		<-b.done
	})
	return b
}

// stop does what a signal does and returns the exit code.
func (b *background) stop(t *testing.T) int {
	t.Helper()
	b.cancel()
	return b.wait(t)
}

// wait returns the exit code once the command has ended.
func (b *background) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatalf("the command did not end within %s:\n%s%s", patience, b.stdout, b.stderr)
	}
	return b.code
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// newCloud starts an emulated cloud of the test's own.
func newCloud(t *testing.T) *emulator.Emulator {
	t.Helper()
	cloud, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	return cloud
}

// entry is one back end of a configuration file, in JSON, which is YAML too.
type entry struct {
	Name      string            `json:"name"`
	Provider  string            `json:"provider"`
	TokenFile string            `json:"tokenFile"`
	APIURL    string            `json:"apiURL"`
	Endpoints map[string]string `json:"endpoints"`
}

// configFor writes a configuration with one back end per token, named a, b, ….
func configFor(t *testing.T, cloud *emulator.Emulator, tokens ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	cs := cloud.Cloudscale()
	var entries []entry
	for i, token := range tokens {
		name := string(rune('a' + i))
		writeFile(t, filepath.Join(dir, name+".token"), token+"\n")
		entries = append(entries, entry{
			Name: name, Provider: providerCloudscale, TokenFile: name + ".token", APIURL: cs.APIURL, Endpoints: cs.Endpoints,
		})
	}
	raw, err := json.Marshal(map[string]any{"backends": entries})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "zuber.yaml")
	writeFile(t, path, string(raw))
	return path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// socketDir is a directory whose path leaves room for a socket's name.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zuber") //nolint:usetesting // t.TempDir is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// wantLines reports every wanted text that is missing.
func wantLines(t *testing.T, where, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", where, want, text)
		}
	}
}

// lines splits a text into its lines.
func lines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (o outcomeOf) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", o.code, o.stdout, o.stderr)
}
