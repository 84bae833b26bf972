package companion

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The API that COSI's objects are of, and its versions. A cluster serves one of
// them.
const (
	cosiGroup = "objectstorage.k8s.io"
	v1alpha1  = "v1alpha1"
	v1alpha2  = "v1alpha2"
)

// The kinds that the companion reads.
const (
	kindClaim       = "BucketClaim"
	kindBucket      = "Bucket"
	kindAccess      = "BucketAccess"
	kindAccessClass = "BucketAccessClass"
)

// meta is what every object has.
type meta struct {
	kind        string
	version     string // of COSI's API
	namespace   string
	name        string
	uid         string
	annotations map[string]string
	created     time.Time
	deleting    bool
	// deletingSince is when the deletion was asked for; zero if it was not.
	deletingSince time.Time
}

// claim is a BucketClaim.
type claim struct {
	meta
	class    string
	ready    bool
	bucket   string // name of its Bucket; may be empty
	existing string // name of the Bucket that it asks for; empty if it wants a new one
}

// bucket is a Bucket.
type bucket struct {
	meta
	class      string // empty in v1alpha2, where the claim has it
	driver     string
	id         string // COSI's bucket ID; empty until there is one
	atCloud    string // the bucket's name there; empty if the ID is none of ours
	parameters map[string]string
	claim      claimRef
	policy     string // deletionPolicy
	ready      bool
	failure    string // v1alpha2 alone: the driver's last error
}

// claimRef names a BucketClaim. The UID may be empty.
type claimRef struct{ namespace, name, uid string }

// access is a BucketAccess.
type access struct {
	meta
	class   string
	account string // COSI's account ID; empty until it was granted for the first time
	granted bool
	failure string   // v1alpha2 alone: the driver's last error
	targets []target // in the order of the object
	// driver and parameters are v1alpha2's alone; there they are frozen.
	driver     string
	parameters map[string]string
}

// target is one bucket of an access.
type target struct {
	claim  string // name of the BucketClaim
	secret string // name of the Secret that COSI writes
	mode   string // v1alpha2 alone; empty means what the class says
}

// modeIn is what the access allows in a class with these parameters.
func (t target) modeIn(parameters map[string]string) string {
	return first(t.mode, first(parameters["accessMode"], string(provider.ReadWrite)))
}

// delivers reports whether COSI writes the Secret with that name for the access.
func (a access) delivers(secret string) bool {
	return slices.ContainsFunc(a.targets, func(t target) bool { return t.secret == secret })
}

// accessClass is a BucketAccessClass.
type accessClass struct {
	driver     string
	parameters map[string]string
}

// view reads COSI's objects in the version that the cluster serves.
type view struct {
	version string
	reader  client.Reader
}

func (v view) kind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: cosiGroup, Version: v.version, Kind: kind}
}

// object is an empty one of a kind, to watch or to read into.
func (v view) object(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v.kind(kind))
	return u
}

// list is an empty list of a kind.
func (v view) list(kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(v.kind(kind + "List"))
	return l
}

func (v view) get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	u := v.object(kind)
	err := v.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	return u, err
}

// all reads every object of a kind in a namespace; an empty one is all of them.
func (v view) all(ctx context.Context, kind, namespace string) ([]unstructured.Unstructured, error) {
	l := v.list(kind)
	err := v.reader.List(ctx, l, client.InNamespace(namespace))
	return l.Items, err
}

func (v view) claim(ctx context.Context, namespace, name string) (claim, error) {
	u, err := v.get(ctx, kindClaim, namespace, name)
	return readClaim(u), err
}

func (v view) bucket(ctx context.Context, name string) (bucket, error) {
	u, err := v.get(ctx, kindBucket, "", name)
	return readBucket(u), err
}

// buckets reads every Bucket.
func (v view) buckets(ctx context.Context) ([]bucket, error) {
	all, err := v.all(ctx, kindBucket, "")
	found := make([]bucket, len(all))
	for i := range all {
		found[i] = readBucket(&all[i])
	}
	return found, err
}

func (v view) access(ctx context.Context, namespace, name string) (access, error) {
	u, err := v.get(ctx, kindAccess, namespace, name)
	return readAccess(u), err
}

// refreshed reads an access as it is this moment, if the view's reader is the API
// server itself; one that is gone is not found. It asks for a list, which needs no
// right that a watch does not.
func (v view) refreshed(ctx context.Context, a access) (now access, found bool, err error) {
	l := v.list(kindAccess)
	err = v.reader.List(ctx, l, client.InNamespace(a.namespace), client.MatchingFields{"metadata.name": a.name})
	for i := range l.Items {
		if string(l.Items[i].GetUID()) == a.uid {
			return readAccess(&l.Items[i]), true, err
		}
	}
	return access{}, false, err
}

func (v view) accessClass(ctx context.Context, name string) (accessClass, error) {
	u, err := v.get(ctx, kindAccessClass, "", name)
	return readAccessClass(u), err
}

// serves reports whether a name that an object gives is that of the driver.
// v1alpha1's sidecar does not mind the case.
func (v view) serves(driver, given string) bool {
	if v.version == v1alpha1 {
		return strings.EqualFold(driver, given)
	}
	return driver == given
}
