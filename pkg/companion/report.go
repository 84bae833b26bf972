package companion

import "time"

// State is how a BucketClaim or a BucketAccess is.
type State string

// The states.
const (
	StateReady    State = "Ready"    // it can be used
	StateWaiting  State = "Waiting"  // it cannot yet, and nothing is known to be wrong
	StateFailed   State = "Failed"   // it cannot, and something is wrong
	StateDeleting State = "Deleting" // it is being deleted
)

// Found is what came of looking for an object.
type Found string

// What can come of it.
const (
	FoundPresent   Found = "Present"
	FoundMissing   Found = "Missing"   // there is none
	FoundInvalid   Found = "Invalid"   // there is one, and it is not what it should be
	FoundForbidden Found = "Forbidden" // whoever looks may not see it
)

// Report says how BucketClaims are, with their buckets and accesses. The names of its
// fields in JSON are for programs and stay. It holds access key IDs and no secret.
type Report struct {
	COSIVersion string         `json:"cosiVersion" doc:"version of COSI's API that the cluster serves"`
	Claims      []ClaimReport  `json:"claims" doc:"the BucketClaims, by namespace and name"`
	Strays      []AccessReport `json:"accessesWithoutClaim" doc:"BucketAccesses that name a BucketClaim which is not there; empty where one claim was asked for"`
	Unread      []Unread       `json:"unread" doc:"what is missing here because whoever asks may not read it"`
	// NoUsage is filled in by whoever asks the clouds, as are UsageReport and Provider.
	NoUsage []NoUsage `json:"noUsage,omitempty" doc:"back ends whose usage was asked for and is missing, wholly or for some buckets"`
}

// ClaimReport is about one BucketClaim.
type ClaimReport struct {
	Namespace    string         `json:"namespace" doc:"its namespace"`
	Name         string         `json:"name" doc:"its name"`
	State        State          `json:"state" doc:"Ready, Waiting, Failed or Deleting"`
	Detail       string         `json:"detail,omitempty" doc:"why it is not Ready, for people"`
	Created      time.Time      `json:"created" doc:"when it was made"`
	Deleted      *time.Time     `json:"deleted,omitempty" doc:"since when it is being deleted"`
	Class        string         `json:"class,omitempty" doc:"its BucketClass; a claim for an existing Bucket may have none"`
	WipeOnDelete string         `json:"wipeOnDelete,omitempty" doc:"value of its annotation zuber.dev/wipe-on-delete"`
	Bucket       BucketReport   `json:"bucket" doc:"its bucket"`
	Accesses     []AccessReport `json:"accesses" doc:"the BucketAccesses to it, by name"`
	LastError    *ErrorReport   `json:"lastError,omitempty" doc:"the newest error of the claim and its Bucket that is not over"`
}

// BucketReport is about the bucket of a claim.
type BucketReport struct {
	Object         string `json:"object" doc:"name of the Bucket object; it may be known before that is there"`
	Found          Found  `json:"found" doc:"whether the Bucket object is there: Present, Missing or Forbidden"`
	Driver         string `json:"driver,omitempty" doc:"the driver that the Bucket object names"`
	ID             string `json:"id,omitempty" doc:"COSI's bucket ID"`
	Backend        string `json:"backend,omitempty" doc:"back end of the driver"`
	Region         string `json:"region,omitempty" doc:"region"`
	Name           string `json:"name,omitempty" doc:"name of the bucket at the cloud"`
	Owner          string `json:"owner,omitempty" doc:"ID of the cloud's user that owns the bucket, where buckets have one"`
	Existing       bool   `json:"existing,omitempty" doc:"whether the bucket is somebody else's, and only accesses to it are made"`
	DeletionPolicy string `json:"deletionPolicy,omitempty" doc:"what becomes of the bucket with its claim: Delete or Retain"`

	Provider string       `json:"provider,omitempty" doc:"provider of the back end, as the configuration says: cloudscale or stackit; missing unless clouds are asked"`
	Usage    *UsageReport `json:"usage,omitempty" doc:"what the bucket holds; missing unless clouds are asked, and where the cloud has no figure"`
}

