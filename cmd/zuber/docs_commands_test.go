package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// blocksOf are the fenced blocks of a document that begin with a text.
func blocksOf(t *testing.T, name, begin string) []string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^ *```\\w*\n(.*?)^ *```$").FindAllStringSubmatch(readRoot(t, name), -1) {
		if strings.HasPrefix(m[1], begin) {
			all = append(all, m[1])
		}
	}
	return all
}

// TestDocumentedConfiguration: the driver takes the configuration that the document
// shows.
func TestDocumentedConfiguration(t *testing.T) {
	blocks := blocksOf(t, "docs/install.md", "backends:")
	if len(blocks) != 1 {
		t.Fatalf("docs/install.md shows %d configurations", len(blocks))
	}
	path := filepath.Join(t.TempDir(), "zuber.yaml")
	writeFile(t, path, blocks[0])
	file, err := readConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Backends) != 3 {
		t.Error(file)
	}
}

// TestDocumentedCommands runs every command of the program's own that a document
// shows, in clouds that have something to find.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, page := range pages {
		text := readRoot(t, filepath.Join("docs", filepath.Base(page)))
		for _, line := range regexp.MustCompile(`(?m)^ *zuber (.+)$`).FindAllStringSubmatch(text, -1) {
			arguments, _, _ := strings.Cut(line[1], " #")
			commands = append(commands, arguments)
		}
	}
	if len(commands) < 5 {
		t.Fatalf("found only these commands: %q", commands)
	}
	y := newYard(t, "v1alpha1") // has a zuber.yaml
	env := environment{envKubeconfig: y.cluster.kubeconfig(t)}
	t.Chdir(filepath.Dir(y.config))
	for _, arguments := range commands {
		fields := strings.Fields(arguments)
		if slices.Contains(fields, "--"+flagUsage) { // takes credentials from variables; here they are in a file
			fields = append(fields, "--config", "zuber.yaml")
		}
		if got := command(t, env, fields...); got.code == exitUsage {
			t.Errorf("zuber %s: %s", arguments, got)
		}
	}
}
