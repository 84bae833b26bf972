package policy

import (
	"slices"
	"strings"
)

// resource is one entry of Resource or NotResource, reduced to what stands
// behind arn:aws:s3:::.
type resource struct {
	// foreign marks an ARN of another service or region: accepted, matches
	// nothing.
	foreign bool
	pattern template
}

func (r *resource) matches(name string, env map[string][]string) bool {
	if r.foreign {
		return false
	}
	g, ok := r.pattern.expand(env)
	return ok && g.match(name)
}

// s3Resource cuts the prefix off the resource of a request.
func s3Resource(arn string) (name string, ok bool) {
	return strings.CutPrefix(arn, "arn:aws:s3:::")
}

// template is a pattern with variables that take their value from the request.
type template []segment

// segment is either a piece of a pattern or the name of a variable.
type segment struct {
	pattern  glob
	variable string
}

// plainTemplate is a pattern without variables.
func plainTemplate(pattern string) template {
	return template{{pattern: compileGlob(pattern)}}
}

// expand puts the request's values in, as plain text. It fails when the
// request lacks one.
func (t template) expand(env map[string][]string) (glob, bool) {
	if len(t) == 1 && t[0].variable == "" {
		return t[0].pattern, true
	}
	var g glob
	for _, s := range t {
		if s.variable == "" {
			g = append(g, s.pattern...)
			continue
		}
		values := env[s.variable]
		if len(values) == 0 {
			return nil, false
		}
		g = g.literal(values[0])
	}
	return g, true
}

// parseTemplate reads ${…}: the names listed in variables, and ${*}, ${?} and
// ${$} for the characters themselves. Wildcards count only if wild is set.
func parseTemplate(s string, wild bool, variables []string) (template, bool) {
	var t template
	plain := func(text string) {
		switch {
		case text == "":
		case wild:
			t = append(t, segment{pattern: compileGlob(text)})
		default:
			t = append(t, segment{pattern: glob(nil).literal(text)})
		}
	}
	for {
		before, rest, found := strings.Cut(s, "${")
		plain(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, false
		}
		switch {
		case name == "*" || name == "?" || name == "$":
			t = append(t, segment{pattern: glob(nil).literal(name)})
		case slices.Contains(variables, name):
			t = append(t, segment{variable: name})
		default:
			return nil, false
		}
		s = after
	}
	return t, true
}
