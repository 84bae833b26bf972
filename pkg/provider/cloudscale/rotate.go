package cloudscale

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// RotateAccess implements provider.Provider. An objects user has one key, which
// the API cannot replace: another user with the same rights takes the place of the
// one before, and COSI goes on calling the account by its first user.
func (p *Provider) RotateAccess(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions) (provider.Credentials, error) {
	key, err := p.rotateAccess(ctx, ref, opts.KeepAccessKeyID)
	if err != nil {
		return provider.Credentials{}, fmt.Errorf("rotate the key of account %q: %w", ref.Account, err)
	}
	return key, nil
}

func (p *Provider) rotateAccess(ctx context.Context, ref provider.AccountRef, keep string) (provider.Credentials, error) {
	none := provider.Credentials{}
	found, refs, unlock, err := p.usersOf(ctx, ref)
	if err != nil {
		return none, err
	}
	defer unlock()
	current, want := successor(found, keep)
	for _, a := range found {
		if a.rotation != want.rotation && !a.holds(keep) {
			if err := p.ownsNothing(ctx, a); err != nil {
				return none, err
			}
		}
	}
	owners := make([]owner, len(refs))
	err = each(ctx, refs, func(i int) error {
		m := want.buckets[refs[i].Name]
		o, ok, err := p.ownerOf(ctx, m)
		if err != nil {
			return err
		}
		if !ok {
			return refuse(provider.ErrNotFound, "the bucket of the access is gone")
		}
		owners[i], err = p.present(ctx, provider.BucketRef{Name: m.bucket, Region: m.region, OwnerID: o.id, AccessOnly: m.theirs})
		return err
	})
	if err != nil {
		return none, within(err, refs)
	}
	a, key, err := p.letIn(ctx, want, owners, refs)
	if err != nil {
		return none, within(err, refs)
	}
	if found, err = p.accessesOf(ctx, want.account); err != nil {
		return none, err
	}
	if err := unchanged(found, current); err != nil {
		return none, cmpError(p.end(ctx, a, everyBucket(a), false), err)
	}
	for _, other := range found {
		if other.id == a.id || other.holds(keep) {
			continue
		}
		if err := p.end(ctx, other, everyBucket(other), false); err != nil {
			return none, err
		}
	}
	return key, nil
}

// unchanged reports what another process has done to the user that is replaced, and
// has not done to the new one, which it did not see.
func unchanged(found []access, was access) error {
	i := slices.IndexFunc(found, func(a access) bool { return a.id == was.id })
	if i < 0 || !found[i].opens("") {
		return refuse(provider.ErrNotFound, "the access was revoked meanwhile")
	}
	names := slices.Concat(was.names(), found[i].names())
	if slices.ContainsFunc(names, func(b string) bool { return was.buckets[b].alive() != found[i].buckets[b].alive() }) {
		return refuse(provider.ErrConflict, "its buckets have changed meanwhile; repeat the call")
	}
	return nil
}

// RetireKeys implements provider.Provider: it ends the users of the account but
// the one whose key is named.
func (p *Provider) RetireKeys(ctx context.Context, ref provider.AccountRef, keepAccessKeyID string) error {
	if err := p.retireKeys(ctx, ref, keepAccessKeyID); err != nil {
		return fmt.Errorf("retire keys of account %q: %w", ref.Account, err)
	}
	return nil
}

func (p *Provider) retireKeys(ctx context.Context, ref provider.AccountRef, keep string) error {
	found, _, unlock, err := p.usersOf(ctx, ref)
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.ContainsFunc(found, func(a access) bool { return a.holds(keep) && a.opens("") }) {
		return refuse(provider.ErrNotFound, "key %s, which is to stay, is none of its keys; none was ended", keep)
	}
	others := slices.DeleteFunc(found, func(a access) bool { return a.holds(keep) })
	for _, a := range others {
		if err := p.ownsNothing(ctx, a); err != nil {
			return err
		}
	}
	for _, a := range others {
		if err := p.end(ctx, a, everyBucket(a), false); err != nil {
			return err
		}
	}
	return nil
}

