// Package objectstore is an in-memory S3 endpoint that answers as a Ceph RADOS Gateway or a NetApp
// StorageGRID does.
//
// One Store is one realm: a single bucket namespace over any number of regions, each with its own
// HTTP handler. Everything lives in memory, bodies included, and is gone with the Store. As a gateway
// it follows measurements on a real one, as a grid the vendor's documentation and what others measured;
// where these depart from the S3 documentation, so does this package.
package objectstore

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Identity is a user of the object store.
//
// With RGW the UID appears as the owner in listings and in the principal of a bucket policy
// (arn:aws:iam:::user/<uid>). With StorageGRID it is the user's URN, a policy may name it or Group, and
// the owner in listings is the account. An identity whose URN ends in <account>:root is the account's
// root. As the owner of a bucket an account has its ID for a UID.
type Identity struct {
	UID         string
	DisplayName string
	// Account is the account the user belongs to; StorageGRID alone has accounts.
	Account Account
	// Group is the URN of the group the user is a member of, or empty.
	Group string
}

// Account is a tenant account of a StorageGRID system: an ID of digits and a name to show.
type Account struct {
	ID, Name string
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
	// Release is the release of RGW; empty means Reef. StorageGRID has but one.
	Release Release
	// Keys knows the access keys. Nil means that no key is known, only anonymous requests succeed.
	Keys Keys
	// Now is the clock; nil means time.Now. It decides signature ages, time stamps and retention.
	Now func() time.Time
	// Regions lists the regions; the first is the metadata master.
	Regions []Region
	// MaxBuckets is how many buckets one user or account may own; 0 means the profile's own limit, which
	// is 1000 for RGW and 5000 for StorageGRID.
	MaxBuckets int
	// PolicyDelay is called once per write of a bucket policy and returns how long it takes until requests
	// are judged by what was written; GetBucketPolicy shows it at once. Nil means no delay. It must be safe
	// for concurrent use, and must not call back into the Store.
	PolicyDelay func() time.Duration
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
	traits      *traits // nil for an unknown profile or release
	keys        Keys
	now         func() time.Time
	regions     []Region
	maxBuckets  int
	policyDelay func() time.Duration
	requests    atomic.Uint64

	mu      sync.Mutex
	buckets map[string]*bucket
}

// New returns an empty store. Later changes to the slices in o have no effect.
func New(o Options) *Store {
	s := &Store{
		traits:      traitsOf(o.Profile, o.Release),
		keys:        o.Keys,
		now:         o.Now,
		maxBuckets:  o.MaxBuckets,
		policyDelay: o.PolicyDelay,
		buckets:     make(map[string]*bucket),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.maxBuckets == 0 && s.traits != nil {
		s.maxBuckets = s.traits.maxBuckets
	}
	for _, r := range o.Regions {
		r.Domains = append([]string(nil), r.Domains...)
		s.regions = append(s.regions, r)
	}
	return s
}

// Handler returns the S3 endpoint of a region. The handler of a region that the store does not have, and
// every handler of a store of an unknown profile or release, answers every request with 500. The handler must
// be served directly: a ServeMux in front of it would rewrite object keys that hold empty or dot segments.
func (s *Store) Handler(region string) http.Handler {
	for i := range s.regions {
		if s.regions[i].Name == region && s.traits != nil {
			return &endpoint{store: s, region: &s.regions[i]}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such region, profile or release", http.StatusInternalServerError)
	})
}

// OwnedBuckets returns the sorted names of the buckets that a user or account owns, over all regions.
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

// master is the region that holds the metadata.
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

func randomUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
