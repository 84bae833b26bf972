package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var _ provider.Auditor = (*Provider)(nil)

// fault is a finding and what puts it right; nil if nothing can.
type fault struct {
	provider.Finding
	fix func(context.Context) error
}

// Audit implements provider.Auditor.
func (p *Provider) Audit(ctx context.Context) iter.Seq2[provider.Finding, error] {
	return func(yield func(provider.Finding, error) bool) {
		users, err := p.listUsers(ctx, tagManagedBy, p.config.DriverName)
		if err != nil {
			yield(provider.Finding{}, fmt.Errorf("audit: %w", err))
			return
		}
		refs := p.audited(users)
		// The first error is of a tenant or bucket that could not be looked at.
		strays, first := p.strays(ctx, users)
		for _, ref := range append(refs, strays...) {
			if err := transport.Rest(ctx); err != nil {
				yield(provider.Finding{}, err)
				return
			}
			faults, err := p.inspect(ctx, ref, nil)
			switch {
			case errors.Is(err, provider.ErrNotFound), errors.Is(err, provider.ErrConflict):
				continue // somebody deletes or changes it at this moment
			case err != nil && first == nil:
				first = fmt.Errorf("audit bucket %q in region %q: %w", ref.Name, ref.Region, err)
			}
			for _, f := range faults {
				if !yield(f.Finding, nil) {
					return
				}
			}
		}
		if first != nil {
			yield(provider.Finding{}, first)
		}
	}
}

// Repair implements provider.Auditor.
func (p *Provider) Repair(ctx context.Context, f provider.Finding) error {
	ref := provider.BucketRef{Name: f.Bucket, Region: f.Region}
	if f.Drift == provider.DriftTags && f.Kind == provider.KindOwner {
		ref.OwnerID = f.ID
	}
	_, err := p.inspect(ctx, ref, func(found fault) error {
		switch {
		case found.Drift != f.Drift || found.ID != f.ID:
			return nil
		case found.fix == nil:
			return refuse(provider.ErrUnsupported, "%s: %s", found.Problem, found.Remedy)
		}
		return found.fix(ctx)
	})
	if err != nil {
		return fmt.Errorf("repair %s of bucket %q in region %q: %w", f.Drift, f.Bucket, f.Region, err)
	}
	return nil
}

// audited returns the buckets that the driver's users are about, in order.
func (p *Provider) audited(users []user) []provider.BucketRef {
	refs := map[string]provider.BucketRef{}
	for _, u := range users {
		if u.tags[tagPurpose] == purposeProbe {
			continue // a probe looks after its own
		}
		if name := u.tags[tagBucket]; p.isOwner(u, name) {
			refs[name] = provider.BucketRef{Name: name, Region: u.tags[tagRegion]}
		}
		if p.isTenant(u) {
			for _, name := range bucketsOfTenant(u) {
				refs[name] = provider.BucketRef{Name: name, Region: u.tags[tagRegion+bucketSuffix(name)]}
			}
		}
	}
	for _, u := range users {
		if !p.isAccess(u) || p.elsewhereMade(u) || u.tags[tagPurpose] == purposeProbe {
			continue
		}
		for name, m := range recordedAccess(u).buckets {
			if _, ours := refs[name]; m.theirs && !ours {
				refs[name] = provider.BucketRef{Name: name, Region: m.region, AccessOnly: true}
			}
		}
	}
	return slices.SortedFunc(maps.Values(refs), func(a, b provider.BucketRef) int { return strings.Compare(a.Name, b.Name) })
}

