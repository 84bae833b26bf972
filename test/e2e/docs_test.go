package e2e

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/test/docs"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// TestDocsYAML: the API server takes the objects that the pages show. Those of
// v1alpha2 are sent by TestSamplesOfV1alpha2.
func TestDocsYAML(t *testing.T) {
	s := together(t)
	dryRun(t, s.Cluster, s.ns, func(text string) bool { return !ofV1alpha2(text) })
	for _, b := range docsBlocks(t, "yaml container") {
		var container map[string]any
		if err := yaml.Unmarshal([]byte(b.Text), &container); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		container["name"], container["image"] = "x", "x"
		var volumes []any
		mounts, _ := container["volumeMounts"].([]any)
		for _, m := range mounts {
			volumes = append(volumes, map[string]any{"name": m.(map[string]any)["name"], "emptyDir": map[string]any{}})
		}
		pod := manifest("Pod", "docs", map[string]any{"apiVersion": "v1", "spec": map[string]any{"containers": []any{container}, "volumes": volumes}})
		if _, err := s.Kubectl(t.Context(), pod, "apply", "--namespace", s.ns, "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func ofV1alpha2(text string) bool { return strings.Contains(text, "objectstorage.k8s.io/v1alpha2") }

func docsBlocks(t *testing.T, kind string) []docs.Block {
	t.Helper()
	blocks, err := docs.Blocks(root, kind)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// dryRun sends the blocks of objects that fit to the API server, which has to know
// every field.
func dryRun(t *testing.T, c *cluster.Cluster, namespace string, fits func(text string) bool) {
	t.Helper()
	sent := 0
	for _, b := range docsBlocks(t, "yaml") {
		if !fits(b.Text) {
			continue
		}
		sent++
		args := []string{"apply", "--dry-run=server", "--validate=strict", "-f", "-"}
		if !strings.Contains(b.Text, "namespace: ") {
			args = append(args, "--namespace", namespace)
		}
		if _, err := c.Kubectl(t.Context(), b.Text, args...); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	if sent == 0 {
		t.Error("no page has such objects")
	}
}
