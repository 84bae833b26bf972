package stackit

import (
	"context"
	"fmt"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// RetireKeys implements provider.Provider. The list of keys shows only the end of
// access key IDs: every key that may be the one to keep is kept.
func (p *Provider) RetireKeys(ctx context.Context, ref provider.AccountRef, keepAccessKeyID string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := p.lockedAccess(ctx, ref, func(held []string) error { return p.retireLocked(ctx, ref, keepAccessKeyID, held) })
	if err != nil {
		return fmt.Errorf("retire keys of account %q: %w", ref.Account, err)
	}
	return nil
}

func (p *Provider) retireLocked(ctx context.Context, ref provider.AccountRef, keep string, held []string) error {
	a, err := p.liveKeys(ctx, ref, held)
	if err != nil {
		return err
	}
	kept := func(k accessKey) bool { return maskedAs(k, keep) }
	if keep == "" || !slices.ContainsFunc(a.live, kept) {
		return refuse(provider.ErrNotFound, "key %q, which is to stay, is none of its keys; none was ended", keep)
	}
	if known, _ := p.knownKey(a.entry.id); known.credentials.AccessKeyID == keep {
		known.rotating = false
		p.rememberKey(a.entry.id, known)
	} else {
		p.forgetKey(a.entry.id)
	}
	return p.keepOnly(ctx, a.targets, a.entry, a.live, kept)
}
