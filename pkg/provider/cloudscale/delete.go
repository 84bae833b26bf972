package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	unlock, err := p.buckets.lock(ctx, ref.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if ref.AccessOnly {
		return p.forsake(ctx, ref, opts)
	}
	o, err := p.resolve(ctx, ref)
	if errors.Is(err, provider.ErrConflict) {
		named := ref
		if _, err = p.settle(ctx, ref.Name); errors.Is(err, provider.ErrNotFound) {
			_, err = p.settleTenants(ctx, ref.Name)
		}
		if open := (*noneHolds)(nil); errors.As(err, &open) {
			// Nobody asks for the bucket any more: the others go with the first of them.
			named.OwnerID, err = open.found[0].id, nil
		}
		if err == nil {
			o, err = p.resolve(ctx, named)
		}
	}
	if errors.Is(err, provider.ErrNotFound) {
		if err = p.ownerless(ctx, ref); errors.Is(err, provider.ErrNotFound) {
			return p.removeStrays(ctx, ref, opts)
		}
	}
	if errors.Is(err, provider.ErrPermissionDenied) {
		// It stays, and is refused each time, but whom the driver let in goes.
		return cmpError(p.forsake(ctx, ref, opts), err)
	}
	if err != nil {
		return err
	}
	loc, err := p.locateOrUnmade(ctx, &o)
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
	case stateForeign:
		// What is there under the name may be another of ours, with accesses of its own.
		found, _, err := p.holders(ctx, o.bucket)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(other owner) bool { return other.id != o.id && (other.tenant != "" || o.tenant != "") }) {
			return p.removeOwner(ctx, o)
		}
	case stateAbsent:
	}
	// Without a bucket of the owner's only the identities go.
	if err := p.removeOthers(ctx, o, opts); err != nil {
		return err
	}
	return p.removeOwner(ctx, o)
}

// forsake ends the accesses to a bucket that the driver did not make, and leaves
// the bucket alone.
func (p *Provider) forsake(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	found, err := p.accessesTo(ctx, ref.Name)
	if err != nil {
		return err
	}
	for _, a := range found {
		if m := a.buckets[ref.Name]; m.theirs {
			if err := p.end(ctx, a, []provider.BucketRef{{Name: ref.Name, Region: m.region}}, opts.PurgeOwn); err != nil {
				return err
			}
		}
	}
	if len(found) > 0 || !ref.AccessOnly {
		return nil
	}
	if err := p.tidy(ctx, ref); !errors.Is(err, provider.ErrPermissionDenied) {
		return err
	}
	return nil // somebody's, and nothing of ours is in it
}

// leave takes a bucket that is gone, or about to go, out of an access. With the
// last one that it opens its identity goes.
func (p *Provider) leave(ctx context.Context, a access, bucket string, opts provider.DeleteOptions) error {
	if !a.opens(bucket) {
		return p.removeIdentity(ctx, a, bucket, opts.PurgeOwn)
	}
	a, err := p.amend(ctx, a, func(a *access) {
		if a.opens(bucket) {
			delete(a.buckets, bucket)
		}
	})
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case a.opens(bucket):
		return nil
	}
	return p.removeIdentity(ctx, a, bucket, opts.PurgeOwn)
}

// removeStrays takes a bucket that has no owner any more out of the accesses to it.
// Nobody makes a bucket and accesses to it without one.
func (p *Provider) removeStrays(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	found, err := p.accessesTo(ctx, ref.Name)
	if err != nil || len(found) == 0 {
		return err
	}
	if owners, _, err := p.holders(ctx, ref.Name); err != nil || len(owners) > 0 {
		return err
	}
	return p.leaveAll(ctx, found, ref.Name, opts)
}

func (p *Provider) leaveAll(ctx context.Context, found []access, bucket string, opts provider.DeleteOptions) error {
	for _, a := range found {
		if err := p.leave(ctx, a, bucket, opts); err != nil {
			return err
		}
	}
	return nil
}

