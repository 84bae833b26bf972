package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// nobody is an API server that is not there.
const nobody = "https://127.0.0.1:1"

// kubeconfigForNobody is a kubeconfig of nobody.
func kubeconfigForNobody(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, path, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": "`+nobody+`"}}], "users": [{"name": "u", "user": {"token": "t"}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "of-the-context"}}]}`)
	return path
}

// TestServeWithoutCluster: whatever keeps the companion from starting, the driver
// serves, and says why in one line.
func TestServeWithoutCluster(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		wants string
		fault bool // whether it is an error in the log
	}{
		"auto":          {nil, "there is no cluster", false},
		"on":            {[]string{"--companion", "on"}, "there is no cluster", true},
		"no such file":  {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "--kubeconfig", true},
		"no API server": {[]string{"--kubeconfig", kubeconfigForNobody(t)}, "the companion waits for the API server", false},
		"on, no API server": {
			[]string{"--companion", "on", "--allow-wipe-annotation", "--kubeconfig", kubeconfigForNobody(t)},
			"the companion waits for the API server", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serving(t, nil, append([]string{"--emulate"}, c.args...)...)
			line := r.stderr.line(t, "The companion does not work; the driver does")
			if !strings.Contains(line, c.wants) || c.fault != strings.Contains(line, `"level":"ERROR"`) {
				t.Errorf("logged %s", line)
			}
			r.wantReady(t, "ok")
			if code := r.stop(t); code != exitOK {
				t.Errorf("exit code %d\n%s", code, r.stderr)
			}
		})
	}
}

func TestCompanionOffLeavesKubernetesAlone(t *testing.T) {
	r := serving(t, nil, "--emulate", "--companion", "off", "--kubeconfig", kubeconfigForNobody(t))
	r.wantReady(t, "ok")
	r.stop(t)
	if log := r.stderr.String(); strings.Contains(log, "ompanion") {
		t.Errorf("logged %s", log)
	}
}

func TestCompanionSettings(t *testing.T) {
	if out := command(t, nil, "serve", "--companion", "maybe"); out.code != exitUsage || !strings.Contains(out.stderr, "want auto or on or off") {
		t.Error(out)
	}
	if out := command(t, nil, "serve", "--companion", "off", "--allow-wipe-annotation"); out.code != exitUsage || !strings.Contains(out.stderr, "needs the companion") {
		t.Error(out)
	}
	path := kubeconfigForNobody(t)
	for want, env := range map[string]environment{"of-the-context": nil, "of-the-pod": {envPodNamespace: "of-the-pod"}} {
		s := bound(t, env, "--kubeconfig", path)
		if config, namespace, err := s.cluster(); err != nil || namespace != want || config.Host != nobody {
			t.Errorf("namespace %q, %v", namespace, err)
		}
	}
}

// TestCompanionDocument: every annotation and every key is in docs/companion.md.
func TestCompanionDocument(t *testing.T) {
	text := readRoot(t, "docs/companion.md")
	for _, a := range companion.AnnotationTable() {
		if !strings.Contains(text, "`"+a.Name+"`") {
			t.Errorf("docs/companion.md lacks %s", a.Name)
		}
	}
	for _, k := range companion.EnvKeyTable() {
		if !strings.Contains(text, "| `"+k.Key+"` | `"+k.Field+"` |") {
			t.Errorf("docs/companion.md lacks %s", k.Key)
		}
	}
	for _, reason := range companion.Reasons() {
		if !strings.Contains(text, "`"+reason+"`") {
			t.Errorf("docs/companion.md lacks the event %s", reason)
		}
	}
}
