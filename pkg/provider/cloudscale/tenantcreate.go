package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// ensureTenant makes sure that the owner of the tenant's buckets exists and records
// the bucket; made says that the record is of this call. When processes made several
// such owners at the same time, it is crowded, and they go on with the same one as far
// as they see one another. What another one holds then stays its: a bucket cannot change
// hands.
func (p *Provider) ensureTenant(ctx context.Context, asked record) (o owner, made, crowded bool, err error) {
	found, others, err := p.tenantsOf(ctx, asked.bucket)
	switch {
	case err != nil:
		return owner{}, false, false, err
	case len(found) == 0 && len(others) > 0:
		return owner{}, false, false, takenBy(p.otherCluster(others[0], asked.bucket))
	case len(found) == 1:
		o, err = p.agreed(ctx, found[0], asked)
		return o, false, false, err
	case len(found) > 1:
		o, err := p.settleMade(ctx, asked.bucket)
		var open *noneHolds
		if errors.As(err, &open) {
			return elected(open.found, asked)
		}
		if err == nil {
			o, err = p.agreed(ctx, o, asked)
		}
		return o, false, false, err
	}
	own, err := p.theOwner(ctx, asked.bucket)
	switch {
	case err == nil:
		// It differs at least by the tenant.
		_, err = p.agreed(ctx, own, asked)
		return owner{}, false, false, err
	case !errors.Is(err, provider.ErrNotFound):
		return owner{}, false, false, takenBy(err)
	}
	unlock, err := p.tenants.lock(ctx, asked.tenant)
	if err != nil {
		return owner{}, false, false, err
	}
	defer unlock()
	users, fresh, err := p.findOrMakeTenant(ctx, asked)
	if err != nil {
		return owner{}, false, false, err
	}
	chosen := users[0]
	if len(users) > 1 && fresh != "" {
		chosen = p.heldBefore(ctx, users, asked)
	}
	if chosen.id != fresh {
		if err := p.nobodysYet(ctx, chosen, asked); err != nil {
			return owner{}, false, false, err
		}
	}
	o, made, err = p.enter(ctx, chosen, asked)
	if err == nil {
		err = o.differs(asked)
	}
	return o, made || o.id == fresh, len(users) > 1, vanished(err, chosen.id)
}

// heldBefore returns the first of a tenant's users, ordered by ID, that owns a bucket
// already; the first of all if none is seen to.
func (p *Provider) heldBefore(ctx context.Context, users []user, asked record) user {
	for _, u := range users {
		o := unrecordedOwner(u, "", asked.region)
		o.endpoint = asked.endpoint
		if owned, err := p.owned(ctx, o); err == nil && len(owned) > 0 {
			return u
		}
	}
	return users[0]
}

// nobodysYet refuses a bucket that is named after a claim where the tenant's owner has
// a bucket of that name and has lost the record of whose claim it is for.
func (p *Provider) nobodysYet(ctx context.Context, u user, asked record) error {
	if _, ok, err := p.tenantOwner(u, asked.bucket); err != nil || ok || asked.claim == (provider.ClaimRef{}) {
		return err
	}
	o := unrecordedOwner(u, asked.bucket, asked.region)
	o.endpoint = asked.endpoint
	loc, err := p.locate(ctx, &o)
	if err != nil || loc.state != statePresent && loc.state != stateElsewhere {
		return err
	}
	suffix := bucketSuffix(asked.bucket)
	return refuse(provider.ErrPrecondition, "objects user %s has it and has lost the record of whose claim it is for; "+
		"%s, and then give that user the tags %s and %s with the claim's namespace and name", u.id, repairRemedy, tagNamespace+suffix, tagClaim+suffix)
}

