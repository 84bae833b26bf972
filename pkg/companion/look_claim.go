package companion

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// bucketHint is what accesses say of a bucket, for whoever may not read Buckets.
type bucketHint struct{ id, region, name string }

func (l *look) claim(u *unstructured.Unstructured, accesses []AccessReport) ClaimReport {
	c := readClaim(u)
	r := ClaimReport{
		Namespace: c.namespace, Name: c.name, Created: c.created.UTC(), Deleted: deletedAt(u),
		Class: text(u, "spec", "bucketClassName"), WipeOnDelete: c.annotations[AnnotationWipeOnDelete],
		Accesses: accesses,
	}
	r.Bucket = l.bucket(c)
	of := l.buckets[r.Bucket.Object]
	failures := []*ErrorReport{statusError(u)}
	if of != nil {
		failures = append(failures, statusError(of))
	}
	r.LastError = l.lastError(failures, c.ready && !c.deleting, about{kindBucket, "", r.Bucket.Object, uidOf(of)}, about{kindClaim, c.namespace, c.name, c.uid})
	switch {
	case c.deleting:
		r.State, r.Detail = StateDeleting, l.whyThere(u, c, r)
	case c.ready:
		r.State = StateReady
	case r.LastError != nil:
		r.State, r.Detail = StateFailed, l.whyUnready(c, r.Bucket)
	default:
		r.State, r.Detail = StateWaiting, l.whyUnready(c, r.Bucket)
	}
	return r
}

func uidOf(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return string(u.GetUID())
}

// objectOf is the name of the claim's Bucket, which need not be there yet.
func objectOf(c claim) string { return cmp.Or(c.bucket, c.existing, bucketNameOf(c)) }

func (l *look) bucket(c claim) BucketReport {
	r := BucketReport{Object: objectOf(c), Found: FoundMissing}
	u := l.buckets[r.Object]
	if u == nil {
		if l.noBuckets {
			r.Found = FoundForbidden
			hint := l.hints[c.namespace+"/"+c.name]
			r.identify(hint.id)
			r.Region, r.Name = cmp.Or(r.Region, hint.region), cmp.Or(r.Name, hint.name)
		}
		return r
	}
	b := readBucket(u)
	r.Found, r.Driver, r.DeletionPolicy, r.ID = FoundPresent, b.driver, b.policy, b.id
	if l.view.serves(l.Driver, b.driver) {
		r.identify(b.id)
	}
	return r
}

// identify takes a bucket ID apart. People write <region>/<bucket> for existing ones.
func (r *BucketReport) identify(id string) {
	r.ID = id
	if parsed, err := driver.ParseBucketID(id); err == nil {
		r.Backend, r.Region, r.Name = parsed.Backend, parsed.Region, parsed.Bucket
		r.Owner, r.Existing = parsed.OwnerID, parsed.AccessOnly
	} else if name, err := driver.BucketName(id); err == nil {
		r.Region, r.Name = strings.TrimSuffix(id, "/"+name), name
	}
}

// whyUnready says what a claim waits for.
func (l *look) whyUnready(c claim, b BucketReport) string {
	switch {
	case b.Found == FoundForbidden:
		return "its bucket is not ready yet; you may not read the Bucket, which says more"
	case b.Found == FoundMissing && c.existing != "":
		return fmt.Sprintf("there is no Bucket %s, which it asks for: the operator has to make it", c.existing)
	case b.Found == FoundMissing:
		return "COSI has made no Bucket for it yet: see that COSI's controller runs, and that the BucketClass is there"
	case !l.view.serves(l.Driver, b.Driver):
		return fmt.Sprintf("its bucket is for the driver %s to make, and this is about %s", b.Driver, l.Driver)
	case b.ID == "":
		return "the driver has not made the bucket yet"
	}
	return "the bucket is there, and COSI has not said so to the claim yet"
}

// whyThere says what a claim that is being deleted waits for.
func (l *look) whyThere(u *unstructured.Unstructured, c claim, r ClaimReport) string {
	var names []string
	for _, a := range r.Accesses {
		names = append(names, a.Name)
	}
	switch of := l.buckets[r.Bucket.Object]; {
	case len(names) > 0 && l.view.version == v1alpha2:
		return "it goes when nothing uses it any more: delete the BucketAccesses " + strings.Join(names, ", ")
	case len(names) > 0:
		return "its accesses are ended first: " + strings.Join(names, ", ")
	case r.Bucket.Found == FoundForbidden:
		return "its bucket goes first; you may not read the Bucket, which says more"
	case of != nil && of.GetDeletionTimestamp() != nil:
		return "its bucket goes first" + heldBy(of)
	case of != nil && c.bucket != "":
		return "its Bucket is not being deleted yet" + heldBy(u)
	}
	return "its Bucket is gone" + heldBy(u)
}
