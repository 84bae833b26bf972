package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environment is the process's environment, or a test's.
type environment map[string]string

// environ turns os.Environ's form into an environment.
func environ(pairs []string) environment {
	env := make(environment, len(pairs))
	for _, pair := range pairs {
		if name, value, found := strings.Cut(pair, "="); found {
			env[name] = value
		}
	}
	return env
}

// envName is the variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// collector gathers every fault of a configuration, so that they are reported
// together instead of one per attempt.
type collector struct {
	flags  *pflag.FlagSet
	faults []error
}

// collect makes the flags of fs remember bad values instead of stopping the
// parser at the first.
func collect(fs *pflag.FlagSet) *collector {
	c := &collector{flags: fs}
	fs.VisitAll(func(f *pflag.Flag) {
		f.Value = &lenientValue{Value: f.Value, source: "--" + f.Name, c: c}
		if f.DefValue == "[]" {
			f.DefValue = "" // pflag knows an empty list by its own type only, and would show it as a default
		}
	})
	return c
}

// lenientValue hands a bad value to its collector and keeps the old one.
type lenientValue struct {
	pflag.Value
	source string
	c      *collector
}

// Set never fails; a fault is with the collector.
func (v *lenientValue) Set(value string) error {
	if err := v.Value.Set(value); err != nil {
		want := map[string]string{"bool": "true or false", "int": "a number", "uint64": "a number", "duration": "a duration such as 30s"}[v.Type()]
		v.c.addf("%s %q: want %s", v.source, value, cmp.Or(want, v.Type()))
	}
	return nil
}

// IsBoolFlag lets the parser treat a wrapped bool as the bool it is.
func (v *lenientValue) IsBoolFlag() bool {
	b, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (c *collector) addf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// err is nil, or a usageError that joins every fault.
func (c *collector) err() error {
	if len(c.faults) == 0 {
		return nil
	}
	return &usageError{errors.Join(c.faults...)}
}

// apply fills the flags that the command line left alone from the environment.
// An empty variable counts as not set.
func (c *collector) apply(env environment) {
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			return
		}
		names := []string{envName(f.Name)}
		if f.Name == flagEndpoint {
			names = append(names, envCOSIEndpoint)
		}
		for _, name := range names {
			value := env[name]
			if value == "" {
				continue
			}
			if v, ok := f.Value.(*lenientValue); ok {
				v.source = name
			}
			_ = f.Value.Set(value) // a lenientValue never fails
			return
		}
	})
}

// warnUnknown tells about ZUBER_ variables that no command reads: a misspelt
// one would be ignored in silence otherwise. Kubernetes sets variables of its
// own for a Service whose name begins with zuber; those are no mistake.
func warnUnknown(w io.Writer, root *cobra.Command, env environment) {
	known := map[string]bool{}
	for _, cmd := range root.Commands() {
		for _, f := range flags(cmd) {
			known[envName(f.Name)] = true
		}
	}
	service := regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)`)
	link := regexp.MustCompile(`^(tcp|udp|sctp)://`)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case !strings.HasPrefix(name, envPrefix), known[name], service.MatchString(name):
			continue
		case strings.HasSuffix(name, "_PORT") && link.MatchString(env[name]):
			continue
		}
		hint := ""
		if near := nearest(name, slices.Sorted(maps.Keys(known))); near != "" {
			hint = "; did you mean " + near + "?"
		}
		_, _ = fmt.Fprintf(w, "zuber: warning: the variable %s is not known and has no effect%s\n", name, hint)
	}
}

// nearest is the candidate that is at most two edits away from name, or "".
func nearest(name string, candidates []string) string {
	best, distance := "", 3
	for _, candidate := range candidates {
		if d := editDistance(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is the number of insertions, deletions and replacements that
// turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
