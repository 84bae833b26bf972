package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	return p.underLocks(ctx, []string{bucketKey(ref)}, func(held []string) error {
		b, err := p.find(ctx, ref)
		switch {
		case errors.Is(err, provider.ErrNotFound) && ref.AccessOnly:
			return nil
		case errors.Is(err, provider.ErrNotFound):
			return p.sweep(ctx, ref, nil)
		case err != nil:
			return err
		case !p.ours(b):
			return p.deleteUnmarked(ctx, b, ref, held)
		case ref.AccessOnly:
			return nil
		}
		if err := p.empty(ctx, b, opts); err != nil {
			return err
		}
		if err := p.clear(ctx, b, held); err != nil {
			return err
		}
		return p.remove(ctx, ref, opts)
	})
}

// deleteUnmarked ends the accesses to a bucket without the mark. It deletes the
// bucket only if a creation that was cut short before the mark has announced it,
// and never one that is said or known to be somebody else's.
func (p *Provider) deleteUnmarked(ctx context.Context, b *bucket, ref provider.BucketRef, held []string) error {
	err := p.recognise(ctx, b)
	if ref.AccessOnly || len(b.entries) > 0 {
		if err != nil {
			return err
		}
		return p.clear(ctx, b, held)
	}
	if err != nil {
		return p.notOurs(b)
	}
	announcements, err := p.claimable(ctx, b)
	if err != nil {
		return err
	}
	if len(announcements) == 0 {
		return p.notOurs(b)
	}
	return p.remove(ctx, ref, provider.DeleteOptions{})
}

// remove deletes an empty bucket and what has announced it.
func (p *Provider) remove(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
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

// clear ends all accesses to a bucket. The order is that of a revocation.
func (p *Provider) clear(ctx context.Context, b *bucket, held []string) error {
	if len(b.entries) == 0 && b.malformed == nil {
		return nil
	}
	last, elsewhere, ended, err := p.divide(ctx, b, held)
	if err != nil {
		return err
	}
	var names, groups []string
	for _, e := range b.entries {
		names = append(names, e.name)
	}
	for _, e := range last {
		proved, err := p.proved(ctx, b, e)
		if err != nil {
			return err
		}
		if proved && !e.pending() {
			groups = append(groups, e.id)
		}
	}
	for _, id := range groups {
		if err := p.removeKeys(ctx, b.Region, id); err != nil {
			return err
		}
	}
	if !b.AccessOnly {
		if err := p.enforce(ctx, b, names...); err != nil {
			return err
		}
	}
	for _, id := range groups {
		if err := p.removeGroup(ctx, b.Region, id); err != nil {
			return err
		}
	}
	if err := p.sweep(ctx, b.BucketRef, last); err != nil {
		return err
	}
	for _, o := range ended {
		if err := p.amend(ctx, o, func(m *marks) { m.dropAll(last) }); err != nil {
			return fmt.Errorf("bucket %q, which its access has ended in before: %w", o.Name, err)
		}
	}
	b.malformed = nil
	return p.change(ctx, b, func(m *marks) {
		m.dropAll(last)
		for _, e := range elsewhere {
			p.leave(b, m, e.name)
		}
	})
}

// leave takes the access, which goes on elsewhere, out of the marks of a bucket. In
// somebody else's bucket its key could do everything without a statement, so there
// it is kept as ended.
func (p *Provider) leave(b *bucket, m *marks, name string) {
	e, ok := m.find(name)
	m.drop(name)
	if ok && b.AccessOnly && !e.pending() {
		e.mode = modeEnded
		m.put(e)
	}
}

// divide returns the accesses to the bucket whose last bucket it is, those that
// have others, and the buckets in which one of the former has ended before. A
// ledger that others may have written is not believed to be the last.
func (p *Provider) divide(ctx context.Context, b *bucket, held []string) (last, elsewhere []entry, ended []*bucket, err error) {
	s := search{region: b.Region, apart: []string{b.Name}, all: b.doubtful}
	for _, e := range b.entries {
		s.names = append(s.names, e.name)
		s.prints = append(s.prints, beyond(e.span, s.apart)...)
	}
	others, err := p.holders(ctx, s)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := lockAlso(held, others); err != nil {
		return nil, nil, nil, err
	}
	for _, e := range b.entries {
		if slices.ContainsFunc(others, func(o *bucket) bool { return o.serves(e.name) }) {
			elsewhere = append(elsewhere, e)
		} else {
			last = append(last, e)
		}
	}
	ended = slices.DeleteFunc(others, func(o *bucket) bool {
		return !slices.ContainsFunc(last, func(e entry) bool { _, ok := o.find(e.name); return ok })
	})
	return last, elsewhere, ended, nil
}

// serves reports whether the bucket has the access and it has not ended there.
func (b *bucket) serves(name string) bool {
	e, ok := b.find(name)
	return ok && e.mode != modeEnded
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
// have left behind: announcements of the bucket, and duplicates of the accesses'
// groups, which go with it. The lag of the list is waited out only for accesses of which no group
// is known.
func (p *Provider) sweep(ctx context.Context, ref provider.BucketRef, entries []entry) error {
	var names []string
	if !ref.AccessOnly {
		names = append(names, p.intentNames(ref.Name)...)
	}
	var unknown string
	for _, e := range entries {
		names = append(names, e.name)
		if e.pending() {
			unknown = e.name
		}
	}
	if unknown != "" {
		if _, err := p.groupsNamed(ctx, ref.Region, true, unknown); err != nil {
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
	if !ref.AccessOnly {
		p.rememberIntent(ref, intent{})
	}
	return nil
}
