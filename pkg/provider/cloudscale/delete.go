package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// maxPurgeRounds bounds how often a bucket that is written to is purged again.
const maxPurgeRounds = 3

// DeleteBucket implements provider.Provider. The bucket goes first and its owner
// last: the mark stands until nothing is left that it marks.
func (p *Provider) DeleteBucket(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	if err := p.deleteBucket(ctx, ref, opts); err != nil {
		return fmt.Errorf("delete bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	return nil
}

func (p *Provider) deleteBucket(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkRef(ref); err != nil {
		return err
	}
	o, err := p.resolve(ctx, ref)
	if errors.Is(err, provider.ErrConflict) {
		if _, err = p.settle(ctx, ref.Name); err == nil {
			o, err = p.resolve(ctx, ref)
		}
	}
	if errors.Is(err, provider.ErrNotFound) {
		if err = p.ownerless(ctx, ref); errors.Is(err, provider.ErrNotFound) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	loc, err := p.locate(ctx, &o)
	if err != nil {
		return err
	}
	switch loc.state {
	case stateElsewhere:
		return refuse(provider.ErrInvalidArgument, "it lives in region %q and is left alone", loc.region)
	case statePresent:
		if err := p.removeBucket(ctx, o, opts); err != nil {
			return err
		}
	case stateAbsent, stateForeign:
		// What is there under the name is not the owner's: only the owner goes.
	}
	if err := p.removeSurplus(ctx, o); err != nil {
		return err
	}
	return p.removeOwner(ctx, o)
}

// ownerless explains a bucket whose owner is not found: ErrNotFound if it is gone
// with its owner. The token or the URL of another project finds no owner either,
// and success would then make everybody forget a bucket that stands.
func (p *Provider) ownerless(ctx context.Context, ref provider.BucketRef) error {
	if ref.OwnerID != "" {
		found, err := p.owners(ctx, ref.Name)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			// This is the project, and a later bucket has the name.
			return refuse(provider.ErrNotFound, "its owner %s does not exist", ref.OwnerID)
		}
	}
	err := p.unmarked(ctx, ref)
	if errors.Is(err, provider.ErrPermissionDenied) && ref.OwnerID != "" {
		return fmt.Errorf("%w; its owner %s does not exist in this project: check that the API token and the API URL are those of the project that holds it",
			err, ref.OwnerID)
	}
	return err
}

// removeSurplus deletes further owners that carry the bucket's mark. A request
// that a dying process sent can make one after a new process has looked.
func (p *Provider) removeSurplus(ctx context.Context, o owner) error {
	found, err := p.owners(ctx, o.bucket)
	if err != nil {
		return err
	}
	for _, other := range found {
		if other.id == o.id {
			continue
		}
		// The API refuses it while the user owns a bucket.
		if err := p.deleteUser(ctx, other.id); err != nil {
			return fmt.Errorf("objects user %s carries its mark too: %w", other.id, err)
		}
	}
	return nil
}

// removeBucket empties the bucket as far as it may and deletes it.
func (p *Provider) removeBucket(ctx context.Context, o owner, opts provider.DeleteOptions) error {
	key, err := o.key()
	if err != nil {
		return err
	}
	client, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return err
	}
	if opts.Purge {
		return p.purgeAndRemove(ctx, client, o.bucket)
	}
	const notEmpty = "it holds objects, versions or delete markers; empty it, or use the deletion policy DeleteAll"
	empty, err := client.IsEmpty(ctx, o.bucket)
	if err == nil && !empty {
		return refuse(provider.ErrNotEmpty, notEmpty)
	}
	if err == nil {
		_, err = client.AbortUploads(ctx, o.bucket)
	}
	if err == nil {
		err = client.DeleteBucket(ctx, o.bucket)
	}
	if s3.Code(err) == "BucketNotEmpty" {
		return refuse(provider.ErrNotEmpty, notEmpty)
	}
	return gone(ctx, err)
}

// purgeAndRemove deletes all content and the bucket.
func (p *Provider) purgeAndRemove(ctx context.Context, client *s3.Client, bucket string) error {
	var deleted int64
	for range maxPurgeRounds {
		done, err := client.Purge(ctx, bucket)
		deleted += done.Deleted
		switch {
		case s3.Code(err) == codeMissing:
			return nil
		case err != nil:
			return unfinished(ctx, deleted, s3Error(ctx, err))
		case done.Refused > 0:
			return refuse(provider.ErrPrecondition,
				"%d versions are deleted, but the endpoint refuses to delete %d (%s), one of them of the key %q; "+
					"wait until their object lock expires", deleted, done.Refused, done.RefusedCode, done.RefusedKey)
		}
		if err = client.DeleteBucket(ctx, bucket); s3.Code(err) != "BucketNotEmpty" {
			return gone(ctx, err)
		}
	}
	return refuse(provider.ErrUnavailable,
		"%d versions are deleted, but somebody still writes to it; stop the writer, and the repeated call goes on", deleted)
}

// unfinished tells how far a purge came. Running out of time is ErrUnavailable,
// because a repetition goes on from there.
func unfinished(ctx context.Context, deleted int64, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return refuse(provider.ErrUnavailable, "the time ran out after %d versions were deleted; the repeated call goes on", deleted)
	}
	return fmt.Errorf("after %d versions were deleted: %w", deleted, err)
}

// gone treats a bucket that is missing as deleted.
func gone(ctx context.Context, err error) error {
	if s3.Code(err) == codeMissing {
		return nil
	}
	return s3Error(ctx, err)
}

// removeOwner deletes the bucket's owner.
func (p *Provider) removeOwner(ctx context.Context, o owner) error {
	err := p.deleteUser(ctx, o.id)
	if status := statusOf(err); status != http.StatusBadRequest && status != http.StatusConflict {
		return err
	}
	// The API refuses it while the user owns a bucket. With the shared key a
	// workload can have made some.
	loc, lookErr := p.locate(ctx, &o)
	if lookErr != nil {
		return lookErr
	}
	if len(loc.others) > 0 {
		return refuse(provider.ErrPrecondition, "it is deleted, but its owner %s also owns the buckets %s, made with its key; delete them",
			o.id, strings.Join(loc.others, ", "))
	}
	return refuse(provider.ErrUnavailable, "it is deleted, but the API does not delete its owner yet: %s; repeat the call", err)
}
