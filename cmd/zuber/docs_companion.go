package main

import (
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// annotationsMarkdown is the table of annotations.
func annotationsMarkdown() string {
	var b strings.Builder
	b.WriteString("| Annotation | Of | Value | Meaning |\n|---|---|---|---|\n")
	for _, a := range companion.AnnotationTable() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Name, a.Kind, cell(a.Value), cell(a.Description))
	}
	return b.String()
}

// envKeysMarkdown is the table of what an env Secret holds.
func envKeysMarkdown() string {
	var b strings.Builder
	b.WriteString("| Key | Field | Value |\n|---|---|---|\n")
	for _, k := range companion.EnvKeyTable() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", k.Key, k.Field, cell(k.Description))
	}
	return b.String()
}
