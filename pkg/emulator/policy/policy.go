// Package policy reads and evaluates S3 bucket policies the way the clouds'
// gateways do, which is not the way AWS does: the Ceph RADOS Gateway ignores
// NotAction and answers InvalidArgument with a character offset, StorageGRID
// knows urn:sgws principals and an action of its own for overwriting. Each
// gateway is a Dialect.
//
// Documents are immutable after Parse, so every function of the package is
// safe for concurrent use.
package policy

import (
	"fmt"
	"net/http"
)

// Dialect is whose reading of a policy applies.
type Dialect string

// The dialects.
const (
	// RGWReef is Ceph RADOS Gateway 18.2.7 (Reef).
	RGWReef Dialect = "rgw-reef"
	// RGWTentacle is Ceph RADOS Gateway 20.2.4 (Tentacle).
	RGWTentacle Dialect = "rgw-tentacle"
	// StorageGRID is NetApp StorageGRID 11.9.
	StorageGRID Dialect = "storagegrid"
)

// The size limits in bytes; a document of exactly that size is accepted.
const (
	MaxBytesRGW         = 1 << 20
	MaxBytesStorageGRID = 20480
)

// ParseError is the answer of the cloud to a document it refuses.
type ParseError struct {
	Code    string // the S3 error code
	Message string // the text of the Message element; may be empty
	Status  int    // the HTTP status
}

// Error names the code and the text.
func (e *ParseError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// Request is one access to be judged.
type Request struct {
	// Principal is who asks: for RGW the uid ("tenant$uid" where tenanted), for
	// StorageGRID the user's URN. Empty means anonymous.
	Principal string
	// Groups holds the URNs of the groups the principal is a member of
	// (StorageGRID only).
	Groups []string
	// Action is one exact action name, for example "s3:GetObject".
	Action string
	// Resource is arn:aws:s3:::bucket or arn:aws:s3:::bucket/key.
	Resource string
	// Context holds the values of condition keys, named as the clouds spell
	// them, for example "aws:SourceIp" or "s3:prefix". A key without values
	// counts as absent.
	Context map[string][]string
}

// Decision is what a document says about a request.
type Decision int

// The decisions. A Deny of any statement wins over every Allow; NoMatch leaves
// the decision to whatever else guards the bucket.
const (
	NoMatch Decision = iota
	Allow
	Deny
)

// String returns the name of the decision.
func (d Decision) String() string {
	switch d {
	case NoMatch:
		return "NoMatch"
	case Allow:
		return "Allow"
	case Deny:
		return "Deny"
	}
	return fmt.Sprintf("Decision(%d)", int(d))
}

// Document is a parsed policy.
type Document struct {
	dialect    Dialect
	statements []statement
}

// statement is one statement of either dialect; what a dialect does not have
// stays empty.
type statement struct {
	effect        Decision
	principals    []principal
	notPrincipals []principal
	actions       []string
	notActions    []string
	resources     []resource
	notResources  []resource
	conditions    []condition
}

// Parse reads a document. The error is always a *ParseError and carries what
// the cloud answers to PutBucketPolicy; an unknown dialect is a NotImplemented.
func Parse(doc []byte, d Dialect) (*Document, error) {
	if release, ok := d.rgw(); ok {
		return parseRGW(doc, d, release)
	}
	if d == StorageGRID {
		return parseStorageGRID(doc)
	}
	return nil, &ParseError{
		Code: "NotImplemented", Status: http.StatusNotImplemented,
		Message: fmt.Sprintf("unknown policy dialect %q", string(d)),
	}
}

// Evaluate judges one request. It never fails: what the dialect cannot compare
// does not match.
//
// StorageGRID's s3:PutOverwriteObject only takes away: writing over an object
// is refused on Deny alone, and NoMatch leaves it to s3:PutObject.
func (d *Document) Evaluate(r Request) Decision {
	if d == nil {
		return NoMatch
	}
	if release, ok := d.dialect.rgw(); ok && !release.knowsAction(r.Action) {
		return NoMatch
	}
	result := NoMatch
	for i := range d.statements {
		s := &d.statements[i]
		if !s.applies(d.dialect, r) {
			continue
		}
		if s.effect == Deny {
			return Deny
		}
		result = Allow
	}
	return result
}

// Public reports whether the dialect calls the document public, which decides
// GetBucketPolicyStatus and BlockPublicPolicy. RGW does so for an Allow
// statement that names "*" as its principal unless a condition holds it back,
// and Reef for every one that does not name "*", too; StorageGRID has neither
// call.
func (d *Document) Public() bool {
	if d == nil {
		return false
	}
	release, ok := d.dialect.rgw()
	if !ok {
		return false
	}
	// The gateway tests conditions against this fixed environment.
	env := map[string][]string{
		"aws:SourceIp": {"1.1.1.1"},
		"aws:UserId":   {"anonymous"},
		"s3:x-amz-server-side-encryption-aws-kms-key-id": {"secret"},
	}
	for i := range d.statements {
		s := &d.statements[i]
		switch {
		case s.effect != Allow:
		case anyone(s.principals):
			if s.conditionsHold(d.dialect, env) {
				return true
			}
		case !release.tellsPublic && !anyone(s.notPrincipals):
			return true
		}
	}
	return false
}

// applies reports whether every element of the statement matches the request.
func (s *statement) applies(d Dialect, r Request) bool {
	return s.matchesPrincipal(r) && s.matchesAction(d, r.Action) &&
		s.matchesResource(r) && s.conditionsHold(d, r.Context)
}

func (s *statement) matchesPrincipal(r Request) bool {
	if len(s.principals) == 0 && len(s.notPrincipals) == 0 {
		return false
	}
	if len(s.principals) > 0 && !matchesAny(s.principals, r) {
		return false
	}
	return len(s.notPrincipals) == 0 || !matchesAny(s.notPrincipals, r)
}

func (s *statement) matchesAction(d Dialect, action string) bool {
	if _, ok := d.rgw(); ok {
		// A statement that has only NotAction never applies: the gateway
		// subtracts it from an empty set.
		return rgwMatchesAction(s.actions, action) && !rgwMatchesAction(s.notActions, action)
	}
	if len(s.actions) > 0 {
		return gridMatchesAction(s.actions, action)
	}
	return !gridMatchesAction(s.notActions, action)
}

func (s *statement) matchesResource(r Request) bool {
	name, ok := s3Resource(r.Resource)
	if !ok {
		return false
	}
	matches := func(list []resource) bool {
		for i := range list {
			if list[i].matches(name, r.Context) {
				return true
			}
		}
		return false
	}
	switch {
	case len(s.resources) > 0:
		return matches(s.resources)
	case len(s.notResources) > 0:
		return !matches(s.notResources)
	}
	return false
}

func (s *statement) conditionsHold(d Dialect, env map[string][]string) bool {
	for i := range s.conditions {
		if !s.conditions[i].holds(d, env) {
			return false
		}
	}
	return true
}
