package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// freshFor is how old what should exist may be when something is deleted by it.
const freshFor = 10 * time.Second

// Outcome is what became of an item.
type Outcome string

// The outcomes.
const (
	Deleted Outcome = "deleted"
	Refused Outcome = "refused" // it holds data, or has come into use; nothing is lost
	Failed  Outcome = "failed"
)

// Delete deletes the orphans of a plan, those that open something first: accesses,
// then buckets with their owners, then announcements. With purge it deletes the data
// of buckets, too. What is wanted meanwhile stays. Outcomes are in the plan's items.
// The error says why it ended early; what is not reached is left to the next run.
func (c *Collector) Delete(ctx context.Context, p *Plan, purge bool) error {
	if p.Refusal != nil {
		return p.Refusal
	}
	var expected Expected
	var read time.Time
	for _, turn := range []func(*unit) bool{
		(*unit).access,
		func(u *unit) bool { return !u.access() && u.first().Bucket != "" },
		func(u *unit) bool { return !u.access() && u.first().Bucket == "" },
	} {
		for _, u := range p.units {
			if u.verdict != Orphan || !u.selected || !turn(u) {
				continue
			}
			if read.IsZero() || c.Now().Sub(read) >= freshFor {
				var err error
				if expected, err = c.Expect(ctx); err != nil {
					return err
				}
				read = c.Now()
			}
			if c.judge(expected, u); u.verdict != Orphan {
				p.settle(u, Refused, fmt.Errorf("%w: it is wanted by now: %s", provider.ErrPrecondition, u.why))
				c.spare(p.units)
				continue
			}
			err := c.remove(ctx, u, purge)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			switch {
			case err == nil:
				delete(c.Seen, u.key)
				p.settle(u, Deleted, nil)
			case errors.Is(err, provider.ErrNotEmpty), errors.Is(err, provider.ErrPrecondition):
				p.settle(u, Refused, err)
			default:
				p.settle(u, Failed, err)
			}
		}
	}
	return nil
}

func (p *Plan) settle(u *unit, o Outcome, err error) {
	for _, n := range u.items {
		p.Items[n].Outcome, p.Items[n].Err = o, err
	}
}

// remove deletes one unit through the provider, whose rules hold.
func (c *Collector) remove(ctx context.Context, u *unit, purge bool) error {
	r, to := u.first(), u.backend.Provider
	switch {
	case r.Kind == provider.KindAdmin:
		return fmt.Errorf("%w: the driver works with it", provider.ErrPermissionDenied)
	case u.access():
		return to.RevokeAccess(ctx, u.account(purge))
	case r.Bucket != "":
		return absentIsDone(to.DeleteBucket(ctx, u.bucket(), provider.DeleteOptions{Purge: purge, PurgeOwn: purge}))
	}
	reclaimer, ok := to.(provider.Reclaimer)
	if !ok {
		return fmt.Errorf("%w: the back end cannot remove it", provider.ErrUnsupported)
	}
	return reclaimer.Reclaim(ctx, r)
}

func absentIsDone(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// account names the access with all its buckets.
func (u *unit) account(purge bool) provider.AccountRef {
	ref := provider.AccountRef{Account: u.first().Account, IdentityID: u.first().ID, PurgeOwn: purge}
	for _, r := range u.members {
		if r.Bucket != "" {
			ref.Buckets = append(ref.Buckets, provider.BucketRef{Name: r.Bucket, Region: r.Region})
		}
	}
	return ref
}

// bucket names the bucket, with its owner where that is one identity of the cloud.
func (u *unit) bucket() provider.BucketRef {
	ref := provider.BucketRef{Name: u.first().Bucket, Region: u.first().Region}
	marked, owners := false, 0
	for _, r := range u.members {
		if r.Kind == provider.KindBucket {
			marked = true
			continue
		}
		owners++
		ref.OwnerID = r.ID
	}
	if owners != 1 || !marked {
		ref.OwnerID = "" // the provider finds it by its mark
	}
	return ref
}
