package policy

import "strings"

// glob is a compiled pattern: a byte value stands for itself, the two
// constants for wildcards.
type glob []int16

const (
	globAny int16 = -1 // any number of bytes
	globOne int16 = -2 // exactly one byte
)

// literal appends the bytes of s without giving any of them a meaning.
func (g glob) literal(s string) glob {
	for i := range len(s) {
		g = append(g, int16(s[i]))
	}
	return g
}

// compileGlob reads * and ? as wildcards.
func compileGlob(pattern string) glob {
	g := make(glob, 0, len(pattern))
	for i := range len(pattern) {
		switch pattern[i] {
		case '*':
			g = append(g, globAny)
		case '?':
			g = append(g, globOne)
		default:
			g = append(g, int16(pattern[i]))
		}
	}
	return g
}

// match reports whether all of s fits the pattern. Its time grows with the
// product of the two lengths at worst, never exponentially.
func (g glob) match(s string) bool {
	pi, si := 0, 0
	star, mark := -1, 0
	for si < len(s) {
		switch {
		case pi < len(g) && g[pi] == globAny:
			star, mark = pi, si
			pi++
		case pi < len(g) && (g[pi] == globOne || g[pi] == int16(s[si])):
			pi++
			si++
		case star >= 0:
			// The last star swallows one byte more.
			mark++
			pi, si = star+1, mark
		default:
			return false
		}
	}
	for pi < len(g) && g[pi] == globAny {
		pi++
	}
	return pi == len(g)
}

// matchWords compares pattern and name word by word between colons, without
// regard to case: no wildcard crosses a colon.
func matchWords(pattern, name string) bool {
	p, n := strings.Split(pattern, ":"), strings.Split(name, ":")
	if len(p) != len(n) {
		return false
	}
	for i := range p {
		if !compileGlob(strings.ToLower(p[i])).match(strings.ToLower(n[i])) {
			return false
		}
	}
	return true
}
