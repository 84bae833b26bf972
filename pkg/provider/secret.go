package provider

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unique"
)

// redacted is what a Secret shows of itself.
const redacted = "[redacted]"

// Secret is a string that shows itself only through Reveal: every fmt verb,
// JSON, YAML and text encoding and structured loggers see a placeholder.
// Secrets compare by value with ==.
type Secret struct {
	// A handle, since fmt walks the fields of a value under verbs that no
	// Formatter is asked for (%p, and %w outside Errorf); there it finds an
	// address.
	value unique.Handle[string]
}

// NewSecret wraps a value that must not be shown.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{unique.Make(value)}
}

// Reveal returns the value. Call it only where the value leaves the process on
// purpose.
func (s Secret) Reveal() string {
	if s.Empty() {
		return ""
	}
	return s.value.Value()
}

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s == Secret{} }

// Format writes the placeholder under every verb and flag.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String returns the placeholder.
func (Secret) String() string { return redacted }

// GoString returns the placeholder.
func (Secret) GoString() string { return redacted }

// MarshalText returns the placeholder, which covers JSON, YAML and XML values.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalLog returns the placeholder to logr back ends.
func (Secret) MarshalLog() any { return redacted }

var credentialWord = regexp.MustCompile(`[A-Za-z0-9+/=._~-]{16,}`)

// Redact withholds what looks like a credential in a text of somebody else's, such as
// an answer that repeats the request: a long word that mixes capital letters, small
// ones and digits, as tokens and secret keys do, and as names of buckets, UUIDs and
// access key IDs do not.
func Redact(text string) string {
	return credentialWord.ReplaceAllStringFunc(text, func(word string) string {
		if !strings.ContainsFunc(word, unicode.IsUpper) || !strings.ContainsFunc(word, unicode.IsLower) || !strings.ContainsAny(word, "0123456789") {
			return word
		}
		return redacted
	})
}
