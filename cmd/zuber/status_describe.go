package main

import (
	"fmt"
	"io"

	kubeduration "k8s.io/apimachinery/pkg/util/duration"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// description writes names and values below each other.
type description struct {
	w      io.Writer
	indent string
}

// line writes a value that anybody may have written; an empty one is left out.
func (d description) line(name, value string) {
	if value != "" {
		_, _ = fmt.Fprintf(d.w, "%s%s:\t%s\n", d.indent, name, clean(value))
	}
}

func (d description) deeper() description { return description{d.w, d.indent + "  "} }

func (s statusText) describe(w io.Writer, c companion.ClaimReport) {
	d := description{w, ""}
	d.line("BucketClaim", c.Namespace+"/"+c.Name)
	d.line("State", stateOf(c.State, c.Detail))
	d.line("Age", s.age(c.Created))
	if c.Deleted != nil {
		d.line("Being deleted", "for "+s.age(*c.Deleted))
	}
	d.line("Class", c.Class)
	d.line("Wipe on delete", quoted(c.WipeOnDelete))
	s.describeError(d, c.LastError)
	b := c.Bucket
	switch b.Found {
	case companion.FoundPresent:
		d.line("Bucket object", b.Object)
	default:
		d.line("Bucket object", fmt.Sprintf("%s (%s)", b.Object, found(b.Found)))
	}
	of := d.deeper()
	of.line("Bucket", b.Name)
	if b.Existing {
		of.line("Made by", "somebody else; the driver gives access to it and nothing more")
	}
	of.line("Back end", b.Backend)
	of.line("Provider", b.Provider)
	of.line("Region", b.Region)
	of.line("Owner", b.Owner)
	of.line("Bucket ID", b.ID)
	of.line("Driver", b.Driver)
	of.line("With its claim", b.DeletionPolicy)
	if s.usage {
		s.describeUsage(of, b.Usage)
	}
	if len(c.Accesses) == 0 {
		d.line("Accesses", "none")
	}
	for _, a := range c.Accesses {
		d.line("BucketAccess", a.Name)
		s.describeAccess(d.deeper(), a)
	}
}

func (s statusText) describeAccess(d description, a companion.AccessReport) {
	d.line("State", stateOf(a.State, a.Detail))
	d.line("Age", s.age(a.Created))
	if a.Deleted != nil {
		d.line("Being deleted", "for "+s.age(*a.Deleted))
	}
	d.line("Class", a.Class)
	d.line("Mode", a.Mode)
	d.line("Account ID", a.Account)
	d.line("Identity", a.Identity)
	d.line("Access key ID", a.AccessKeyID)
	d.line("Secret", secretOf(&a.Secret))
	d.line("Env Secret", secretOf(a.EnvSecret))
	if r := a.Rotation; r != nil {
		s.describeRotation(d, *r)
	}
	s.describeError(d, a.LastError)
}

func (s statusText) describeRotation(d description, r companion.RotationReport) {
	d.line("Rotation asked for", quoted(r.Asked))
	d.line("Rotation every", r.Every)
	if r.Recorded != companion.FoundPresent {
		d.line("Rotation handled", found(r.Recorded))
		return
	}
	d.line("Rotation handled", quoted(r.Handled))
	if r.Rotated != nil {
		d.line("Last rotation", s.ago(r.Rotated))
	}
	if r.Replaced == "" {
		return
	}
	text := "key " + r.Replaced + " is being replaced"
	if r.Minted != "" {
		text += " by key " + r.Minted
	}
	if r.Delivered != nil {
		text += ", which is in the Secrets for " + s.age(*r.Delivered)
	}
	if r.GraceUntil != nil && r.GraceUntil.After(s.now) {
		text += "; the old one ends in " + kubeduration.HumanDuration(r.GraceUntil.Sub(s.now))
	}
	d.line("Rotation under way", text)
}

func (s statusText) describeError(d description, e *companion.ErrorReport) {
	if e == nil {
		return
	}
	d.line("Last error", s.brief(e)+", "+e.Object)
	d.deeper().line("Message", e.Message)
}

func stateOf(state companion.State, detail string) string {
	if detail == "" {
		return string(state)
	}
	return string(state) + ": " + detail
}

// secretOf is the name of a Secret, and what is wrong with it.
func secretOf(s *companion.SecretReport) string {
	switch {
	case s == nil:
		return ""
	case s.Found == companion.FoundPresent:
		return s.Name
	}
	return fmt.Sprintf("%s (%s)", s.Name, found(s.Found))
}

// found says in words what came of looking for something.
func found(f companion.Found) string {
	switch f {
	case companion.FoundPresent:
		return "it is there"
	case companion.FoundMissing:
		return "not there"
	case companion.FoundInvalid:
		return "not what it should be"
	case companion.FoundForbidden:
		return "not shown, for want of a right"
	}
	return string(f)
}

// quoted marks where a value of somebody's begins and ends.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return `"` + s + `"`
}
