package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// strays returns the buckets that the owners of tenants have and do not record. The
// error is of the first tenant that could not be asked; the others are looked at.
func (p *Provider) strays(ctx context.Context, users []user) (refs []provider.BucketRef, first error) {
	for _, u := range users {
		if !p.isTenant(u) {
			continue
		}
		if err := transport.Rest(ctx); err != nil {
			return refs, err
		}
		found, err := p.straysOf(ctx, u)
		if err != nil && !errors.Is(err, provider.ErrConflict) && first == nil {
			first = fmt.Errorf("audit objects user %s of tenant %q: %w", u.id, u.tags[tagTenant], err)
		}
		refs = append(refs, found...)
	}
	return refs, first
}

func (p *Provider) straysOf(ctx context.Context, u user) ([]provider.BucketRef, error) {
	regions, err := p.Regions(ctx)
	if err != nil {
		return nil, err
	}
	recorded := bucketsOfTenant(u)
	// Any region lists the buckets of all, and one that has a bucket knows the key.
	o := unrecordedOwner(u, "", regions[0])
	if len(recorded) > 0 {
		known, ok, err := p.tenantOwner(u, recorded[0])
		if err != nil {
			return nil, err
		}
		if ok && known.region != "" {
			o = known
		}
	}
	names, err := p.owned(ctx, o)
	if err != nil {
		return nil, sorted(ctx, err)
	}
	var refs []provider.BucketRef
	for _, name := range names {
		if slices.Contains(recorded, name) {
			continue
		}
		stray := unrecordedOwner(u, name, "")
		where, err := p.whereIs(ctx, &stray)
		if err != nil {
			return refs, err
		}
		if where != "" {
			refs = append(refs, provider.BucketRef{Name: name, Region: where, OwnerID: u.id})
		}
	}
	return refs, nil
}

// faultsOfStray is about a bucket of a tenant's owner that this does not record.
func (p *Provider) faultsOfStray(ctx context.Context, ref provider.BucketRef) ([]fault, error) {
	u, err := p.getUser(ctx, ref.OwnerID)
	if err != nil || !p.isTenant(u) {
		return nil, err
	}
	o, err := p.unrecorded(ctx, u, ref)
	if err != nil {
		return nil, err
	}
	r := provider.Resource{Kind: provider.KindOwner, ID: u.id, Bucket: o.bucket, Region: o.region}
	return []fault{finding(provider.DriftTags, r, fmt.Sprintf("objects user %s of tenant %q owns it and its tags do not record it", u.id, o.tenant),
		repairRemedy+", which records it with what a class says by default").by(func(ctx context.Context) error {
		return p.keepRecord(ctx, u, o.record)
	})}, nil
}
