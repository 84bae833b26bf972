package emulator

import (
	"slices"
	"time"
)

// listing is what a list call shows: every write from the moment it becomes
// visible there. The zero value is empty. It is not safe for concurrent use.
type listing[T any] struct{ entries []listed[T] }

type listed[T any] struct {
	id    string
	value T
	from  time.Time
	until time.Time // zero while it exists
}

// add shows a new thing from a moment on.
func (l *listing[T]) add(id string, value T, from time.Time) {
	l.entries = append(l.entries, listed[T]{id: id, value: value, from: from})
}

// remove shows what exists under an id no longer than until. A removal that is
// visible before the creation leaves nothing to show.
func (l *listing[T]) remove(id string, until time.Time) {
	for i := range l.entries {
		if l.entries[i].id == id && l.entries[i].until.IsZero() {
			l.entries[i].until = until
		}
	}
}

// exists reports whether something exists under an id, visible or not.
func (l *listing[T]) exists(id string) bool {
	return slices.ContainsFunc(l.entries, func(e listed[T]) bool { return e.id == id && e.until.IsZero() })
}

// existing returns the ids of what exists, visible or not.
func (l *listing[T]) existing() []string {
	var ids []string
	for _, e := range l.entries {
		if e.until.IsZero() {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// at returns what is visible, in the order of creation.
func (l *listing[T]) at(now time.Time) []T {
	l.entries = slices.DeleteFunc(l.entries, func(e listed[T]) bool {
		return !e.until.IsZero() && !now.Before(e.until)
	})
	var out []T
	for _, e := range l.entries {
		if !now.Before(e.from) {
			out = append(out, e.value)
		}
	}
	return out
}
