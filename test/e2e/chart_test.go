package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// monitoring is the Prometheus Operator's kinds, as far as the API server minds.
func monitoring(plural, kind string) string {
	return manifest("CustomResourceDefinition", plural+".monitoring.coreos.com", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"spec": map[string]any{
			"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	})
}

// TestChart: the API server takes what the chart makes of every file of values,
// beside the installation that is there, and its Pod is allowed in a namespace
// whose security level is restricted.
func TestChart(t *testing.T) {
	s := together(t)
	helm, err := cluster.BuildHelm(t.Context(), root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var definitions []object
	for plural, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		definitions = append(definitions, s.apply(monitoring(plural, kind))...)
	}
	s.kubectl("wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinition", definitions[0].name(), definitions[1].name())
	for _, ns := range []string{"team-a", "team-b"} {
		s.apply(manifest("Namespace", ns, map[string]any{"apiVersion": "v1"}))
	}
	chart := filepath.Join(root, "config", "chart")
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := exec.CommandContext(t.Context(), helm, "render", s.ns, s.ns, chart, file).Output()
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"apply", "-o", "json", "-f", "-"}
		if !strings.HasSuffix(file, "full.yaml") {
			args = append(args, "--dry-run=server")
		}
		out, err := s.Kubectl(t.Context(), string(text), args...)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var applied object
		if err := json.Unmarshal([]byte(out), &applied); err != nil {
			t.Fatal(err)
		}
		deployments := 0
		for _, o := range applied.list("items") {
			if o.text("kind") == "Deployment" && o.text("metadata", "namespace") == s.ns {
				deployments++
				s.podAllowed(o)
			}
		}
		if deployments != 1 {
			t.Errorf("%s: %d Deployments", file, deployments)
		}
		if strings.HasSuffix(file, "full.yaml") {
			if _, err := s.Kubectl(t.Context(), string(text), "delete", "-f", "-"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
