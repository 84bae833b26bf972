package stackit

import (
	"context"
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// DeleteBucket implements provider.Provider.
func (p *Provider) DeleteBucket(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	if err := p.deleteWhole(ctx, ref, opts); err != nil {
		return fmt.Errorf("delete bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	return nil
}

func (p *Provider) deleteWhole(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.checkRef(ref); err != nil {
		return err
	}
	unlock, err := p.locks.lock(ctx, bucketKey(ref))
	if err != nil {
		return err
	}
	defer unlock()
	b, err := p.find(ctx, ref)
	if errors.Is(err, provider.ErrNotFound) {
		return p.sweep(ctx, ref, nil)
	}
	if err != nil {
		return err
	}
	if !ours(b.tags, p.config.DriverName, b.Name) {
		// A creation that was cut short before the mark has announced it.
		announcements, err := p.claimable(ctx, b)
		if err != nil {
			return err
		}
		if len(announcements) == 0 {
			return p.notOurs()
		}
	} else if err := p.clear(ctx, b, opts); err != nil {
		return err
	}
	if err := p.deleteBucket(ctx, ref); err != nil {
		if errors.Is(err, provider.ErrNotEmpty) && opts.Purge {
			return refuse(provider.ErrUnavailable, "it was emptied and written to again; repeat the call")
		}
		return err
	}
	if err := p.gone(ctx, ref); err != nil {
		return err
	}
	return p.sweep(ctx, ref, nil)
}

// clear empties a bucket of ours as far as it may, and then ends all accesses to
// it. The order is that of a revocation.
func (p *Provider) clear(ctx context.Context, b *bucket, opts provider.DeleteOptions) error {
	if err := p.empty(ctx, b, opts); err != nil {
		return err
	}
	if len(b.entries) == 0 && b.malformed == nil {
		return nil
	}
	var names, groups []string
	for _, e := range b.entries {
		names = append(names, e.name)
		// The keys of a group with access to other buckets are not this bucket's
		// to delete; its revocation does.
		if !e.pending() && !e.spans {
			groups = append(groups, e.id)
		}
	}
	for _, id := range groups {
		if err := p.removeKeys(ctx, b.Region, id); err != nil {
			return err
		}
	}
	if err := p.enforce(ctx, b, names...); err != nil {
		return err
	}
	for _, id := range groups {
		if err := p.removeGroup(ctx, b.Region, id); err != nil {
			return err
		}
	}
	if err := p.sweep(ctx, b.BucketRef, b.entries); err != nil {
		return err
	}
	b.malformed = nil
	return p.change(ctx, b, func(m *marks) { m.entries = nil })
}

// empty makes sure that the bucket holds nothing. ErrNotEmpty, with nothing
// touched, when it does and may not be purged.
func (p *Provider) empty(ctx context.Context, b *bucket, opts provider.DeleteOptions) error {
	var purged s3.Purged
	if opts.Purge {
		err := p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) (err error) {
			done, err := c.Purge(ctx, b.Name)
			purged.Deleted, purged.Aborted = purged.Deleted+done.Deleted, purged.Aborted+done.Aborted
			purged.Refused, purged.RefusedKey, purged.RefusedCode = done.Refused, done.RefusedKey, done.RefusedCode
			return err
		})
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return refuse(provider.ErrUnavailable, "the time ran out after %d versions were deleted; the repeated call goes on", purged.Deleted)
		case err != nil:
			return fmt.Errorf("after %d versions were deleted: %w", purged.Deleted, err)
		case purged.Refused > 0:
			return refuse(provider.ErrPrecondition, "%d versions are deleted, but the endpoint refuses to delete %d (%s), one of them of the key %q; "+
				"wait until their object lock expires", purged.Deleted, purged.Refused, purged.RefusedCode, purged.RefusedKey)
		}
		return nil
	}
	return p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) error {
		empty, err := c.IsEmpty(ctx, b.Name)
		if err != nil {
			return err
		}
		if !empty {
			return &s3.Error{Op: "ListObjectVersions", Bucket: b.Name, Code: "BucketNotEmpty",
				Cause: "it holds objects, old versions or delete markers"}
		}
		_, err = c.AbortUploads(ctx, b.Name)
		return err
	})
}

// gone waits until the API no longer shows a bucket that it has deleted.
func (p *Provider) gone(ctx context.Context, ref provider.BucketRef) error {
	for wait := p.patience(); ; {
		_, err := p.bucketEndpoint(ctx, ref)
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		more, err := wait.next(ctx)
		switch {
		case err != nil:
			return err
		case !more:
			return refuse(provider.ErrUnavailable, "the API has deleted it and still shows it; repeat the call")
		}
	}
}

// sweep removes, with one look at the list, the groups that attempts cut short
// have left behind: announcements of the bucket, and duplicates of its accesses'
// groups. The lag of the list is waited out only for accesses of which no group
// is known.
func (p *Provider) sweep(ctx context.Context, ref provider.BucketRef, entries []entry) error {
	names := []string{intentName(p.config.DriverName, ref.Name)}
	var unknown string
	for _, e := range entries {
		if e.spans {
			continue
		}
		names = append(names, e.name)
		if e.pending() {
			unknown = e.name
		}
	}
	if unknown != "" {
		if _, err := p.groupsNamed(ctx, ref.Region, unknown, true); err != nil {
			return err
		}
	}
	list, err := p.listGroups(ctx, ref.Region)
	if errors.Is(err, provider.ErrNotFound) {
		// The service is not enabled, so there is nothing at all.
		return nil
	}
	if err != nil {
		return err
	}
	for _, g := range named(list, names...) {
		if err := p.removeKeys(ctx, ref.Region, g.id); err != nil {
			return err
		}
		if err := p.removeGroup(ctx, ref.Region, g.id); err != nil {
			return err
		}
	}
	p.rememberIntent(ref, intent{})
	return nil
}
