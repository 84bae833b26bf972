package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The table stands between these lines of the chart's README.
const (
	tableBegin = "<!-- begin values -->\n"
	tableEnd   = "<!-- end values -->\n"
)

// value is one that a user may set.
type value struct{ key, standard, meaning string }

// documented reads the values with the comments that begin with --.
func documented(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return collect(t, "", document.Content[0])
}

func collect(t *testing.T, prefix string, mapping *yaml.Node) []value {
	t.Helper()
	var all []value
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		comment := strings.ReplaceAll(key.HeadComment, "\n# ", " ")
		meaning, found := strings.CutPrefix(comment, "# -- ")
		switch {
		case found:
			var standard any
			if err := content.Decode(&standard); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(standard)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value{prefix + key.Value, string(text), meaning})
		case content.Kind == yaml.MappingNode && len(content.Content) > 0:
			all = append(all, collect(t, prefix+key.Value+".", content)...)
		default:
			t.Errorf("values.yaml says nothing about %s%s", prefix, key.Value)
		}
	}
	return all
}

// TestReadme: the chart's README lists every value.
func TestReadme(t *testing.T) {
	path := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(text, []byte(tableBegin))
	_, after, foundEnd := bytes.Cut(rest, []byte(tableEnd))
	if !found || !foundEnd {
		t.Fatal("README.md has no place for the table")
	}
	var table strings.Builder
	table.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	for _, v := range documented(t) {
		_, _ = fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.key, v.standard, v.meaning)
	}
	wantFile(t, path, string(before)+tableBegin+table.String()+tableEnd+string(after))
}

// TestSchemaKnowsTheValues: the schema has exactly the values that there are.
func TestSchemaKnowsTheValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var list func(prefix string, s object)
	list = func(prefix string, s object) {
		properties, _ := s["properties"].(object)
		if len(properties) == 0 {
			known[strings.TrimSuffix(prefix, ".")] = true
		}
		for name, child := range properties {
			list(prefix+name+".", child.(object))
		}
	}
	list("", schema)
	// Helm hands both to every chart.
	delete(known, "global")
	delete(known, "cosi.global")
	for _, v := range documented(t) {
		covered := false
		for _, key := range slices.Collect(maps.Keys(known)) {
			if key == v.key || strings.HasPrefix(key, v.key+".") {
				covered = true
				delete(known, key)
			}
		}
		if !covered {
			t.Errorf("the schema does not know %s", v.key)
		}
	}
	if len(known) > 0 {
		t.Errorf("the schema knows values that values.yaml does not name: %q", slices.Sorted(maps.Keys(known)))
	}
}