// inspect looks at one bucket under its lock and returns what is wrong with it, or
// hands it to act, one after the other.
func (p *Provider) inspect(ctx context.Context, ref provider.BucketRef, act func(fault) error) ([]fault, error) {
	unlock, err := p.buckets.lock(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	faults, err := p.faults(ctx, ref)
	if err != nil || act == nil {
		return faults, err
	}
	for _, f := range faults {
		if err := act(f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (p *Provider) faults(ctx context.Context, ref provider.BucketRef) ([]fault, error) {
	o, err := p.recordedOwner(ctx, ref.Name)
	switch {
	case errors.Is(err, provider.ErrNotFound) && ref.OwnerID != "":
		return p.faultsOfStray(ctx, ref)
	case errors.Is(err, provider.ErrNotFound):
		return p.faultsOfTheirs(ctx, ref)
	case errors.Is(err, provider.ErrConflict), errors.Is(err, provider.ErrInvalidArgument):
		f := finding(provider.DriftTags, provider.Resource{Kind: provider.KindOwner, Bucket: ref.Name, Region: ref.Region},
			err.Error(), "restore the tags of the objects users that own it by hand")
		return []fault{f}, nil
	case err != nil:
		return nil, err
	}
	var loc location
	if o.region != "" {
		if loc, err = p.locate(ctx, &o); err != nil {
			return nil, err
		}
	}
	switch {
	case o.region == "", loc.state == stateElsewhere:
		return p.wrongRegion(ctx, o)
	case loc.state != statePresent:
		return nil, nil // one that was never finished; zuber gc knows what to do
	}
	return p.faultsOf(ctx, o)
}

func finding(drift provider.Drift, r provider.Resource, problem, remedy string) fault {
	return fault{Finding: provider.Finding{Drift: drift, Resource: r, Problem: problem, Remedy: remedy}}
}

const repairRemedy = "run zuber audit --repair"

// by makes a fault repairable.
func (f fault) by(fix func(context.Context) error) fault {
	f.Repairable, f.fix = true, fix
	return f
}

func (o owner) resource() provider.Resource {
	return provider.Resource{Kind: provider.KindBucket, ID: o.bucket, Bucket: o.bucket, Region: o.region}
}

// wrongRegion is about an owner whose tag does not name where its bucket lives.
func (p *Provider) wrongRegion(ctx context.Context, o owner) ([]fault, error) {
	where, err := p.whereIs(ctx, &o)
	if err != nil {
		return nil, err
	}
	r := provider.Resource{Kind: provider.KindOwner, ID: o.id, Bucket: o.bucket, Region: o.region}
	tag := tagRegion
	if o.tenant != "" {
		tag += bucketSuffix(o.bucket)
	}
	f := finding(provider.DriftRegion, r, fmt.Sprintf("the tag %s of objects user %s says region %q and its bucket lives in %q", tag, o.id, o.region, where), repairRemedy)
	if where == "" {
		f.Problem, f.Remedy = fmt.Sprintf("objects user %s has no bucket of that name in any region", o.id), "let zuber gc remove it"
		if o.region != "" {
			f.Remedy = "set the tag " + tag + " by hand, or let zuber gc remove it"
		}
		return []fault{f}, nil
	}
	return []fault{f.by(func(ctx context.Context) error { return p.correctRegion(ctx, o, tag, where) })}, nil
}

// correctRegion sets the tag of the owner that names its bucket's region. The API
// replaces all tags at once, and others record buckets of the tenant meanwhile.
func (p *Provider) correctRegion(ctx context.Context, o owner, tag, region string) error {
	if o.tenant != "" {
		unlock, err := p.tenants.lock(ctx, o.tenant)
		if err != nil {
			return err
		}
		defer unlock()
	}
	u, err := p.getUser(ctx, o.id)
	if err != nil {
		return absentIsFine(err)
	}
	if o.tenant == "" && !p.isOwner(u, o.bucket) {
		return nil
	}
	if o.tenant != "" {
		if _, ok, err := p.tenantOwner(u, o.bucket); err != nil || !ok {
			return err
		}
	}
	tags := maps.Clone(u.tags)
	tags[tag] = region
	return p.updateTags(ctx, o.id, tags)
}

// whereIs looks for the owner's bucket in every region.
func (p *Provider) whereIs(ctx context.Context, o *owner) (string, error) {
	regions, err := p.Regions(ctx)
	if err != nil {
		return "", err
	}
	for _, region := range regions {
		there := *o
		there.region, there.endpoint = region, ""
		loc, err := p.locate(ctx, &there)
		if err != nil {
			return "", err
		}
		if loc.state == statePresent {
			return region, nil
		}
	}
	return "", nil
}

// faultsOf looks at the tags of a bucket's accesses, its policy and its public
// access block.
func (p *Provider) faultsOf(ctx context.Context, o owner) ([]fault, error) {
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	c, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return nil, err
	}
	current, err := c.Policy(ctx, o.bucket)
	if s3.Code(err) == codeDenied {
		return []fault{finding(provider.DriftAdmin, o.resource(), "its policy denies its owner everything, so that the driver can do nothing with it",
			"only the cloud's support can remove the policy")}, nil
	}
	if err != nil {
		return nil, s3Error(ctx, err)
	}
	l, err := p.readLedger(ctx, o, current)
	if err != nil {
		return nil, err
	}
	faults, err := p.policyFaults(l)
	if err != nil || current == "" {
		return faults, err
	}
	ignored, err := c.IgnoresPublicACLs(ctx, o.bucket)
	switch err := s3Error(ctx, err); {
	case lacks(err):
	case err != nil:
		return nil, err
	case !ignored:
		faults = append(faults, finding(provider.DriftPublicAccess, o.resource(),
			"public ACLs count, so that an access could publish what it writes", repairRemedy).by(func(ctx context.Context) error {
			return s3Error(ctx, c.IgnorePublicACLs(ctx, o.bucket))
		}))
	}
	return faults, nil
}

// faultsOfTheirs looks at the driver's statements in a bucket of somebody else.
func (p *Provider) faultsOfTheirs(ctx context.Context, ref provider.BucketRef) ([]fault, error) {
	found, err := p.accessesTo(ctx, ref.Name)
	if err != nil || len(found) == 0 || !found[0].buckets[ref.Name].theirs {
		return nil, err
	}
	r := provider.Resource{Kind: provider.KindBucket, ID: ref.Name, Bucket: ref.Name, Region: ref.Region}
	o, ok, err := p.ownerOf(ctx, found[0].buckets[ref.Name])
	if err != nil {
		return nil, err
	}
	if !ok {
		return []fault{finding(provider.DriftMissingUser, r, "the objects user that owns it does not exist any more", "delete the BucketAccesses to it")}, nil
	}
	loc, err := p.locate(ctx, &o)
	if err != nil || loc.state != statePresent {
		return nil, err
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	c, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return nil, err
	}
	current, err := c.Policy(ctx, o.bucket)
	if err != nil {
		return nil, s3Error(ctx, err)
	}
	policy, err := o.policyFor(p.sids(), current, membersOf(found, o.bucket, ""))
	switch {
	case errors.Is(err, provider.ErrPrecondition):
		return []fault{finding(provider.DriftPolicy, r, err.Error(), "correct the policy")}, nil
	case err != nil || policy == current:
		return nil, err
	}
	return []fault{finding(provider.DriftPolicy, r, "the driver's statements in its policy are not those of its accesses", repairRemedy).by(
		func(ctx context.Context) error { return p.syncPolicy(ctx, o, "") })}, nil
}
