package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// statusFieldsMarkdown is the table of the fields of zuber status -o json.
func statusFieldsMarkdown() string {
	var b strings.Builder
	b.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
	statusFields(&b, "", reflect.TypeFor[companion.Report]())
	return b.String()
}

// statusFields writes a row for each field of a struct, and for those in it.
func statusFields(b *strings.Builder, prefix string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		meaning := f.Tag.Get("doc")
		if options == "omitempty" {
			meaning += " (may be missing)"
		}
		of, kind := f.Type, "object"
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		path := prefix + name
		switch {
		case of.Kind() == reflect.Slice:
			of, kind, path = of.Elem(), "list", path+"[]"
		case of == reflect.TypeFor[time.Time]():
			kind = "time"
		case of.Kind() != reflect.Struct:
			kind = map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "boolean", reflect.Int32: "number", reflect.Int64: "number", reflect.Float64: "number"}[of.Kind()]
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, kind, cell(meaning))
		switch {
		case of == reflect.TypeFor[time.Time](), of.Kind() != reflect.Struct:
		case name == "accessesWithoutClaim", of == reflect.TypeFor[companion.ErrorReport]() && strings.Contains(prefix, "accesses"):
			// What is in it stands elsewhere in the table.
		default:
			statusFields(b, path+".", of)
		}
	}
}
