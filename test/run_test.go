package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompat runs the module in compat, which `go test ./...` does not reach:
// the older wire, spoken to the built binary.
func TestCompat(t *testing.T) { runModule(t, "compat", "TestOlderWire") }

// TestRelease runs the module in tools/release: the image, the licences of what is
// linked, and the configuration of a release.
func TestRelease(t *testing.T) {
	runModule(t, filepath.Join("tools", "release"), "TestImage", "TestLicences", "TestGoReleaser", "TestWorkflows")
}

// runModule runs the tests of a module of its own, and wants these to have passed.
func runModule(t *testing.T, dir string, want ...string) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds and runs the binary")
	}
	// The inner run builds what its cache key cannot know, hence -count=1.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout", "30m", "-v", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range want {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}

// TestMonitoring runs the module in tools/monitoring: when each alert fires, and what
// the dashboard asks for.
func TestMonitoring(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds Prometheus's query engine")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "./...")
	cmd.Dir = "tools/monitoring"
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestAlerts", "TestAlertQueries", "TestDashboard"} {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}
