package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPlayground takes the cheat sheet at its word: every line of it must work
// in a shell, and nothing is left after the interrupt.
func TestPlayground(t *testing.T) {
	theCluster(t) // builds what the playground needs
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "playground")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "./playground").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-root", root)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var script []string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "Interrupt (Ctrl-C) ends it." {
		if command, ok := strings.CutPrefix(lines.Text(), "  "); ok {
			script = append(script, command)
		}
	}
	if len(script) < 10 {
		t.Errorf("the sheet has %d commands: %q", len(script), script)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", strings.Join(script, "\n"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"bucketaccess.objectstorage.k8s.io/reports-reader condition met", `"bucketName":"bucket-`, "cosi.zuber.dev"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // drains it, so that it can end
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if dir, _, ok := strings.Cut(strings.TrimPrefix(script[0], "export KUBECONFIG="), "/admin.kubeconfig"); !ok {
		t.Errorf("no kubeconfig in %q", script[0])
	} else if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
