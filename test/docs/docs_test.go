package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

func pages(t *testing.T) []Page {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLinks: every link leads to a file that is there, and to a heading in it.
func TestLinks(t *testing.T) {
	anchors := map[string][]string{}
	for _, p := range pages(t) {
		anchors[p.Path] = p.Anchors
	}
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code := regexp.MustCompile("`[^`]*`")
	links := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(strings.Join(p.Prose, "\n"), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			name, fragment, hasFragment := strings.Cut(m[1], "#")
			target := p.Path
			if name != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(p.Path), name))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s: %v", p.Path, m[1], err)
				continue
			}
			if hasFragment && !slices.Contains(anchors[target], fragment) {
				t.Errorf("%s: %s: %s has no such heading; it has %q", p.Path, m[1], target, anchors[target])
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links were found", links)
	}
}

// TestEveryPageIsReached: no page of docs is one that no other names.
func TestEveryPageIsReached(t *testing.T) {
	reached := map[string]bool{}
	for _, p := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^()\s#]+)`).FindAllStringSubmatch(strings.Join(p.Prose, "\n"), -1) {
			reached[filepath.ToSlash(filepath.Join(filepath.Dir(p.Path), m[1]))] = true
		}
	}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.Path, "docs/") && !reached[p.Path] {
			t.Errorf("no page links to %s", p.Path)
		}
	}
}

// TestKinds: a block is of a kind that docs/developing.md lists, so that a test is
// there for it. Blocks that nobody types or applies have no kind.
func TestKinds(t *testing.T) {
	var known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:yaml|sh)[a-z ]*)` \\|").FindAllStringSubmatch(text(t, "docs/developing.md"), -1) {
		known = append(known, m[1])
	}
	if len(known) < 10 {
		t.Fatalf("docs/developing.md lists %q", known)
	}
	known = append(known, "", "json", "mermaid")
	used := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.Blocks {
			used[b.Kind] = true
			if !slices.Contains(known, b.Kind) {
				t.Errorf("%s: the kinds are %q", b, known)
			}
			if b.Kind == "yaml" && !strings.Contains(b.Text, "apiVersion: ") {
				t.Errorf("%s is no object", b)
			}
		}
	}
	for _, kind := range known {
		if !used[kind] {
			t.Errorf("there is no block of the kind %q", kind)
		}
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// shellBlocks are the blocks for the shell, of all kinds.
func shellBlocks(t *testing.T) []Block {
	t.Helper()
	var all []Block
	for _, p := range pages(t) {
		for _, b := range p.Blocks {
			if strings.HasPrefix(b.Kind, "sh") {
				all = append(all, b)
			}
		}
	}
	return all
}

func TestShellSyntax(t *testing.T) {
	for _, b := range shellBlocks(t) {
		cmd := exec.CommandContext(t.Context(), "sh", "-n")
		cmd.Stdin = strings.NewReader(b.Text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", b, err, out)
		}
	}
}

// TestShellFiles: what commands are given of the repository is there.
func TestShellFiles(t *testing.T) {
	found := 0
	for _, b := range shellBlocks(t) {
		for _, m := range regexp.MustCompile(`(?m)(?:^|[\s=])((?:config|test|cmd|pkg)/[\w./-]+)`).FindAllStringSubmatch(b.Text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d files were found", found)
	}
}

// TestShellRuns runs what needs no network and no cluster.
func TestShellRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	blocks, err := Blocks(root, "sh offline")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		cmd := exec.CommandContext(t.Context(), "sh", "-e")
		cmd.Dir, cmd.Stdin = root, strings.NewReader(b.Text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", b, err, out)
		}
	}
}

// TestKustomizationBlocks: they stand for what config/manager has, with another
// image.
func TestKustomizationBlocks(t *testing.T) {
	type images struct {
		Images []struct{ Name, NewName, NewTag string } `json:"images"`
	}
	var own images
	if err := yaml.Unmarshal([]byte(text(t, "config/manager/kustomization.yaml")), &own); err != nil || len(own.Images) != 1 {
		t.Fatal(own, err)
	}
	blocks, err := Blocks(root, "yaml kustomization")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		var shown images
		if err := yaml.UnmarshalStrict([]byte(b.Text), &shown); err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		if len(shown.Images) != 1 || shown.Images[0].Name != own.Images[0].Name || shown.Images[0].NewName == "" || shown.Images[0].NewTag == "" {
			t.Errorf("%s is no such image as %+v", b, own)
		}
	}
}

func TestParse(t *testing.T) {
	page, err := parse("a.md", "# One & two\n\n1. text\n\n   ```sh cluster\n   x\n     y\n   ```\n\n## One `--two`\n## One --two\n```\n# no heading\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"one--two", "one---two", "one---two-1"}; !slices.Equal(page.Anchors, want) {
		t.Errorf("%q, want %q", page.Anchors, want)
	}
	if len(page.Blocks) != 2 || page.Blocks[0] != (Block{"a.md", 5, "sh cluster", "x\n  y\n"}) || page.Blocks[1].Kind != "" {
		t.Errorf("%+v", page.Blocks)
	}
	if _, err := parse("a.md", "```sh\n"); err == nil {
		t.Error("a block without an end was accepted")
	}
}
