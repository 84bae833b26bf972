package cluster

import (
	"context"
	"fmt"
	"strings"
)

// Tail is the last lines of the log.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimSuffix(p.Log(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// logged is a test of readiness: the program has written the text in this run.
func (p *Process) logged(text string) func(context.Context) error {
	before := 0
	return func(context.Context) error {
		switch n := strings.Count(p.Log(), text); {
		case n > before:
			before = n
			return nil
		default:
			return fmt.Errorf("its log lacks %q", text)
		}
	}
}
