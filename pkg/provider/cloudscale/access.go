package cloudscale

import (
	"context"
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// GrantAccess implements provider.Provider. It hands out the key of the bucket's
// owner, after it works at the bucket's endpoint.
func (p *Provider) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	a, err := p.grantAccess(ctx, spec)
	if err != nil {
		return provider.Access{}, fmt.Errorf("grant access to account %q: %w", spec.Account, err)
	}
	return a, nil
}

func (p *Provider) grantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	if err := ctx.Err(); err != nil {
		return provider.Access{}, err
	}
	switch {
	case spec.Account == "":
		return provider.Access{}, refuse(provider.ErrInvalidArgument, "the account name is empty")
	case len(spec.Buckets) == 0:
		return provider.Access{}, refuse(provider.ErrInvalidArgument, "no bucket is named")
	case len(spec.Buckets) > 1:
		return provider.Access{}, refuse(provider.ErrUnsupported,
			"one access cannot span %d buckets here, because each bucket has a key of its own; make one access per bucket", len(spec.Buckets))
	}
	b := spec.Buckets[0]
	switch b.Mode {
	case "", provider.ReadWrite:
	case provider.ReadOnly, provider.WriteOnly:
		return provider.Access{}, refuse(provider.ErrUnsupported,
			"bucket %q: mode %s cannot be enforced with the owner's key; use %s", b.Name, b.Mode, provider.ReadWrite)
	default:
		return provider.Access{}, refuse(provider.ErrInvalidArgument, "bucket %q: mode %q is not one of %s, %s, %s",
			b.Name, b.Mode, provider.ReadWrite, provider.ReadOnly, provider.WriteOnly)
	}
	return p.grantShared(ctx, b.BucketRef)
}

// grantShared returns the owner's key as the access.
func (p *Provider) grantShared(ctx context.Context, ref provider.BucketRef) (provider.Access, error) {
	o, err := p.present(ctx, ref)
	if err != nil {
		return provider.Access{}, fmt.Errorf("bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	key, err := o.key()
	if err != nil {
		return provider.Access{}, err
	}
	return provider.Access{
		IdentityID:  o.id,
		Credentials: provider.Credentials{AccessKeyID: key.id, SecretAccessKey: key.secret},
		Buckets:     []provider.Bucket{p.bucket(o)},
	}, nil
}

// RevokeAccess implements provider.Provider. The shared key stays valid until
// its bucket goes; what is named must carry the mark if it exists.
func (p *Provider) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	if err := p.revokeShared(ctx, ref); err != nil {
		return fmt.Errorf("revoke access of account %q: %w", ref.Account, err)
	}
	return nil
}

func (p *Provider) revokeShared(ctx context.Context, ref provider.AccountRef) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, b := range ref.Buckets {
		if err := checkRef(b); err != nil {
			return err
		}
		_, err := p.resolve(ctx, b)
		if err == nil || errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrConflict) {
			continue
		}
		return fmt.Errorf("bucket %q in region %q: %w", b.Name, b.Region, err)
	}
	if ref.IdentityID == "" {
		return nil
	}
	return p.checkIdentity(ctx, ref.IdentityID)
}

// checkIdentity refuses an objects user that exists without our mark.
func (p *Provider) checkIdentity(ctx context.Context, id string) error {
	if !userIDPattern.MatchString(id) {
		return refuse(provider.ErrInvalidArgument, "identity %q is malformed", id)
	}
	u, err := p.getUser(ctx, id)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err == nil && u.tags[tagManagedBy] != p.config.DriverName {
		return refuse(provider.ErrPermissionDenied, "objects user %s does not carry the mark of driver %s", id, p.config.DriverName)
	}
	return err
}

// RotateAccess implements provider.Provider: an objects user has exactly one key,
// and the API cannot replace it.
func (p *Provider) RotateAccess(ctx context.Context, ref provider.AccountRef, _ provider.RotateOptions) (provider.Credentials, error) {
	if err := ctx.Err(); err != nil {
		return provider.Credentials{}, err
	}
	return provider.Credentials{}, refuse(provider.ErrUnsupported,
		"rotate access of account %q: cloudscale.ch cannot replace a bucket owner's key", ref.Account)
}
