package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// grantTries is how often a grant begins anew when what it relied on vanished.
const grantTries = 3

// GrantAccess implements provider.Provider.
func (p *Provider) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	fail := func(err error) (provider.Access, error) {
		return provider.Access{}, fmt.Errorf("grant account %q access to %s: %w", spec.Account, bucketNames(spec.Buckets), err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	keys, err := p.checkSpec(spec)
	if err != nil {
		return fail(err)
	}
	unlock, err := p.locks.lock(ctx, keys...)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	for try := 1; ; try++ {
		access, err := p.grant(ctx, spec)
		var gone *unknownKey
		switch {
		case err == nil:
			return access, nil
		case !errors.As(err, &gone):
			return fail(err)
		case try == grantTries:
			return fail(refuse(provider.ErrConflict, "%s; another process deletes it; repeat the call", gone))
		}
	}
}

func bucketNames(buckets []provider.BucketAccess) string {
	names := make([]string, 0, len(buckets))
	for _, b := range buckets {
		names = append(names, fmt.Sprintf("bucket %q in region %q", b.Name, b.Region))
	}
	return strings.Join(names, " and ")
}

// checkSpec validates what GrantAccess is asked for and returns the keys of the
// buckets' locks.
func (p *Provider) checkSpec(spec provider.AccessSpec) (keys []string, err error) {
	if spec.Account == "" {
		return nil, refuse(provider.ErrInvalidArgument, "the account has no name")
	}
	if len(spec.Buckets) == 0 {
		return nil, refuse(provider.ErrInvalidArgument, "no bucket is named")
	}
	switch spec.Credentials {
	case "", provider.CredentialsPerAccess:
	case provider.CredentialsShared:
		return nil, refuse(provider.ErrUnsupported, "credentials %s: every access to STACKIT Object Storage has a key of its own; "+
			"set the BucketAccessClass parameter credentials to %s, or leave it out", spec.Credentials, provider.CredentialsPerAccess)
	default:
		return nil, refuse(provider.ErrInvalidArgument, "credentials %q is not %s", spec.Credentials, provider.CredentialsPerAccess)
	}
	for _, b := range spec.Buckets {
		if err := p.checkRef(b.BucketRef); err != nil {
			return nil, err
		}
		if b.Region != spec.Buckets[0].Region {
			return nil, refuse(provider.ErrUnsupported, "a key works in one region only, and the buckets are in %q and %q; use one access for each region",
				spec.Buckets[0].Region, b.Region)
		}
		if b.Mode != "" && len(actionsOf(b.Mode)) == 0 {
			return nil, refuse(provider.ErrInvalidArgument, "mode %q is not one of %v", b.Mode, modes())
		}
		if slices.Contains(keys, bucketKey(b.BucketRef)) {
			return nil, refuse(provider.ErrInvalidArgument, "bucket %q is named twice", b.Name)
		}
		keys = append(keys, bucketKey(b.BucketRef))
	}
	return keys, nil
}

// target is a bucket of an access with the mode asked for.
type target struct {
	*bucket
	mode provider.Mode
}

// grant runs under the locks of the buckets.
func (p *Provider) grant(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	var targets []target
	for _, b := range spec.Buckets {
		opened, err := p.open(ctx, b.BucketRef)
		if err != nil {
			return provider.Access{}, fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		mode := b.Mode
		if mode == "" {
			mode = provider.ReadWrite
		}
		targets = append(targets, target{opened, mode})
	}
	name := groupName(spec.Account)
	e, live, err := p.ensureGroup(ctx, targets, name)
	if err != nil {
		return provider.Access{}, err
	}
	for _, t := range targets {
		// The policy is rendered from the ledger as it will be; a crash here
		// leaves it to the next attempt, which finds the announced group.
		t.put(e.on(t))
		if err := p.enforce(ctx, t.bucket); err != nil {
			return provider.Access{}, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	key, err := p.ensureKey(ctx, targets, e, live)
	if err != nil {
		return provider.Access{}, err
	}
	access := provider.Access{IdentityID: e.id, Credentials: key.credentials}
	for _, t := range targets {
		if err := p.confirm(ctx, t, e, key); err != nil {
			return provider.Access{}, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
		access.Buckets = append(access.Buckets, t.describe())
	}
	key.works = true
	p.rememberKey(e.id, key)
	return access, nil
}

// confirm waits until the key works on the bucket. After the wait, which is long
// enough for another process to have written over the ledger, it looks once more
// whether the access stands in it.
func (p *Provider) confirm(ctx context.Context, t target, e entry, key grantedKey) error {
	err := p.await(ctx, t.describe(), key)
	if err != nil || key.works {
		var gone *unknownKey
		if errors.As(err, &gone) {
			p.forgetKey(e.id)
		}
		return err
	}
	if err := p.reread(ctx, t.bucket); err != nil {
		return err
	}
	if found, ok := t.find(e.name); !ok || found.id != e.id {
		return refuse(provider.ErrConflict, "another process has written over its tags; repeat the call")
	}
	return p.settle(ctx, t.bucket)
}

// on returns the entry as the ledger of the target shall hold it.
func (e entry) on(t target) entry {
	e.mode = t.mode
	return e
}

// room checks, before anything is made, that a complete entry fits into the
// target's ledger and policy.
func (p *Provider) room(t target, e entry) error {
	m := t.marks
	m.drop(e.name)
	if e.pending() {
		// A group's URN has the admin's length, or nearly.
		e.id, e.urn = dashed(strings.Repeat("0", 32)), t.adminURN+"-"
	}
	m.put(e.on(t))
	if _, err := m.encode(p.config.DriverName, t.Name, t.adminURN); err != nil {
		return err
	}
	members := m.members()
	return checkPolicySize(render(t.Name, t.adminURN, members), len(members))
}

// ensureGroup makes sure that the access has a credentials group, and that it
// stands in the ledger of every bucket before it is made. It returns the entry,
// with the keys that any of the ledgers records, and the group's live keys if it
// had to look.
func (p *Provider) ensureGroup(ctx context.Context, targets []target, name string) (e entry, live []accessKey, err error) {
	recorded, known := recordedEntry(targets, name)
	region := targets[0].Region
	if known && !recorded.pending() {
		recorded.spans = recorded.spans || len(targets) > 1
		if _, cached := p.knownKey(recorded.id); cached {
			return recorded, nil, nil
		}
		live, err = p.listKeys(ctx, region, recorded.id)
		if !errors.Is(err, provider.ErrNotFound) {
			return recorded, live, err
		}
		// Somebody has deleted the group; a new one takes its place.
	}
	e = entry{name: name, spans: recorded.spans || len(targets) > 1}
	for _, t := range targets {
		full := e
		full.keys = slices.Repeat([]string{fingerprint("")}, maxKeys)
		if err := p.room(t, full); err != nil {
			return entry{}, nil, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
		if err := p.announceAccess(ctx, t, e.on(t), recorded.id); err != nil {
			return entry{}, nil, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	found, err := p.madeBefore(ctx, region, name, known)
	if err != nil {
		return entry{}, nil, err
	}
	for _, g := range found {
		live, err = p.listKeys(ctx, region, g.id)
		if errors.Is(err, provider.ErrNotFound) {
			// The list still shows what is gone.
			continue
		}
		e.id, e.urn = g.id, g.urn
		return e, live, err
	}
	made, err := p.createGroup(ctx, region, name)
	if err != nil {
		if refused(err) && !errors.Is(err, provider.ErrConflict) {
			p.unannounce(ctx, targets, name)
		}
		return entry{}, nil, err
	}
	p.rememberGroup(region, made)
	e.id, e.urn = made.id, made.urn
	return e, nil, nil
}

// announceAccess puts an entry without a group into the ledger of the target. It
// does not replace a complete one, unless that is of the dead group.
func (p *Provider) announceAccess(ctx context.Context, t target, e entry, dead string) error {
	err := p.change(ctx, t.bucket, func(m *marks) {
		if there, ok := m.find(e.name); !ok || there.pending() || there.id == dead {
			m.put(e)
		}
	})
	if err != nil {
		return err
	}
	if there, _ := t.find(e.name); !there.pending() {
		return refuse(provider.ErrConflict, "another process grants the same access at this moment; repeat the call")
	}
	return nil
}

// madeBefore returns the groups of the access that may exist already: the one
// that this process has made, or else, if the access was announced before, those
// that the list shows under its name.
func (p *Provider) madeBefore(ctx context.Context, region, name string, announced bool) ([]group, error) {
	if g, ok := p.knownGroup(region, name); ok {
		return []group{g}, nil
	}
	if !announced {
		return nil, nil
	}
	return p.groupsNamed(ctx, region, name, true)
}

// unannounce takes an access whose group the API has refused out of the ledgers
// again. An entry left behind costs the next attempt a look at the list.
func (p *Provider) unannounce(ctx context.Context, targets []target, name string) {
	for _, t := range targets {
		_ = p.change(ctx, t.bucket, func(m *marks) { m.drop(name) })
	}
}

// recordedEntry returns the entry of that name, the complete one if there is one,
// with the keys of all ledgers.
func recordedEntry(targets []target, name string) (e entry, known bool) {
	for _, t := range targets {
		found, ok := t.find(name)
		if ok && (!known || e.pending()) {
			e = found
		}
		known = known || ok
	}
	return e, known
}

// ensureKey returns the key of the access: the one that this process has minted,
// or a new one. The new one, and which others are left, are in the ledgers before
// it returns.
func (p *Provider) ensureKey(ctx context.Context, targets []target, e entry, live []accessKey) (grantedKey, error) {
	key, cached := p.knownKey(e.id)
	var remove []accessKey
	before := e.keys
	if !cached {
		for _, t := range targets {
			more := e
			more.keys = append(e.keys[:len(e.keys):len(e.keys)], fingerprint(""))
			if err := p.room(t, more); err != nil {
				return grantedKey{}, fmt.Errorf("bucket %q: %w", t.Name, err)
			}
		}
		minted, err := p.mintKey(ctx, targets[0].Region, e.id, 0)
		if errors.Is(err, provider.ErrNotFound) {
			err = refuse(provider.ErrConflict, "its credentials group %s was deleted at this moment; repeat the call", e.id)
		}
		if err != nil {
			return grantedKey{}, err
		}
		key = grantedKey{mintedKey: minted}
		p.rememberKey(e.id, key)
		recorded := append(e.keys[:len(e.keys):len(e.keys)], fingerprint(minted.id))
		remove, e.keys = surplus(recorded, append(live, accessKey{id: minted.id}))
	}
	for _, t := range targets {
		if err := p.record(ctx, t, e, before, !cached); err != nil {
			return grantedKey{}, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	for _, k := range remove {
		if err := p.deleteKey(ctx, targets[0].Region, e.id, k.id); err != nil {
			return grantedKey{}, err
		}
	}
	return key, nil
}

// record puts the entry, whose keys were before, into the ledger of the target.
// The keys that another process has recorded since then stay. If stale is true
// some time has passed since the tags were read, so they are read again: what
// others wrote meanwhile would be lost.
func (p *Provider) record(ctx context.Context, t target, e entry, before []string, stale bool) error {
	if stale {
		if err := p.reread(ctx, t.bucket); err != nil {
			return err
		}
	}
	return p.change(ctx, t.bucket, func(m *marks) {
		merged := e.on(t)
		if there, ok := m.find(e.name); ok && there.id == e.id {
			others := slices.DeleteFunc(slices.Clone(there.keys), func(f string) bool {
				return slices.Contains(e.keys, f) || slices.Contains(before, f)
			})
			merged.keys = append(others, e.keys...)
		}
		m.put(merged)
	})
}
