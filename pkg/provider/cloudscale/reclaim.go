package cloudscale

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var _ provider.Reclaimer = (*Provider)(nil)

// Created implements provider.Reclaimer. The API tells no age of an objects user,
// so only a bucket has one, and an owner that of its bucket.
func (p *Provider) Created(ctx context.Context, r provider.Resource) (time.Time, error) {
	if r.Kind != provider.KindBucket && r.Kind != provider.KindOwner || r.Bucket == "" {
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
	if err == nil && len(owners) == 0 {
		owners, _, err = p.tenantsOf(ctx, r.Bucket)
	}
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

// Announces implements provider.Reclaimer: every owner names its buckets.
func (*Provider) Announces(provider.Resource, string) bool { return false }

// Reclaim implements provider.Reclaimer: what it removes is the owner of a tenant that
// records no bucket. DeleteBucket removes every other.
func (p *Provider) Reclaim(ctx context.Context, r provider.Resource) error {
	err := refuse(provider.ErrPermissionDenied, "it goes with its bucket")
	if r.Kind == provider.KindOwner && r.Bucket == "" && userIDPattern.MatchString(r.ID) {
		err = p.reclaimTenant(ctx, r.ID)
	}
	if err != nil {
		return fmt.Errorf("reclaim %s %s: %w", r.Kind, r.ID, err)
	}
	return nil
}

func (p *Provider) reclaimTenant(ctx context.Context, id string) error {
	u, err := p.getUser(ctx, id)
	if err != nil {
		return absentIsFine(err)
	}
	unlock, err := p.tenants.lock(ctx, u.tags[tagTenant])
	if err != nil {
		return err
	}
	defer unlock()
	if u, err = p.getUser(ctx, id); err != nil {
		return absentIsFine(err)
	}
	if !p.isTenant(u) {
		return refuse(provider.ErrPermissionDenied, "it does not carry the mark of driver %s as the owner of a tenant's buckets", p.config.DriverName)
	}
	if names := bucketsOfTenant(u); len(names) > 0 {
		return refuse(provider.ErrPrecondition, "it is in use: it records the bucket %q", names[0])
	}
	err = p.deleteUser(ctx, id)
	if status := statusOf(err); status == http.StatusBadRequest || status == http.StatusConflict {
		return refuse(provider.ErrPrecondition, "the API does not delete it (%s), as while it owns a bucket; zuber audit finds those that it does not record", err)
	}
	return err
}
