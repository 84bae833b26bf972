// Package provider is the contract between the driver and the clouds: one
// interface, the domain types it speaks in, and the errors it returns. It
// knows no cloud, no gRPC and no Kubernetes.
package provider

import (
	"context"
	"iter"
)

// Provider manages buckets and accesses in one cloud project.
//
// Rules that hold for every method:
//
//   - It is safe for concurrent use by any number of goroutines, and by several
//     processes that serve the same driver name.
//   - It ends when ctx does, and returns at once when ctx has ended already. It
//     sets no deadline of its own beyond the time-outs of single HTTP calls and
//     the wait for a named propagation delay.
//   - It is idempotent: after a crash at any point, the same call made by a new
//     process ends in the state that an undisturbed call would have left.
//   - What does not carry this driver's mark is never changed, deleted or handed
//     out. A mark that names another cluster than the provider's is not this
//     driver's: calls about it end with ErrPermissionDenied, which names that
//     cluster. One that names none is.
//   - An error wraps exactly one sentinel of this package (or ctx.Err()) and
//     names the bucket, the region, the operation, the cause and the remedy. No
//     secret enters it.
//
// Any method may return ErrUnauthenticated, ErrPermissionDenied, ErrUnavailable
// or ErrInvalidArgument; the others are listed with each method.
type Provider interface {
	// CreateBucket makes sure that the bucket exists, carries the driver's mark
	// and answers at its region's endpoint. A bucket that carries the mark is
	// adopted. Errors: ErrAlreadyExists when the name belongs to someone else, be it
	// another claim (the bucket stays untouched), or the marked bucket was made with
	// other parameters, and ErrPrecondition instead where somebody can change that, as
	// when it is another cluster's, or another claim's and was never made;
	// ErrConflict when another process is making it at this moment
	// or its mark is ambiguous; ErrQuotaExceeded; ErrUnsupported for a tenant where
	// owners cannot be shared.
	CreateBucket(ctx context.Context, spec BucketSpec) (Bucket, error)

	// GetBucket reads a bucket that carries the driver's mark, and with
	// ref.AccessOnly also one without; the answer's AccessOnly says which it is.
	// It changes nothing. Errors: ErrNotFound; ErrPermissionDenied when the bucket
	// exists without the mark and ref.AccessOnly is false, or when the back end's
	// credentials cannot administer it.
	GetBucket(ctx context.Context, ref BucketRef) (Bucket, error)

	// DeleteBucket removes the bucket and every identity made for it alone. An
	// absent bucket is success. Unfinished uploads do not count as content and are
	// aborted. With ref.AccessOnly it ends the accesses to a bucket without the
	// mark and leaves that bucket, and any bucket that does carry it, alone. Errors: ErrNotEmpty when it holds an object, a version or a
	// delete marker and opts.Purge is false (nothing is lost); ErrUnavailable
	// with the progress in its text when a purge ran out of time: repeat it.
	DeleteBucket(ctx context.Context, ref BucketRef, opts DeleteOptions) error

	// GrantAccess makes sure that the account may use the buckets, and returns
	// once its key works at their endpoint. A repeated call returns the same
	// identity, and within one process the same key; a key that may have been
	// delivered stays valid. An access that spans buckets has one identity, whatever
	// their order; a call that failed on some of them is completed by its repetition,
	// and a repetition with other buckets adds those. In a bucket without the mark,
	// which takes AccessOnly, nothing that others put into its policy changes.
	// Errors: ErrNotFound for a missing bucket; ErrInvalidArgument naming the buckets
	// that one identity cannot span;
	// ErrUnsupported for a mode that cannot be enforced and for credentials that
	// the cloud does not have; ErrPrecondition when the endpoint was found unable
	// to tell accesses apart or the bucket forbids shared credentials;
	// ErrQuotaExceeded.
	GrantAccess(ctx context.Context, spec AccessSpec) (Access, error)

	// RevokeAccess ends the account's access to the buckets it names, and removes
	// its identity with the last of them. It goes by what was recorded with the
	// grant, so AccessOnly makes no difference. An absent account, identity or bucket
	// is success. A key that was granted with
	// CredentialsShared, or under Capabilities.SharedKeys, is the bucket's own and
	// stays valid until the bucket goes. Errors: ErrPrecondition with their names
	// when the access made buckets for itself; its key does not open the buckets of
	// the reference any more.
	RevokeAccess(ctx context.Context, ref AccountRef) error

	// RotateAccess gives the account a new key with the same rights, and returns it
	// once it works. Of the keys before it only opts.KeepAccessKeyID stays valid. What
	// a call that failed has made is used up or removed by the next one, so that keys
	// do not add up; GrantAccess then returns the new key and the same identity.
	// ref.Buckets are the buckets of the access. Errors: ErrNotFound for an account
	// without access; ErrPrecondition when a key that would have to go has made
	// buckets for itself; ErrQuotaExceeded; ErrUnsupported.
	RotateAccess(ctx context.Context, ref AccountRef, opts RotateOptions) (Credentials, error)

	// RetireKeys ends every key of the account but the one named, which must be one
	// of its keys: else it ends none. ref is as for RotateAccess. Errors: ErrNotFound
	// for an account or a key that is not there; ErrPrecondition as above;
	// ErrUnsupported.
	RetireKeys(ctx context.Context, ref AccountRef, keepAccessKeyID string) error

	// Inventory yields everything that carries the driver's mark, in no order.
	// It yields an error once, as its last element.
	Inventory(ctx context.Context) iter.Seq2[Resource, error]

	// Regions returns the names of the regions that buckets can be made in,
	// sorted. It may answer from a cache of some minutes.
	Regions(ctx context.Context) ([]string, error)

	// Capabilities says what this provider can do. It makes no call.
	Capabilities() Capabilities
}

