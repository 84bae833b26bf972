package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
	"github.com/zuber-storage/zuber/test/e2e/v1alpha2"
)

// start starts an API server that knows COSI's kinds, of the version that
// upstream has released.
func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	c, err := cluster.Start(t.Context(), cluster.Options{Root: root, Log: os.Stderr, NoPrograms: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestManifests: the API server takes every manifest that a document shows, and
// every other YAML is what the page says that it is a part of.
func TestManifests(t *testing.T) {
	c := start(t)
	// That of the chart, whose labels differ, takes its place.
	if _, err := c.Kubectl(t.Context(), "", "delete", "deployment", "zuber", "--namespace", "zuber-system"); err != nil {
		t.Fatal(err)
	}
	manifests := map[string][]block{}
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if b.language != "yaml" {
				continue
			}
			var err error
			switch kind := kindOf(b.text); kind {
			case "v1alpha1", "v1alpha2", "other":
				manifests[kind] = append(manifests[kind], b)
			case "container":
				err = yaml.UnmarshalStrict([]byte(b.text), &corev1.Container{})
			case "kustomization":
				err = kustomized(t, c, b.text)
			case "values":
				err = rendered(t, c, b.text)
			case "configuration": // see TestDocumentedConfiguration in cmd/zuber
			default:
				t.Errorf("%s:%d: nobody knows what this YAML is for", b.page, b.line)
			}
			if err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
			}
		}
	}
	takes(t, c, append(manifests["v1alpha1"], manifests["other"]...))
	// A cluster serves one version of COSI.
	if _, err := c.Kubectl(t.Context(), "", "delete", "customresourcedefinitions", "--all"); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha2.Install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	takes(t, c, manifests["v1alpha2"])
}

// takes has the API server check manifests as if they were applied.
func takes(t *testing.T, c *cluster.Cluster, all []block) {
	t.Helper()
	if len(all) == 0 {
		t.Error("no manifest was found")
	}
	for _, b := range all {
		if _, err := c.Kubectl(t.Context(), b.text, "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
		}
	}
}

// kindOf tells by its keys what a block is a part of.
func kindOf(text string) string {
	var first map[string]any
	if err := yaml.Unmarshal([]byte(strings.Split(text, "\n---\n")[0]), &first); err != nil {
		return err.Error()
	}
	has := func(key string) bool { return first[key] != nil }
	switch {
	case has("apiVersion"):
		if version, cosi := strings.CutPrefix(first["apiVersion"].(string), "objectstorage.k8s.io/"); cosi {
			return version
		}
		return "other"
	case has("backends") && (has("bucketClasses") || has("cosi")), has("metrics"), has("image"):
		return "values"
	case has("backends"):
		return "configuration"
	case has("images"):
		return "kustomization"
	case has("env"), has("args"):
		return "container"
	}
	return ""
}

// kustomized builds what the kustomization is for.
func kustomized(t *testing.T, c *cluster.Cluster, text string) error {
	t.Helper()
	dir := t.TempDir()
	text = "resources: [deployment.yaml]\n" + text
	deployment, err := os.ReadFile(filepath.Join(root, "config", "manager", "deployment.yaml"))
	if err != nil {
		return err
	}
	for name, content := range map[string]string{"kustomization.yaml": text, "deployment.yaml": string(deployment)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	out, err := c.Kubectl(t.Context(), "", "kustomize", dir)
	if err == nil && !strings.Contains(out, "image: registry.example/zuber:") {
		t.Errorf("the image stays as it is:\n%s", out)
	}
	return err
}

// rendered renders the chart with values and has the API server check the result.
func rendered(t *testing.T, c *cluster.Cluster, text string) error {
	t.Helper()
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		return err
	}
	out, err := helm(t, "render", "zuber", "zuber-system", filepath.Join(root, "config", "chart"), values)
	if err != nil {
		return err
	}
	_, err = c.Kubectl(t.Context(), out, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	return err
}
