package stackit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// layout is a policy document taken apart at its statements. Statements are put
// in and taken out by cutting its text, so that every other byte stays.
type layout struct {
	text       string
	start, end int // of the value of Statement in the text
	single     bool
	statements []statementText
}

// statementText is one statement as it stands in a text.
type statementText struct {
	start, end int
	sid        string
}

// readLayout takes a document apart. The error is text only.
func readLayout(text string) (layout, error) {
	l := layout{text: text, end: -1}
	if !json.Valid([]byte(text)) {
		return l, fmt.Errorf("it is not JSON")
	}
	top, err := parts(text, '{')
	if err != nil {
		return l, err
	}
	for _, p := range top {
		if p.key != "Statement" {
			continue
		}
		if l.end >= 0 {
			return l, fmt.Errorf("it has two elements Statement")
		}
		l.start, l.end = p.start, p.end
	}
	if l.end < 0 {
		return l, fmt.Errorf("it has no element Statement")
	}
	value := text[l.start:l.end]
	list := []part{{end: len(value)}}
	if l.single = value[0] == '{'; !l.single {
		if list, err = parts(value, '['); err != nil {
			return l, err
		}
	}
	if len(list) == 0 {
		return l, fmt.Errorf("it has no statement")
	}
	for i, p := range list {
		var s struct{ Sid string }
		if raw := value[p.start:p.end]; raw[0] != '{' || json.Unmarshal([]byte(raw), &s) != nil {
			return l, fmt.Errorf("its statement %d is malformed", i+1)
		}
		l.statements = append(l.statements, statementText{l.start + p.start, l.start + p.end, s.Sid})
	}
	return l, nil
}

// part is a value inside an object or list, with its key in an object.
type part struct {
	key        string
	start, end int
}

// parts finds the values of a valid object or list, which opens with the given
// delimiter, in its text.
func parts(text string, open json.Delim) ([]part, error) {
	var all []part
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != open {
		return nil, fmt.Errorf("it holds something else where %q should be", open.String())
	}
	for d.More() {
		var p part
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			p.key, _ = t.(string)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		p.end = int(d.InputOffset())
		p.start = p.end - len(raw)
		all = append(all, p)
	}
	return all, nil
}

// without returns the document without the statements whose Sid is one to drop,
// "" when there are no others. They lie where with has put them: before the one
// statement that was no list once, and else behind all others.
func (l layout) without(drop func(sid string) bool) string {
	var kept []statementText
	for _, s := range l.statements {
		if !drop(s.sid) {
			kept = append(kept, s)
		}
	}
	switch {
	case len(kept) == len(l.statements):
		return l.text
	case len(kept) == 0:
		return ""
	case len(kept) == 1 && drop(l.statements[0].sid):
		return l.text[:l.start] + l.text[kept[0].start:kept[0].end] + l.text[l.end:]
	}
	var b strings.Builder
	b.WriteString(l.text[:l.statements[0].start])
	first := true
	for i, s := range l.statements {
		if drop(s.sid) {
			continue
		}
		from := s.start
		if !first {
			from = l.statements[i-1].end // with the comma
		}
		b.WriteString(l.text[from:s.end])
		first = false
	}
	b.WriteString(l.text[l.statements[len(l.statements)-1].end:])
	return b.String()
}

// with returns the document with the statements added.
func (l layout) with(statements []string) string {
	added := strings.Join(statements, ",")
	last := l.statements[len(l.statements)-1].end
	switch {
	case added == "":
		return l.text
	case l.single:
		return l.text[:l.start] + "[" + added + "," + l.text[l.start:l.end] + "]" + l.text[l.end:]
	}
	return l.text[:last] + "," + added + l.text[last:]
}

// spliced returns the document of others, "" if there is none, with the
// statements added.
func spliced(others string, statements []string) (string, error) {
	if others == "" {
		if len(statements) == 0 {
			return "", nil
		}
		return `{"Statement":[` + strings.Join(statements, ",") + `]}`, nil
	}
	l, err := readLayout(others)
	if err != nil {
		return "", err
	}
	return l.with(statements), nil
}
