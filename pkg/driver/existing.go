package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// GetExistingBucket finds a bucket by the ID that a person wrote down: COSI's, or
// <region>/<bucket>. It changes nothing. The ID it returns is the one to keep: it
// tells a bucket that the driver made from one that it only gives access to. Errors:
//
//   - ErrNotFound while the bucket is missing;
//   - ErrPermissionDenied for a bucket that this driver did not make, unless
//     adoptExisting says accessOnly;
//   - ErrAlreadyExists when it is reached, or was made to be deleted, in another way
//     than the parameters say;
//   - ErrInvalidArgument for an ID that is not this driver's, for parameters that
//     contradict it, and for faults of the parameters;
//   - ErrPrecondition when unconfigured.
func (d *Driver) GetExistingBucket(ctx context.Context, existingID string, params map[string]string) (CreatedBucket, error) {
	if err := d.configured(); err != nil {
		return CreatedBucket{}, err
	}
	backend, id, err := d.bucket(ctx, existingID)
	p, paramsErr := parseParameters(BucketClass, params, false)
	if err := joined(err, paramsErr); err != nil {
		return CreatedBucket{}, err
	}
	if err := agrees(existingID, id, p); err != nil {
		return CreatedBucket{}, err
	}
	ref := id.Ref()
	ref.AccessOnly = ref.AccessOnly || p.adopt == adoptAccessOnly
	b, err := backend.Provider.GetBucket(ctx, ref)
	if err != nil {
		return CreatedBucket{}, fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	if err := reachedAs(b, p); err != nil {
		return CreatedBucket{}, fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	kept, err := BucketID{Backend: backend.Name, Region: b.Region, Bucket: b.Name, OwnerID: b.OwnerID, AccessOnly: b.AccessOnly}.Format()
	if err != nil {
		return CreatedBucket{}, fmt.Errorf("back end %s: bucket %s: %w", backend.Name, id.Bucket, err)
	}
	return CreatedBucket{ID: kept, Bucket: b}, nil
}

// reachedAs refuses parameters that name another way to the bucket than the one
// that every access to it is given, or that would delete more than its record says.
func reachedAs(b provider.Bucket, p parameters) error {
	var faults []string
	if p.endpoint != "" && p.endpoint != b.Endpoint {
		faults = append(faults, fmt.Sprintf("endpointURL = %s, but it is reached at %s", quote(p.endpoint), quote(b.Endpoint)))
	}
	if style := fmt.Sprint(!b.VirtualHosted); p.pathStyle != "" && p.pathStyle != style {
		faults = append(faults, fmt.Sprintf("s3PathStyle = %s, but it is addressed with %s", quote(p.pathStyle), quote(style)))
	}
	if p.policy != "" && p.policy != b.DeletionPolicy && !b.AccessOnly {
		faults = append(faults, fmt.Sprintf("bucketDeletionPolicy = %s, but it was made with %s", quote(string(p.policy)), quote(string(b.DeletionPolicy))))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("bucket %s: %w: it exists, but not with these parameters: %s; leave them out for an existing bucket",
		b.Name, provider.ErrAlreadyExists, strings.Join(faults, "; "))
}

// deletable returns the bucket to delete. Where the class lets existing buckets be
// used, the ID may be one that a person wrote, and it takes a look to know whether
// the bucket is the driver's.
func (d *Driver) deletable(ctx context.Context, backend Backend, id BucketID, p parameters) (provider.BucketRef, error) {
	ref := id.Ref()
	if ref.AccessOnly || p.adopt != adoptAccessOnly {
		return ref, nil
	}
	look := ref
	look.AccessOnly = true
	b, err := backend.Provider.GetBucket(ctx, look)
	if errors.Is(err, provider.ErrNotFound) {
		return ref, nil
	}
	ref.AccessOnly = b.AccessOnly
	return ref, err
}

// bucket reads a bucket ID and finds its back end. <region>/<bucket> will do where
// one back end alone has the region: people write it for existing buckets.
func (d *Driver) bucket(ctx context.Context, bucketID string) (Backend, BucketID, error) {
	region, name, short := strings.Cut(bucketID, "/")
	if !short || strings.Contains(name, "/") || !goodPart(region) || !goodPart(name) {
		id, err := ParseBucketID(bucketID)
		if err != nil {
			return Backend{}, BucketID{}, err
		}
		b, err := d.ours("bucket ID", bucketID, id.Backend)
		return b, id, err
	}
	var found []Backend
	for _, b := range d.backends {
		regions, err := b.Provider.Regions(ctx)
		if err != nil {
			return Backend{}, BucketID{}, fmt.Errorf("bucket ID %s: back end %s: %w", quote(bucketID), b.Name, err)
		}
		if slices.Contains(regions, region) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		return Backend{}, BucketID{}, fmt.Errorf("bucket ID %s: %w: not this driver's: %d of its back ends (%s) have a region %s; want <backend>/<region>/<bucket>",
			quote(bucketID), provider.ErrInvalidArgument, len(found), d.backendNames(), quote(region))
	}
	return found[0], BucketID{Backend: found[0].Name, Region: region, Bucket: name}, nil
}
