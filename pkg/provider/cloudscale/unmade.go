package cloudscale

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// A record is written before its bucket is made, and stays when that fails in a way
// that a repetition may cure, as with an endpoint that does not answer. Names made of
// claims come again: the claim with a corrected class must not be held to the record
// of a bucket that never was.

// agreed returns the owner if its record is what is asked for. Another record of the
// same claim and cluster is replaced while the owner has no such bucket. Where that is
// another claim's, ErrPrecondition says how it ends: who makes the bucket for that one at this
// moment must not share it with this one. Every other difference is ErrAlreadyExists.
func (p *Provider) agreed(ctx context.Context, o owner, asked record) (owner, error) {
	differs := o.differs(asked)
	if differs == nil || asked.claim == (provider.ClaimRef{}) && o.claim == (provider.ClaimRef{}) {
		return o, differs
	}
	unmade, err := p.unmade(ctx, o)
	if err == nil && unmade {
		var opened []access
		opened, err = p.accesses(ctx, o)
		unmade = len(opened) == 0 // else it was there
	}
	switch {
	case err != nil:
		// Text only: with an owner that cannot be asked, a refusal for good may be wrong.
		return owner{}, refuse(provider.ErrUnavailable, "%s; whether it was made at all is not known: %s; repeat the call", differs, err)
	case !unmade:
		return owner{}, differs
	case o.claim != asked.claim || o.cluster != asked.cluster || o.tenant != asked.tenant && !asked.keepTenant || (o.tenant == "") != (asked.tenant == ""):
		return owner{}, refuse(provider.ErrPrecondition, "objects user %s keeps its name for %s, and has not made it yet; if that one is not wanted any more, "+
			"zuber gc --delete removes what is left of it; else use another name", o.id, ownedBy(o.claim))
	}
	return p.replaceRecord(ctx, o, asked)
}

// unmade reports whether the owner has no such bucket, one of its own no bucket at
// all. The endpoint of the record may be what is wrong with it, so another one is
// asked: any region lists the buckets of all.
func (p *Provider) unmade(ctx context.Context, o owner) (bool, error) {
	region := o.region
	if p.checkRegion(ctx, region) != nil {
		regions, err := p.Regions(ctx)
		if err != nil {
			return false, err
		}
		region = regions[0]
	}
	var owned []string
	err := p.withKey(ctx, identity{id: o.id, region: region, endpoint: p.defaultEndpoint(region)}, &o.user, func(c *s3.Client) error {
		who, err := c.WhoAmI(ctx)
		owned = who.Buckets
		return err
	})
	if err != nil {
		return false, sorted(ctx, err)
	}
	if o.tenant == "" {
		return len(owned) == 0, nil
	}
	return !slices.Contains(owned, o.bucket), nil
}

// locateOrUnmade is locate where a bucket may never have come because its endpoint is
// wrong: it could be neither asked for nor deleted there, and its record would stay for ever.
func (p *Provider) locateOrUnmade(ctx context.Context, o *owner) (location, error) {
	loc, err := p.locate(ctx, o)
	if errors.Is(err, provider.ErrUnavailable) && o.endpoint != "" {
		if unmade, lookErr := p.unmade(ctx, *o); lookErr == nil && unmade {
			return location{state: stateAbsent}, nil
		}
	}
	return loc, err
}

// replaceRecord makes the owner record what is asked for in place of o. ErrConflict if
// it records another thing by now.
func (p *Provider) replaceRecord(ctx context.Context, o owner, asked record) (owner, error) {
	if o.tenant != "" {
		unlock, err := p.tenants.lock(ctx, o.tenant)
		if err != nil {
			return owner{}, err
		}
		defer unlock()
		asked.tenant = o.tenant
	}
	u, err := p.getUser(ctx, o.id)
	if err != nil {
		return owner{}, vanished(err, o.id)
	}
	if err := p.recordsStill(u, o); err != nil {
		return owner{}, err
	}
	tags, err := asked.tags(p.config.DriverName)
	if err != nil {
		return owner{}, err
	}
	kept := withoutBucket(u.tags, o.bucket)
	if o.tenant == "" {
		maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, tagPrefix) })
	}
	maps.Copy(kept, tags)
	if err := p.updateTags(ctx, o.id, kept); err != nil {
		return owner{}, vanished(err, o.id)
	}
	u.tags = kept
	return owner{user: u, record: asked}, nil
}

// recordsStill is ErrConflict if the user records the bucket otherwise than o, as when
// another call has replaced the record. A record that is lost is not one.
func (p *Provider) recordsStill(u user, o owner) error {
	var now owner
	var ok bool
	var err error
	if o.tenant != "" {
		now, ok, err = p.tenantOwner(u, o.bucket)
	} else if ok = p.isOwner(u, o.bucket); ok {
		now.record, err = recorded(u.tags)
	}
	if err == nil && ok && now.differs(o.record) != nil {
		err = refuse(provider.ErrConflict, "another call makes it with other parameters at this moment; repeat the call")
	}
	return err
}
