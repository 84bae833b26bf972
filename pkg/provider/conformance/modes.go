package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// What every bucket under attack holds.
const (
	keptKey  = "kept"
	keptData = "data"
)

// settleTimeout bounds the wait for what a cloud decides late: its caches of
// policies and keys.
const settleTimeout = 60 * time.Second

// operation is something that an access may or may not do.
type operation struct {
	name       string
	rw, ro, wo bool
	run        func(ctx context.Context, c *s3.Client, bucket string) error
}

func (o operation) allowed(m provider.Mode) bool {
	switch m {
	case provider.ReadOnly:
		return o.ro
	case provider.WriteOnly:
		return o.wo
	default:
		return o.rw
	}
}

// operations is the mode matrix. Each finds keptKey in the bucket and leaves it
// there when it may run.
func operations() []operation {
	return []operation{
		{"list", true, true, false, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.ListObjects(ctx, b, "")
			return err
		}},
		{"read", true, true, false, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.GetObject(ctx, b, keptKey)
			return err
		}},
		{"read a version", true, true, false, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.GetObjectVersion(ctx, b, keptKey, "null")
			return err
		}},
		{"write", true, false, true, func(ctx context.Context, c *s3.Client, b string) error {
			return c.PutObject(ctx, b, "new", []byte("new"))
		}},
		{"overwrite", true, false, true, func(ctx context.Context, c *s3.Client, b string) error {
			return c.PutObject(ctx, b, keptKey, []byte(keptData))
		}},
		{"upload in parts", true, false, true, func(ctx context.Context, c *s3.Client, b string) error {
			const part = 5 << 20
			return c.PutMultipart(ctx, b, "parts", bytes.NewReader(make([]byte, part+1)), part+1, part)
		}},
		{"tag", true, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			return c.TagObject(ctx, b, keptKey, map[string]string{"k": "v"})
		}},
		{"delete", true, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			if err := c.DeleteObject(ctx, b, keptKey); err != nil {
				return err
			}
			return c.PutObject(ctx, b, keptKey, []byte(keptData))
		}},
		{"read the policy", false, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.Policy(ctx, b)
			return err
		}},
		{"write the policy", false, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			return c.SetPolicy(ctx, b, `{"Version":"2012-10-17","Statement":[]}`)
		}},
		{"change versioning", false, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			return c.SetVersioning(ctx, b, false)
		}},
		{"delete the bucket", false, false, false, func(ctx context.Context, c *s3.Client, b string) error {
			return c.DeleteBucket(ctx, b)
		}},
	}
}

// eventually repeats f until it succeeds, because a cloud may decide late.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// refused says that the operation should be answered with 403.
func refused(ctx context.Context, what string, o operation, c *s3.Client, bucket string) error {
	return eventually(ctx, func() error {
		switch err := o.run(ctx, c, bucket); {
		case err == nil:
			return fmt.Errorf("%s may %s", what, o.name)
		case s3.StatusCode(err) != http.StatusForbidden:
			return fmt.Errorf("%s: %s: want 403, got: %w", what, o.name, err)
		}
		return nil
	})
}

// filled makes a bucket that holds keptKey.
func (s *session) filled(ctx context.Context) (provider.Bucket, access, error) {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return b, a, err
	}
	return b, a, a.client.PutObject(ctx, b.Name, keptKey, []byte(keptData))
}

func keysAreIsolated(ctx context.Context, s *session) error {
	own, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	other, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	for _, mode := range s.Capabilities().Modes {
		stranger, err := s.grant(ctx, other, mode)
		if err != nil {
			return err
		}
		for _, o := range operations() {
			if err := refused(ctx, fmt.Sprintf("a %s key of another bucket", mode), o, stranger.client, own.Name); err != nil {
				return err
			}
		}
	}
	return holds(ctx, a.client, own.Name, keptKey, keptData)
}

func modesHold(ctx context.Context, s *session) error {
	b, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	caps := s.Capabilities()
	for _, mode := range caps.Modes {
		g, err := s.grant(ctx, b, mode)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("a %s key", mode)
		for _, o := range operations() {
			switch {
			case o.allowed(mode):
				err = eventually(ctx, func() error { return o.run(ctx, g.client, b.Name) })
				if err != nil {
					err = fmt.Errorf("%s may not %s: %w", what, o.name, err)
				}
			case o.name == "tag" && mode == provider.WriteOnly, caps.SharedKeys:
				// A cloud may allow a writer to tag, and an owner's key may do all.
			default:
				err = refused(ctx, what, o, g.client, b.Name)
			}
			if err != nil {
				return err
			}
		}
	}
	return holds(ctx, a.client, b.Name, keptKey, keptData)
}

func unenforcedModeRefused(ctx context.Context, s *session) error {
	b, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	for _, mode := range []provider.Mode{provider.ReadOnly, provider.WriteOnly} {
		if slices.Contains(s.Capabilities().Modes, mode) {
			continue
		}
		_, err := s.grant(ctx, b, mode)
		if err := want(fmt.Sprintf("GrantAccess with mode %s", mode), err, provider.ErrUnsupported); err != nil {
			return err
		}
	}
	_, err = s.grant(ctx, b, "Everything")
	return want("GrantAccess with an unknown mode", err, provider.ErrInvalidArgument)
}

func revokeEndsKey(ctx context.Context, s *session) error {
	b, kept, err := s.filled(ctx)
	if err != nil {
		return err
	}
	a, err := s.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	if err := s.RevokeAccess(ctx, a.ref); err != nil {
		return fmt.Errorf("RevokeAccess: %w", err)
	}
	if s.Capabilities().SharedKeys {
		// The key is the bucket's own and stays.
		return holds(ctx, a.client, b.Name, keptKey, keptData)
	}
	for _, o := range operations() {
		if err := refused(ctx, "a revoked key", o, a.client, b.Name); err != nil {
			return err
		}
	}
	if err := holds(ctx, kept.client, b.Name, keptKey, keptData); err != nil {
		return fmt.Errorf("another access after the revocation: %w", err)
	}
	return nil
}

// policyRestored deletes the policy of a bucket behind the provider's back.
func policyRestored(ctx context.Context, s *session) error {
	if s.o.Owner == nil || s.Capabilities().SharedKeys {
		return nil // no access depends on a policy
	}
	b, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	owner, err := s.owner(ctx, b, a)
	if err != nil {
		return err
	}
	before, err := owner.Policy(ctx, b.Name)
	if err != nil {
		return fmt.Errorf("policy of %q: %w", b.Name, err)
	}
	if err := owner.SetPolicy(ctx, b.Name, ""); err != nil {
		return err
	}
	if _, err := s.grantAccount(ctx, b, a.ref.Account, provider.ReadWrite); err != nil {
		return fmt.Errorf("with the policy gone: %w", err)
	}
	after, err := owner.Policy(ctx, b.Name)
	if err != nil {
		return fmt.Errorf("policy of %q: %w", b.Name, err)
	}
	if before != after {
		return errors.New("a grant did not restore the policy that was removed by hand")
	}
	return nil
}
