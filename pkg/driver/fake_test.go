package driver

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// fake is a provider in memory. It counts its calls, so that a test can say
// that a request cost none.
type fake struct {
	mu      sync.Mutex
	buckets map[string]provider.Bucket
	full    map[string]bool // buckets that hold data
	foreign map[string]bool // buckets that somebody else made
	left    []string        // buckets whose accesses alone were ended
	calls   []string
	purged  []string
	revoked []provider.AccountRef
	granted []provider.AccessSpec
	claims  map[string]provider.ClaimRef // by bucket
	spec    provider.BucketSpec          // of the last creation
	fail    error                        // answer of every call
	// noTenants: buckets cannot share an owner.
	noTenants bool
	inside    map[string]int // running grants per bucket
	overlaps  int            // grants that ran at the same time on one bucket
	enter     chan struct{}  // if set, a grant announces itself
	leave     chan struct{}  // if set, a grant waits for it, or for its context
}

func newFake() *fake {
	return &fake{buckets: map[string]provider.Bucket{}, full: map[string]bool{}, foreign: map[string]bool{}, claims: map[string]provider.ClaimRef{}, inside: map[string]int{}}
}

func (f *fake) called(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
	return f.fail
}

func (f *fake) callCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func (f *fake) CreateBucket(ctx context.Context, spec provider.BucketSpec) (provider.Bucket, error) {
	if err := f.called("CreateBucket"); err != nil {
		return provider.Bucket{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := provider.Bucket{
		BucketRef:      provider.BucketRef{Name: spec.Name, Region: spec.Region, OwnerID: "owner1"},
		Endpoint:       spec.Endpoint,
		SigningRegion:  spec.Region,
		VirtualHosted:  spec.VirtualHosted,
		DeletionPolicy: spec.DeletionPolicy,
		Tenant:         spec.Tenant,
		Claim:          spec.Claim,
	}
	f.spec = spec
	f.buckets[spec.Name], f.claims[spec.Name] = b, spec.Claim
	return b, ctx.Err()
}

func (f *fake) GetBucket(_ context.Context, ref provider.BucketRef) (provider.Bucket, error) {
	if err := f.called("GetBucket"); err != nil {
		return provider.Bucket{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.buckets[ref.Name]
	if !ok {
		return b, fmt.Errorf("bucket %s: %w", ref.Name, provider.ErrNotFound)
	}
	if f.foreign[ref.Name] && !ref.AccessOnly {
		return provider.Bucket{}, fmt.Errorf("bucket %s: %w", ref.Name, provider.ErrPermissionDenied)
	}
	b.AccessOnly = f.foreign[ref.Name]
	return b, nil
}

func (f *fake) DeleteBucket(_ context.Context, ref provider.BucketRef, o provider.DeleteOptions) error {
	if err := f.called("DeleteBucket"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref.AccessOnly {
		f.left = append(f.left, ref.Name)
		return nil
	}
	if f.full[ref.Name] && !o.Purge {
		return fmt.Errorf("bucket %s: %w: it holds 1 object", ref.Name, provider.ErrNotEmpty)
	}
	if o.Purge {
		f.purged = append(f.purged, ref.Name)
	}
	delete(f.buckets, ref.Name)
	delete(f.full, ref.Name)
	return nil
}

func (f *fake) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	if err := f.called("GrantAccess"); err != nil {
		return provider.Access{}, err
	}
	access := provider.Access{
		IdentityID:  "id-" + spec.Account,
		Credentials: provider.Credentials{AccessKeyID: "AK", SecretAccessKey: provider.NewSecret("SK")},
	}
	f.mu.Lock()
	f.granted = append(f.granted, spec)
	for _, b := range spec.Buckets {
		if f.inside[b.Name]++; f.inside[b.Name] > 1 {
			f.overlaps++
		}
		access.Buckets = append(access.Buckets, f.buckets[b.Name])
	}
	enter, leave := f.enter, f.leave
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, b := range spec.Buckets {
			f.inside[b.Name]--
		}
	}()
	if enter != nil {
		enter <- struct{}{}
	}
	if leave != nil {
		select {
		case <-leave:
		case <-ctx.Done():
			return provider.Access{}, ctx.Err()
		}
	}
	return access, nil
}

func (f *fake) RevokeAccess(_ context.Context, ref provider.AccountRef) error {
	if err := f.called("RevokeAccess"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, ref)
	return nil
}

func (f *fake) RotateAccess(context.Context, provider.AccountRef, provider.RotateOptions) (provider.Credentials, error) {
	return provider.Credentials{}, provider.ErrUnsupported
}

func (f *fake) RetireKeys(context.Context, provider.AccountRef, string) error {
	return provider.ErrUnsupported
}

func (f *fake) Inventory(context.Context) iter.Seq2[provider.Resource, error] {
	return func(func(provider.Resource, error) bool) {}
}

func (*fake) Regions(context.Context) ([]string, error) { return []string{"rma"}, nil }

func (f *fake) Capabilities() provider.Capabilities {
	return provider.Capabilities{Tenants: !f.noTenants}
}

// oneBackend is a driver over one fake named "cloudscale".
func oneBackend(t *testing.T, change ...func(*Config)) (*Driver, *fake) {
	t.Helper()
	f := newFake()
	cfg := Config{Name: "cosi.zuber.dev", Backends: []Backend{{Name: "cloudscale", Kind: "cloudscale", Provider: f}}}
	for _, c := range change {
		c(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}

// created makes a bucket and returns its ID.
func created(t *testing.T, d *Driver, name string, params map[string]string) string {
	t.Helper()
	if params == nil {
		params = map[string]string{"region": "rma"}
	}
	b, err := d.CreateBucket(t.Context(), name, params)
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

// granted grants an account access to a bucket and returns the account ID.
func granted(t *testing.T, d *Driver, bucketID, account string) string {
	t.Helper()
	g, err := d.GrantAccess(t.Context(), GrantRequest{Account: account, Buckets: []GrantBucket{{ID: bucketID}}})
	if err != nil {
		t.Fatal(err)
	}
	return g.AccountID
}
