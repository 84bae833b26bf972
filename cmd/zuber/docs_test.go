package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zuber-storage/zuber/test/docs"
)

// root is the repository.
const root = "../.."

func readRoot(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestGeneratedDocumentsAreCurrent(t *testing.T) {
	files, err := generatedFiles(root, newRoot(&app{stdout: io.Discard, stderr: io.Discard}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got := readRoot(t, name); got != string(want) {
			t.Errorf("%s is stale: run `go generate ./cmd/zuber`", name)
		}
	}
}

// TestDocsCommand rewrites stale copies, and is idempotent.
func TestDocsCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"README.md": "parameters", "docs/companion.md": "annotations"} {
		text := readRoot(t, name)
		stale := regexp.MustCompile(`(?s)(<!-- begin `+table+` -->\n).*(<!-- end `+table+` -->)`).ReplaceAllString(text, "${1}stale\n$2")
		if stale == text {
			t.Fatalf("%s has no table of %s to make stale", name, table)
		}
		writeFile(t, filepath.Join(dir, name), stale)
	}
	for range 2 {
		if got := command(t, nil, "docs", "--root", dir); got.code != exitOK {
			t.Fatal(got)
		}
		for _, name := range []string{"README.md", "docs/companion.md", "docs/flags.md", "docs/metrics.md"} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(raw) != readRoot(t, name) {
				t.Errorf("%s differs from the repository's (%v)", name, err)
			}
		}
	}
	writeFile(t, filepath.Join(dir, "README.md"), "no markers")
	if got := command(t, nil, "docs", "--root", dir); got.code != exitFailed || !strings.Contains(got.stderr, "the markers") {
		t.Error(got)
	}
}

// TestReadme holds the README, and pages that say more of the same, to what the
// program does and prints.
func TestReadme(t *testing.T) {
	readme := readRoot(t, "README.md") + readRoot(t, "docs/install.md") + readRoot(t, "docs/troubleshooting.md") + readRoot(t, "docs/developing.md")
	known := readRoot(t, "docs/flags.md")
	for _, flag := range regexp.MustCompile("`--([a-z][a-z-]+)").FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(known, "`--"+flag[1]+"`") {
			t.Errorf("the README speaks of --%s, which no command has", flag[1])
		}
	}
	metrics := readRoot(t, "docs/metrics.md")
	for _, metric := range regexp.MustCompile(`\bzuber_[a-z_]+\b`).FindAllString(readme, -1) {
		if !strings.Contains(metrics, "`"+metric+"`") {
			t.Errorf("the README speaks of the metric %s, which there is not", metric)
		}
	}
	for _, variable := range regexp.MustCompile(`\bSTACKIT_[A-Z_]+\b`).FindAllString(readme, -1) {
		if !strings.Contains(known, "`"+variable+"`") {
			t.Errorf("the README speaks of the variable %s, which nothing reads", variable)
		}
	}
	for _, file := range regexp.MustCompile(`(?:^|[^/\w])((?:config|docs)/[a-z/]+\.[a-z]+)\b`).FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join(root, file[1])); err != nil {
			t.Error(err)
		}
	}

	// The output shown is that of a run: same lines, other figures and names.
	shown := regexp.MustCompile("(?s)```\n(back end cloudscale.*?)\n```").FindStringSubmatch(readme)
	if shown == nil {
		t.Fatal("the README shows no self-test")
	}
	if got, want := figures(shown[1]), figures(strings.TrimSpace(command(t, nil, "selftest", "--emulate").stdout)); got != want {
		t.Errorf("the README shows\n%s\nbut a run prints\n%s", got, want)
	}
}

// TestConfigBlocks reads what the pages show of the file of --config.
func TestConfigBlocks(t *testing.T) {
	blocks, err := docs.Blocks(root, "yaml config")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		name := filepath.Join(t.TempDir(), "zuber.yaml")
		writeFile(t, name, b.Text)
		if file, err := readConfigFile(name); err != nil || len(file.Backends) == 0 {
			t.Errorf("%s: %v, %v", b, file, err)
		}
	}
}

// TestReadmeModes compares the table of access modes with the one that the
// policies are made of.
func TestReadmeModes(t *testing.T) {
	mark := map[string]string{"true": "x", "false": ""}
	want := "| Action | ReadWrite | ReadOnly | WriteOnly |\n|---|---|---|---|\n"
	rows := regexp.MustCompile(`\{"(s3:\w+)", (true|false), (true|false), (true|false)\}`).FindAllStringSubmatch(readRoot(t, "pkg/provider/stackit/modes.go"), -1)
	if len(rows) < 10 {
		t.Fatalf("%d actions were found", len(rows))
	}
	for _, r := range rows {
		want += "| `" + r[1] + "` | " + mark[r[2]] + " | " + mark[r[3]] + " | " + mark[r[4]] + " |\n"
	}
	if !strings.Contains(readRoot(t, "README.md"), want+"\n") {
		t.Errorf("the README lacks this table:\n%s", want)
	}
}

// figures takes out of a self-test's output what differs from run to run.
func figures(text string) string {
	for pattern, with := range map[string]string{
		` +[0-9.]+ m?s\b`:            " TIME",
		`zuber-selftest-[0-9a-f]+`:   "NAME",
		`key [A-Z0-9]{20}`:           "key KEY",
		`http://127\.0\.0\.1:[0-9]+`: "ENDPOINT",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}

// TestMetricsList compares the document with what a server with some traffic
// really serves.
func TestMetricsList(t *testing.T) {
	r := serving(t, nil, "--emulate")
	eventually(t, "the back end was checked", func() bool {
		_, body := r.get(t, "/metrics")
		return strings.Contains(body, "zuber_backend_reachable{")
	})
	_, body := r.get(t, "/metrics")
	list := readRoot(t, "docs/metrics.md")
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (zuber_\w+) (\w+)$`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(list, "| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("docs/metrics.md lacks the %s %s", m[2], m[1])
		}
	}
}

func TestKindOfUnknownCollector(t *testing.T) {
	if _, err := describe(prometheus.NewRegistry()); err == nil {
		t.Error("a collector of no known type was described")
	}
}

func TestBetween(t *testing.T) {
	got, err := between([]byte("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n"), "x", "new\n")
	if want := "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n"; err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := between([]byte("<!-- end x -->\n<!-- begin x -->\n"), "x", ""); err == nil {
		t.Error("markers in the wrong order were accepted")
	}
}
