package objectstore

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Profile names the server whose behaviour is emulated.
type Profile string

// The profiles.
const (
	// RGW is the Ceph RADOS Gateway, in one of its releases. Users own buckets and what they write, and ACLs
	// decide where a bucket's policy is silent.
	RGW Profile = "rgw"
	// StorageGRID is NetApp StorageGRID 11.9 in a cloud that gives every credentials group of an account
	// a full-access group policy: whatever no bucket policy denies, each of them may do in every bucket of
	// the account. Accounts own buckets and all that is in them.
	StorageGRID Profile = "storagegrid"
)

// traits are where the profiles part ways; what is not here they have in common.
type traits struct {
	releaseTraits
	maxBuckets int
	// grid makes the bucket's account the owner of everything in it, whoever writes, opens the buckets of
	// an account to its identities, and takes ACLs out of every decision. What else is a grid's and too
	// small for a trait of its own goes by it too.
	grid bool
	// recreate lets an owner create a bucket of its own again.
	recreate bool
	// conditionalWrites honours If-Match and If-None-Match on writes; without it they change nothing.
	conditionalWrites bool
	// trusting leaves the hash and the chunk signatures of a body unverified.
	trusting bool
	// checksums lists the algorithms whose x-amz-checksum headers are verified; others are ignored.
	checksums      []string
	storageClasses []string
	uploadPrefix   string
	// uploadLife is how long an upload may stay unfinished; 0 is for ever.
	uploadLife time.Duration
	// objectType is what listings and objects show as their type.
	objectType string
	// keyTooLong is the error code for keys that cannot be.
	keyTooLong string
	kinds      []configKind

	// refuse turns away what the profile takes from nobody. It is asked before the signature is looked at.
	refuse func(r *http.Request, query url.Values, operation string) *apiError
	// checkObject judges the headers of an object to be written, and may add to what is stored with it.
	checkObject func(in, stored http.Header) *apiError
	// label puts the headers that every answer has, and returns the request's ID.
	label func(e *endpoint, h http.Header) (id string)
	// details are the elements of an error document that follow its message.
	details func(e *endpoint, r *http.Request, t target, id string) [][2]string
	// message is the text of an error that has none of its own.
	message func(code string) string
}

// traitsOf returns nil for an unknown profile or release.
func traitsOf(p Profile, r Release) *traits {
	switch p {
	case RGW, "":
		if release, ok := r.traits(); ok {
			return rgwTraits(release)
		}
	case StorageGRID:
		return gridTraits()
	}
	return nil
}

func rgwTraits(release releaseTraits) *traits {
	return &traits{
		releaseTraits: release, maxBuckets: 1000, recreate: true, conditionalWrites: true,
		checksums:      []string{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"},
		storageClasses: []string{storageClass},
		uploadPrefix:   "2~", objectType: "Normal", keyTooLong: "InvalidObjectName", kinds: rgwKinds(),
		refuse:      func(*http.Request, url.Values, string) *apiError { return nil },
		checkObject: func(_, _ http.Header) *apiError { return nil },
		// The gateway leaves most messages empty.
		message: func(string) string { return "" },
		// A request ID has a counter, the time and the zone.
		label: func(e *endpoint, h http.Header) string {
			id := fmt.Sprintf("tx%021x-%010x-1-%s1", e.store.requests.Add(1), e.store.now().Unix(), e.region.Name)
			h.Set("X-Amz-Request-Id", id)
			if release.server != "" {
				h.Set("Server", release.server)
			}
			return id
		},
		details: func(e *endpoint, _ *http.Request, t target, id string) [][2]string {
			rest := [][2]string{{"RequestId", id}, {"HostId", "1-" + e.region.Name + "1-" + e.region.Name}}
			if t.bucket == "" {
				return rest
			}
			return append([][2]string{{"BucketName", t.bucket}}, rest...)
		},
	}
}
