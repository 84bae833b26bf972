package driver

import "context"

// Claims is what the driver asks about the cluster that it serves. It is safe for
// concurrent use. Its errors wrap a sentinel of package provider, none of which
// is final to COSI: ErrPrecondition when the objects are not there or do not
// belong together, ErrPermissionDenied when the driver may not read them, and
// ErrUnavailable when the API server does not answer.
type Claims interface {
	// ClaimOf returns the BucketClaim behind COSI's Bucket of that name, which is
	// what COSI asks CreateBucket for.
	ClaimOf(ctx context.Context, bucketObject string) (Claim, error)
	// NamespaceLabels returns the labels of a namespace.
	NamespaceLabels(ctx context.Context, namespace string) (map[string]string, error)
	// BucketObjects returns the Bucket objects of this driver, in no order.
	BucketObjects(ctx context.Context) ([]BucketObject, error)
}

// Claim is the BucketClaim of a Bucket.
type Claim struct {
	Namespace, Name, UID string
	// BucketID is what COSI knows the claim's bucket by; empty until it has been
	// told. Only until then the BucketClaim is sure to exist.
	BucketID string
}

// BucketObject is COSI's Bucket.
type BucketObject struct {
	Name     string
	BucketID string // also the one that a person wrote; empty until there is one
	// Claim is what the Bucket says of it. Its BucketID is the Bucket's.
	Claim    Claim
	Deleting bool
}
