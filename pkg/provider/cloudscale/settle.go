package cloudscale

import (
	"context"
	"fmt"
	"slices"
)

// settle ends a state with several owners of one bucket, which calls leave that
// made it at the same time and did not live to tidy up. It keeps the owner that
// has the bucket, or the one of the lowest ID when none has, and deletes the
// others. It does so only when the endpoint shows that those own nothing, and the
// API refuses to delete a user that owns a bucket in any region; a process that
// is using one at this moment sees it vanish and repeats its call. In every other
// case it returns ErrConflict with the IDs.
func (p *Provider) settle(ctx context.Context, bucket string) (owner, error) {
	found, err := p.owners(ctx, bucket)
	if err != nil {
		return owner{}, err
	}
	if len(found) < 2 {
		return p.theOwner(ctx, bucket)
	}
	keep := -1
	for i, o := range found {
		owned, err := p.owned(ctx, o)
		switch {
		case err != nil && ctx.Err() != nil:
			return owner{}, ctx.Err()
		case err != nil:
			return owner{}, ambiguous(found)
		case len(owned) == 0:
		case keep >= 0 || !slices.Contains(owned, bucket):
			return owner{}, ambiguous(found)
		default:
			keep = i
		}
	}
	keep = max(keep, 0)
	for i, o := range found {
		if i == keep {
			continue
		}
		if err := p.deleteUser(ctx, o.id); err != nil {
			return owner{}, fmt.Errorf("%w; %s", ambiguous(found), err.Error())
		}
	}
	return found[keep], nil
}

// owned lists the buckets that the owner's key shows at its endpoint, asking once.
func (p *Provider) owned(ctx context.Context, o owner) ([]string, error) {
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	c, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return nil, err
	}
	who, err := c.WhoAmI(ctx)
	return who.Buckets, err
}
