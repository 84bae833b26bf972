package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// spanning is an access to several buckets, with a client for each in the order
// of the request.
type spanning struct {
	provider.Access
	ref     provider.AccountRef
	clients []*s3.Client
}

// grantSpan gives the account access to the buckets. The error is the
// provider's own.
func (s *session) grantSpan(ctx context.Context, account string, buckets ...provider.BucketAccess) (spanning, error) {
	g, err := s.GrantAccess(ctx, provider.AccessSpec{Account: account, Buckets: buckets})
	if err != nil {
		return spanning{}, err
	}
	out := spanning{Access: g, ref: provider.AccountRef{Account: account, IdentityID: g.IdentityID}}
	for i, b := range buckets {
		if len(g.Buckets) != len(buckets) || g.Buckets[i].Name != b.Name {
			return spanning{}, fmt.Errorf("GrantAccess to %d buckets: the answer does not hold exactly those, in the order of the request", len(buckets))
		}
		client, err := s3.New(s3.Config{
			Endpoint: g.Buckets[i].Endpoint, AccessKeyID: g.Credentials.AccessKeyID,
			SecretAccessKey: g.Credentials.SecretAccessKey.Reveal, SigningRegion: g.Buckets[i].SigningRegion,
			VirtualHosted: g.Buckets[i].VirtualHosted, Transport: s.o.Transport,
		})
		if err != nil {
			return spanning{}, fmt.Errorf("S3 client for %q: %w", b.Name, err)
		}
		out.ref.Buckets = append(out.ref.Buckets, g.Buckets[i].BucketRef)
		out.clients = append(out.clients, client)
	}
	return out, nil
}

// account returns a fresh account name, whose access ends with the check. Buckets
// that a check makes end it too; existing ones do not.
func (s *session) account() (string, error) {
	id, err := uuid()
	if err != nil {
		return "", err
	}
	account := "ba-" + id
	s.later(func(ctx context.Context) error { return s.RevokeAccess(ctx, provider.AccountRef{Account: account}) })
	return account, nil
}

// filledEach makes one bucket for each mode, filled by an access of its own.
func (s *session) filledEach(ctx context.Context, modes ...provider.Mode) ([]provider.BucketAccess, error) {
	var out []provider.BucketAccess
	for _, m := range modes {
		b, _, err := s.filled(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, provider.BucketAccess{BucketRef: b.BucketRef, Mode: m})
	}
	return out, nil
}

// held checks that the key may do in the bucket what the mode says and nothing
// else; "" says that it may do nothing.
func (s *session) held(ctx context.Context, c *s3.Client, bucket string, mode provider.Mode) error {
	what := fmt.Sprintf("a key with mode %q", mode)
	for _, o := range operations() {
		switch {
		case mode != "" && o.allowed(mode):
			if err := eventually(ctx, func() error { return o.run(ctx, c, bucket) }); err != nil {
				return fmt.Errorf("%s may not %s in %q: %w", what, o.name, bucket, err)
			}
		case o.name == "tag" && mode == provider.WriteOnly:
			// A cloud may allow a writer to tag.
		default:
			if err := refused(ctx, what, o, c, bucket); err != nil {
				return fmt.Errorf("in %q: %w", bucket, err)
			}
		}
	}
	return nil
}

// withoutSpans checks a provider whose accesses have their bucket's own key.
func (s *session) withoutSpans(ctx context.Context, account string, buckets []provider.BucketAccess) error {
	_, err := s.grantSpan(ctx, account, buckets...)
	return s.refusedSpan(err, buckets)
}

func (s *session) refusedSpan(err error, buckets []provider.BucketAccess) error {
	if err := want("GrantAccess with one bucket's own key for several", err, provider.ErrInvalidArgument); err != nil {
		return err
	}
	for _, b := range buckets {
		if !strings.Contains(err.Error(), b.Name) {
			return fmt.Errorf("the refusal does not name bucket %q: %w", b.Name, err)
		}
	}
	return nil
}

func spansHold(ctx context.Context, s *session) error {
	modes := s.Capabilities().Modes
	buckets, err := s.filledEach(ctx, append(slices.Clone(modes), modes[0])...)
	if err != nil {
		return err
	}
	outside, _, err := s.filled(ctx)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	if s.Capabilities().SharedKeys {
		return s.withoutSpans(ctx, account, buckets)
	}
	first, err := s.grantSpan(ctx, account, buckets...)
	if err != nil {
		return fmt.Errorf("GrantAccess to %d buckets: %w", len(buckets), err)
	}
	for _, order := range [][]provider.BucketAccess{buckets, reversed(buckets)} {
		a, err := s.grantSpan(ctx, account, order...)
		if err != nil {
			return fmt.Errorf("repeated GrantAccess to %d buckets: %w", len(buckets), err)
		}
		if a.IdentityID != first.IdentityID || a.Credentials != first.Credentials {
			return errors.New("a repeated GrantAccess, perhaps in another order, returned another identity or key")
		}
		for i, b := range order {
			if err := s.held(ctx, a.clients[i], b.Name, b.Mode); err != nil {
				return err
			}
		}
	}
	return s.held(ctx, first.clients[0], outside.Name, "")
}

func reversed(buckets []provider.BucketAccess) []provider.BucketAccess {
	out := slices.Clone(buckets)
	slices.Reverse(out)
	return out
}

