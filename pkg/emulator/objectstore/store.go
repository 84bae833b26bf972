// Package objectstore is an in-memory S3 endpoint that answers as a Ceph RADOS Gateway does.
//
// One Store is one realm: a single bucket namespace over any number of regions, each with its own
// HTTP handler. Everything lives in memory, bodies included, and is gone with the Store. The
// behaviour follows measurements on a real gateway; where the gateway departs from the S3
// documentation, so does this package.
package objectstore

import (
	"crypto/rand"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Profile names the server whose behaviour is emulated.
type Profile string

// RGW is the Ceph RADOS Gateway, release 18.2.7 (Reef).
const RGW Profile = "rgw"

// DefaultMaxBuckets is how many buckets one user may own unless Options say otherwise.
const DefaultMaxBuckets = 1000

// Identity is a user of the object store. The UID appears as the owner in listings and in the
// principal of a bucket policy (arn:aws:iam:::user/<uid>).
type Identity struct {
	UID         string
	DisplayName string
}

// Key is the secret half of an access key and the user it belongs to.
type Key struct {
	Secret   string
	Identity Identity
}

// Keys tells which access keys an endpoint knows. Lookup is called once per signed request, with
// the region of the endpoint asked, so that an implementation may let keys appear and disappear at
// different times in different regions. It must be safe for concurrent use, and must not call back
// into the Store.
type Keys interface {
	Lookup(region, accessKeyID string) (Key, bool)
}

// Directory may be implemented by Keys as well. With it an ACL that names an unknown user is refused
// (400 InvalidArgument) and listings of ACLs show display names; without it every user ID is accepted.
// User must be safe for concurrent use.
type Directory interface {
	User(uid string) (Identity, bool)
}

// Region is one region of the realm.
type Region struct {
	// Name is the region's name, which is also what GetBucketLocation answers.
	Name string
	// Domains are the host suffixes under which a bucket may be addressed as <bucket>.<domain>.
	Domains []string
	// URL returns the base URL of the region's endpoint, without a trailing slash, for the Location
	// header of a redirect. It may be nil: the redirect then carries no Location.
	URL func() string
}

// Options configure a Store.
type Options struct {
	// Profile is the server to emulate; empty means RGW.
	Profile Profile
	// Keys knows the access keys. Nil means that no key is known, only anonymous requests succeed.
	Keys Keys
	// Now is the clock; nil means time.Now. It decides signature ages, time stamps and retention.
	Now func() time.Time
	// Regions lists the regions; the first is the metadata master.
	Regions []Region
	// MaxBuckets is how many buckets one user may own; 0 means DefaultMaxBuckets.
	MaxBuckets int
}

// BucketInfo is a bucket as an administrator sees it.
type BucketInfo struct {
	Name     string
	Region   string
	OwnerUID string
	// Objects counts every stored version, delete markers excluded.
	Objects int64
	// Bytes is the sum of the sizes of the versions counted by Objects.
	Bytes int64
}

// Store is one realm. All methods are safe for concurrent use.
type Store struct {
	profile    Profile
	keys       Keys
	now        func() time.Time
	regions    []Region
	maxBuckets int
	requests   atomic.Uint64

	mu      sync.Mutex
	buckets map[string]*bucket
}

// New returns an empty store. Later changes to the slices in o have no effect.
func New(o Options) *Store {
	s := &Store{
		profile:    o.Profile,
		keys:       o.Keys,
		now:        o.Now,
		maxBuckets: o.MaxBuckets,
		buckets:    make(map[string]*bucket),
	}
	if s.profile == "" {
		s.profile = RGW
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.maxBuckets == 0 {
		s.maxBuckets = DefaultMaxBuckets
	}
	for _, r := range o.Regions {
		r.Domains = append([]string(nil), r.Domains...)
		s.regions = append(s.regions, r)
	}
	return s
}

// Handler returns the S3 endpoint of a region. The handler of a region that the store does not have
// answers every request with 500. The handler must be served directly: a ServeMux in front of it would
// rewrite object keys that hold empty or dot segments.
func (s *Store) Handler(region string) http.Handler {
	for i := range s.regions {
		if s.regions[i].Name == region {
			return &endpoint{store: s, region: &s.regions[i]}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such region", http.StatusInternalServerError)
	})
}

// OwnedBuckets returns the sorted names of the buckets that a user owns, over all regions.
func (s *Store) OwnedBuckets(uid string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownedBy(uid)
}

func (s *Store) ownedBy(uid string) []string {
	var names []string
	for name, b := range s.buckets {
		if b.owner.UID == uid {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// Buckets returns all buckets, sorted by name.
func (s *Store) Buckets() []BucketInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]BucketInfo, 0, len(s.buckets))
	for _, b := range s.buckets {
		info := BucketInfo{Name: b.name, Region: b.region, OwnerUID: b.owner.UID}
		for _, key := range b.keys {
			for _, v := range b.objects[key] {
				if !v.deleteMarker {
					info.Objects++
					info.Bytes += int64(len(v.data))
				}
			}
		}
		infos = append(infos, info)
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos
}

// master is the region that holds the metadata; it alone honours a LocationConstraint.
func (s *Store) master() string {
	if len(s.regions) == 0 {
		return ""
	}
	return s.regions[0].Name
}

func (s *Store) regionNamed(name string) *Region {
	for i := range s.regions {
		if s.regions[i].Name == name {
			return &s.regions[i]
		}
	}
	return nil
}

// randomID returns n characters of the alphabet that the gateway uses for version and upload IDs.
func randomID(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, n)
	// crypto/rand never fails: the runtime ends the process when no randomness is to be had.
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}