// UsageReport is what a bucket holds.
type UsageReport struct {
	Bytes    int64     `json:"bytes" doc:"bytes, on STACKIT with old versions"`
	Objects  int64     `json:"objects" doc:"objects, on STACKIT with old versions"`
	At       time.Time `json:"at" doc:"when that was so"`
	Cost     *float64  `json:"estimatedMonthlyCost,omitempty" doc:"what the bytes cost a month by --usage-price, without requests and traffic; missing without a price"`
	Currency string    `json:"currency,omitempty" doc:"currency of the price"`
}

// NoUsage says why usage is missing.
type NoUsage struct {
	Backend string `json:"backend" doc:"the back end"`
	Reason  string `json:"reason" doc:"why, and what to do"`
}

// AccessReport is about a BucketAccess, as far as it is to the bucket of one claim.
type AccessReport struct {
	Namespace   string          `json:"namespace" doc:"its namespace"`
	Name        string          `json:"name" doc:"its name"`
	Claim       string          `json:"claim" doc:"the BucketClaim that it names"`
	State       State           `json:"state" doc:"Ready, Waiting, Failed or Deleting"`
	Detail      string          `json:"detail,omitempty" doc:"why it is not Ready, for people"`
	Created     time.Time       `json:"created" doc:"when it was made"`
	Deleted     *time.Time      `json:"deleted,omitempty" doc:"since when it is being deleted"`
	Class       string          `json:"class,omitempty" doc:"its BucketAccessClass"`
	Mode        string          `json:"mode,omitempty" doc:"ReadWrite, ReadOnly or WriteOnly; missing where the BucketAccessClass cannot be read. In v1alpha1 it is what the class says by now"`
	Account     string          `json:"account,omitempty" doc:"COSI's account ID"`
	Identity    string          `json:"identity,omitempty" doc:"ID of the cloud's user or group that the key belongs to"`
	AccessKeyID string          `json:"accessKeyID,omitempty" doc:"access key ID in the Secret of COSI"`
	Secret      SecretReport    `json:"secret" doc:"the Secret that COSI writes"`
	EnvSecret   *SecretReport   `json:"envSecret,omitempty" doc:"the env Secret, if one is asked for"`
	Rotation    *RotationReport `json:"rotation,omitempty" doc:"rotation of its key, if one is asked for or was done"`
	LastError   *ErrorReport    `json:"lastError,omitempty" doc:"its newest error that is not over"`
}

// SecretReport is about a Secret beside an access, and holds nothing of what is in it.
type SecretReport struct {
	Name  string `json:"name" doc:"its name"`
	Found Found  `json:"found" doc:"Present, Missing, Invalid or Forbidden"`
}

// RotationReport is about the rotation of a key.
type RotationReport struct {
	Asked      string     `json:"asked,omitempty" doc:"value of the annotation zuber.dev/rotate-credentials-at"`
	Every      string     `json:"every,omitempty" doc:"rotateEvery of the BucketAccessClass"`
	Recorded   Found      `json:"recorded" doc:"whether the companion has recorded anything: Present, Missing, Invalid or Forbidden"`
	Handled    string     `json:"handled,omitempty" doc:"the value that asks for nothing any more"`
	Rotated    *time.Time `json:"rotated,omitempty" doc:"when the last new key was in the Secrets"`
	Replaced   string     `json:"replacedAccessKeyID,omitempty" doc:"access key ID of the key that is being replaced"`
	Minted     string     `json:"newAccessKeyID,omitempty" doc:"access key ID of the key that replaces it"`
	Delivered  *time.Time `json:"delivered,omitempty" doc:"since when the Secrets have that"`
	GraceUntil *time.Time `json:"graceUntil,omitempty" doc:"when the replaced key ends, if it goes on working for a while"`
}

// ErrorReport is what went wrong with an object.
type ErrorReport struct {
	Object  string     `json:"object" doc:"the object, as kind/name"`
	Reason  string     `json:"reason,omitempty" doc:"reason of the event; missing where the error is in the object's status"`
	Message string     `json:"message" doc:"what went wrong, and what to do"`
	First   *time.Time `json:"first,omitempty" doc:"when it was seen first"`
	Last    *time.Time `json:"last,omitempty" doc:"when it was seen last"`
	Count   int32      `json:"count,omitempty" doc:"how often it was seen; missing where nobody counts"`
}

// Unread is something that whoever asks may not read.
type Unread struct {
	Right   string `json:"right" doc:"the right that is missing"`
	Missing string `json:"missing" doc:"what cannot be shown without it"`
}
