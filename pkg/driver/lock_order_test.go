package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// queue is what waits for one key, in the order in which it came.
type queue struct {
	mu    sync.Mutex
	order []int
}

func (q *queue) note(i int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order = append(q.order, i)
}

// TestKeyLockIsFair: waiters get the key in the order of arrival, those that give up
// leave the queue, and whoever has just let the key go stands behind all of them.
func TestKeyLockIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 100
		l, q := newKeyLock(), &queue{}
		unlock, err := l.lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		impatient, giveUp := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var want []int
		for i := range waiters {
			ctx := t.Context()
			if i%3 == 1 {
				ctx = impatient
			} else {
				want = append(want, i)
			}
			group.Go(func() {
				unlock, err := l.lock(ctx, "k")
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				q.note(i)
				unlock()
			})
			synctest.Wait() // it stands in the queue
		}
		giveUp()
		synctest.Wait()
		if n := l.entries["k"].users; n != 1+len(want) {
			t.Errorf("%d calls hold or want the key, want %d", n, 1+len(want))
		}
		unlock()
		if unlock, err = l.lock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		q.note(waiters)
		unlock()
		group.Wait()
		if want = append(want, waiters); !slices.Equal(q.order, want) {
			t.Errorf("the key went to %v, want %v", q.order, want)
		}
		if n := l.size(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestBucketCallsKeepTheirOrder: calls on one bucket are carried out in the order in
// which they came, and a call on another bucket waits for none of them.
func TestBucketCallsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 60
		slow := &holding{fake: newFake(), held: "slow", release: make(chan struct{})}
		d, _ := oneBackend(t, func(c *Config) { c.RevokeGrace, c.Backends[0].Provider = -1, slow })
		id, params := "cloudscale/rma/slow", map[string]string{"region": "rma"}
		ctx := t.Context()
		kinds := []func(i int) (string, error){
			func(int) (string, error) { _, err := d.CreateBucket(ctx, "slow", params); return "CreateBucket", err },
			func(i int) (string, error) {
				_, err := d.GrantAccess(ctx, GrantRequest{Account: fmt.Sprint("ba-", i), Buckets: []GrantBucket{{ID: id}}})
				return "GrantAccess", err
			},
			func(i int) (string, error) {
				return "RevokeAccess", d.RevokeAccess(ctx, RevokeRequest{AccountID: fmt.Sprint("cloudscale/ba-", i-1), BucketIDs: []string{id}})
			},
			func(int) (string, error) {
				return "DeleteBucket", d.DeleteBucket(ctx, id, map[string]string{"bucketDeletionPolicy": "DeleteAll"})
			},
		}
		names := []string{"CreateBucket", "GrantAccess", "RevokeAccess", "DeleteBucket"}
		var group sync.WaitGroup
		var want []string
		for i := range calls {
			want = append(want, names[i%len(names)])
			group.Go(func() {
				if name, err := kinds[i%len(kinds)](i); err != nil {
					t.Errorf("%d, %s: %v", i, name, err)
				}
			})
			synctest.Wait()
		}
		abandoned, abandon := context.WithCancel(t.Context())
		var gaveUp error
		group.Go(func() { _, gaveUp = d.CreateBucket(abandoned, "slow", params) })
		synctest.Wait()
		abandon()
		for i := range calls {
			if _, err := d.CreateBucket(ctx, fmt.Sprint("other-", i), params); err != nil {
				t.Errorf("another bucket: %v", err)
			}
		}
		synctest.Wait()
		if !errors.Is(gaveUp, context.Canceled) {
			t.Errorf("the waiter that gave up: %v", gaveUp)
		}
		if got := slow.seen(); len(got) > 1 {
			t.Errorf("while the first call runs, these came beside it: %v", got[1:])
		} else if n := d.locks.entries["cloudscale/slow"].users; n != calls || d.locks.size() != 1 {
			t.Errorf("%d calls hold or want the bucket, want %d; %d buckets are held, want 1", n, calls, d.locks.size())
		}
		close(slow.release)
		group.Wait()
		if got := slow.seen(); !slices.Equal(got, want) {
			t.Errorf("the calls came in the order\n%v, want\n%v", got, want)
		}
		if n := d.locks.size(); n != 0 {
			t.Errorf("%d locks are left", n)
		}
	})
}

// holding is a provider that keeps the first call on one bucket until it is released,
// and remembers the order of all calls on that. It keeps no later one, so that calls
// which do not wait for one another are told and do not hang.
type holding struct {
	*fake
	held    string
	release chan struct{}

	mu    sync.Mutex
	order []string
}

func (h *holding) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

func (h *holding) hold(call, bucket string) {
	if bucket != h.held {
		return
	}
	h.mu.Lock()
	h.order = append(h.order, call)
	first := len(h.order) == 1
	h.mu.Unlock()
	if first {
		<-h.release
	}
}

func (h *holding) CreateBucket(ctx context.Context, s provider.BucketSpec) (provider.Bucket, error) {
	h.hold("CreateBucket", s.Name)
	return h.fake.CreateBucket(ctx, s)
}

func (h *holding) DeleteBucket(ctx context.Context, ref provider.BucketRef, o provider.DeleteOptions) error {
	h.hold("DeleteBucket", ref.Name)
	return h.fake.DeleteBucket(ctx, ref, o)
}

func (h *holding) GrantAccess(ctx context.Context, s provider.AccessSpec) (provider.Access, error) {
	h.hold("GrantAccess", s.Buckets[0].Name)
	return h.fake.GrantAccess(ctx, s)
}

func (h *holding) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	h.hold("RevokeAccess", ref.Buckets[0].Name)
	return h.fake.RevokeAccess(ctx, ref)
}
