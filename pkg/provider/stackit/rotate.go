package stackit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// RotateAccess implements provider.Provider.
func (p *Provider) RotateAccess(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions) (provider.Credentials, error) {
	key, err := p.rotate(ctx, ref, opts)
	if err != nil {
		return provider.Credentials{}, fmt.Errorf("rotate the key of account %q: %w", ref.Account, err)
	}
	return key, nil
}

func (p *Provider) rotate(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions) (provider.Credentials, error) {
	none := provider.Credentials{}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	var key provider.Credentials
	err := p.lockedAccess(ctx, ref, func(held []string) (err error) {
		key, err = p.rotateLocked(ctx, ref, opts, held)
		return err
	})
	return key, err
}

// lockedAccess runs f under the locks of the account and of the buckets.
func (p *Provider) lockedAccess(ctx context.Context, ref provider.AccountRef, f func(held []string) error) error {
	spec := provider.AccessSpec{Account: ref.Account}
	for _, b := range ref.Buckets {
		spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: b})
	}
	locks, err := p.checkSpec(spec)
	if err != nil {
		return err
	}
	return p.underLocks(ctx, locks, f)
}

// rotateLocked runs under the locks of the account and of the buckets.
func (p *Provider) rotateLocked(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions, held []string) (provider.Credentials, error) {
	none := provider.Credentials{}
	a, err := p.liveKeys(ctx, ref, held)
	if err != nil {
		return none, err
	}
	w, e := a.whole, a.entry
	for _, t := range w.targets {
		if err := p.restore(ctx, t.bucket); err != nil {
			return none, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	p.forgetHandedOut(e.id)
	key, err := p.ensureKey(ctx, w.targets, e, a.live, minting{rotation: true, keep: opts.KeepAccessKeyID})
	if err != nil {
		return none, err
	}
	if err := p.confirm(ctx, w, len(a.asked), e, key); err != nil {
		return none, err
	}
	// Until the others are gone the next attempt goes on with this key.
	if err := p.retire(ctx, w.targets, e, a.live, key, opts.KeepAccessKeyID); err != nil {
		return none, err
	}
	key.works, key.rotating = true, false
	p.rememberKey(e.id, key)
	return key.credentials, nil
}

// restore makes the bucket's policy the one of its ledger. Where it had to write, it
// reads the ledger again: a revocation in another process may have come between.
func (p *Provider) restore(ctx context.Context, b *bucket) error {
	if err := p.enforce(ctx, b); err != nil || !b.written {
		return err
	}
	if err := p.reread(ctx, b); err != nil {
		return err
	}
	return p.settle(ctx, b)
}

// liveAccess is an access that is in force, with the keys of its group.
type liveAccess struct {
	whole
	asked []target // the buckets of the reference
	entry entry
	live  []accessKey
}

// liveKeys reads what is recorded of an access that is in force in all the buckets
// of the reference, and lists the keys of its group.
func (p *Provider) liveKeys(ctx context.Context, ref provider.AccountRef, held []string) (a liveAccess, err error) {
	name := groupName(ref.Account)
	for _, b := range ref.Buckets {
		opened, err := p.openRecorded(ctx, b)
		if err != nil {
			return a, fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		found, ok := opened.find(name)
		if !ok || found.pending() || found.mode == modeEnded {
			return a, refuse(provider.ErrNotFound, "bucket %q: the account has no access to it", b.Name)
		}
		a.asked = append(a.asked, target{opened, found.mode})
	}
	if a.whole, err = p.whole(ctx, name, a.asked, held); err != nil {
		return a, err
	}
	var gone []string
	if a.entry, a.live, gone, err = p.recordedGroup(ctx, a.whole, true); err != nil {
		return a, err
	}
	for _, id := range gone {
		p.forgetKey(id)
	}
	if a.entry.pending() {
		err = refuse(provider.ErrNotFound, "its credentials group %s is gone; grant the access anew", strings.Join(gone, ", "))
	}
	return a, err
}

// retire deletes the keys that a rotation has replaced. The list shows only the
// end of access key IDs: what may be the one to keep is kept.
func (p *Provider) retire(ctx context.Context, targets []target, e entry, old []accessKey, key grantedKey, keep string) error {
	mine := func(k accessKey) bool { return k.id == key.id }
	live := append(slices.DeleteFunc(slices.Clone(old), mine), accessKey{id: key.id})
	return p.keepOnly(ctx, targets, e, live, func(k accessKey) bool { return mine(k) || keep != "" && maskedAs(k, keep) })
}

// keepOnly deletes the live keys but those that are kept, and records these in the
// order of the list.
func (p *Provider) keepOnly(ctx context.Context, targets []target, e entry, live []accessKey, kept func(accessKey) bool) error {
	e.keys = nil
	for _, k := range live {
		if kept(k) {
			e.keys = append(e.keys, fingerprint(k.id))
			continue
		}
		if err := p.deleteKey(ctx, targets[0].Region, e.id, k.id); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if err := p.amend(ctx, t.bucket, func(m *marks) { m.renew(e.on(t)) }); err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	return nil
}
