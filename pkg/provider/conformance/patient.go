package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// patient repeats calls as a sidecar would while their error asks for it.
type patient struct{ provider.Provider }

// persist runs f until its error asks for no repetition.
func persist[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		v, err := f()
		if !errors.Is(err, provider.ErrConflict) && !errors.Is(err, provider.ErrUnavailable) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("gave up: %w", err)
		case <-time.After(wait):
		}
	}
}

func (p patient) CreateBucket(ctx context.Context, spec provider.BucketSpec) (provider.Bucket, error) {
	return persist(ctx, func() (provider.Bucket, error) { return p.Provider.CreateBucket(ctx, spec) })
}

func (p patient) GetBucket(ctx context.Context, ref provider.BucketRef) (provider.Bucket, error) {
	return persist(ctx, func() (provider.Bucket, error) { return p.Provider.GetBucket(ctx, ref) })
}

func (p patient) DeleteBucket(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	_, err := persist(ctx, func() (struct{}, error) { return struct{}{}, p.Provider.DeleteBucket(ctx, ref, opts) })
	return err
}

func (p patient) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	return persist(ctx, func() (provider.Access, error) { return p.Provider.GrantAccess(ctx, spec) })
}

func (p patient) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	_, err := persist(ctx, func() (struct{}, error) { return struct{}{}, p.Provider.RevokeAccess(ctx, ref) })
	return err
}

func (p patient) RotateAccess(ctx context.Context, ref provider.AccountRef, opts provider.RotateOptions) (provider.Credentials, error) {
	return persist(ctx, func() (provider.Credentials, error) { return p.Provider.RotateAccess(ctx, ref, opts) })
}

func (p patient) RetireKeys(ctx context.Context, ref provider.AccountRef, keepAccessKeyID string) error {
	_, err := persist(ctx, func() (struct{}, error) { return struct{}{}, p.Provider.RetireKeys(ctx, ref, keepAccessKeyID) })
	return err
}

func (p patient) Regions(ctx context.Context) ([]string, error) {
	return persist(ctx, func() ([]string, error) { return p.Provider.Regions(ctx) })
}

// Inventory reads the whole inventory before it yields, so that a repetition
// yields nothing twice.
func (p patient) Inventory(ctx context.Context) iter.Seq2[provider.Resource, error] {
	return func(yield func(provider.Resource, error) bool) {
		all, err := persist(ctx, func() (all []provider.Resource, err error) {
			for r, err := range p.Provider.Inventory(ctx) {
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
			return all, nil
		})
		if err != nil {
			yield(provider.Resource{}, err)
			return
		}
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}
