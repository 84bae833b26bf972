// Package docs reads the pages of the repository, for the tests of what stands in
// them. docs/developing.md says what kinds of blocks there are.
package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block.
type Block struct {
	Page string // by its path in the repository
	Line int    // of its fence
	Kind string // the words behind the fence, such as "yaml values"
	Text string // without the indentation of the fence
}

func (b Block) String() string { return fmt.Sprintf("%s:%d (%s)", b.Page, b.Line, b.Kind) }

// Page is one of Markdown.
type Page struct {
	Path    string // in the repository
	Prose   []string
	Anchors []string // of its headings, as GitHub makes them
	Blocks  []Block
}

// Pages reads the README, and what is in docs and beside the chart.
func Pages(root string) ([]Page, error) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md", "config/chart/README.md"} {
		names = append(names, filepath.Join(root, name))
	}
	var pages []Page
	for _, name := range names {
		text, err := os.ReadFile(name) //nolint:gosec // a page of the repository
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		page, err := parse(filepath.ToSlash(path), string(text))
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Blocks reads the blocks of a kind. None is an error.
func Blocks(root, kind string) ([]Block, error) {
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	var all []Block
	for _, p := range pages {
		for _, b := range p.Blocks {
			if b.Kind == kind {
				all = append(all, b)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no page has a block of the kind " + kind)
	}
	return all, nil
}

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
)

func parse(path, text string) (Page, error) {
	page := Page{Path: path}
	var open *Block
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open, indent = &Block{Page: path, Line: i + 1, Kind: strings.TrimSpace(m[2])}, m[1]
		case open != nil && m != nil && m[2] == "":
			page.Blocks, open = append(page.Blocks, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		default:
			page.Prose = append(page.Prose, line)
			if h := heading.FindStringSubmatch(line); h != nil {
				page.Anchors = append(page.Anchors, anchor(h[1], page.Anchors))
			}
		}
	}
	if open != nil {
		return page, fmt.Errorf("%s: it does not end", open)
	}
	return page, nil
}

// anchor is what GitHub makes of a heading: small letters, hyphens for spaces, no
// punctuation, and a number behind what was there before.
func anchor(text string, before []string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	text = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(text), "")
	text = strings.ReplaceAll(text, " ", "-")
	name := text
	for n := 1; slices.Contains(before, name); n++ {
		name = fmt.Sprintf("%s-%d", text, n)
	}
	return name
}
