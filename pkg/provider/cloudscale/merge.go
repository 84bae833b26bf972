package cloudscale

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// suffixSingle ends the Sid of the owner's statement where the document of others
// had one statement in place of a list.
const suffixSingle = "-single"

// sids returns what the Sid of every statement begins with that the driver puts
// into the policy of a bucket that it did not make. Drivers of several clusters can
// share such a bucket.
func (p *Provider) sids() string { return sidPrefix + digest(p.config.DriverName, 8) + "-" }

// merge returns the policy of a bucket that the driver did not make: what others
// wrote, byte for byte, and after it our statements, which are those whose Sid
// begins with sids, whoever wrote them. Without members it is what others wrote, ""
// if that is nothing. ErrPrecondition if the current policy is not understood.
func merge(sids, current, bucket, ownerUID string, members []member) (string, error) {
	theirs, err := withoutOurs(sids, current)
	if err != nil || len(members) == 0 {
		return theirs, err
	}
	ours, err := statements(bucket, ownerUID, members)
	if err != nil {
		return "", err
	}
	for i := range ours {
		ours[i].Sid = sids + strings.TrimPrefix(ours[i].Sid, sidPrefix)
	}
	if theirs == "" {
		return wholePolicy(ours, len(members))
	}
	doc, err := parsePolicy(theirs)
	if err != nil {
		return "", err
	}
	if !doc.list {
		ours[0].Sid += suffixSingle
	}
	// Structs of strings always marshal.
	added, _ := json.Marshal(ours)
	return checkPolicySize(doc.with(string(added[1:len(added)-1])), len(members))
}

// withoutOurs takes our statements out of a policy.
func withoutOurs(sids, current string) (string, error) {
	if current == "" {
		return "", nil
	}
	doc, err := parsePolicy(current)
	if err != nil {
		return "", err
	}
	var kept, cut strings.Builder
	from, theirs, single := doc.value.start, 0, false
	for i, e := range doc.elements {
		if !strings.HasPrefix(e.sid, sids) {
			theirs++
			kept.WriteString(doc.text[e.start:e.end])
			continue
		}
		single = single || strings.HasSuffix(e.sid, suffixSingle)
		// With the statement goes the comma before it, or behind it if it is the first.
		start, end := e.start, e.end
		switch {
		case theirs > 0:
			start = doc.elements[i-1].end
		case i+1 < len(doc.elements):
			end = doc.elements[i+1].start
		}
		cut.WriteString(doc.text[from:max(from, start)])
		from = end
	}
	cut.WriteString(doc.text[from:doc.value.end])
	before, after := doc.text[:doc.value.start], doc.text[doc.value.end:]
	switch {
	case theirs == len(doc.elements):
		return current, nil
	case theirs == 0 && doc.id == policyID:
		return "", nil // the whole of it is ours
	case theirs == 1 && single:
		return before + kept.String() + after, nil
	case !doc.list:
		return before + "[]" + after, nil
	}
	return before + cut.String() + after, nil
}

// span is a part of a text.
type span struct{ start, end int }

// element is a statement of a policy.
type element struct {
	span
	sid string
}

// policyText is a policy document together with where its statements are.
type policyText struct {
	text     string
	id       string
	value    span // of Statement
	list     bool // Statement is a list, and not one statement
	elements []element
}

// with returns the document with more statements at its end.
func (d policyText) with(added string) string {
	value := d.text[d.value.start:d.value.end]
	switch n := len(d.elements); {
	case !d.list:
		value = "[" + value + "," + added + "]"
	case n == 0:
		value = "[" + added + value[1:]
	default:
		at := d.elements[n-1].end - d.value.start
		value = value[:at] + "," + added + value[at:]
	}
	return d.text[:d.value.start] + value + d.text[d.value.end:]
}

// parsePolicy reads a policy document of any origin.
func parsePolicy(text string) (policyText, error) {
	d := policyText{text: text}
	if err := d.read(); err != nil {
		return policyText{}, refuse(provider.ErrPrecondition,
			"its bucket policy is not understood (%s) and is left alone; correct or remove it", err.Error())
	}
	return d, nil
}

var errShape = errors.New("it is not an object with the statements in one element Statement")

func (d *policyText) read() error {
	in := json.NewDecoder(strings.NewReader(d.text))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return errShape
	}
	found := 0
	for in.More() {
		name, err := in.Token()
		var raw json.RawMessage
		if err == nil {
			err = in.Decode(&raw)
		}
		if err != nil {
			return errShape
		}
		end := int(in.InputOffset())
		switch name {
		case "Id":
			_ = json.Unmarshal(raw, &d.id) // what is no text is not ours
		case "Statement":
			found++
			d.value = span{end - len(raw), end}
		}
	}
	if _, err := in.Token(); err != nil {
		return errShape
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) || found != 1 {
		return errShape
	}
	return d.readStatements()
}

func (d *policyText) readStatements() error {
	value := []byte(d.text[d.value.start:d.value.end])
	if !bytes.HasPrefix(value, []byte("[")) {
		return d.add(value, d.value.start)
	}
	d.list = true
	in := json.NewDecoder(bytes.NewReader(value))
	if _, err := in.Token(); err != nil {
		return errShape
	}
	for in.More() {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return errShape
		}
		if err := d.add(raw, d.value.start+int(in.InputOffset())-len(raw)); err != nil {
			return err
		}
	}
	return nil
}

func (d *policyText) add(raw []byte, start int) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return errors.New("a statement of it is not an object")
	}
	e := element{span: span{start, start + len(raw)}}
	_ = json.Unmarshal(fields["Sid"], &e.sid) // what is no text is not ours
	d.elements = append(d.elements, e)
	return nil
}
