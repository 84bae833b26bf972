package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func grantWorks(ctx context.Context, s *session) error {
	b, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	a, err := s.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	again, err := s.grantAccount(ctx, b, a.ref.Account, provider.ReadWrite)
	if err != nil {
		return err
	}
	if again.IdentityID != a.IdentityID || again.Credentials != a.Credentials {
		return errors.New("a repeated GrantAccess returned another identity or key")
	}
	const key = "a folder/ä key"
	if err := a.client.PutObject(ctx, b.Name, key, []byte("content")); err != nil {
		return fmt.Errorf("put with the granted key: %w", err)
	}
	if err := holds(ctx, a.client, b.Name, key, "content"); err != nil {
		return fmt.Errorf("get with the granted key: %w", err)
	}
	if err := lists(ctx, a.client, b.Name, key); err != nil {
		return fmt.Errorf("list with the granted key: %w", err)
	}
	if err := a.client.DeleteObject(ctx, b.Name, key); err != nil {
		return fmt.Errorf("delete with the granted key: %w", err)
	}
	if err := lists(ctx, a.client, b.Name); err != nil {
		return fmt.Errorf("list after delete: %w", err)
	}
	return nil
}

func grantMissing(ctx context.Context, s *session) error {
	name := s.name()
	_, err := s.GrantAccess(ctx, provider.AccessSpec{
		Account: "ba-missing",
		Buckets: []provider.BucketAccess{{BucketRef: provider.BucketRef{Name: name, Region: s.o.Region}}},
	})
	if err := want("GrantAccess to a missing bucket", err, provider.ErrNotFound); err != nil {
		return err
	}
	return s.remains(ctx, name)
}

func revokeIdempotent(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	for range 2 {
		if err := s.RevokeAccess(ctx, a.ref); err != nil {
			return fmt.Errorf("RevokeAccess: %w", err)
		}
	}
	if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{}); err != nil {
		return fmt.Errorf("DeleteBucket: %w", err)
	}
	if err := s.RevokeAccess(ctx, a.ref); err != nil {
		return fmt.Errorf("RevokeAccess after the bucket is gone: %w", err)
	}
	return nil
}

// atOnce is how long a call that does nothing may take on a busy machine.
const atOnce = 2 * time.Second

// cancelledReturns calls every method with a context that has ended.
func cancelledReturns(ctx context.Context, s *session) error {
	b, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	ref := provider.AccountRef{Account: "ba-cancelled", Buckets: []provider.BucketRef{b.BucketRef}}
	calls := map[string]func() error{
		"CreateBucket": func() error { _, err := s.CreateBucket(dead, s.spec(b.Name)); return err },
		"GetBucket":    func() error { _, err := s.GetBucket(dead, b.BucketRef); return err },
		"DeleteBucket": func() error { return s.DeleteBucket(dead, b.BucketRef, provider.DeleteOptions{}) },
		"GrantAccess": func() error {
			_, err := s.GrantAccess(dead, provider.AccessSpec{Account: ref.Account, Buckets: []provider.BucketAccess{{BucketRef: b.BucketRef}}})
			return err
		},
		"RevokeAccess": func() error { return s.RevokeAccess(dead, ref) },
		"RotateAccess": func() error { _, err := s.RotateAccess(dead, ref, provider.RotateOptions{}); return err },
		"RetireKeys":   func() error { return s.RetireKeys(dead, ref, "key") },
		"Regions":      func() error { _, err := s.Regions(dead); return err },
		"Inventory": func() error {
			for _, err := range s.Inventory(dead) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, call := range calls {
		began := time.Now()
		err := call()
		if took := time.Since(began); took > atOnce {
			return fmt.Errorf("%s under a cancelled context took %s", name, took)
		}
		if err := want(name+" under a cancelled context", err, context.Canceled); err != nil {
			return err
		}
	}
	if _, err := s.GetBucket(ctx, b.BucketRef); err != nil {
		return fmt.Errorf("the bucket did not survive cancelled calls: %w", err)
	}
	return nil
}
