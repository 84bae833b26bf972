package driver

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// maxID is the longest ID that COSI v1alpha2 stores.
const maxID = 2048

// idPart is what one part of an ID may hold; "/" separates the parts.
var idPart = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// accessOnlyPart ends the ID of a bucket that the driver gives access to but did
// not make. No owner ID is spelled so.
const accessOnlyPart = "accessOnly"

// BucketID is COSI's bucket ID in its parts:
// <backend>/<region>/<bucket>[/<owner ID>][/accessOnly].
type BucketID struct {
	Backend string
	Region  string
	Bucket  string
	OwnerID string // may be empty: the owner is then found by its mark
	// AccessOnly marks a bucket of somebody else; see provider.BucketRef.
	AccessOnly bool
}

// Format writes the ID, or ErrInvalidArgument if a part does not fit into one.
// ParseBucketID reads it back unchanged.
func (id BucketID) Format() (string, error) {
	parts := []string{id.Backend, id.Region, id.Bucket}
	if id.OwnerID == accessOnlyPart {
		return "", fmt.Errorf("bucket ID: %w: no owner can be called %q", provider.ErrInvalidArgument, id.OwnerID)
	}
	if id.OwnerID != "" {
		parts = append(parts, id.OwnerID)
	}
	if id.AccessOnly {
		parts = append(parts, accessOnlyPart)
	}
	return formatID("bucket ID", parts)
}

// Ref returns the bucket that the ID names within its back end.
func (id BucketID) Ref() provider.BucketRef {
	return provider.BucketRef{Name: id.Bucket, Region: id.Region, OwnerID: id.OwnerID, AccessOnly: id.AccessOnly}
}

// ParseBucketID reads a bucket ID; what stands in brackets may be missing.
// Whatever is not shaped like one is ErrInvalidArgument.
func ParseBucketID(s string) (BucketID, error) {
	const shape = "<backend>/<region>/<bucket>[/<owner ID>][/" + accessOnlyPart + "]"
	parts, err := splitID("bucket ID", s, shape, 3, 5)
	if err != nil {
		return BucketID{}, err
	}
	id := BucketID{Backend: parts[0], Region: parts[1], Bucket: parts[2]}
	rest := parts[3:]
	if n := len(rest); n > 0 && rest[n-1] == accessOnlyPart {
		id.AccessOnly, rest = true, rest[:n-1]
	}
	switch {
	case len(rest) == 1 && rest[0] != accessOnlyPart:
		id.OwnerID = rest[0]
	case len(rest) > 0:
		return BucketID{}, malformedID("bucket ID", s, shape)
	}
	return id, nil
}

// BucketName returns the name at the cloud of the bucket with that ID, which may
// be <region>/<bucket>, too: people write it for existing buckets.
func BucketName(bucketID string) (string, error) {
	if region, name, found := strings.Cut(bucketID, "/"); found && goodPart(region) && goodPart(name) {
		return name, nil
	}
	id, err := ParseBucketID(bucketID)
	return id.Bucket, err
}

// AccountID is COSI's account ID in its parts:
// <backend>/<account name>[/<identity ID>]. It names the principal, never one
// of its keys.
type AccountID struct {
	Backend    string
	Account    string
	IdentityID string // may be empty: the identity is then found by its mark
}

// Format writes the ID, or ErrInvalidArgument if a part does not fit into one.
// ParseAccountID reads it back unchanged.
func (id AccountID) Format() (string, error) {
	parts := []string{id.Backend, id.Account}
	if id.IdentityID != "" {
		parts = append(parts, id.IdentityID)
	}
	return formatID("account ID", parts)
}

// ParseAccountID reads an account ID; its last part may be missing. Whatever is
// not shaped like one is ErrInvalidArgument.
func ParseAccountID(s string) (AccountID, error) {
	parts, err := splitID("account ID", s, "<backend>/<account name>[/<identity ID>]", 2, 3)
	if err != nil {
		return AccountID{}, err
	}
	id := AccountID{Backend: parts[0], Account: parts[1]}
	if len(parts) > 2 {
		id.IdentityID = parts[2]
	}
	return id, nil
}

func formatID(what string, parts []string) (string, error) {
	for _, p := range parts {
		if !goodPart(p) {
			return "", fmt.Errorf("%s: %w: part %s: want characters of a-z, A-Z, 0-9, \".\", \"_\" and \"-\"",
				what, provider.ErrInvalidArgument, quote(p))
		}
	}
	id := strings.Join(parts, "/")
	if len(id) > maxID {
		return "", fmt.Errorf("%s: %w: %d characters, at most %d are possible", what, provider.ErrInvalidArgument, len(id), maxID)
	}
	return id, nil
}

// splitID returns least to most parts.
func splitID(what, s, shape string, least, most int) ([]string, error) {
	if len(s) > maxID {
		return nil, fmt.Errorf("%s %s: %w: not this driver's: %d characters, at most %d are possible",
			what, quote(s), provider.ErrInvalidArgument, len(s), maxID)
	}
	parts := strings.Split(s, "/")
	good := len(parts) >= least && len(parts) <= most
	for _, p := range parts {
		good = good && goodPart(p)
	}
	if !good {
		return nil, malformedID(what, s, shape)
	}
	return parts, nil
}

func malformedID(what, s, shape string) error {
	return fmt.Errorf("%s %s: %w: not this driver's: want %s with parts of a-z, A-Z, 0-9, \".\", \"_\" and \"-\"",
		what, quote(s), provider.ErrInvalidArgument, shape)
}

// goodPart also refuses what a path would take for a directory.
func goodPart(p string) bool { return p != "." && p != ".." && idPart.MatchString(p) }
