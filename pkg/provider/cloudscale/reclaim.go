package cloudscale

import (
	"context"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var _ provider.Reclaimer = (*Provider)(nil)

// Created implements provider.Reclaimer. The API tells no age of an objects user,
// so only a bucket has one, and an owner that of its bucket.
func (p *Provider) Created(ctx context.Context, r provider.Resource) (time.Time, error) {
	if r.Kind != provider.KindBucket && r.Kind != provider.KindOwner {
		return time.Time{}, nil
	}
	made, err := p.created(ctx, r)
	if err != nil {
		return time.Time{}, fmt.Errorf("age of bucket %q in region %q: %w", r.Bucket, r.Region, err)
	}
	return made, nil
}

func (p *Provider) created(ctx context.Context, r provider.Resource) (time.Time, error) {
	owners, err := p.owners(ctx, r.Bucket)
	if err != nil {
		return time.Time{}, err
	}
	if len(owners) == 0 {
		return time.Time{}, refuse(provider.ErrNotFound, "it has no owner any more")
	}
	for _, o := range owners {
		var made map[string]time.Time
		err := p.withKey(ctx, p.identityOf(o), &o.user, func(c *s3.Client) (err error) {
			made, err = c.Created(ctx)
			return err
		})
		if err != nil {
			return time.Time{}, sorted(ctx, err)
		}
		if at, ok := made[r.Bucket]; ok {
			return at, nil
		}
	}
	return time.Time{}, nil
}

// Announces implements provider.Reclaimer: every owner names its bucket.
func (*Provider) Announces(provider.Resource, string) bool { return false }

// Reclaim implements provider.Reclaimer: DeleteBucket removes every owner.
func (*Provider) Reclaim(_ context.Context, r provider.Resource) error {
	return fmt.Errorf("reclaim %s %s: %w", r.Kind, r.ID, refuse(provider.ErrPermissionDenied, "it goes with its bucket"))
}
