package provider

import (
	"context"
	"iter"
)

// Drift is in what something differs from what it should be.
type Drift string

// The kinds of drift.
const (
	// DriftPolicy: a bucket's policy is not the one that its accesses make.
	DriftPolicy Drift = "policy"
	// DriftTags: tags that are the driver's memory are lost or make no sense.
	DriftTags Drift = "tags"
	// DriftAdmin: a policy does not exempt the one who manages the bucket.
	DriftAdmin Drift = "adminExemption"
	// DriftPublicAccess: public ACLs are not switched off where they should be.
	DriftPublicAccess Drift = "publicAccess"
	// DriftRegion: what is recorded names another region than where it is.
	DriftRegion Drift = "region"
	// DriftMissingUser: an identity that a bucket lets in does not exist.
	DriftMissingUser Drift = "missingUser"
)

// Drifts lists every kind, for tables that must be complete.
func Drifts() []Drift {
	return []Drift{DriftPolicy, DriftTags, DriftAdmin, DriftPublicAccess, DriftRegion, DriftMissingUser}
}

// Finding is one difference between what a cloud has and what it should have. No
// secret enters it.
type Finding struct {
	Drift
	Resource
	Problem string // what is wrong, for people
	Remedy  string // what to do about it
	// Repairable says that Repair can do it.
	Repairable bool
}

// Auditor is a provider that compares what carries the driver's mark with what it
// has recorded about it. What lacks the mark is never changed; of a bucket of
// somebody else the driver's own statements are looked at alone. The rules of
// Provider hold.
type Auditor interface {
	// Audit yields what differs, bucket by bucket. It changes nothing, and holds a
	// bucket's lock while it looks at it. What a bucket's fault hides is not known
	// before that is repaired, and what somebody changes at that moment is left out. A
	// bucket that cannot be looked at does not keep it from the others; the first error
	// is yielded once, as the last element.
	Audit(ctx context.Context) iter.Seq2[Finding, error]

	// Repair looks at the finding's bucket again and puts right what of the finding
	// is still so; what is right already is success. What it writes is made by the
	// code that grants. Errors: ErrPrecondition when somebody must act first;
	// ErrUnsupported for what is not repairable.
	Repair(ctx context.Context, f Finding) error
}