// Mode is what an access may do with the objects of a bucket.
type Mode string

// The modes; the empty mode means ReadWrite.
const (
	ReadWrite Mode = "ReadWrite"
	ReadOnly  Mode = "ReadOnly"
	WriteOnly Mode = "WriteOnly"
)

// DeletionPolicy is what DeleteBucket does with a bucket that holds data.
type DeletionPolicy string

// The deletion policies; the empty policy means DeleteIfEmpty.
const (
	DeleteIfEmpty DeletionPolicy = "DeleteIfEmpty"
	DeleteAll     DeletionPolicy = "DeleteAll"
)

// SharedCredentials says whether accesses with CredentialsShared are allowed.
type SharedCredentials string

// The choices; the empty one means SharedAllowed.
const (
	SharedAllowed   SharedCredentials = "allowed"
	SharedForbidden SharedCredentials = "forbidden"
)

// CredentialMode is whose key an access gets.
type CredentialMode string

// The credential modes; the empty one means CredentialsPerAccess.
const (
	// CredentialsPerAccess gives each access an identity and a key of its own,
	// which RevokeAccess ends.
	CredentialsPerAccess CredentialMode = "perAccess"
	// CredentialsShared gives it the key of the bucket's owner, which no
	// RevokeAccess can cut off.
	CredentialsShared CredentialMode = "shared"
)

// OwnBuckets is what becomes of the buckets that an access has made for itself
// with its key.
type OwnBuckets string

// The choices; the empty one means OwnBucketsRefuse.
const (
	// OwnBucketsRefuse ends the access but keeps its identity and answers with
	// the names of its buckets until somebody has deleted them.
	OwnBucketsRefuse OwnBuckets = "refuse"
	// OwnBucketsPurge deletes them with all they hold.
	OwnBucketsPurge OwnBuckets = "purge"
)

// BucketSpec is what CreateBucket is asked for.
type BucketSpec struct {
	Name   string // the bucket's name at the cloud, verbatim
	Region string // as the cloud spells it
	// Endpoint replaces the region's S3 endpoint (scheme://host[:port]); empty
	// means the back end's own.
	Endpoint string
	// VirtualHosted addresses the bucket as a host name instead of a path.
	VirtualHosted  bool
	DeletionPolicy DeletionPolicy // recorded with the bucket
	// SharedCredentials says whether an access may be given the key of the
	// bucket's owner; it is recorded with the bucket. A cloud that never gives
	// that key away may leave it unheeded.
	SharedCredentials SharedCredentials
	// Claim is the claim that the bucket is named after; the zero value is none. It
	// is recorded with the bucket, which is nobody else's from then on.
	Claim ClaimRef
	// Tenant shares one owner among all buckets of that tenant; empty gives the bucket
	// an owner of its own. 1 to 63 of a-z, 0-9, "-" and ".", a letter or digit at both
	// ends. It is recorded with the bucket, and SharedCredentials must not be allowed.
	Tenant string
	// KeepTenant takes a bucket that is there, or begun, for another tenant as it is,
	// instead of with ErrAlreadyExists: Tenant is for one that has yet to be made.
	KeepTenant bool
}

