package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/rhysd/actionlint"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// workflows are the files of GitHub's workflows, by their path in the repository.
func workflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Join(".github", "workflows", filepath.Base(f)))
	}
	return names
}

func TestWorkflows(t *testing.T) {
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range workflows(t) {
		faults, err := linter.LintFile(filepath.Join(root, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			t.Error(f)
		}
	}
}

// TestPins: what a workflow uses of others cannot become something else.
func TestPins(t *testing.T) {
	build, _, global := dockerfile(t)
	image, err := global.expand(build.BaseName)
	if err != nil {
		t.Fatal(err)
	}
	goVersion := regexp.MustCompile(`^golang:([0-9.]+)-`).FindStringSubmatch(image)
	if goVersion == nil {
		t.Fatalf("which Go is %s?", image)
	}
	for _, name := range workflows(t) {
		text := read(t, name)
		for _, m := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(m[1]) {
				t.Errorf("%s: %s: want a commit, and its version as a comment", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`go-version: (.*)`).FindAllStringSubmatch(text, -1) {
			if m[1] != goVersion[1] {
				t.Errorf("%s: Go %s, and the image is built with %s", name, m[1], goVersion[1])
			}
		}
		for _, m := range regexp.MustCompile(`container: (.*)`).FindAllStringSubmatch(text, -1) {
			if m[1] != image {
				t.Errorf("%s: %s, and the image is built in %s", name, m[1], image)
			}
		}
		for _, m := range regexp.MustCompile(`go run [a-z][^ ]*`).FindAllString(text, -1) {
			if !regexp.MustCompile(`@v\d+\.\d+\.\d+$`).MatchString(m) {
				t.Errorf("%s: %s has no version", name, m)
			}
		}
	}
}

// TestGoReleaser: GoReleaser knows every key of its configuration, and builds as
// the Dockerfile does, for what the notices are made for.
func TestGoReleaser(t *testing.T) {
	c, err := config.Load(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Version != 2 || len(c.Builds) != 1 || len(c.Signs) != 1 || len(c.SBOMs) != 1 {
		t.Fatalf("version %d, %d builds, %d signatures and %d bills", c.Version, len(c.Builds), len(c.Signs), len(c.SBOMs))
	}
	b := c.Builds[0]
	if !slices.Equal(b.Goos, []string{"linux"}) || !slices.Equal(b.Goarch, architectures) || b.Main != command {
		t.Errorf("it builds %s for %v and %v", b.Main, b.Goos, b.Goarch)
	}
	ldflags := strings.NewReplacer("{{ .Version }}", "$VERSION", "{{ .FullCommit }}", "$COMMIT").Replace(strings.Join(b.Ldflags, " "))
	want := "go build " + strings.Join(b.Flags, " ") + ` -ldflags "` + ldflags + `"`
	build, _, _ := dockerfile(t)
	if !slices.ContainsFunc(build.Commands, func(c instructions.Command) bool {
		r, ok := c.(*instructions.RunCommand)
		return ok && strings.Contains(strings.Join(r.CmdLine, " "), want)
	}) {
		t.Errorf("the Dockerfile does not run %s", want)
	}
	if !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) {
		t.Errorf("it builds with %v", b.Env)
	}
	own := regexp.MustCompile(`goreleaser/v2 (v\S+)`).FindStringSubmatch(read(t, "test/tools/release/go.mod"))
	if own == nil || !strings.Contains(read(t, ".github/workflows/release.yml"), "\n          version: "+own[1]+"\n") {
		t.Errorf("%v knows this configuration, and another GoReleaser runs", own)
	}
}

// TestOneImage: what is released is what the chart and its workflow name.
func TestOneImage(t *testing.T) {
	pushed := regexp.MustCompile(`(?m)^  IMAGE: (\S+)$`).FindStringSubmatch(read(t, ".github/workflows/release.yml"))
	if pushed == nil {
		t.Fatal("the workflow names no image")
	}
	if !strings.Contains(read(t, "config/chart/values.yaml"), "\n  repository: "+pushed[1]+"\n") {
		t.Errorf("the chart does not take %s", pushed[1])
	}
	if used := regexp.MustCompile(`helm.sh/helm/v3 (v\S+)`).FindStringSubmatch(read(t, "test/tools/helm/go.mod")); used == nil ||
		!strings.Contains(read(t, ".github/workflows/release.yml"), "helm.sh/helm/v3/cmd/helm@"+used[1]+" ") {
		t.Errorf("the chart is tested with Helm %v, and packed with another", used)
	}
}

// TestRenovate: what it looks for by an expression is there.
func TestRenovate(t *testing.T) {
	var c struct {
		CustomManagers []struct {
			ManagerFilePatterns, MatchStrings []string
		}
	}
	decoder := json.NewDecoder(strings.NewReader(read(t, ".github/renovate.json")))
	if err := decoder.Decode(&c); err != nil || len(c.CustomManagers) == 0 {
		t.Fatal(c, err)
	}
	names := append(workflows(t), "Dockerfile")
	for _, m := range c.CustomManagers {
		found := 0
		for _, pattern := range m.ManagerFilePatterns {
			files := regexp.MustCompile(strings.Trim(pattern, "/"))
			for _, name := range names {
				if !files.MatchString(filepath.ToSlash(name)) {
					continue
				}
				for _, s := range m.MatchStrings {
					found += len(regexp.MustCompile(s).FindAllString(read(t, name), -1))
				}
			}
		}
		if found == 0 {
			t.Errorf("%v: nothing matches %v", m.ManagerFilePatterns, m.MatchStrings)
		}
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	text := "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- A thing.\n\n## [1.1.0] - 2025-01-02\n\n- Another.\n\n## [1.0.0] - 2024-01-02\n"
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.2.0": "### Added\n\n- A thing.\n", "1.1.0": "- Another.\n"} {
		var out bytes.Buffer
		if err := writeChanges(&out, dir, version); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", version, out.String(), err)
		}
	}
	for _, version := range []string{"1.0.0", "1.2", "1x2.0", "Unreleased", "3.0.0"} {
		if err := writeChanges(io.Discard, dir, version); err == nil {
			t.Errorf("%s has notes", version)
		}
	}
	// The changelog has the form that is read here.
	if !strings.Contains(read(t, "CHANGELOG.md"), "\n## [Unreleased]\n") {
		t.Error("CHANGELOG.md has another form")
	}
}
