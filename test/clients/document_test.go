package clients

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// document is what the runs are written to and compared with.
const document = "../../docs/clients.md"

var update = flag.Bool("update", false, "write the tables of docs/clients.md instead of comparing them")

// results are the measurements of a run of the test.
type results struct {
	mu    sync.Mutex
	cells map[[3]string]measurement // by client, place and grant
}

func (r *results) put(c client, p place, g grant, m measurement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells[[3]string{c.name, p.name, g.title}] = m
}

func (r *results) get(c client, p place, g grant) measurement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cells[[3]string{c.name, p.name, g.title}]
}

// whole reports whether the client was measured with every kind of access.
func (r *results) whole(c client) bool {
	for _, p := range places() {
		for _, g := range p.grants {
			if r.get(c, p, g).verdicts == nil {
				return false
			}
		}
	}
	return true
}

// TestClients runs every client with every kind of access and compares what
// comes of it with the document. A program that is not installed, and all of
// them with -short, are left out of the comparison.
func TestClients(t *testing.T) {
	r := &results{cells: map[[3]string]measurement{}}
	clients := []client{awsCLI(), rclone(), restic(), s3cmd(), minioGo(), awsSDK()}
	versions := map[string]string{}
	t.Run("run", func(t *testing.T) {
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				path := ""
				if c.program != "" {
					path = c.find(t)
					versions[c.name] = c.versionOf(t, path)
				}
				for _, p := range places() {
					for _, g := range p.grants {
						t.Run(p.name+"/"+g.title, func(t *testing.T) {
							t.Parallel()
							r.put(c, p, g, measure(t, c, p, g, path))
						})
					}
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	blocks := map[string]string{}
	for _, c := range clients {
		if r.whole(c) {
			blocks[c.name] = operationsTable(r, c)
		}
	}
	for _, p := range places() {
		blocks["clients of "+p.title] = clientsTable(t, r, p, clients)
	}
	if *update {
		blocks["versions"] = versionsTable(t, versions, clients)
	}
	settle(t, blocks)
}

// versionsTable tells what the rows were made with. It is not compared: other
// releases do the same.
func versionsTable(t *testing.T, versions map[string]string, clients []client) string {
	text := "| Program | Version |\n|---|---|\n"
	for _, c := range clients {
		switch start := "| " + c.name + " |"; {
		case c.program == "":
		case versions[c.name] == "":
			text += line(block(t, readDocument(t), "versions"), start)
		default:
			text += start + " " + versions[c.name] + " |\n"
		}
	}
	return text
}

// clientsTable has a row for each client; one that was not measured keeps its
// row of the document.
func clientsTable(t *testing.T, r *results, p place, clients []client) string {
	header, rule := "| Client |", "|---|"
	for _, g := range p.grants {
		header, rule = header+" "+g.title+" |", rule+"---|"
	}
	text := header + "\n" + rule + "\n"
	for _, c := range clients {
		if !r.whole(c) {
			text += line(block(t, readDocument(t), "clients of "+p.title), "| "+c.name+" |")
			continue
		}
		row := "| " + c.name + " |"
		for _, g := range p.grants {
			row += " " + r.get(c, p, g).cell() + " |"
		}
		text += row + "\n"
	}
	return text
}

// operationsTable has a row for each operation of the client.
func operationsTable(r *results, c client) string {
	header, rule := "| Operation |", "|---|"
	for _, p := range places() {
		for i, g := range p.grants {
			title := g.title
			if i == 0 {
				title = p.title + ": " + title
			}
			header, rule = header+" "+title+" |", rule+"---|"
		}
	}
	text := header + "\n" + rule + "\n"
	for _, o := range c.operations {
		row := "| " + o.name + " |"
		for _, p := range places() {
			for _, g := range p.grants {
				row += " " + r.get(c, p, g).word(o.name) + " |"
			}
		}
		text += row + "\n"
	}
	return text
}

// word is the outcome of the operation of that name; "" if it was not tried.
func (m measurement) word(operation string) string {
	for _, v := range m.verdicts {
		if v.operation.name == operation {
			return v.word()
		}
	}
	return ""
}

// settle compares the blocks with those of the document, or writes them.
func settle(t *testing.T, blocks map[string]string) {
	t.Helper()
	text := readDocument(t)
	for name, want := range blocks {
		got := block(t, text, name)
		if got == want {
			continue
		}
		if !*update {
			t.Errorf("docs/clients.md is stale: run `go test ./test/clients -update`, with all clients installed. %q is\n%sand should be\n%s", name, got, want)
		}
		text = strings.Replace(text, begin(name)+got+end(name), begin(name)+want+end(name), 1)
	}
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func begin(name string) string { return "<!-- begin " + name + " -->\n" }
func end(name string) string   { return "<!-- end " + name + " -->\n" }

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns what is between the markers of that name.
func block(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, begin(name))
	inside, _, ended := strings.Cut(rest, end(name))
	if !found || !ended {
		t.Fatalf("docs/clients.md lacks the markers of %q", name)
	}
	return inside
}

// line returns the line that begins so, with its end.
func line(text, start string) string {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, start) {
			return l
		}
	}
	return ""
}

var versionPattern = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// versionOf asks the program.
func (c client) versionOf(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, c.version...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return versionPattern.FindString(string(out))
}
