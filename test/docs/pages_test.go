// Package docs tests what the documents show: their links lead somewhere, the API
// server takes their manifests, and their commands run.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// page is a document, its path below the root.
type page struct{ path, text string }

// block is a fenced block of a document.
type block struct {
	page     string
	line     int // of its first line
	language string
	text     string
}

// pages are all documents for users.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for _, pattern := range []string{"*.md", "docs/*.md", "config/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page{filepath.ToSlash(name), string(text)})
		}
	}
	return all
}

var fence = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```$")

// blocks are those of a page, without the indentation of a list that they stand in.
func (p page) blocks() []block {
	var all []block
	for _, at := range fence.FindAllStringSubmatchIndex(p.text, -1) {
		part := func(n int) string { return p.text[at[2*n]:at[2*n+1]] }
		text := regexp.MustCompile("(?m)^"+part(1)).ReplaceAllString(part(3), "")
		all = append(all, block{p.path, strings.Count(p.text[:at[6]], "\n") + 1, part(2), text})
	}
	return all
}

// prose is the page without its blocks, and without `code`.
func (p page) prose() string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(fence.ReplaceAllString(p.text, ""), "")
}

// anchors are what the headings of a page can be called by, as GitHub does it.
func (p page) anchors() map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
		name := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		name = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(name), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// TestLinks: every link within the repository leads to a file, and every anchor to
// a heading of its page.
func TestLinks(t *testing.T) {
	known := map[string]page{}
	for _, p := range pages(t) {
		known[p.path] = p
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, p := range known {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			found++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which there is not", p.path, m[1])
				continue
			}
			if anchor != "" && !known[target].anchors()[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", p.path, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("%d links were found: the pattern finds too few", found)
	}
}

// TestEveryPageIsReachable: README leads to each of the others, if only by a page
// that it leads to.
func TestEveryPageIsReachable(t *testing.T) {
	var readme string
	all := pages(t)
	for _, p := range all {
		if p.path == "README.md" {
			readme = p.text
		}
	}
	for _, p := range all {
		if strings.HasPrefix(p.path, "docs/") && !strings.Contains(readme, "]("+p.path) {
			t.Errorf("README.md has no link to %s", p.path)
		}
	}
}
