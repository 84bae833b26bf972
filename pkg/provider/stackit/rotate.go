package stackit

import (
	"context"
	"errors"
	"fmt"

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
	unlock, err := p.locks.lock(ctx, locks...)
	if err != nil {
		return none, err
	}
	defer unlock()

	name := groupName(ref.Account)
	var targets []target
	for _, b := range ref.Buckets {
		opened, err := p.open(ctx, b)
		if err != nil {
			return none, fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		e, ok := opened.find(name)
		if !ok || e.pending() {
			return none, refuse(provider.ErrNotFound, "bucket %q: the account has no access to it", b.Name)
		}
		targets = append(targets, target{opened, e.mode})
	}
	e, _ := recordedEntry(targets, name)
	live, err := p.listKeys(ctx, targets[0].Region, e.id)
	if errors.Is(err, provider.ErrNotFound) {
		return none, refuse(provider.ErrNotFound, "its credentials group %s is gone; grant the access anew", e.id)
	}
	if err != nil {
		return none, err
	}
	p.forgetKey(e.id)
	for _, t := range targets {
		if err := p.enforce(ctx, t.bucket); err != nil {
			return none, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	// No other key is given: which of them go is decided below.
	key, err := p.ensureKey(ctx, targets, e, nil)
	if err != nil {
		return none, err
	}
	for _, t := range targets {
		if err := p.confirm(ctx, t, e, key); err != nil {
			return none, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	key.works = true
	p.rememberKey(e.id, key)
	return key.credentials, p.retire(ctx, targets, e, live, key, opts.KeepAccessKeyID)
}

// retire deletes the keys that a rotation has replaced. The list shows only the
// end of access key IDs: what may be the one to keep is kept.
func (p *Provider) retire(ctx context.Context, targets []target, e entry, old []accessKey, key grantedKey, keep string) error {
	var left []string
	for _, k := range old {
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
		if err := p.change(ctx, t.bucket, func(m *marks) { m.put(e.on(t)) }); err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	return nil
}
