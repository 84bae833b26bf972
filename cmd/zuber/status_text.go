package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	kubeduration "k8s.io/apimachinery/pkg/util/duration"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// writeStatusJSON writes a report as one object. What a terminal might obey in it is
// escaped as JSON allows.
func writeStatusJSON(w io.Writer, r companion.Report) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	var safe strings.Builder
	for _, c := range text.String() {
		switch {
		case c == '\n' || unicode.IsPrint(c):
			safe.WriteRune(c)
		case c > 0xffff: // JSON has two escapes for it
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, c)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// clean makes a text that anybody may have written fit for a terminal: one line, and
// nothing that a terminal would obey. What is not printable is shown as an escape.
func clean(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
		s = s[size:]
	}
	return b.String()
}

// statusText writes a report for people.
type statusText struct {
	companion.Report
	now           time.Time
	allNamespaces bool
	one           bool // everything about one claim
	usage         bool // the clouds were asked for it
	namespace     string
}

func (s statusText) write(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	switch {
	case s.one:
		for _, c := range s.Claims {
			s.describe(out, c)
		}
	case len(s.Claims) == 0 && s.allNamespaces:
		_, _ = fmt.Fprintln(out, "There is no BucketClaim.")
	case len(s.Claims) == 0:
		_, _ = fmt.Fprintf(out, "There is no BucketClaim in namespace %s.\n", clean(s.namespace))
	default:
		s.table(out)
	}
	if len(s.Strays) > 0 {
		s.strays(out)
	}
	if len(s.Unread) > 0 {
		_, _ = fmt.Fprintln(out, "\nNot shown, for want of a right:")
		for _, u := range s.Unread {
			_, _ = fmt.Fprintf(out, "  %s: %s\n", clean(u.Right), clean(u.Missing))
		}
	}
	if len(s.NoUsage) > 0 {
		_, _ = fmt.Fprintln(out, "\nUsage that is not known:")
		for _, n := range s.NoUsage {
			_, _ = fmt.Fprintf(out, "  back end %s: %s\n", clean(n.Backend), clean(n.Reason))
		}
	}
	return out.Flush()
}

// row writes the cells of a table; an empty one is a dash.
func row(w io.Writer, cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
		cells[i] = clean(cells[i])
	}
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// beforeAccesses is where the table has the usage of buckets.
const beforeAccesses = 6

func (s statusText) table(w io.Writer) {
	head := []string{"CLAIM", "STATE", "BACK END", "REGION", "BUCKET", "OWNER", "ACCESSES", "AGE", "LAST ERROR"}
	if s.usage {
		head = slices.Insert(head, beforeAccesses, "USAGE")
	}
	if s.allNamespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	row(w, head...)
	for _, c := range s.Claims {
		ready, newest := 0, c.LastError
		for _, a := range c.Accesses {
			if a.State == companion.StateReady {
				ready++
			}
			if e := a.LastError; e != nil && (newest == nil || newest.Last != nil && e.Last != nil && e.Last.After(*newest.Last)) {
				newest = e
			}
		}
		accesses := "0"
		if len(c.Accesses) > 0 {
			accesses = fmt.Sprintf("%d of %d ready", ready, len(c.Accesses))
		}
		b := c.Bucket
		cells := []string{c.Name, string(c.State), b.Backend, b.Region, b.Name, b.Owner, accesses, s.age(c.Created), s.brief(newest)}
		if s.usage {
			cells = slices.Insert(cells, beforeAccesses, briefUsage(b.Usage))
		}
		if s.allNamespaces {
			cells = append([]string{c.Namespace}, cells...)
		}
		row(w, cells...)
	}
}

func (s statusText) strays(w io.Writer) {
	_, _ = fmt.Fprintln(w, "\nAccesses without a BucketClaim:")
	for _, a := range s.Strays {
		_, _ = fmt.Fprintf(w, "  %s/%s: %s\n", clean(a.Namespace), clean(a.Name), clean(a.Detail))
	}
}

// age is how long ago something was.
func (s statusText) age(t time.Time) string { return kubeduration.HumanDuration(s.now.Sub(t)) }

func (s statusText) ago(t *time.Time) string {
	if t == nil {
		return "at an unknown time"
	}
	return s.age(*t) + " ago"
}

// brief is an error in a few words.
func (s statusText) brief(e *companion.ErrorReport) string {
	if e == nil {
		return ""
	}
	text := e.Reason
	if text == "" {
		text = "error in status"
	}
	text += " " + s.ago(e.Last)
	if e.Count > 1 {
		text += fmt.Sprintf(", %d times", e.Count)
	}
	return text
}
