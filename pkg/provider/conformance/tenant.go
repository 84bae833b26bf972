package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// withoutTenants holds a provider that has none to its word.
func (s *session) withoutTenants(ctx context.Context) error {
	spec := s.spec(s.name())
	spec.Tenant = "tenant"
	_, err := s.CreateBucket(ctx, spec)
	if err := want("CreateBucket for a tenant", err, provider.ErrUnsupported); err != nil {
		return err
	}
	return s.remains(ctx, spec.Name)
}

// tenant returns a name that no other check uses.
func (s *session) tenant() string { return strings.ReplaceAll(s.name(), "-", ".") }

// createFor makes a bucket of the tenant and registers its removal.
func (s *session) createFor(ctx context.Context, tenant string) (provider.Bucket, error) {
	s.o.Tenant = tenant
	b, err := s.create(ctx, s.name())
	if err == nil && b.Tenant != tenant {
		err = fmt.Errorf("CreateBucket for tenant %q answered %+v", tenant, b)
	}
	return b, err
}

// tenantShares: the buckets of a tenant have one owner, which goes with the last of
// them, whichever that is.
func tenantShares(ctx context.Context, s *session) error {
	if !s.Capabilities().Tenants {
		return s.withoutTenants(ctx)
	}
	tenant := s.tenant()
	var buckets []provider.Bucket
	for range 3 {
		b, err := s.createFor(ctx, tenant)
		if err != nil {
			return err
		}
		buckets = append(buckets, b)
	}
	other, err := s.createFor(ctx, s.tenant())
	if err != nil {
		return err
	}
	for i, b := range buckets {
		if b.OwnerID != buckets[0].OwnerID || b.OwnerID == other.OwnerID {
			return fmt.Errorf("the buckets of a tenant have the owners %s and %s, another tenant's has %s", buckets[0].OwnerID, b.OwnerID, other.OwnerID)
		}
		if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{}); err != nil {
			return fmt.Errorf("DeleteBucket of one of a tenant's: %w", err)
		}
		for _, rest := range append(buckets[i+1:], other) {
			if got, err := s.GetBucket(ctx, rest.BucketRef); err != nil || got != rest {
				return fmt.Errorf("GetBucket of a bucket whose sibling is deleted: %+v, %w", got, err)
			}
		}
		if err := s.remains(ctx, b.Name); err != nil {
			return err
		}
	}
	for r, err := range s.Inventory(ctx) {
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		if r.ID == buckets[0].OwnerID {
			return fmt.Errorf("%s %s of a tenant without buckets is left over", r.Kind, r.ID)
		}
	}
	return nil
}

// tenantIsolates: who has access to a bucket of a tenant has none to its others, in
// whatever order they come and go, and nobody gets the owner's key.
func tenantIsolates(ctx context.Context, s *session) error {
	if !s.Capabilities().Tenants {
		return nil
	}
	s.o.Tenant = s.tenant()
	own, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	other, b, err := s.filled(ctx)
	if err != nil {
		return err
	}
	if err := s.held(ctx, a.client, other.Name, ""); err != nil {
		return fmt.Errorf("in another bucket of its tenant: %w", err)
	}
	if err := s.held(ctx, b.client, own.Name, ""); err != nil {
		return fmt.Errorf("in another bucket of its tenant: %w", err)
	}
	_, err = s.GrantAccess(ctx, provider.AccessSpec{
		Account: a.ref.Account, Credentials: provider.CredentialsShared, Buckets: []provider.BucketAccess{{BucketRef: own.BucketRef}},
	})
	if err := want("GrantAccess of the key of a tenant's owner", err, provider.ErrPrecondition); err != nil {
		return err
	}
	if err := s.DeleteBucket(ctx, own.BucketRef, provider.DeleteOptions{Purge: true}); err != nil {
		return fmt.Errorf("DeleteBucket of one of a tenant's: %w", err)
	}
	return s.held(ctx, b.client, other.Name, provider.ReadWrite)
}

// tenantIsKept: a bucket stays with the tenant that it was made for.
func tenantIsKept(ctx context.Context, s *session) error {
	if !s.Capabilities().Tenants {
		return nil
	}
	own, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	b, err := s.createFor(ctx, s.tenant())
	if err != nil {
		return err
	}
	for what, change := range map[string]func(*provider.BucketSpec){
		"for another tenant":                     func(spec *provider.BucketSpec) { spec.Tenant = s.tenant() },
		"for nobody of a tenant's":               func(spec *provider.BucketSpec) { spec.Tenant = "" },
		"for a tenant of one with another owner": func(spec *provider.BucketSpec) { spec.Name = own.Name },
	} {
		spec := s.spec(b.Name)
		change(&spec)
		_, err := s.CreateBucket(ctx, spec)
		if err := want("CreateBucket "+what, err, provider.ErrAlreadyExists); err != nil {
			return err
		}
	}
	spec := s.spec(b.Name)
	spec.Tenant, spec.KeepTenant = s.tenant(), true
	if got, err := s.CreateBucket(ctx, spec); err != nil || got != b {
		return fmt.Errorf("CreateBucket with another tenant, and the one that is there will do: %+v, %w, want %+v", got, err, b)
	}
	spec = s.spec(s.name())
	spec.SharedCredentials = provider.SharedAllowed
	_, err = s.CreateBucket(ctx, spec)
	return want("CreateBucket for a tenant with shared credentials", err, provider.ErrInvalidArgument)
}

// tenantConcurrently: buckets of a tenant come and go at the same time.
func tenantConcurrently(ctx context.Context, s *session) error {
	if !s.Capabilities().Tenants {
		return nil
	}
	tenant := s.tenant()
	s.o.Tenant = tenant
	const n = 6
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		names []string
	)
	for range n {
		name := s.name()
		names = append(names, name)
		s.later(func(ctx context.Context) error {
			return s.DeleteBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region}, provider.DeleteOptions{})
		})
	}
	for i, name := range names {
		wg.Go(func() {
			b, err := s.CreateBucket(ctx, s.spec(name))
			if err == nil && i%2 > 0 {
				err = s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("concurrent creates and deletes for one tenant: %w", err)
	}
	owners := map[string]bool{}
	for i, name := range names {
		got, err := s.GetBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region})
		if i%2 > 0 {
			if err := want("GetBucket after delete", err, provider.ErrNotFound); err != nil {
				return err
			}
			continue
		}
		if err != nil || got.Tenant != tenant {
			return fmt.Errorf("GetBucket %q of tenant %q answered %+v, %w", name, tenant, got, err)
		}
		owners[got.OwnerID] = true
	}
	if len(owners) != 1 {
		return fmt.Errorf("creates in one process made %d owners for one tenant", len(owners))
	}
	return nil
}