// usersOf returns the users of an account that has access to something, and what
// the one that is handed out has access to. It takes the locks of every bucket
// that any of them knows.
func (p *Provider) usersOf(ctx context.Context, ref provider.AccountRef) (found []access, refs []provider.BucketRef, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, err
	}
	if ref.Account == "" {
		return nil, nil, nil, refuse(provider.ErrInvalidArgument, "the account name is empty")
	}
	read := func() (all []provider.BucketRef, err error) {
		if found, err = p.accessesOf(ctx, accountTag(ref.Account)); err != nil {
			return nil, err
		}
		refs = nil
		for _, a := range found {
			all = append(all, everyBucket(a)...)
		}
		current := inForce(found)
		for _, b := range everyBucket(current) {
			if current.buckets[b.Name].alive() {
				refs = append(refs, b)
			}
		}
		if len(refs) == 0 {
			return nil, refuse(provider.ErrNotFound, "it has no access; it was revoked, or never granted")
		}
		return all, nil
	}
	locked, err := read()
	if err != nil {
		return nil, nil, nil, err
	}
	if unlock, err = p.lockBuckets(ctx, locked); err != nil {
		return nil, nil, nil, err
	}
	all, err := read()
	if err == nil && slices.ContainsFunc(all, func(b provider.BucketRef) bool { return !slices.Contains(locked, b) }) {
		err = refuse(provider.ErrConflict, "a grant is adding buckets to it; repeat the call")
	}
	if err != nil {
		unlock()
		return nil, nil, nil, err
	}
	return found, refs, unlock, nil
}

// inForce returns the one of an account's users that is handed out and has access
// to something; the zero access if none has.
func inForce(found []access) access {
	current, _ := preferred(slices.DeleteFunc(slices.Clone(found), func(a access) bool { return !a.opens("") }))
	return current
}

// successor returns the user that the account has, and the one that is to take
// its place. One that a rotation before has made, and whose key was not delivered
// because another one is to be kept, is taken up.
func successor(found []access, keep string) (current, want access) {
	current = inForce(found)
	latest, kept := current, access{rotation: -1}
	for _, a := range found {
		if a.rotation > latest.rotation {
			latest = a
		}
		if a.holds(keep) {
			kept = a
		}
	}
	want = access{account: current.account, own: current.own, rotation: latest.rotation + 1, first: current.identity(), buckets: map[string]membership{}}
	if kept.id != "" && latest.rotation > kept.rotation {
		want.rotation = latest.rotation
	}
	for name, m := range current.buckets {
		if m.alive() {
			m.stage, m.uid = stageNew, ""
			want.buckets[name] = m
		}
	}
	return current, want
}

// holds reports whether a key is the user's.
func (a access) holds(accessKeyID string) bool {
	return accessKeyID != "" && slices.ContainsFunc(a.keys, func(k keyPair) bool { return k.id == accessKeyID })
}

// everyBucket names the buckets of an access.
func everyBucket(a access) []provider.BucketRef {
	var refs []provider.BucketRef
	for _, name := range a.names() {
		refs = append(refs, provider.BucketRef{Name: name, Region: a.buckets[name].region})
	}
	return refs
}

// ownsNothing refuses to give up a user that has made buckets with its key: they
// would go with it, or hold it.
func (p *Provider) ownsNothing(ctx context.Context, a access) error {
	if !a.usable() {
		return nil // its key was never given out
	}
	home, err := p.homeOf(ctx, a)
	if err != nil {
		return err
	}
	var who s3.Identity
	err = p.withKey(ctx, home, &a.user, func(c *s3.Client) (err error) {
		who, err = c.WhoAmI(ctx)
		return err
	})
	switch {
	case err != nil:
		return sorted(ctx, err)
	case len(who.Buckets) > 0:
		return refuse(provider.ErrPrecondition, "the buckets %s were made with a key that would go, and belong to its objects user %s; "+
			"move what they hold, delete them and repeat the call", strings.Join(who.Buckets, ", "), a.id)
	}
	return nil
}
