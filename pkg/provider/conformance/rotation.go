package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// rotates rotates the key of an access to a bucket, or says that the provider
// has no rotation.
func (s *session) rotates(ctx context.Context, a access, b provider.Bucket, keep string) (access, error) {
	c, err := s.RotateAccess(ctx, a.ref, provider.RotateOptions{KeepAccessKeyID: keep})
	if err != nil {
		return access{}, fmt.Errorf("RotateAccess: %w", err)
	}
	a.Credentials = c
	a.client, err = s3.New(s3.Config{
		Endpoint: b.Endpoint, AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey.Reveal,
		SigningRegion: b.SigningRegion, VirtualHosted: s.o.VirtualHosted, Transport: s.o.Transport,
	})
	return a, err
}

// withoutRotation holds a provider that has none to its word.
func (s *session) withoutRotation(ctx context.Context, a access) error {
	_, err := s.RotateAccess(ctx, a.ref, provider.RotateOptions{})
	return errors.Join(want("RotateAccess without rotation", err, provider.ErrUnsupported),
		want("RetireKeys without rotation", s.RetireKeys(ctx, a.ref, "key"), provider.ErrUnsupported))
}

// rotationKeepsOne goes the way of a rotation with a grace, in which one call is
// repeated because its key was lost.
func rotationKeepsOne(ctx context.Context, s *session) error {
	b, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	if !s.Capabilities().Rotation {
		return s.withoutRotation(ctx, a)
	}
	other, err := s.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	old := a.Credentials.AccessKeyID
	fresh := a
	for range 2 {
		if fresh, err = s.rotates(ctx, a, b, old); err != nil {
			return err
		}
		if fresh.Credentials.AccessKeyID == old {
			return errors.New("RotateAccess returned the old key")
		}
		for what, c := range map[string]*s3.Client{"the key to keep": a.client, "the new key": fresh.client} {
			if err := s.held(ctx, c, b.Name, provider.ReadWrite); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	again, err := s.grantAccount(ctx, b, a.ref.Account, provider.ReadWrite)
	if err != nil {
		return err
	}
	if again.IdentityID != a.IdentityID || again.Credentials.AccessKeyID == old {
		return errors.New("GrantAccess after a rotation returned another identity or the old key")
	}
	if err := want("RetireKeys but a key that is not there", s.RetireKeys(ctx, a.ref, "NOSUCHKEYATALL000000"), provider.ErrNotFound); err != nil {
		return err
	}
	if err := s.held(ctx, a.client, b.Name, provider.ReadWrite); err != nil {
		return fmt.Errorf("a refused RetireKeys ended a key: %w", err)
	}
	for range 2 {
		if err := s.RetireKeys(ctx, a.ref, fresh.Credentials.AccessKeyID); err != nil {
			return fmt.Errorf("RetireKeys: %w", err)
		}
	}
	if err := s.held(ctx, a.client, b.Name, ""); err != nil {
		return fmt.Errorf("the retired key: %w", err)
	}
	for what, c := range map[string]*s3.Client{"the key that stays": fresh.client, "another account's key": other.client} {
		if err := s.held(ctx, c, b.Name, provider.ReadWrite); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := s.RevokeAccess(ctx, a.ref); err != nil {
		return fmt.Errorf("RevokeAccess after a rotation: %w", err)
	}
	return s.held(ctx, fresh.client, b.Name, "")
}

// rotationEndsKeys rotates accesses of every mode, and keeps no key.
func rotationEndsKeys(ctx context.Context, s *session) error {
	b, first, err := s.filled(ctx)
	if err != nil || !s.Capabilities().Rotation {
		return err
	}
	for _, mode := range s.Capabilities().Modes {
		a, err := s.grant(ctx, b, mode)
		if err != nil {
			return err
		}
		fresh, err := s.rotates(ctx, a, b, "")
		if err != nil {
			return err
		}
		if err := s.held(ctx, a.client, b.Name, ""); err != nil {
			return fmt.Errorf("a key that was not to stay: %w", err)
		}
		if err := s.held(ctx, fresh.client, b.Name, mode); err != nil {
			return fmt.Errorf("the new key: %w", err)
		}
	}
	if err := s.held(ctx, first.client, b.Name, provider.ReadWrite); err != nil {
		return fmt.Errorf("another account's key: %w", err)
	}
	stranger := provider.AccountRef{Account: "ba-00000000-0000-4000-8000-000000000000", Buckets: first.ref.Buckets}
	_, err = s.RotateAccess(ctx, stranger, provider.RotateOptions{})
	if err := want("RotateAccess of an account without access", err, provider.ErrNotFound); err != nil {
		return err
	}
	if err := want("RetireKeys of an account without access", s.RetireKeys(ctx, stranger, "key"), provider.ErrNotFound); err != nil {
		return err
	}
	if err := s.RevokeAccess(ctx, first.ref); err != nil {
		return fmt.Errorf("RevokeAccess: %w", err)
	}
	_, err = s.RotateAccess(ctx, first.ref, provider.RotateOptions{})
	return want("RotateAccess after RevokeAccess", err, provider.ErrNotFound)
}

// rotationSpans rotates one key for several buckets.
func rotationSpans(ctx context.Context, s *session) error {
	if !s.Capabilities().Rotation || s.Capabilities().SharedKeys {
		return nil
	}
	buckets, err := s.filledEach(ctx, s.Capabilities().Modes...)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	before, err := s.grantSpan(ctx, account, buckets...)
	if err != nil {
		return fmt.Errorf("GrantAccess to %d buckets: %w", len(buckets), err)
	}
	c, err := s.RotateAccess(ctx, before.ref, provider.RotateOptions{})
	if err != nil {
		return fmt.Errorf("RotateAccess: %w", err)
	}
	after, err := s.grantSpan(ctx, account, reversed(buckets)...)
	if err != nil {
		return fmt.Errorf("GrantAccess after a rotation: %w", err)
	}
	if after.Credentials != c || after.IdentityID != before.IdentityID {
		return errors.New("GrantAccess after a rotation returned another key or identity")
	}
	for i, b := range buckets {
		if err := s.held(ctx, after.clients[len(buckets)-1-i], b.Name, b.Mode); err != nil {
			return fmt.Errorf("the new key: %w", err)
		}
		if err := s.held(ctx, before.clients[i], b.Name, ""); err != nil {
			return fmt.Errorf("the old key: %w", err)
		}
	}
	return nil
}
