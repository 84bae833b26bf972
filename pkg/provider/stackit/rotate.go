package stackit

import (
	"context"
	"fmt"
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
	spec := provider.AccessSpec{Account: ref.Account}
	for _, b := range ref.Buckets {
		spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: b})
	}
	locks, err := p.checkSpec(spec)
	if err != nil {
		return none, err
	}
	var key provider.Credentials
	err = p.underLocks(ctx, locks, func(held []string) error {
		key, err = p.rotateLocked(ctx, ref, opts, held)
		return err
	})
	return key, err
}

// rotateLocked runs under the locks of the account and of the buckets.
func (p *Provider) rotateLocked(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions, held []string) (provider.Credentials, error) {
	none := provider.Credentials{}
	name := groupName(ref.Account)
	var targets []target
	for _, b := range ref.Buckets {
		opened, err := p.openRecorded(ctx, b)
		if err != nil {
			return none, fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		e, ok := opened.find(name)
		if !ok || e.pending() || e.mode == modeEnded {
			return none, refuse(provider.ErrNotFound, "bucket %q: the account has no access to it", b.Name)
		}
		targets = append(targets, target{opened, e.mode})
	}
	w, err := p.whole(ctx, name, targets, held)
	if err != nil {
		return none, err
	}
	for _, t := range targets {
		e, _ := t.find(name)
		p.forgetHandedOut(e.id)
	}
	e, live, gone, err := p.recordedGroup(ctx, w)
	if err != nil {
		return none, err
	}
	if e.pending() {
		return none, refuse(provider.ErrNotFound, "its credentials group %s is gone; grant the access anew", strings.Join(gone, ", "))
	}
	for _, t := range w.targets {
		if err := p.enforce(ctx, t.bucket); err != nil {
			return none, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	if live == nil {
		// Where a rotation is gone on with, nobody has looked yet.
		if live, err = p.listKeys(ctx, w.region, e.id); err != nil {
			return none, err
		}
	}
	key, err := p.ensureKey(ctx, w.targets, e, live, minting{rotation: true, keep: opts.KeepAccessKeyID})
	if err != nil {
		return none, err
	}
	if err := p.confirm(ctx, w, len(targets), e, key); err != nil {
		return none, err
	}
	key.works, key.rotating = true, false
	p.rememberKey(e.id, key)
	return key.credentials, p.retire(ctx, w.targets, e, live, key, opts.KeepAccessKeyID)
}

// retire deletes the keys that a rotation has replaced. The list shows only the
// end of access key IDs: what may be the one to keep is kept.
func (p *Provider) retire(ctx context.Context, targets []target, e entry, old []accessKey, key grantedKey, keep string) error {
	var left []string
	for _, k := range old {
		if k.id == key.id {
			continue
		}
		if keep != "" && maskedAs(k, keep) {
			left = append(left, fingerprint(k.id))
			continue
		}
		if err := p.deleteKey(ctx, targets[0].Region, e.id, k.id); err != nil {
			return err
		}
	}
	e.keys = append(left, fingerprint(key.id))
	for _, t := range targets {
		if err := p.amend(ctx, t.bucket, func(m *marks) { m.put(e.on(t)) }); err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	return nil
}