// findOrMakeTenant returns the users that own the tenant's buckets, at least one. If
// there was none, it has made the one with the ID fresh, which records the bucket.
func (p *Provider) findOrMakeTenant(ctx context.Context, asked record) (users []user, fresh string, err error) {
	users, err = p.usersOfTenant(ctx, asked.tenant)
	if err != nil || len(users) > 0 {
		return users, "", err
	}
	tags, err := asked.tags(p.config.DriverName)
	if err != nil {
		return nil, "", err
	}
	u, err := p.createUser(ctx, tenantDisplayName(asked.tenant), tags)
	if err != nil {
		return nil, "", err
	}
	if _, err := u.key(); err != nil {
		return nil, "", p.removeMade(ctx, u.id, err)
	}
	users, err = p.usersOfTenant(ctx, asked.tenant)
	if err == nil && !slices.ContainsFunc(users, func(other user) bool { return other.id == u.id }) {
		err = refuse(provider.ErrConflict, "the owner %s of tenant %q was removed as soon as it was made; repeat the call", u.id, asked.tenant)
	}
	return users, u.id, err
}

// settleTenants ends a state in which several tenants' owners record one bucket, which
// calls leave that made it at the same time. The others lose the record, and those go
// that record nothing else, when one has the bucket, because nobody can make it with
// their keys then. Otherwise it is ErrConflict with the IDs, and a noneHolds if none
// has it.
func (p *Provider) settleTenants(ctx context.Context, bucket string) (owner, error) {
	found, _, err := p.tenantsOf(ctx, bucket)
	if err != nil {
		return owner{}, err
	}
	if len(found) < 2 {
		return p.theTenant(ctx, bucket)
	}
	held := -1
	for i, o := range found {
		owned, err := p.owned(ctx, o)
		switch {
		case ctx.Err() != nil:
			return owner{}, ctx.Err()
		case err != nil:
			return owner{}, ambiguous(found)
		case slices.Contains(owned, bucket):
			held = i
		}
	}
	if held < 0 {
		return owner{}, &noneHolds{ambiguous(found), found}
	}
	for i, o := range found {
		if i == held {
			continue
		}
		if err := p.release(ctx, o); err != nil {
			return owner{}, fmt.Errorf("%w; %s", ambiguous(found), err.Error())
		}
	}
	return found[held], nil
}

// settleMade is settleTenants for a creation, whose repetition restores a record that
// is lost at this moment.
func (p *Provider) settleMade(ctx context.Context, bucket string) (owner, error) {
	o, err := p.settleTenants(ctx, bucket)
	if errors.Is(err, provider.ErrNotFound) {
		return owner{}, refuse(provider.ErrConflict, "another process has written over its record; repeat the call")
	}
	return o, err
}

// keepRecord makes sure, after the bucket was made, that its tenant's owner records it:
// a process that records or releases another bucket at the same time can have written
// over it.
func (p *Provider) keepRecord(ctx context.Context, u user, r record) error {
	if _, ok, err := p.tenantOwner(u, r.bucket); err != nil || ok {
		return err
	}
	unlock, err := p.tenants.lock(ctx, r.tenant)
	if err != nil {
		return err
	}
	defer unlock()
	if u, err = p.getUser(ctx, u.id); err != nil {
		return err
	}
	_, _, err = p.enter(ctx, u, r)
	return err
}

// giveUp removes what a call made for a bucket that it could not make, and returns
// cause as removeMade does. The owner of a tenant goes only with its last bucket.
func (p *Provider) giveUp(ctx context.Context, o owner, cause error) error {
	if o.tenant == "" {
		return p.removeMade(ctx, o.id, cause)
	}
	if errors.Is(cause, provider.ErrQuotaExceeded) {
		cause = fmt.Errorf("%w; objects user %s owns the buckets of tenant %q: %s", cause, o.id, o.tenant, tenantRemedy)
	}
	return p.undo(ctx, cause, "its record with objects user "+o.id, func(ctx context.Context) error {
		owned, err := p.owned(ctx, o)
		if err != nil {
			return sorted(ctx, err)
		}
		if slices.Contains(owned, o.bucket) {
			return nil // another call made it with the same key
		}
		return p.release(ctx, o)
	})
}
