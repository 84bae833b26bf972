package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/cosi"
)

// result is the outcome for one back end and region, and the form of the JSON
// output.
type result struct {
	Backend    string       `json:"backend"`
	Provider   string       `json:"provider"`
	Region     string       `json:"region"`
	APIVersion string       `json:"apiVersion"`
	Passed     bool         `json:"passed"`
	Steps      []stepResult `json:"steps"`
}

// stepResult is one step. Detail says what was seen, or why it failed.
type stepResult struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail"`
}

func (r *result) add(s stepResult) { r.Steps = append(r.Steps, s) }

// reporter shows results as they come.
type reporter interface {
	begin(r result, s selftestSettings)
	step(r result) // the last one of r.Steps has ended
	end(r result)
	err() error // the first fault of writing
}

func newReporter(w io.Writer, s selftestSettings) reporter {
	if s.Output == formatJSON {
		return &jsonReporter{w: w}
	}
	return &textReporter{w: w}
}

// jsonReporter writes one object per result, one a line, and nothing else.
type jsonReporter struct {
	w    io.Writer
	fail error
}

func (*jsonReporter) begin(result, selftestSettings) {}
func (*jsonReporter) step(result)                    {}
func (j *jsonReporter) err() error                   { return j.fail }

func (j *jsonReporter) end(r result) {
	encoder := json.NewEncoder(j.w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil && j.fail == nil {
		j.fail = err
	}
}

// textReporter writes a line per step, for people.
type textReporter struct {
	w    io.Writer
	fail error
}

func (t *textReporter) err() error { return t.fail }

func (t *textReporter) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(t.w, format, args...); err != nil && t.fail == nil {
		t.fail = err
	}
}

func (t *textReporter) begin(r result, s selftestSettings) {
	where := "back end " + r.Backend
	if r.Provider != r.Backend {
		where += " (" + r.Provider + ")"
	}
	if r.Region != "" {
		where += ", region " + r.Region
	}
	if r.APIVersion != string(cosi.V1alpha1) {
		where += ", " + r.APIVersion
	}
	if s.Emulate {
		where += ", emulated"
	}
	t.printf("%s\n", where)
}

func (t *textReporter) step(r result) {
	s := r.Steps[len(r.Steps)-1]
	verdict := "ok"
	if !s.OK {
		verdict = "FAILED"
	}
	line := fmt.Sprintf("  %2d  %-39s  %-6s %7s  %s", len(r.Steps), s.Name, verdict, seconds(duration(s.Seconds)), s.Detail)
	t.printf("%s\n", strings.TrimRight(line, " "))
}

func (t *textReporter) end(r result) {
	total := 0.0
	for _, s := range r.Steps {
		total += s.Seconds
	}
	verdict := "passed"
	if !r.Passed {
		verdict = "FAILED"
	}
	t.printf("%s: %d steps in %s\n\n", verdict, len(r.Steps), seconds(duration(total)))
}

func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// seconds prints a duration for people.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
