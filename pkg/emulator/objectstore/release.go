package objectstore

import (
	"net/http"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// Release is a release of the Ceph RADOS Gateway.
type Release string

// The releases.
const (
	// Reef is 18.2.7.
	Reef Release = "reef"
	// Tentacle is 20.2.4.
	Tentacle Release = "tentacle"
)

// Releases lists the releases, the default one first.
func Releases() []Release { return []Release{Reef, Tentacle} }

// Version returns the number and the name of a known release.
func (r Release) Version() string {
	if r == Tentacle {
		return "20.2.4 (tentacle)"
	}
	return "18.2.7 (reef)"
}

// releaseTraits are the switches between the releases of the gateway. All of them off is Reef, and what a
// later release was not asked it answers as Reef does.
type releaseTraits struct {
	// dialect is how bucket policies are read; the package policy has its own switches for it.
	dialect policy.Dialect
	// server is the Server header of every answer; Reef has none.
	server string
	// bareRedirects leaves Accept-Ranges out of a 301.
	bareRedirects bool
	// keepsRegion honours a LocationConstraint that names the endpoint's own region, and no other. Reef lets
	// the master place a bucket anywhere, and fails where any other region passes the constraint on to it.
	keepsRegion bool
	// explains gives a text to errors that have none on Reef, and says more in others.
	explains bool
	// deletesByKey asks for the permission of each key that DeleteObjects names. Reef refuses the whole call
	// to those who lack it on the bucket.
	deletesByKey bool
	// wantsKeys refuses a DeleteObjects that names no key.
	wantsKeys bool
	// ownerKeepsPolicy lets no Deny take the calls of the policy from the bucket's owner. On Reef such a Deny
	// is for ever.
	ownerKeepsPolicy bool
	// ownerCopies lets the owner of a bucket copy the objects in it that it may not read.
	ownerCopies bool
	// tellsPublicACLs makes BlockPublicAcls refuse the uploads with a public ACL, and not every upload.
	tellsPublicACLs bool
	// longPage is the longest page of ListObjectsV2 that was asked for and granted, where that is more than maxPage.
	longPage int
}

// traits returns the switches of a release; empty is Reef. ok is false for an unknown one.
func (r Release) traits() (_ releaseTraits, ok bool) {
	switch r {
	case Reef, "":
		return releaseTraits{dialect: policy.RGWReef}, true
	case Tentacle:
		return releaseTraits{
			dialect:          policy.RGWTentacle,
			server:           "Ceph Object Gateway (tentacle)",
			bareRedirects:    true,
			keepsRegion:      true,
			explains:         true,
			deletesByKey:     true,
			wantsKeys:        true,
			ownerKeepsPolicy: true,
			ownerCopies:      true,
			tellsPublicACLs:  true,
			longPage:         5000,
		}, true
	}
	return releaseTraits{}, false
}

// explain adds the text of a release that explains its errors.
func (q *request) explain(err *apiError, text string) *apiError {
	if q.store.traits.explains {
		err.message = text
	}
	return err
}

// errTaken is the answer to making a bucket in a region under the name of another one.
func (q *request) errTaken(existing *bucket, region string) *apiError {
	if existing.region != region {
		return q.explain(errBucketExists(), "Cannot modify existing bucket's zonegroup")
	}
	return q.explain(errBucketExists(), "Cannot modify existing access control policy")
}

// placed judges a LocationConstraint that names a region and perhaps a placement.
func (q *request) placed(name, placement string, hasPlacement bool) (region string, _ *apiError) {
	refused := failure(http.StatusBadRequest, "InvalidLocationConstraint", "The specified location-constraint is not valid")
	switch {
	case q.store.regionNamed(name) == nil:
		return "", q.explain(refused, "The "+name+" location constraint is not valid.")
	case hasPlacement && placement != "default-placement":
		return "", refused
	case name == q.region.Name:
		return name, nil
	case q.store.traits.keepsRegion:
		return "", failure(http.StatusBadRequest, "IllegalLocationConstraintException",
			"The "+name+" location constraint is incompatible for the region specific endpoint this request was sent to.")
	case q.region.Name != q.store.master():
		// Only the master may place a bucket elsewhere.
		return "", refused
	}
	return name, nil
}
