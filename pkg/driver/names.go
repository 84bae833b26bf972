package driver

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const (
	minBucketName  = 3
	maxBucketName  = 63
	maxAccountName = 253 // a Kubernetes object name
)

// checkBucketName applies the S3 rules that every cloud shares, so that a bad
// name is told apart before any call, in words that say what to change.
func checkBucketName(name string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("bucket name %s: %w: %s (want %d to %d characters of a-z, 0-9, \"-\" and \".\", starting and ending with a letter or digit)",
			quote(name), provider.ErrInvalidArgument, fmt.Sprintf(format, args...), minBucketName, maxBucketName)
	}
	if n := len(name); n < minBucketName || n > maxBucketName {
		return bad("it has %d characters", n)
	}
	for _, r := range name {
		switch {
		case isLowerAlnum(r), r == '-', r == '.':
		case r >= 'A' && r <= 'Z':
			return bad("it holds the capital letter %q", r)
		default:
			return bad("it holds the character %q", r)
		}
	}
	switch first, last := rune(name[0]), rune(name[len(name)-1]); {
	case !isLowerAlnum(first):
		return bad("it starts with %q", first)
	case !isLowerAlnum(last):
		return bad("it ends with %q", last)
	case strings.Contains(name, ".."):
		return bad("it holds two dots in a row")
	case strings.Contains(name, ".-"), strings.Contains(name, "-."):
		return bad("it holds a dot beside a hyphen")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return bad("it looks like an IP address")
	}
	return nil
}

func isLowerAlnum(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// checkAccountName accepts what fits into an account ID.
func checkAccountName(name string) error {
	if len(name) > maxAccountName || !goodPart(name) {
		return fmt.Errorf("account name %s: %w: want 1 to %d characters of a-z, A-Z, 0-9, \".\", \"_\" and \"-\"",
			quote(name), provider.ErrInvalidArgument, maxAccountName)
	}
	return nil
}
