package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/zuber-storage/zuber/pkg/gc"
)

// gcReport is the form of the JSON output.
type gcReport struct {
	Driver  string   `json:"driver"`
	Delete  bool     `json:"delete"`
	Orphans int      `json:"orphans"`
	Refusal string   `json:"refusal,omitempty"` // why nothing may be deleted
	Unread  []string `json:"unread,omitempty"`  // back ends that could not be read, with the cause
	Items   []gcItem `json:"items"`
}

// gcItem is one resource.
type gcItem struct {
	Backend  string `json:"backend"`
	Provider string `json:"provider"`
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Bucket   string `json:"bucket"`
	Region   string `json:"region"`
	Account  string `json:"account,omitempty"`
	// Created is absent where the cloud does not tell; FirstSeen is then when it was
	// first seen as an orphan.
	Created   *time.Time `json:"created,omitempty"`
	FirstSeen *time.Time `json:"firstSeen,omitempty"`
	Verdict   string     `json:"verdict"`
	Why       string     `json:"why"`
	Outcome   string     `json:"outcome,omitempty"`
	Error     string     `json:"error,omitempty"`
}

// table prints what was found.
func (c *collection) table(p *gc.Plan) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "BACK END\tREGION\tKIND\tID\tBUCKET\tAGE\tVERDICT\tWHY")
	now := c.collector.Now()
	for _, i := range p.Items {
		age := "unknown"
		if known, ok := i.Age(now); ok {
			age = known.Round(time.Second).String()
		} else if i.Verdict == gc.Kept {
			age = "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Backend, dash(i.Region), i.Kind, dash(i.ID), dash(i.Bucket), age, i.Verdict, i.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "%d with the mark of %s, %d to delete\n", len(p.Items), c.settings.DriverName, p.Orphans())
	if p.Refusal != nil && err == nil {
		_, err = fmt.Fprintf(c.stdout, "None of them would be deleted: %s\n", p.Refusal)
	}
	return err
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// report prints what became of it all.
func (c *collection) report(p *gc.Plan) error {
	if c.settings.Output == formatJSON {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(c.asReport(p))
	}
	for _, i := range p.Items {
		if i.Outcome == "" {
			continue
		}
		cause := ""
		if i.Err != nil {
			cause = ": " + i.Err.Error()
		}
		if _, err := fmt.Fprintf(c.stdout, "%s %s %s of back end %s%s\n", i.Outcome, i.Kind, nameOf(i), i.Backend, cause); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(i gc.Item) string {
	for _, name := range []string{i.ID, i.Account} {
		if name != "" {
			return name
		}
	}
	return "to bucket " + i.Bucket
}

func (c *collection) asReport(p *gc.Plan) gcReport {
	r := gcReport{Driver: c.settings.DriverName, Delete: c.settings.Delete, Orphans: p.Orphans(), Items: []gcItem{}}
	if p.Refusal != nil {
		r.Refusal = p.Refusal.Error()
	}
	for _, err := range p.Unread {
		r.Unread = append(r.Unread, err.Error())
	}
	for _, i := range p.Items {
		item := gcItem{
			Backend: i.Backend, Provider: c.kinds[i.Backend], Kind: string(i.Kind), ID: i.ID, Bucket: i.Bucket, Region: i.Region, Account: i.Account,
			Created: known(i.Created), FirstSeen: known(i.Seen), Verdict: string(i.Verdict), Why: i.Why, Outcome: string(i.Outcome),
		}
		if i.Err != nil {
			item.Error = i.Err.Error()
		}
		r.Items = append(r.Items, item)
	}
	return r
}

func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC().Truncate(time.Second)
	return &at
}
