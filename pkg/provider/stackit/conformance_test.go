package stackit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// TestConformance runs the contract's checks, on a calm cloud and on one with
// late lists, late keys and random faults.
func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		options emulator.Options
		fault   float64
		rounds  int
	}{
		"calm": {rounds: 1},
		"rough": {emulator.Options{Seed: 1, Stackit: emulator.StackitOptions{
			ListDelay:   emulator.Delay{Min: 2 * time.Millisecond, Max: 12 * time.Millisecond},
			KeyDelay:    emulator.Delay{Max: 60 * time.Millisecond},
			PolicyDelay: emulator.Delay{Max: 80 * time.Millisecond},
		}}, 0.05, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := newCloud(t, c.options)
			p := cl.provider(t)
			if c.fault > 0 {
				cl.emu.Inject(emulator.Fault{Probability: c.fault, Status: http.StatusServiceUnavailable})
			}
			for range c.rounds {
				conforms(t, cl, p)
			}
			if b, g := cl.Buckets(), cl.groups(); len(b)+len(g) != 0 {
				t.Errorf("left over: %v, %v", b, g)
			}
		})
	}
}

func conforms(t *testing.T, cl *cloud, p *Provider) {
	t.Helper()
	options := conformance.Options{
		Region: testRegion, Transport: stubborn{},
		Owner: func(ctx context.Context, b provider.Bucket) (client *s3.Client, err error) {
			if err = repeat(ctx, func() error { _, err := p.AdminClient(ctx, b.BucketRef); return err }); err != nil {
				return nil, err
			}
			key := p.admins[b.Region].key
			return s3.New(s3.Config{Endpoint: b.Endpoint, AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal, Transport: stubborn{}})
		},
		Foreign: func(ctx context.Context, name string) (*s3.Client, func(context.Context) error, error) {
			return foreign(ctx, p, name)
		},
		Cluster: func(_ context.Context, id string) (provider.Provider, error) {
			return cl.provider(t, func(c *Config) { c.ClusterID = id }), nil
		},
	}
	for _, check := range conformance.Checks(options) {
		t.Run(check.Name, func(t *testing.T) {
			s := &sidecar{Provider: p}
			if err := check.Run(t.Context(), s); err != nil {
				t.Error(err)
			}
			// Accesses end sooner or later, also those whose bucket went first.
			for _, ref := range s.granted {
				if err := s.RevokeAccess(t.Context(), ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// foreign makes a bucket as somebody else in the project would, with a credentials
// group of their own.
func foreign(ctx context.Context, p *Provider, name string) (owner *s3.Client, remove func(context.Context) error, err error) {
	ref := provider.BucketRef{Name: name, Region: testRegion}
	var g group
	var key mintedKey
	var at endpoint
	for _, step := range []func() error{
		func() error { return p.createBucket(ctx, ref) },
		func() (err error) { at, err = p.bucketEndpoint(ctx, ref); return err },
		func() (err error) { g, err = p.createGroup(ctx, testRegion, "somebody-else"); return err },
		func() (err error) { key, err = p.mintKey(ctx, testRegion, g.id, 0); return err },
	} {
		if err := repeat(ctx, step); err != nil {
			return nil, nil, err
		}
	}
	owner, err = s3.New(s3.Config{Endpoint: at.String(), AccessKeyID: key.credentials.AccessKeyID,
		SecretAccessKey: key.credentials.SecretAccessKey.Reveal, Transport: stubborn{}})
	if err != nil {
		return nil, nil, err
	}
	// Their key takes its time too.
	err = repeat(ctx, func() error { _, err := owner.BucketLocation(ctx, name); return s3Error(ctx, err) })
	return owner, func(ctx context.Context) error {
		for _, step := range []func() error{
			func() error {
				_, err := owner.Purge(ctx, name)
				if code := s3.Code(err); code == "NoSuchBucket" || code == codeUnknownKey {
					return nil
				}
				return s3Error(ctx, err)
			},
			func() error { return p.deleteBucket(ctx, ref) },
			func() error { return p.removeKeys(ctx, testRegion, g.id) },
			func() error { return p.removeGroup(ctx, testRegion, g.id) },
		} {
			if err := repeat(ctx, step); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// sidecar repeats calls as a sidecar does, and remembers what it was granted.
type sidecar struct {
	*Provider
	mu      sync.Mutex
	granted []provider.AccountRef
}

func repeat(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, provider.ErrUnavailable) && !errors.Is(err, provider.ErrConflict) {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *sidecar) CreateBucket(ctx context.Context, spec provider.BucketSpec) (b provider.Bucket, err error) {
	err = repeat(ctx, func() error { b, err = s.Provider.CreateBucket(ctx, spec); return err })
	return b, err
}

func (s *sidecar) GetBucket(ctx context.Context, ref provider.BucketRef) (b provider.Bucket, err error) {
	err = repeat(ctx, func() error { b, err = s.Provider.GetBucket(ctx, ref); return err })
	return b, err
}

func (s *sidecar) DeleteBucket(ctx context.Context, ref provider.BucketRef, opts provider.DeleteOptions) error {
	return repeat(ctx, func() error { return s.Provider.DeleteBucket(ctx, ref, opts) })
}

func (s *sidecar) GrantAccess(ctx context.Context, spec provider.AccessSpec) (a provider.Access, err error) {
	err = repeat(ctx, func() error { a, err = s.Provider.GrantAccess(ctx, spec); return err })
	if err == nil {
		ref := provider.AccountRef{Account: spec.Account, IdentityID: a.IdentityID}
		for _, b := range spec.Buckets {
			ref.Buckets = append(ref.Buckets, b.BucketRef)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.granted = append(s.granted, ref)
	}
	return a, err
}

func (s *sidecar) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	return repeat(ctx, func() error { return s.Provider.RevokeAccess(ctx, ref) })
}

// stubborn carries the checks' own S3 calls out in spite of the faults, which
// refuse a call before it is carried out.
type stubborn struct{}

func (stubborn) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		try := req.Clone(req.Context())
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			try.Body = body
		}
		resp, err := http.DefaultTransport.RoundTrip(try)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
