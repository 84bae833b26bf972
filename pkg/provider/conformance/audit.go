package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// as returns the provider behind the session as another interface of its own; false
// if it has none.
func as[T any](s *session) (T, bool) {
	found, ok := any(s.Provider).(T)
	if p, wrapped := s.Provider.(patient); wrapped && !ok {
		found, ok = p.Provider.(T)
	}
	return found, ok
}

// findings are those of an audit about one bucket.
func findings(ctx context.Context, a provider.Auditor, bucket string) ([]provider.Finding, error) {
	return persist(ctx, func() ([]provider.Finding, error) {
		var all []provider.Finding
		for f, err := range a.Audit(ctx) {
			if err != nil {
				return nil, fmt.Errorf("audit: %w", err)
			}
			if f.Bucket == bucket {
				all = append(all, f)
			}
		}
		return all, nil
	})
}

// auditRepairs: what was just granted is right; a policy that somebody removes is
// found, and the repair leaves what was there before.
func auditRepairs(ctx context.Context, s *session) error {
	auditor, ok := as[provider.Auditor](s)
	if !ok || s.o.Owner == nil {
		return nil // it promises nothing, or nobody can disturb it
	}
	b, _, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	found, err := findings(ctx, auditor, b.Name)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("an audit of what was just granted: %+v, want nothing", found)
	}
	owner, err := s.o.Owner(ctx, b)
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
	if found, err = findings(ctx, auditor, b.Name); err != nil {
		return err
	}
	if len(found) != 1 || found[0].Drift != provider.DriftPolicy || !found[0].Repairable {
		return fmt.Errorf("an audit after the policy was removed: %+v, want one repairable %s", found, provider.DriftPolicy)
	}
	for range 2 { // a repetition is success
		if err := auditor.Repair(ctx, found[0]); err != nil {
			return err
		}
	}
	after, err := owner.Policy(ctx, b.Name)
	if err != nil {
		return fmt.Errorf("policy of %q: %w", b.Name, err)
	}
	if after != before {
		return errors.New("a repair did not restore the policy that was removed by hand")
	}
	if found, err = findings(ctx, auditor, b.Name); err == nil && len(found) > 0 {
		err = fmt.Errorf("an audit after the repair: %+v, want nothing", found)
	}
	return err
}

// reclaimHolds: a bucket has an age, and what is in use cannot be reclaimed.
func reclaimHolds(ctx context.Context, s *session) error {
	reclaimer, ok := as[provider.Reclaimer](s)
	if !ok {
		return nil
	}
	begun := time.Now().Add(-time.Hour) // the clocks may differ
	b, _, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	seen := 0
	for r, err := range s.Inventory(ctx) {
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		if r.Bucket != b.Name {
			continue
		}
		seen++
		made, err := persist(ctx, func() (time.Time, error) { return reclaimer.Created(ctx, r) })
		if err != nil {
			return err
		}
		if r.Kind == provider.KindBucket && made.Before(begun) {
			return fmt.Errorf("bucket %q was just made and its age is that of %s", b.Name, made)
		}
		if r.Kind == provider.KindAccess && !made.IsZero() && made.Before(begun) {
			return fmt.Errorf("an access to %q was just made and its age is that of %s", b.Name, made)
		}
		err = reclaimer.Reclaim(ctx, r)
		if errors.Is(err, provider.ErrPrecondition) {
			continue
		}
		if err := want(fmt.Sprintf("Reclaim of a %s in use", r.Kind), err, provider.ErrPermissionDenied); err != nil {
			return err
		}
	}
	if seen < 2 {
		return fmt.Errorf("the inventory has %d resources of %q, want its bucket and its access", seen, b.Name)
	}
	_, err = s.GetBucket(ctx, b.BucketRef)
	return err
}