func spanIsCompleted(ctx context.Context, s *session) error {
	if s.Capabilities().SharedKeys {
		return nil
	}
	buckets, err := s.filledEach(ctx, provider.ReadWrite, provider.ReadOnly)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	one, err := s.grantSpan(ctx, account, buckets[0])
	if err != nil {
		return err
	}
	late := provider.BucketAccess{BucketRef: provider.BucketRef{Name: s.name(), Region: s.o.Region}, Mode: provider.ReadWrite}
	all := append([]provider.BucketAccess{late}, buckets...)
	_, err = s.grantSpan(ctx, account, all...)
	if err := want("GrantAccess to three buckets, one of them missing", err, provider.ErrNotFound); err != nil {
		return err
	}
	if !strings.Contains(err.Error(), late.Name) {
		return fmt.Errorf("the refusal does not name the missing bucket %q: %w", late.Name, err)
	}
	if err := s.held(ctx, one.clients[0], buckets[0].Name, provider.ReadWrite); err != nil {
		return fmt.Errorf("after a grant that failed on another bucket: %w", err)
	}
	b, err := s.create(ctx, late.Name)
	if err != nil {
		return err
	}
	all[0].BucketRef = b.BucketRef
	a, err := s.grantSpan(ctx, account, all...)
	if err != nil {
		return fmt.Errorf("the completed GrantAccess: %w", err)
	}
	if a.Credentials != one.Credentials {
		return errors.New("a grant that adds buckets changed the key")
	}
	if err := a.clients[0].PutObject(ctx, b.Name, keptKey, []byte(keptData)); err != nil {
		return err
	}
	for i, b := range all {
		if err := s.held(ctx, a.clients[i], b.Name, b.Mode); err != nil {
			return err
		}
	}
	return nil
}

func spanLosesADeletedBucket(ctx context.Context, s *session) error {
	if s.Capabilities().SharedKeys {
		return nil
	}
	buckets, err := s.filledEach(ctx, provider.ReadWrite, provider.ReadWrite)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	a, err := s.grantSpan(ctx, account, buckets...)
	if err != nil {
		return err
	}
	for i, b := range buckets {
		if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{Purge: true}); err != nil {
			return fmt.Errorf("DeleteBucket of bucket %d of an access: %w", i+1, err)
		}
		if err := s.remains(ctx, b.Name); err != nil {
			return err
		}
		for j := i + 1; j < len(buckets); j++ {
			if err := s.held(ctx, a.clients[j], buckets[j].Name, provider.ReadWrite); err != nil {
				return fmt.Errorf("after another bucket of the access was deleted: %w", err)
			}
		}
	}
	if err := s.RevokeAccess(ctx, a.ref); err != nil {
		return fmt.Errorf("RevokeAccess after the buckets are gone: %w", err)
	}
	return s.accountRemains(ctx, a.IdentityID)
}

// accountRemains says that no access of the identity should be left.
func (s *session) accountRemains(ctx context.Context, identityID string) error {
	return eventually(ctx, func() error {
		for r, err := range s.Inventory(ctx) {
			if err != nil {
				return fmt.Errorf("inventory: %w", err)
			}
			if identityID != "" && r.Kind == provider.KindAccess && r.ID == identityID {
				return fmt.Errorf("the access %s of bucket %q is left over", r.ID, r.Bucket)
			}
		}
		return nil
	})
}

func spanEndsByBucket(ctx context.Context, s *session) error {
	if s.Capabilities().SharedKeys {
		return nil
	}
	buckets, err := s.filledEach(ctx, provider.ReadWrite, provider.ReadWrite)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	a, err := s.grantSpan(ctx, account, buckets...)
	if err != nil {
		return err
	}
	one := a.ref
	one.Buckets = one.Buckets[:1]
	for range 2 {
		if err := s.RevokeAccess(ctx, one); err != nil {
			return fmt.Errorf("RevokeAccess for one of two buckets: %w", err)
		}
	}
	if err := s.held(ctx, a.clients[0], buckets[0].Name, ""); err != nil {
		return fmt.Errorf("after its revocation: %w", err)
	}
	if err := s.held(ctx, a.clients[1], buckets[1].Name, provider.ReadWrite); err != nil {
		return fmt.Errorf("after the revocation for the other bucket: %w", err)
	}
	// The whole access ends although a part of it has ended before, in any order.
	all := a.ref
	all.Buckets = slices.Clone(all.Buckets)
	slices.Reverse(all.Buckets)
	for range 2 {
		if err := s.RevokeAccess(ctx, all); err != nil {
			return fmt.Errorf("RevokeAccess for both buckets: %w", err)
		}
	}
	for i, b := range buckets {
		if err := s.held(ctx, a.clients[i], b.Name, ""); err != nil {
			return fmt.Errorf("after the revocation for both buckets: %w", err)
		}
	}
	return s.accountRemains(ctx, a.IdentityID)
}

func sharedKeyDoesNotSpan(ctx context.Context, s *session) error {
	buckets, err := s.filledEach(ctx, provider.ReadWrite, provider.ReadWrite)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	_, err = s.GrantAccess(ctx, provider.AccessSpec{Account: account, Credentials: provider.CredentialsShared, Buckets: buckets})
	if errors.Is(err, provider.ErrUnsupported) {
		return nil // the cloud has no such key
	}
	return s.refusedSpan(err, buckets)
}
