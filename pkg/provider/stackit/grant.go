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
func (p *Provider) GrantAccess(ctx context.Context, spec provider.AccessSpec) (access provider.Access, err error) {
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
	err = p.underLocks(ctx, keys, func(held []string) error {
		for try := 1; ; try++ {
			access, err = p.grant(ctx, spec, held)
			var gone *unknownKey
			switch {
			case !errors.As(err, &gone):
				return err
			case try == grantTries:
				return refuse(provider.ErrConflict, "%s; another process deletes it; repeat the call", gone)
			}
		}
	})
	if err != nil {
		return fail(err)
	}
	return access, nil
}

func bucketNames(buckets []provider.BucketAccess) string {
	names := make([]string, 0, len(buckets))
	for _, b := range buckets {
		names = append(names, fmt.Sprintf("bucket %q in region %q", b.Name, b.Region))
	}
	return strings.Join(names, " and ")
}

// checkSpec validates what GrantAccess is asked for and returns the keys of the
// locks of the account and its buckets.
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
			return nil, refuse(provider.ErrInvalidArgument, "a key works in one region only, and bucket %q is in %q, bucket %q in %q; use one access for each region",
				spec.Buckets[0].Name, spec.Buckets[0].Region, b.Name, b.Region)
		}
		if b.Mode != "" && len(actionsOf(b.Mode)) == 0 {
			return nil, refuse(provider.ErrInvalidArgument, "mode %q is not one of %v", b.Mode, modes())
		}
		if slices.Contains(keys, bucketKey(b.BucketRef)) {
			return nil, refuse(provider.ErrInvalidArgument, "bucket %q is named twice", b.Name)
		}
		keys = append(keys, bucketKey(b.BucketRef))
	}
	return append(keys, accountKey(groupName(spec.Account))), nil
}

// target is a bucket of an access with the mode asked for, or recorded if it is
// not asked for.
type target struct {
	*bucket
	mode provider.Mode
}

// grant runs under the locks of the account and of the buckets.
func (p *Provider) grant(ctx context.Context, spec provider.AccessSpec, held []string) (provider.Access, error) {
	none := provider.Access{}
	var targets []target
	for _, b := range spec.Buckets {
		opened, err := p.open(ctx, b.BucketRef)
		if err != nil {
			return none, fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		mode := b.Mode
		if mode == "" {
			mode = provider.ReadWrite
		}
		targets = append(targets, target{opened, mode})
	}
	w, err := p.whole(ctx, groupName(spec.Account), targets, held)
	if err != nil {
		return none, err
	}
	e, live, err := p.ensureGroup(ctx, w)
	if err != nil {
		return none, err
	}
	for _, t := range w.targets {
		if err := p.admit(ctx, t, e); err != nil {
			return none, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	key, err := p.ensureKey(ctx, w.targets, e, live, minting{})
	if err != nil {
		return none, err
	}
	if err := p.confirm(ctx, w, len(targets), e, key); err != nil {
		return none, err
	}
	access := provider.Access{IdentityID: e.id, Credentials: key.credentials}
	for _, t := range targets {
		access.Buckets = append(access.Buckets, t.describe())
	}
	key.works, key.rotating = true, false
	p.rememberKey(e.id, key)
	return access, nil
}

// admit lets the access into the bucket, with what its mode allows. The policy is
// rendered from the ledger as it will be; a crash here leaves it to the next
// attempt, which finds the announced group.
func (p *Provider) admit(ctx context.Context, t target, e entry) error {
	if !t.AccessOnly {
		t.put(e.on(t))
		return p.enforce(ctx, t.bucket)
	}
	if err := p.record(ctx, t, e, e.keys, false, false); err != nil {
		return err
	}
	return t.admits(e, t.mode)
}

// confirm waits until the key works on those of the buckets that were asked for,
// the first ones. Whatever was written, another process may have written over it, or
// it over what another one wrote: it looks once more at each such bucket.
func (p *Provider) confirm(ctx context.Context, w whole, asked int, e entry, key grantedKey) error {
	for i, t := range w.targets {
		var err error
		if i < asked {
			err = p.await(ctx, t.describe(), key)
		}
		if err == nil && (t.written || !key.works) {
			err = p.stands(ctx, t, e)
		}
		if err != nil {
			var gone *unknownKey
			if errors.As(err, &gone) {
				p.forgetKey(e.id)
			}
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	return nil
}

// stands checks that the policy is the ledger's and that the access stands in it.
func (p *Provider) stands(ctx context.Context, t target, e entry) error {
	if err := p.reread(ctx, t.bucket); err != nil {
		return err
	}
	if err := p.settle(ctx, t.bucket); err != nil {
		return err
	}
	if !t.inForce(e.on(t)) {
		return refuse(provider.ErrConflict, "another process has ended the access or written over its tags; repeat the call")
	}
	return nil
}