// ClaimRef names a BucketClaim.
type ClaimRef struct{ Namespace, Name string }

// String writes <namespace>/<name>, or "" for none. No part can hold a "/".
func (c ClaimRef) String() string {
	if c == (ClaimRef{}) {
		return ""
	}
	return c.Namespace + "/" + c.Name
}

// BucketRef names an existing bucket.
type BucketRef struct {
	Name    string
	Region  string
	OwnerID string // the owner identity if the bucket ID carries it; may be empty
	// AccessOnly says that the bucket may be one that lacks the driver's mark:
	// somebody else made it, and accesses to it are all that the driver manages. It
	// is never deleted, emptied or marked.
	AccessOnly bool
}

// Bucket is a bucket that carries the driver's mark.
type Bucket struct {
	BucketRef // OwnerID is set where the cloud has owners
	// Endpoint is the S3 endpoint to use, scheme://host[:port].
	Endpoint string
	// SigningRegion is the region clients put into their signatures.
	SigningRegion  string
	VirtualHosted  bool
	DeletionPolicy DeletionPolicy // as recorded; DeleteIfEmpty when it was not
	Tenant         string         // whose buckets its owner owns; empty if it owns this one alone
	Claim          ClaimRef       // that it is named after, as recorded; the zero value is none
}

// DeleteOptions says how far DeleteBucket may go.
type DeleteOptions struct {
	// Purge deletes every object, version, delete marker and unfinished upload
	// first.
	Purge bool
	// PurgeOwn lets the buckets that its accesses made for themselves be deleted
	// with their data, where the access was granted with OwnBucketsPurge.
	PurgeOwn bool
}

// AccessSpec is what GrantAccess is asked for.
type AccessSpec struct {
	Account string         // COSI's account name, unique in the cluster
	Buckets []BucketAccess // at least one, none of them twice
	// Credentials says whose key the access gets.
	Credentials CredentialMode
	// OwnBuckets is recorded with the access where it has a use.
	OwnBuckets OwnBuckets
}

// BucketAccess is one bucket of an access and what may be done with it.
type BucketAccess struct {
	BucketRef
	Mode Mode
}

// Access is a granted access.
type Access struct {
	// IdentityID is the cloud's ID of the identity that holds the key; empty
	// where it adds nothing to the account name.
	IdentityID  string
	Credentials Credentials
	Buckets     []Bucket // in the order of the request
}

// Credentials is an S3 key pair.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey Secret
}

// AccountRef names a granted access.
type AccountRef struct {
	Account    string // may be empty when COSI never learned it
	IdentityID string // may be empty
	Buckets    []BucketRef
	// PurgeOwn lets the buckets that the access made for itself be deleted with
	// their data, where it was granted with OwnBucketsPurge.
	PurgeOwn bool
}

// RotateOptions says what becomes of the key that is replaced.
type RotateOptions struct {
	// KeepAccessKeyID stays valid besides the new key; empty keeps none.
	KeepAccessKeyID string
}

// Kind is what a Resource is.
type Kind string

// The kinds of resources a driver leaves in a cloud.
const (
	KindBucket Kind = "bucket"
	KindOwner  Kind = "owner"
	KindAccess Kind = "access"
	KindAdmin  Kind = "admin"
)

// Resource is something in the cloud that carries the driver's mark.
type Resource struct {
	Kind    Kind
	ID      string // the cloud's ID; a bucket's is its name
	Bucket  string
	Region  string
	Account string
	// Name is what the cloud shows people, where that says more than the rest.
	Name string
}

// Capabilities says what a provider can do.
type Capabilities struct {
	Modes      []Mode // enforced modes
	Rotation   bool   // RotateAccess works
	SharedKeys bool   // accesses share the bucket owner's key
	Tenants    bool   // buckets of a tenant can share their owner
}
