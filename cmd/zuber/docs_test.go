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
	for name, table := range map[string]string{"docs/parameters.md": "parameters", "docs/companion.md": "annotations", "docs/status.md": "fields"} {
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
		for _, name := range []string{"docs/parameters.md", "docs/companion.md", "docs/flags.md", "docs/metrics.md", "docs/status.md"} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(raw) != readRoot(t, name) {
				t.Errorf("%s differs from the repository's (%v)", name, err)
			}
		}
	}
	writeFile(t, filepath.Join(dir, "docs/parameters.md"), "no markers")
	if got := command(t, nil, "docs", "--root", dir); got.code != exitFailed || !strings.Contains(got.stderr, "the markers") {
		t.Error(got)
	}
}

// TestDocumentsNameWhatThereIs: flags, variables, metrics and files that the
// documents speak of exist.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	flags, metrics := readRoot(t, "docs/flags.md"), readRoot(t, "docs/metrics.md")
	const marks = " zuber_managed_by zuber_bucket zuber_role zuber_account zuber_namespace zuber_claim zuber_cluster zuber_tenant "
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		text := readRoot(t, name)
		for _, flag := range regexp.MustCompile("`--([a-z][a-z-]+)").FindAllStringSubmatch(text, -1) {
			others := strings.HasSuffix(name, "clients.md") || flag[1] == "driver-addr" // those of S3 clients and of the sidecar
			if !others && !strings.Contains(flags, "`--"+flag[1]+"`") {
				t.Errorf("%s speaks of --%s, which no command has", name, flag[1])
			}
		}
		for _, metric := range regexp.MustCompile(`\bzuber_[a-z_]+[a-z]\b`).FindAllString(text, -1) {
			if !strings.Contains(metrics, "`"+metric+"`") && !strings.Contains(marks, " "+metric+" ") {
				t.Errorf("%s speaks of the metric %s, which there is not", name, metric)
			}
		}
		for _, variable := range regexp.MustCompile(`\bSTACKIT_[A-Z_]+\b`).FindAllString(text, -1) {
			if !strings.Contains(flags, "`"+variable+"`") {
				t.Errorf("%s speaks of the variable %s, which nothing reads", name, variable)
			}
		}
		for _, file := range regexp.MustCompile(`\b(?:config|docs)/[a-z0-9/-]+\.(?:md|yaml|svg)\b`).FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestReadmeShowsARun: the output shown is that of a run's first part, with other
// figures and names.
func TestReadmeShowsARun(t *testing.T) {
	shown := regexp.MustCompile("(?s)```\n(back end cloudscale.*?)\n```").FindStringSubmatch(readRoot(t, "README.md"))
	if shown == nil {
		t.Fatal("the README shows no self-test")
	}
	if got, want := figures(shown[1]), figures(command(t, nil, "selftest", "--emulate").stdout); !strings.HasPrefix(want, got+"\n\n") {
		t.Errorf("the README shows\n%s\nbut a run prints\n%s", got, want)
	}
}

// TestModesTable compares the table of access modes with the one that the
// policies are made of.
func TestModesTable(t *testing.T) {
	mark := map[string]string{"true": "x", "false": ""}
	want := "| Action | ReadWrite | ReadOnly | WriteOnly |\n|---|---|---|---|\n"
	rows := regexp.MustCompile(`\{"(s3:\w+)", (true|false), (true|false), (true|false)\}`).FindAllStringSubmatch(readRoot(t, "pkg/provider/stackit/modes.go"), -1)
	if len(rows) < 10 {
		t.Fatalf("%d actions were found", len(rows))
	}
	for _, r := range rows {
		want += "| `" + r[1] + "` | " + mark[r[2]] + " | " + mark[r[3]] + " | " + mark[r[4]] + " |\n"
	}
	if !strings.Contains(readRoot(t, "docs/access.md"), want+"\n") {
		t.Errorf("docs/access.md lacks this table:\n%s", want)
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
