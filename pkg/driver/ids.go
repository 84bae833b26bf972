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

// BucketID is COSI's bucket ID in its parts:
// <backend>/<region>/<bucket>[/<owner ID>].
type BucketID struct {
	Backend string
	Region  string
	Bucket  string
	OwnerID string // may be empty: the owner is then found by its mark
}

// Format writes the ID, or ErrInvalidArgument if a part does not fit into one.
// ParseBucketID reads it back unchanged.
func (id BucketID) Format() (string, error) {
	parts := []string{id.Backend, id.Region, id.Bucket}
	if id.OwnerID != "" {
		parts = append(parts, id.OwnerID)
	}
	return formatID("bucket ID", parts)
}

// Ref returns the bucket that the ID names within its back end.
func (id BucketID) Ref() provider.BucketRef {
	return provider.BucketRef{Name: id.Bucket, Region: id.Region, OwnerID: id.OwnerID}
}

// ParseBucketID reads a bucket ID; its last part may be missing. Whatever is
// not shaped like one is ErrInvalidArgument.
func ParseBucketID(s string) (BucketID, error) {
	parts, err := splitID("bucket ID", s, "<backend>/<region>/<bucket>[/<owner ID>]", 3)
	if err != nil {
		return BucketID{}, err
	}
	return BucketID{Backend: parts[0], Region: parts[1], Bucket: parts[2], OwnerID: parts[3]}, nil
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
	parts, err := splitID("account ID", s, "<backend>/<account name>[/<identity ID>]", 2)
	if err != nil {
		return AccountID{}, err
	}
	return AccountID{Backend: parts[0], Account: parts[1], IdentityID: parts[2]}, nil
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

// splitID returns min+1 parts, the last of them empty if it was missing.
func splitID(what, s, shape string, least int) ([]string, error) {
	if len(s) > maxID {
		return nil, fmt.Errorf("%s %s: %w: not this driver's: %d characters, at most %d are possible",
			what, quote(s), provider.ErrInvalidArgument, len(s), maxID)
	}
	parts := strings.Split(s, "/")
	good := len(parts) == least || len(parts) == least+1
	for _, p := range parts {
		good = good && goodPart(p)
	}
	if !good {
		return nil, fmt.Errorf("%s %s: %w: not this driver's: want %s with parts of a-z, A-Z, 0-9, \".\", \"_\" and \"-\"",
			what, quote(s), provider.ErrInvalidArgument, shape)
	}
	if len(parts) == least {
		parts = append(parts, "")
	}
	return parts, nil
}

// goodPart also refuses what a path would take for a directory.
func goodPart(p string) bool { return p != "." && p != ".." && idPart.MatchString(p) }
