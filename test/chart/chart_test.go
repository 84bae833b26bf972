// Package chart tests the Helm chart in config/chart with Helm's own library and
// with kubectl's kustomize. The flag -update writes the files that follow from
// others: the golden renders, the copies of the roles, upstream's COSI and the
// table of the chart's README.
package chart

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/test/docs"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

var update = flag.Bool("update", false, "write the files that follow from others")

const (
	root  = "../.."
	chart = root + "/config/chart"
)

// object is one of Kubernetes' as YAML has it.
type object = map[string]any

// wantFile compares a file of the repository with what it follows from.
func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what it should be (%v); if that is wanted, run: go test ./test/chart -update", path, err)
	}
}

// run runs a program and returns what it writes.
func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%w: %s", err, &stderr)
	}
	return stdout.String(), nil
}

// helm runs the program of test/tools/helm.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return run(t, built(t, cluster.BuildHelm), args...)
}

// render renders the chart with values and returns its text.
func render(t *testing.T, values string) string {
	t.Helper()
	out, err := helm(t, "render", "zuber", "zuber-system", chart, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inChart is the path of a file of values in config/chart/ci.
func inChart(name string) string { return filepath.Join(chart, "ci", name) }

// files are the files of values in config/chart/ci.
func files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(inChart(""))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// parse reads the objects of a stream of YAML.
func parse(t *testing.T, text string) []object {
	t.Helper()
	var all []object
	for part := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(part, "---\n")), &o); err != nil {
			t.Fatalf("%v:\n%s", err, part)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// The files that follow from others come first, so that one -update is enough.

// TestCopies: the chart gives the rights and the alerts that config gives.
func TestCopies(t *testing.T) {
	for copied, source := range map[string]string{
		"rbac/sidecar":                      "rbac/clusterrole",
		"rbac/sidecar-lease":                "rbac/role",
		"rbac/companion":                    "companion-per-namespace/clusterrole",
		"rbac/companion-roles":              "companion-per-namespace/role",
		"rbac/companion-secrets":            "companion-per-namespace/secrets",
		"rbac/companion-secrets-everywhere": "companion/secrets",
		"monitoring/prometheusrule":         "monitoring/prometheusrule",
	} {
		text, err := os.ReadFile(filepath.Join(root, "config", source+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		wantFile(t, filepath.Join(chart, copied+".yaml"), string(text))
	}
}

// TestUpstream: what the chart installs with cosi.enabled is what config/crd is.
func TestUpstream(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crd")
	b := binaries(t)
	if err := cluster.LocalDefinitions(root, b, dir); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, b.Kubectl, "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	var definitions, rest []string
	for part := range strings.SplitSeq(strings.TrimSpace(out), "\n---\n") {
		if strings.Contains(part, "{{") {
			t.Fatal("upstream's text would be a template")
		}
		if strings.Contains(part, "\nkind: CustomResourceDefinition\n") {
			definitions = append(definitions, part)
		} else {
			rest = append(rest, part)
		}
	}
	if len(definitions) != 5 || len(rest) < 5 {
		t.Fatalf("%d definitions and %d more objects", len(definitions), len(rest))
	}
	cosi := filepath.Join(chart, "charts", "cosi")
	wantFile(t, filepath.Join(cosi, "crds", "cosi.yaml"), strings.Join(definitions, "\n---\n")+"\n")
	wantFile(t, filepath.Join(cosi, "templates", "controller.yaml"), strings.Join(rest, "\n---\n")+"\n")
}

// TestRenders compares what the chart makes of each file of values.
func TestRenders(t *testing.T) {
	if len(files(t)) < 4 {
		t.Fatal("config/chart/ci has lost files")
	}
	for _, name := range files(t) {
		t.Run(name, func(t *testing.T) {
			out := render(t, inChart(name))
			if parse(t, out) == nil {
				t.Fatal("it makes nothing")
			}
			wantFile(t, filepath.Join("testdata", name), out)
		})
	}
}

// TestLint: helm lint has nothing to say.
func TestLint(t *testing.T) {
	for _, name := range files(t) {
		if _, err := helm(t, "lint", chart, inChart(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchema: values that cannot work are refused, with the name of what is wrong.
func TestSchema(t *testing.T) {
	const backend = "backends: [{name: a, provider: cloudscale, credentials: {secretName: s}}]\n"
	for text, want := range map[string]string{
		"backend: []":              "backend",
		"replicas: two":            "replicas",
		"driverName: Cosi.Example": "driverName",
		"backends: [{name: a, provider: aws, credentials: {secretName: s}}]":                                                                 "provider",
		"backends: [{name: A, provider: cloudscale, credentials: {secretName: s}}]":                                                          "name",
		"backends: [{name: a, provider: cloudscale}]":                                                                                        "backends",
		"backends: [{name: a, provider: cloudscale, credentials: {}}]":                                                                       "secretName",
		"backends: [{name: a, provider: cloudscale, federation: {serviceAccountEmail: e, projectID: 00000000-0000-0000-0000-000000000000}}]": "provider",
		"backends: [{name: a, provider: stackit, federation: {serviceAccountEmail: e, projectID: mine}}]":                                    "projectID",
		"backends: [{name: a, provider: cloudscale, credentials: {secretName: s}, settings: {tokenFile: /x}}]":                               "settings",
		"bucketClasses: [{name: a, deletionPolicy: Keep}]":                                                                                   "deletionPolicy",
		"bucketClasses: [{name: a, parameters: {s3PathStyle: false}}]":                                                                       "s3PathStyle",
		backend + "image: {digest: sha256:short}":                                                                                            "digest",
		"companion: {rbac: namespaces}":                                                                                                      "namespaces",
		"companion: {mode: yes}":                                                                                                             "mode",
		"metrics: {port: 70000}":                                                                                                             "port",
		"networkPolicy: {egressPorts: [https]}":                                                                                              "egressPorts",
	} {
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := helm(t, "render", "zuber", "zuber-system", chart, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a fault of %s", text, err, want)
		}
	}
}

// TestDocsValues renders the chart with the values that the pages show.
func TestDocsValues(t *testing.T) {
	blocks, err := docs.Blocks(root, "yaml values")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		kinds := map[any]bool{}
		for _, o := range parse(t, render(t, path)) {
			kinds[o["kind"]] = true
		}
		for _, want := range []string{"Deployment", "BucketClass", "BucketAccessClass"} {
			if !kinds[want] {
				t.Errorf("%s makes no %s", b, want)
			}
		}
	}
}

// TestNoStrayFiles: what is in the chart belongs there.
func TestNoStrayFiles(t *testing.T) {
	err := filepath.WalkDir(chart, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			t.Errorf("%s is a link, which archives for Flux leave out", path)
		}
		if err == nil && !d.IsDir() && !slices.Contains([]string{".yaml", ".json", ".md", ".tpl", ".txt", ".helmignore"}, filepath.Ext(path)) {
			t.Errorf("%s: what is that?", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
