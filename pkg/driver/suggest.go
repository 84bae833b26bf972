package driver

import (
	"fmt"
	"strings"
)

// DidYouMean returns ' (did you mean "x"?)' with the candidate that a near miss in
// case, separators or spelling was probably meant to be, or "" if there is none.
func DidYouMean(got string, candidates []string) string {
	const longest = 64 // what is longer is no misspelling
	plain := fold(got)
	if plain == "" || len(plain) > longest {
		return ""
	}
	best, bestDistance := "", 3
	for _, c := range candidates {
		want := fold(c)
		if d := distance(plain, want); d < bestDistance && d*3 <= len(want) {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// fold removes what people get wrong most: case and separators.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of single-byte insertions, deletions and
// substitutions between a and b.
func distance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, prev[j+1]+1, prev[j]+cost)
		}
		prev = row
	}
	return prev[len(b)]
}
