package companion

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// wipe is the value of AnnotationWipeOnDelete that asks for it.
const wipe = "true"

// deletionPolicyDelete is that of a Bucket whose bucket goes with its claim.
const deletionPolicyDelete = "Delete"

// wipeTimeout bounds how long a deletion waits for the answer.
const wipeTimeout = 5 * time.Second

// WipeOnDelete reports whether the bucket with that ID is to be deleted with its
// data: its Bucket and the BucketClaim that the Bucket is bound to are being
// deleted, no other claim has that Bucket, and the claim says so. It asks the API
// server itself. Whatever leaves a doubt is false, and so is everything unless
// Config.AllowWipe.
func (c *Companion) WipeOnDelete(ctx context.Context, bucketID string) bool {
	if !c.config.AllowWipe {
		return false
	}
	ctx, cancel := context.WithTimeout(withoutBodies(ctx), wipeTimeout)
	defer cancel()
	owner, err := c.deletedClaim(ctx, bucketID)
	if err != nil {
		klog.FromContext(ctx).Info("Keeping the data of a bucket, as it is not certain what its claim asks for", "bucketID", bucketID, "reason", err.Error())
		return false
	}
	return owner.annotations[AnnotationWipeOnDelete] == wipe
}

// deletedClaim finds the BucketClaim of a bucket that is being deleted.
func (c *Companion) deletedClaim(ctx context.Context, bucketID string) (claim, error) {
	version, err := c.version(ctx)
	if err != nil {
		return claim{}, err
	}
	live := view{version, c.client}
	b, err := live.bucketWithID(ctx, bucketID)
	if err != nil {
		return claim{}, err
	}
	owner, err := live.claim(ctx, b.claim.namespace, b.claim.name)
	if err == nil {
		err = live.nobodyElses(ctx, b, owner)
	}
	switch {
	case err != nil:
		return claim{}, err
	case !live.serves(c.config.Driver, b.driver):
		return claim{}, fmt.Errorf("the Bucket %s is of the driver %s", b.name, quote(b.driver))
	case owner.uid == "" || owner.uid != b.claim.uid:
		return claim{}, fmt.Errorf("the Bucket %s is bound to another BucketClaim %s/%s than the one that is there", b.name, b.claim.namespace, b.claim.name)
	case b.policy != deletionPolicyDelete:
		return claim{}, fmt.Errorf("the Bucket %s has the deletionPolicy %s", b.name, quote(b.policy))
	case !b.deleting || !owner.deleting:
		return claim{}, fmt.Errorf("the Bucket %s or its BucketClaim %s/%s is not being deleted", b.name, b.claim.namespace, b.claim.name)
	}
	return owner, nil
}

// nobodyElses is an error if another BucketClaim than the owner stands for the
// Bucket. Who names a Bucket as an existing one takes it over in COSI v1alpha1,
// whosever it is, and the data is not theirs alone then.
func (v view) nobodyElses(ctx context.Context, b bucket, owner claim) error {
	all, err := v.all(ctx, kindClaim, "")
	if err != nil {
		return err
	}
	for i := range all {
		if c := readClaim(&all[i]); c.uid != owner.uid && (bucketNameOf(c) == b.name || c.existing == b.name) {
			return fmt.Errorf("the Bucket %s is that of the BucketClaim %s/%s, too", b.name, c.namespace, c.name)
		}
	}
	return nil
}

// bucketWithID finds the Bucket with that bucket ID. If another one may stand for that
// bucket, too, that is an error.
func (v view) bucketWithID(ctx context.Context, bucketID string) (bucket, error) {
	name, err := driver.BucketName(bucketID)
	if err != nil {
		return bucket{}, err
	}
	id, idErr := driver.ParseBucketID(bucketID)
	all, err := v.buckets(ctx)
	if err != nil {
		return bucket{}, err
	}
	var found []bucket
	for _, b := range all {
		same := b.atCloud == name
		if idErr == nil { // else it names no back end, and may be of any
			same = driver.BucketObject{BucketID: b.id}.StandsFor(id.Backend, name)
		}
		if same {
			found = append(found, b)
		}
	}
	if len(found) != 1 || found[0].id != bucketID {
		return bucket{}, fmt.Errorf("%d Buckets stand for the bucket %s", len(found), name)
	}
	return found[0], nil
}
