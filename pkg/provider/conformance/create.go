package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func createIdempotent(ctx context.Context, s *session) error {
	name := s.name()
	first, err := s.create(ctx, name)
	if err != nil {
		return err
	}
	if first.Name != name || first.Region != s.o.Region || first.Endpoint == "" || first.SigningRegion == "" {
		return fmt.Errorf("CreateBucket %q answered %+v: name, region, endpoint and signing region must be set", name, first)
	}
	for range 2 {
		again, err := s.CreateBucket(ctx, s.spec(name))
		if err != nil {
			return fmt.Errorf("second CreateBucket %q: %w", name, err)
		}
		if again != first {
			return fmt.Errorf("second CreateBucket %q answered %+v, the first %+v", name, again, first)
		}
	}
	got, err := s.GetBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region})
	if err != nil {
		return fmt.Errorf("GetBucket %q: %w", name, err)
	}
	if got != first {
		return fmt.Errorf("GetBucket %q answered %+v, CreateBucket %+v", name, got, first)
	}
	return nil
}

// createAdopts leaves the mark of a bucket and takes the bucket away, which is
// where a crash in the middle of a create leaves the cloud.
func createAdopts(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	owner, err := s.owner(ctx, b, a)
	if err != nil || owner == nil {
		return err
	}
	if err := owner.DeleteBucket(ctx, b.Name); err != nil {
		return fmt.Errorf("S3 delete of %q: %w", b.Name, err)
	}
	if _, err := s.GetBucket(ctx, b.BucketRef); !errors.Is(err, provider.ErrNotFound) {
		return want("GetBucket of a bucket that is gone", err, provider.ErrNotFound)
	}
	again, err := s.CreateBucket(ctx, s.spec(b.Name))
	if err != nil {
		return fmt.Errorf("CreateBucket %q over its own mark: %w", b.Name, err)
	}
	if again != b {
		return fmt.Errorf("CreateBucket over its own mark answered %+v, before %+v", again, b)
	}
	return nil
}

func createRefusesForeign(ctx context.Context, s *session) error {
	_, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	// Whoever holds a key can make buckets that the driver knows nothing of.
	foreign := s.name()
	if err := a.client.CreateBucket(ctx, foreign); err != nil {
		return fmt.Errorf("S3 create of the foreign bucket: %w", err)
	}
	s.later(func(ctx context.Context) error {
		if err := a.client.DeleteObject(ctx, foreign, "kept"); err != nil {
			return err
		}
		return a.client.DeleteBucket(ctx, foreign)
	})
	if err := a.client.PutObject(ctx, foreign, "kept", []byte("data")); err != nil {
		return err
	}
	_, err = s.CreateBucket(ctx, s.spec(foreign))
	if err := want("CreateBucket of a foreign bucket", err, provider.ErrAlreadyExists); err != nil {
		return err
	}
	ref := provider.BucketRef{Name: foreign, Region: s.o.Region}
	_, err = s.GrantAccess(ctx, provider.AccessSpec{Account: "ba-foreign", Buckets: []provider.BucketAccess{{BucketRef: ref}}})
	if err == nil {
		return errors.New("the provider hands out a foreign bucket")
	}
	// Whether this is refused or counts as absent is the adapter's choice; the
	// bucket must survive it.
	_ = s.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true})
	if err := holds(ctx, a.client, foreign, "kept", "data"); err != nil {
		return fmt.Errorf("the foreign bucket did not stay untouched: %w", err)
	}
	return s.remains(ctx, foreign)
}

func createOtherParameters(ctx context.Context, s *session) error {
	name := s.name()
	if _, err := s.create(ctx, name); err != nil {
		return err
	}
	spec := s.spec(name)
	spec.DeletionPolicy = provider.DeleteAll
	_, err := s.CreateBucket(ctx, spec)
	return want("CreateBucket with another deletion policy", err, provider.ErrAlreadyExists)
}

func createRefusesMalformed(ctx context.Context, s *session) error {
	for _, name := range []string{"", "ab", "Upper-Case", "under_score", "-dash", "a/b", "..", "192.168.0.1", strings.Repeat("x", 64), "new\nline"} {
		_, err := s.CreateBucket(ctx, s.spec(name))
		if err := want(fmt.Sprintf("CreateBucket %q", name), err, provider.ErrInvalidArgument); err != nil {
			return err
		}
	}
	spec := s.spec(s.name())
	spec.Region = "no-such-region"
	_, err := s.CreateBucket(ctx, spec)
	if err := want("CreateBucket in an unknown region", err, provider.ErrInvalidArgument); err != nil {
		return err
	}
	return s.remains(ctx, spec.Name)
}

func createConcurrently(ctx context.Context, s *session) error {
	const n = 8
	name := s.name()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		buckets = map[provider.Bucket]int{}
		errs    []error
	)
	// Registers the removal before anything is made.
	s.later(func(ctx context.Context) error {
		return s.DeleteBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region}, provider.DeleteOptions{})
	})
	for range n {
		wg.Go(func() {
			b, err := s.CreateBucket(ctx, s.spec(name))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			buckets[b]++
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%d of %d concurrent creates of %q failed: %w", len(errs), n, name, err)
	}
	if len(buckets) != 1 {
		return fmt.Errorf("%d concurrent creates of %q ended in %d buckets", n, name, len(buckets))
	}
	owners := 0
	for r, err := range s.Inventory(ctx) {
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		if r.Bucket == name && r.Kind == provider.KindOwner {
			owners++
		}
	}
	if owners > 1 {
		return fmt.Errorf("%d concurrent creates of %q left %d owners", n, name, owners)
	}
	return nil
}

func getMissing(ctx context.Context, s *session) error {
	_, err := s.GetBucket(ctx, provider.BucketRef{Name: s.name(), Region: s.o.Region})
	return want("GetBucket of a missing bucket", err, provider.ErrNotFound)
}

func regionsHoldThisOne(ctx context.Context, s *session) error {
	regions, err := s.Regions(ctx)
	if err != nil {
		return fmt.Errorf("list regions: %w", err)
	}
	if !slices.Contains(regions, s.o.Region) || !slices.IsSorted(regions) {
		return fmt.Errorf("the provider answered regions %q: want a sorted list with %q", regions, s.o.Region)
	}
	return nil
}
