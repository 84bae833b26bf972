package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// CreateBucket makes sure that the bucket exists with these BucketClass
// parameters, and returns it under an ID that stays the same for every
// repetition. Besides the provider's errors it returns ErrInvalidArgument,
// with every fault of the request, and ErrPrecondition when unconfigured, when the
// class names the bucket and the cluster cannot be asked how, and while another
// Bucket object stands for it; none costs a call to the cloud. It is
// ErrPrecondition, too, while the label that names the bucket's tenant is not there.
func (d *Driver) CreateBucket(ctx context.Context, name string, params map[string]string) (CreatedBucket, error) {
	if err := d.configured(); err != nil {
		return CreatedBucket{}, err
	}
	backend, called, spec, p, err := d.bucketSpec(ctx, name, params)
	if err != nil {
		return CreatedBucket{}, err
	}
	unlock, err := d.locks.lock(ctx, lockKey(backend.Name, spec.Name))
	if err != nil {
		return CreatedBucket{}, err
	}
	defer unlock()

	if err := d.alone(ctx, backend.Name, name, called); err != nil {
		return CreatedBucket{}, err
	}
	if err := d.withTenant(ctx, backend, name, p, &spec); err != nil {
		return CreatedBucket{}, err
	}
	bucket, err := backend.Provider.CreateBucket(ctx, spec)
	if err != nil {
		return CreatedBucket{}, fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	id, err := BucketID{Backend: backend.Name, Region: bucket.Region, Bucket: bucket.Name, OwnerID: bucket.OwnerID}.Format()
	if err != nil {
		return CreatedBucket{}, fmt.Errorf("back end %s: bucket %s: %w", backend.Name, spec.Name, err)
	}
	return CreatedBucket{ID: id, Bucket: bucket}, nil
}

// bucketSpec reads a request to create a bucket and reports all its faults.
func (d *Driver) bucketSpec(ctx context.Context, name string, params map[string]string) (Backend, called, provider.BucketSpec, parameters, error) {
	nameErr := checkBucketName(name)
	p, paramsErr := parseParameters(BucketClass, params, true)
	var backend Backend
	var backendErr error
	if v, given := params["backend"]; v != "" || !given {
		backend, backendErr = d.pick(v)
	}
	var tenantErr error
	if paramsErr == nil {
		tenantErr = p.tenantFaults(backend)
	}
	if err := joined(nameErr, paramsErr, backendErr, tenantErr); err != nil {
		return Backend{}, called{}, provider.BucketSpec{}, parameters{}, err
	}
	found, err := d.called(ctx, name, p)
	if err == nil && p.pathStyle == "false" && strings.Contains(found.name, ".") {
		err = fmt.Errorf("bucket %s: %w: s3PathStyle = \"false\" cannot address a bucket with a dot in its name over TLS; use s3PathStyle = \"true\"",
			found.name, provider.ErrInvalidArgument)
	}
	if err != nil {
		return Backend{}, called{}, provider.BucketSpec{}, parameters{}, err
	}
	policy := p.policy
	if policy == "" {
		policy = provider.DeleteIfEmpty
	}
	return backend, found, provider.BucketSpec{
		Name:              found.name,
		Region:            p.region,
		Endpoint:          p.endpoint,
		VirtualHosted:     p.pathStyle == "false",
		DeletionPolicy:    policy,
		SharedCredentials: cmp.Or(p.shared, provider.SharedAllowed),
		Claim:             found.claim,
	}, p, nil
}

// pick finds the back end of a new bucket.
func (d *Driver) pick(name string) (Backend, error) {
	if name == "" {
		if len(d.backends) == 1 {
			return d.backends[0], nil
		}
		return Backend{}, fmt.Errorf("%s parameters: %w: backend is missing: want one of %s",
			BucketClass, provider.ErrInvalidArgument, d.backendNames())
	}
	if b, ok := d.byName[name]; ok {
		return b, nil
	}
	names := make([]string, 0, len(d.backends))
	for _, b := range d.backends {
		names = append(names, b.Name)
	}
	return Backend{}, fmt.Errorf("%s parameters: %w: backend = %s: want one of %s%s",
		BucketClass, provider.ErrInvalidArgument, shown("backend", name), d.backendNames(), DidYouMean(name, names))
}

// DeleteBucket removes the bucket that the ID names; an absent one is success.
// params may repeat the BucketClass parameters; what is absent is taken from
// the ID and from what was recorded with the bucket. Besides the provider's
// errors it returns
//
//   - ErrInvalidArgument for an ID that is not this driver's and for parameters
//     that contradict the ID;
//   - ErrPrecondition when unconfigured, when the class names the bucket, or its
//     record a claim, and the cluster has no Bucket object that may delete it, when accesses to the bucket are live
//     and the grace that began with the first DeleteBucket has not run out, and
//     when the bucket holds data that its policy gives up but the process-wide
//     gate protects, unless Config.WipeOnDelete gives it up;
//   - ErrUnavailable, with the progress, when there is more data to delete than
//     fits into one call: the repetition goes on.
func (d *Driver) DeleteBucket(ctx context.Context, bucketID string, params map[string]string) error {
	if err := d.configured(); err != nil {
		return err
	}
	backend, id, err := d.bucket(ctx, bucketID)
	if err != nil {
		return err
	}
	p, err := parseParameters(BucketClass, params, false)
	if err != nil {
		return err
	}
	if err := agrees(bucketID, id, p); err != nil {
		return err
	}
	unlock, err := d.locks.lock(ctx, lockKey(id.Backend, id.Bucket))
	if err != nil {
		return err
	}
	defer unlock()

	if !p.naming.verbatim() {
		if err := d.leaving(ctx, bucketID, id); err != nil {
			return err
		}
	}
	if err := d.noLiveAccesses(id); err != nil {
		return err
	}
	ref, err := d.deletable(ctx, backend, id, p)
	if err != nil {
		return fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	if p.naming.verbatim() && !ref.AccessOnly {
		if err := d.leavingClaim(ctx, backend, ref, id); err != nil {
			return err
		}
	}
	policy, err := d.deletionPolicy(ctx, backend, ref, p)
	if err != nil {
		return fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	purge := policy == provider.DeleteAll && d.allowDeleteAll
	opts := provider.DeleteOptions{Purge: purge, PurgeOwn: d.allowDeleteAll}
	err = d.sliced(ctx, func(ctx context.Context) error { return backend.Provider.DeleteBucket(ctx, ref, opts) })
	if errors.Is(err, provider.ErrNotEmpty) && !purge && d.wiped(ctx, ref, bucketID) {
		opts.Purge = true
		err = d.sliced(ctx, func(ctx context.Context) error { return backend.Provider.DeleteBucket(ctx, ref, opts) })
	}
	switch {
	case errors.Is(err, provider.ErrNotEmpty) && policy == provider.DeleteAll && !purge:
		return fmt.Errorf("bucket %s: %w: it holds data; its bucketDeletionPolicy is DeleteAll, but this driver may not delete data: "+
			"start it with --allow-delete-all, or empty the bucket", id.Bucket, provider.ErrPrecondition)
	case errors.Is(err, provider.ErrNotEmpty):
		return fmt.Errorf("back end %s: %w; empty the bucket, or set bucketDeletionPolicy to DeleteAll", backend.Name, err)
	case err != nil:
		return fmt.Errorf("back end %s: %w", backend.Name, notGone(err))
	}
	d.live.deleted(liveKey(id))
	return nil
}

// wiped reports whether the data goes because its owner says so. What the driver
// did not make is never emptied.
func (d *Driver) wiped(ctx context.Context, ref provider.BucketRef, bucketID string) bool {
	return d.wipeOnDelete != nil && !ref.AccessOnly && d.wipeOnDelete(ctx, bucketID)
}

// notGone turns a provider's ErrNotFound into ErrUnavailable. What is absent is
// success to a deletion and a revocation, so it is about something else, such as
// an endpoint that is not the cloud's; and the v1alpha1 sidecar takes NotFound
// for success and forgets a bucket that stands.
func notGone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return fmt.Errorf("%w: %v", provider.ErrUnavailable, err) //nolint:errorlint // the point is that ErrNotFound is not wrapped
	}
	return err
}

// agrees refuses parameters that speak of another bucket than the ID: one of
// them is wrong, and a deletion is no occasion to guess.
func agrees(bucketID string, id BucketID, p parameters) error {
	var faults []string
	if p.backend != "" && p.backend != id.Backend {
		faults = append(faults, fmt.Sprintf("backend = %s", quote(p.backend)))
	}
	if p.region != "" && p.region != id.Region {
		faults = append(faults, fmt.Sprintf("region = %s", quote(p.region)))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("bucket ID %s: %w: the parameters name another place: %s",
		quote(bucketID), provider.ErrInvalidArgument, strings.Join(faults, ", "))
}

// noLiveAccesses holds a deletion back for a short while so that racing
// revocations, which COSI does not wait for, find their bucket.
func (d *Driver) noLiveAccesses(id BucketID) error {
	now := d.now()
	accounts, since := d.live.deleting(liveKey(id), now)
	left := d.grace - now.Sub(since)
	if len(accounts) == 0 || left <= 0 {
		return nil
	}
	const most = 5
	names := strings.Join(accounts[:min(most, len(accounts))], ", ")
	if len(accounts) > most {
		names += fmt.Sprintf(" and %d more", len(accounts)-most)
	}
	return fmt.Errorf("bucket %s: %w: accesses to it are live: %s; revoke them, or they end with the bucket in %s",
		id.Bucket, provider.ErrPrecondition, names, left.Round(time.Second/10))
}

// deletionPolicy is what the request says, or else what was recorded with the
// bucket. Of a bucket that is gone only its identities may remain, and those
// need no purge.
func (d *Driver) deletionPolicy(ctx context.Context, backend Backend, ref provider.BucketRef, p parameters) (provider.DeletionPolicy, error) {
	switch {
	case ref.AccessOnly:
		return provider.DeleteIfEmpty, nil
	case p.policy != "":
		return p.policy, nil
	}
	b, err := backend.Provider.GetBucket(ctx, ref)
	if errors.Is(err, provider.ErrNotFound) {
		return provider.DeleteIfEmpty, nil
	}
	return b.DeletionPolicy, err
}

// lockKey leaves the region out: a name is taken in all regions of a cloud or
// in none, so a mistaken region must meet the same lock.
func lockKey(backend, bucket string) string { return backend + "/" + bucket }

func liveKey(id BucketID) string { return id.Backend + "/" + id.Region + "/" + id.Bucket }
