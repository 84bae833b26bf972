package objectstore

import (
	"net/http"
	"slices"
	"time"
)

// bucket is one bucket. The owner of the store's lock may read and change it.
type bucket struct {
	name    string
	id      string
	region  string
	owner   Identity
	created time.Time
	acl     acl

	versioning string // "", "Enabled" or "Suspended"
	policy     *bucketPolicy
	changes    []policyChange // in the order of writing; the last one is policy
	pab        *publicAccessBlock
	lock       *objectLock // nil unless the bucket was made with object lock
	config     map[string][]byte

	keys    []string // sorted; exactly the keys of objects
	objects map[string][]*version
	uploads map[string]*upload
}

// version is one version of an object, or a delete marker. Versions of a key are kept newest first.
// data is never changed once stored, so it may be served after the lock is released.
type version struct {
	id           string // "null" for a version written while versioning was not enabled
	deleteMarker bool
	modified     time.Time
	owner        Identity
	acl          acl

	data   []byte
	etag   string // without quotes
	header http.Header
	tags   []tag

	retention retention
	legalHold bool
}

// upload is a multipart upload that is neither completed nor aborted.
type upload struct {
	pending
	id        string
	key       string
	initiated time.Time
	owner     Identity
	parts     map[int]*part
}

// part is one uploaded part; data is never changed once stored.
type part struct {
	data     []byte
	etag     string
	modified time.Time
}

const nullVersion = "null"

func newBucket(name, region string, owner Identity, created time.Time) *bucket {
	return &bucket{
		name: name, id: randomUUID(), region: region, owner: owner, created: created,
		config:  make(map[string][]byte),
		objects: make(map[string][]*version),
		uploads: make(map[string]*upload),
	}
}

// latest returns the newest version of a key, a delete marker included, or nil.
func (b *bucket) latest(key string) *version {
	if vs := b.objects[key]; len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// find returns the version a request means: the newest for an empty id. Delete markers count as absent.
func (b *bucket) find(key, id string) *version {
	if id == "" {
		if v := b.latest(key); v != nil && !v.deleteMarker {
			return v
		}
		return nil
	}
	for _, v := range b.objects[key] {
		if v.id == id && !v.deleteMarker {
			return v
		}
	}
	return nil
}

// add stores a version as the newest of its key, and gives it its ID. A version that is not made
// under enabled versioning takes the place of the null version.
func (b *bucket) add(key string, v *version) {
	if b.versioning == versioningEnabled {
		v.id = randomID(31)
	} else {
		v.id = nullVersion
		b.remove(key, nullVersion)
	}
	if len(b.objects[key]) == 0 {
		i, _ := slices.BinarySearch(b.keys, key)
		b.keys = slices.Insert(b.keys, i, key)
	}
	b.objects[key] = append([]*version{v}, b.objects[key]...)
}

// remove drops one version of a key, if it is there.
func (b *bucket) remove(key, id string) {
	vs := b.objects[key]
	i := slices.IndexFunc(vs, func(v *version) bool { return v.id == id })
	if i < 0 {
		return
	}
	if len(vs) > 1 {
		b.objects[key] = slices.Concat(vs[:i], vs[i+1:])
		return
	}
	delete(b.objects, key)
	if at, found := slices.BinarySearch(b.keys, key); found {
		b.keys = slices.Delete(b.keys, at, at+1)
	}
}
