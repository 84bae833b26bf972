package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// noneHolds is the ErrConflict of several owners of which none owns anything:
// another process may be making the bucket with any of them.
type noneHolds struct {
	error
	found []owner // ordered by ID
}

// Unwrap returns the error that names them.
func (e *noneHolds) Unwrap() error { return e.error }

// settle ends a state with several owners of one bucket, which calls leave that
// made it at the same time. It deletes those that own nothing while one has the
// bucket, because nobody can make it with their keys then. The API refuses to
// delete a user that owns a bucket in any region. In every other case settle
// returns ErrConflict with the IDs, which is a noneHolds while none has it.
func (p *Provider) settle(ctx context.Context, bucket string) (owner, error) {
	found, err := p.owners(ctx, bucket)
	if err != nil {
		return owner{}, err
	}
	if len(found) < 2 {
		return p.theOwner(ctx, bucket)
	}
	held := false
	var idle []owner
	for _, o := range found {
		owned, err := p.owned(ctx, o)
		switch {
		case ctx.Err() != nil:
			return owner{}, ctx.Err()
		case err != nil:
			return owner{}, ambiguous(found)
		case len(owned) == 0:
			idle = append(idle, o)
		case held || !slices.Contains(owned, bucket):
			return owner{}, ambiguous(found)
		default:
			held = true
		}
	}
	if !held {
		return owner{}, &noneHolds{ambiguous(found), found}
	}
	for _, o := range idle {
		if err := p.deleteUser(ctx, o.id); err != nil {
			return owner{}, fmt.Errorf("%w; %s", ambiguous(found), err.Error())
		}
	}
	return p.theOwner(ctx, bucket)
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

// standing checks, after the bucket was made, that its owner still is, and records it
// as before: see agreed. Another
// call that made an owner at the same time may have removed this one, whose key
// goes on working for a while where keys are removed late. The bucket is then
// taken back, since nobody could delete it later.
func (p *Provider) standing(ctx context.Context, o owner) error {
	u, err := p.getUser(ctx, o.id)
	if err == nil {
		err = p.recordsStill(u, o)
	}
	if err == nil && o.tenant != "" {
		err = p.keepRecord(ctx, u, o.record)
	}
	if !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	key, err := o.key()
	if err != nil {
		return err
	}
	c, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return err
	}
	if err := c.DeleteBucket(ctx, o.bucket); err != nil {
		return refuse(provider.ErrConflict, "its owner %s was removed while it was made, and it cannot be taken back: %s", o.id, err.Error())
	}
	return refuse(provider.ErrConflict, "its owner %s was removed by another call while it was made; repeat the call", o.id)
}
