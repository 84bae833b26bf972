package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// auditSettings is the configuration of `zuber audit`.
type auditSettings struct {
	backendSettings
	Backend string
	Repair  bool
	Output  string
}

func (s *auditSettings) bind(fs *pflag.FlagSet) {
	s.bindReal(fs)
	fs.StringVar(&s.Backend, flagBackend, "", "back end to look at; without it every one")
	fs.BoolVar(&s.Repair, flagRepair, false, "put right what can be put right; without it nothing is changed")
	fs.StringVar(&s.Output, flagOutput, formatText, "output: text, or json (one object)")
}

func (s *auditSettings) check(c *collector) {
	s.checkMark(c)
	oneOf(c, flagOutput, s.Output, formatText, formatJSON)
}

func newAudit(a *app) *cobra.Command {
	var s auditSettings
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare the clouds with what the driver has recorded, and repair it",
		Long: `Compare the clouds with what the driver has recorded, and repair it.

It looks at the policies, tags and public access blocks of everything that
carries the driver's mark, and for users that are missing. Without --repair
nothing is changed. The exit code is 0 when nothing is wrong or everything was
repaired, else 1.`,
		Args: noArgs,
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		backends, err := a.openReal(cmd, c, &s.backendSettings, s.check)
		if err != nil {
			return err
		}
		if backends, err = choose(backends, s.Backend); err != nil {
			return err
		}
		return a.audit(cmd.Context(), s, backends)
	}
	return cmd
}

// auditReport is the form of the JSON output.
type auditReport struct {
	Driver   string         `json:"driver"`
	Repair   bool           `json:"repair"`
	Findings []auditFinding `json:"findings"`
	Unread   []string       `json:"unread,omitempty"` // back ends that could not be read to the end, with the cause
}

// auditFinding is one finding.
type auditFinding struct {
	Backend    string `json:"backend"`
	Provider   string `json:"provider"`
	Drift      string `json:"drift"`
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	Bucket     string `json:"bucket"`
	Region     string `json:"region"`
	Account    string `json:"account,omitempty"`
	Problem    string `json:"problem"`
	Remedy     string `json:"remedy"`
	Repairable bool   `json:"repairable"`
	Repaired   bool   `json:"repaired"`
	Error      string `json:"error,omitempty"`
}

// audit looks at the back ends and reports; errReported if something stays wrong.
func (a *app) audit(ctx context.Context, s auditSettings, backends []driver.Backend) error {
	r := auditReport{Driver: s.DriverName, Repair: s.Repair, Findings: []auditFinding{}}
	var unread []error
	wrong := false
	for _, b := range backends {
		findings, err := auditOf(ctx, b)
		if err != nil {
			unread = append(unread, fmt.Errorf("back end %s: %w", b.Name, err))
			r.Unread = append(r.Unread, err.Error())
		}
		for _, f := range findings {
			out := auditFinding{
				Backend: b.Name, Provider: b.Kind, Drift: string(f.Drift), Kind: string(f.Kind), ID: f.ID, Bucket: f.Bucket, Region: f.Region,
				Account: f.Account, Problem: f.Problem, Remedy: f.Remedy, Repairable: f.Repairable,
			}
			if s.Repair && f.Repairable {
				err := b.Provider.(provider.Auditor).Repair(ctx, f)
				if out.Repaired = err == nil; err != nil {
					out.Error = err.Error()
				}
			}
			wrong = wrong || !out.Repaired
			r.Findings = append(r.Findings, out)
		}
	}
	err := errors.Join(append(unread, a.reportAudit(s, r))...)
	if err == nil && wrong {
		return errReported
	}
	return err
}

// auditOf returns the findings of a back end, those before an error too.
func auditOf(ctx context.Context, b driver.Backend) ([]provider.Finding, error) {
	auditor, ok := b.Provider.(provider.Auditor)
	if !ok {
		return nil, nil
	}
	var findings []provider.Finding
	for f, err := range auditor.Audit(ctx) {
		if err != nil {
			return findings, err
		}
		findings = append(findings, f)
	}
	return findings, nil
}

func (a *app) reportAudit(s auditSettings, r auditReport) error {
	if s.Output == formatJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(r.Findings) > 0 {
		_, _ = fmt.Fprintln(w, "BACK END\tREGION\tBUCKET\tDRIFT\tKIND\tID\tPROBLEM\tREMEDY")
	}
	repaired := 0
	for _, f := range r.Findings {
		remedy := f.Remedy
		switch {
		case f.Repaired:
			remedy, repaired = "repaired", repaired+1
		case f.Error != "":
			remedy = "not repaired: " + f.Error
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Backend, dash(f.Region), dash(f.Bucket), f.Drift, f.Kind, dash(f.ID), f.Problem, remedy)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%d findings, %d repaired\n", len(r.Findings), repaired)
	return err
}
