package driver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// told is an Observer that remembers.
type told struct {
	mu      sync.Mutex
	changes []Change
	errs    []error
	backend string
	waits   []time.Duration
	givenUp []time.Duration
	held    int
}

func (o *told) AccessChanged(backend string, change Change, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backend, o.changes, o.errs = backend, append(o.changes, change), append(o.errs, err)
}

func (o *told) LockTaken(waited time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits, o.held = append(o.waits, waited), o.held+1
}

func (o *told) LockGivenUp(waited time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.givenUp = append(o.givenUp, waited)
}

func (o *told) LockFreed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held--
}

func TestObserverOfAccesses(t *testing.T) {
	o := &told{}
	d, f := oneBackend(t, func(c *Config) { c.Observer = o })
	id := created(t, d, "bucket-1", nil)
	account := granted(t, d, id, "ba-1")
	ids := []string{id}
	if _, err := d.RotateAccess(t.Context(), RotateRequest{AccountID: account, BucketIDs: ids}); !errors.Is(err, provider.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := d.RetireKeys(t.Context(), RotateRequest{AccountID: account, BucketIDs: ids, KeepAccessKeyID: "AK"}); !errors.Is(err, provider.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := d.RevokeAccess(t.Context(), RevokeRequest{AccountID: account, BucketIDs: ids}); err != nil {
		t.Fatal(err)
	}
	f.fail = provider.ErrUnavailable
	if _, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-2", Buckets: []GrantBucket{{ID: id}}}); err == nil {
		t.Fatal("granted")
	}
	// What no back end is asked for is not told.
	if _, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-3"}); err == nil {
		t.Fatal("granted")
	}
	if want := []Change{ChangeGrant, ChangeRotate, ChangeRetire, ChangeRevoke, ChangeGrant}; !slices.Equal(o.changes, want) || o.backend != "cloudscale" {
		t.Errorf("told of %v in %q, want %v", o.changes, o.backend, want)
	}
	for i, want := range []error{nil, provider.ErrUnsupported, provider.ErrUnsupported, nil, provider.ErrUnavailable} {
		if !errors.Is(o.errs[i], want) {
			t.Errorf("%s ended with %v, want %v", o.changes[i], o.errs[i], want)
		}
	}
	if o.held != 0 || len(o.waits) != 6 || len(o.givenUp) != 0 {
		t.Errorf("%d locks are held, %d were taken, %d given up", o.held, len(o.waits), len(o.givenUp))
	}
}

func TestObserverOfLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &told{}
		l := newKeyLock()
		l.observer = o
		unlock, err := l.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.lock(ctx, "a"); err == nil {
			t.Fatal("taken twice")
		}
		time.AfterFunc(time.Minute, unlock)
		second, err := l.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if o.held != 1 {
			t.Errorf("%d are held, want 1", o.held)
		}
		second()
		if !slices.Equal(o.waits, []time.Duration{0, time.Minute}) || !slices.Equal(o.givenUp, []time.Duration{time.Second}) || o.held != 0 {
			t.Errorf("waited %v, given up after %v, %d are held", o.waits, o.givenUp, o.held)
		}
	})
}
