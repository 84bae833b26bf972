package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var _ provider.Reclaimer = (*Provider)(nil)

// Created implements provider.Reclaimer. The API tells no age of a credentials
// group, so only a bucket has one, and an announcement that of its bucket.
func (p *Provider) Created(ctx context.Context, r provider.Resource) (time.Time, error) {
	if r.Bucket == "" || r.Kind != provider.KindBucket && r.Kind != provider.KindOwner {
		return time.Time{}, nil
	}
	made, err := p.created(ctx, provider.BucketRef{Name: r.Bucket, Region: r.Region})
	if err != nil {
		return time.Time{}, fmt.Errorf("age of bucket %q in region %q: %w", r.Bucket, r.Region, err)
	}
	return made, nil
}

func (p *Provider) created(ctx context.Context, ref provider.BucketRef) (time.Time, error) {
	if err := p.checkRef(ref); err != nil {
		return time.Time{}, err
	}
	regional, err := p.bucketEndpoint(ctx, ref)
	if err != nil {
		return time.Time{}, err
	}
	var made map[string]time.Time
	err = p.asAdmin(ctx, ref.Region, regional, func(c *s3.Client) (err error) {
		made, err = c.Created(ctx)
		return err
	})
	return made[ref.Name], err
}

// Announces implements provider.Reclaimer. The name of an announcement is derived
// from that of its bucket and cannot be turned back.
func (p *Provider) Announces(r provider.Resource, bucket string) bool {
	return r.Kind == provider.KindOwner && slices.Contains(p.intentNames(bucket), r.Name)
}

// Reclaim implements provider.Reclaimer: it removes an announcement whose bucket
// never came.
func (p *Provider) Reclaim(ctx context.Context, r provider.Resource) error {
	if err := p.reclaim(ctx, r); err != nil {
		return fmt.Errorf("reclaim credentials group %s in region %q: %w", r.ID, r.Region, err)
	}
	return nil
}

func (p *Provider) reclaim(ctx context.Context, r provider.Resource) error {
	if err := p.checkRegion(r.Region); err != nil {
		return err
	}
	if r.Kind != provider.KindOwner || !uuidPattern.MatchString(r.ID) {
		return refuse(provider.ErrPermissionDenied, "it is no announcement of a bucket; it is left alone")
	}
	g, err := p.getGroup(ctx, r.Region, r.ID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !p.announces(g.name):
		return refuse(provider.ErrPermissionDenied, "its name %q is not that of an announcement of driver %s; it is left alone", clip(g.name), p.config.DriverName)
	}
	names, err := p.listBuckets(ctx, r.Region)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	for name := range names {
		if slices.Contains(p.intentNames(name), g.name) {
			return refuse(provider.ErrPrecondition, "the bucket %q that it announces exists; it goes when that is made or deleted", name)
		}
	}
	// An announcement never gets keys, so the API's refusal of a group with keys
	// keeps what somebody has put to another use.
	if err := p.deleteGroup(ctx, r.Region, r.ID); errors.Is(err, provider.ErrNotEmpty) {
		return refuse(provider.ErrPrecondition, "it has access keys, which an announcement never gets; find out who uses it and delete those")
	} else if err != nil {
		return err
	}
	return nil
}
