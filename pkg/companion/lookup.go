package companion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// lookupTimeout bounds how long the driver waits for one answer.
const lookupTimeout = 10 * time.Second

// ClaimOf implements driver.Claims. It asks the API server itself, whether or not
// this process has the Lease. A BucketClaim of another UID than the Bucket says is
// another claim.
func (c *Companion) ClaimOf(ctx context.Context, bucketObject string) (driver.Claim, error) {
	ctx, cancel := context.WithTimeout(withoutBodies(ctx), lookupTimeout)
	defer cancel()
	live, err := c.live(ctx)
	if err != nil {
		return driver.Claim{}, err
	}
	b, err := live.bucket(ctx, bucketObject)
	switch {
	case err != nil:
		return driver.Claim{}, unanswered("the Bucket "+bucketObject, err)
	case !live.serves(c.config.Driver, b.driver):
		return driver.Claim{}, fmt.Errorf("the Bucket %s: %w: it is of the driver %s", b.name, provider.ErrPrecondition, quote(b.driver))
	case b.claim.name == "" || b.claim.namespace == "" || b.claim.uid == "":
		return driver.Claim{}, fmt.Errorf("the Bucket %s: %w: it names no BucketClaim with a UID", b.name, provider.ErrPrecondition)
	case b.id != "":
		return claimed(b), nil // it keeps its bucket, also without its claim
	}
	owner, err := live.claim(ctx, b.claim.namespace, b.claim.name)
	switch {
	case err != nil:
		return driver.Claim{}, unanswered(fmt.Sprintf("the BucketClaim %s/%s of the Bucket %s", b.claim.namespace, b.claim.name, b.name), err)
	case owner.uid != b.claim.uid:
		return driver.Claim{}, fmt.Errorf("the Bucket %s: %w: its BucketClaim %s/%s is gone, and the one that is there is another",
			b.name, provider.ErrPrecondition, b.claim.namespace, b.claim.name)
	}
	return claimed(b), nil
}

// NamespaceLabels implements driver.Claims.
func (c *Companion) NamespaceLabels(ctx context.Context, namespace string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(withoutBodies(ctx), lookupTimeout)
	defer cancel()
	var n corev1.Namespace
	if err := c.client.Get(ctx, client.ObjectKey{Name: namespace}, &n); err != nil {
		return nil, unanswered("the namespace "+namespace, err)
	}
	return n.Labels, nil
}

// BucketObjects implements driver.Claims.
func (c *Companion) BucketObjects(ctx context.Context) ([]driver.BucketObject, error) {
	ctx, cancel := context.WithTimeout(withoutBodies(ctx), lookupTimeout)
	defer cancel()
	live, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	all, err := live.buckets(ctx)
	if err != nil {
		return nil, unanswered("the Buckets", err)
	}
	var ours []driver.BucketObject
	for _, b := range all {
		if live.serves(c.config.Driver, b.driver) {
			ours = append(ours, driver.BucketObject{Name: b.name, BucketID: b.id, Claim: claimed(b), Deleting: b.deleting})
		}
	}
	return ours, nil
}

// live is a view of the API server in the version that it serves.
func (c *Companion) live(ctx context.Context) (view, error) {
	version, err := c.version(ctx)
	switch {
	case errors.Is(err, errOff):
		return view{}, fmt.Errorf("%w: %w", provider.ErrPrecondition, err)
	case err != nil:
		return view{}, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	return view{version, c.client}, nil
}

// claimed is what a Bucket says of its claim.
func claimed(b bucket) driver.Claim {
	return driver.Claim{Namespace: b.claim.namespace, Name: b.claim.name, UID: b.claim.uid, BucketID: b.id}
}

// unanswered gives an error of the API server its sentinel.
func unanswered(what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: there is none", what, provider.ErrPrecondition)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: the companion may not read it; apply config/companion for its roles: %w", what, provider.ErrPermissionDenied, err)
	}
	return fmt.Errorf("%s: %w: the API server does not answer: %w", what, provider.ErrUnavailable, err)
}