// ownerless explains a bucket whose owner is not found: ErrNotFound if it is gone
// with its owner. The token or the URL of another project finds no owner either,
// and success would then make everybody forget a bucket that stands.
func (p *Provider) ownerless(ctx context.Context, ref provider.BucketRef) error {
	if ref.OwnerID != "" {
		found, _, err := p.holders(ctx, ref.Name)
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

// removeOthers deletes whoever else carries the bucket's mark: accesses, and
// further owners, which a request that a dying process sent can make after a new
// process has looked. The owner of a tenant only forgets the bucket.
func (p *Provider) removeOthers(ctx context.Context, o owner, opts provider.DeleteOptions) error {
	speaking, err := p.speakingOf(ctx, o.bucket)
	if err != nil {
		return err
	}
	if err := p.leaveAll(ctx, p.accessesToAmong(speaking, o.bucket), o.bucket, opts); err != nil {
		return err
	}
	tenants, _, err := p.tenantsAmong(speaking, o.bucket)
	if err != nil {
		return err
	}
	for _, other := range tenants {
		if other.id == o.id {
			continue
		}
		if err := p.release(ctx, other); err != nil {
			return err
		}
	}
	users, err := p.listUsers(ctx, tagBucket, o.bucket)
	if err != nil {
		return err
	}
	for _, other := range users {
		if other.id == o.id || !p.isOwner(other, o.bucket) {
			continue
		}
		// The API refuses it while the user owns a bucket.
		if err := p.deleteUser(ctx, other.id); err != nil {
			return fmt.Errorf("objects user %s carries its mark too: %w", other.id, err)
		}
	}
	return nil
}

// removeBucket shuts the accesses out, empties the bucket as far as it may and
// deletes it. The accesses end after it: a bucket that somebody writes to at the
// last moment stays, and keeps them.
func (p *Provider) removeBucket(ctx context.Context, o owner, opts provider.DeleteOptions) error {
	key, err := o.key()
	if err != nil {
		return err
	}
	client, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return err
	}
	found, err := p.accesses(ctx, o)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return p.removeContent(ctx, client, o.bucket, opts.Purge)
	}
	err = p.shutOut(ctx, client, o, found, opts)
	if err == nil {
		err = p.removeContent(ctx, client, o.bucket, opts.Purge)
	}
	if errors.Is(err, provider.ErrNotEmpty) {
		// An earlier call may have ended with the accesses shut out, too.
		if syncErr := p.syncPolicy(ctx, o, ""); syncErr != nil {
			return syncErr
		}
	}
	return gone(ctx, err)
}

// shutOut denies the accesses of a bucket that is about to be deleted everything.
// What holds data and may not be purged keeps them: ErrNotEmpty.
func (p *Provider) shutOut(ctx context.Context, client *s3.Client, o owner, found []access, opts provider.DeleteOptions) error {
	if !opts.Purge {
		switch empty, err := client.IsEmpty(ctx, o.bucket); {
		case err != nil:
			return err
		case !empty:
			return refuse(provider.ErrNotEmpty, notEmpty)
		}
	}
	members := membersOf(found, o.bucket, "")
	for i := range members {
		members[i].revoked = true
	}
	closed, err := render(o.bucket, o.uid, members)
	if err != nil {
		return err
	}
	current, err := client.Policy(ctx, o.bucket)
	if err != nil || current == "" || current == closed {
		return err
	}
	return client.SetPolicy(ctx, o.bucket, closed)
}

const notEmpty = "it holds objects, versions or delete markers; empty it, or use the deletion policy DeleteAll"

// removeContent empties the bucket as far as it may and deletes it.
func (p *Provider) removeContent(ctx context.Context, client *s3.Client, bucket string, purge bool) error {
	if purge {
		return p.purgeAndRemove(ctx, client, bucket)
	}
	empty, err := client.IsEmpty(ctx, bucket)
	if err == nil && !empty {
		return refuse(provider.ErrNotEmpty, notEmpty)
	}
	if err == nil {
		_, err = client.AbortUploads(ctx, bucket)
	}
	if err == nil {
		err = client.DeleteBucket(ctx, bucket)
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

// gone treats a bucket that is missing as deleted, and gives an error of the S3
// layer its sentinel.
func gone(ctx context.Context, err error) error {
	if s3.Code(err) == codeMissing {
		return nil
	}
	return sorted(ctx, err)
}

// removeOwner deletes the bucket's owner, a tenant's only with its last bucket.
func (p *Provider) removeOwner(ctx context.Context, o owner) error {
	if o.tenant != "" {
		return p.release(ctx, o)
	}
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
