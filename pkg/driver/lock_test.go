package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// size counts the keys in use.
func (l *keyLock) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// TestKeyLockExcludes lets every holder keep its key until all others want one.
func TestKeyLockExcludes(t *testing.T) { synctest.Test(t, keyLockExcludes) }

func keyLockExcludes(t *testing.T) {
	l := newKeyLock()
	counter, peak := map[string]int{}, 0
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 200 {
		key := []string{"a", "b", "c"}[i%3]
		wg.Go(func() {
			unlock, err := l.lock(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			mu.Lock()
			counter[key]++
			peak = max(peak, counter[key])
			mu.Unlock()
			time.Sleep(time.Millisecond) // the clock stands until all goroutines wait
			mu.Lock()
			counter[key]--
			mu.Unlock()
		})
	}
	wg.Wait()
	if peak != 1 {
		t.Errorf("%d holders of one key at once", peak)
	}
	if n := l.size(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestKeyLockObeysContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newKeyLock()
		unlock, err := l.lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.lock(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "k") {
			t.Errorf("waiting: %v", err)
		}
		if other, err := l.lock(t.Context(), "other"); err != nil {
			t.Errorf("another key is blocked: %v", err)
		} else {
			other()
		}
		unlock()
		if n := l.size(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
		if _, err := l.lock(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an ended context took a free lock: %v", err)
		}
	})
}

// TestLockAllDoesNotDeadlock: of two calls that name the same keys in opposite orders,
// neither gets the key that the other one comes to last.
func TestLockAllDoesNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newKeyLock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var free []func()
		for _, key := range []string{"a", "b"} {
			unlock, err := l.lock(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			free = append(free, unlock)
		}
		var wg sync.WaitGroup
		for _, keys := range [][]string{{"a", "b", "a"}, {"b", "a"}} {
			wg.Go(func() {
				unlock, err := l.lockAll(ctx, keys)
				if err != nil {
					t.Errorf("%v: %v", keys, err)
					return
				}
				unlock()
			})
		}
		// Each of them waits for the key that it takes first.
		synctest.Wait()
		for _, unlock := range slices.Backward(free) {
			unlock()
			synctest.Wait()
		}
		wg.Wait()
		if n := l.size(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

func TestLockAllReleasesOnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newKeyLock()
		unlock, err := l.lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.lockAll(ctx, []string{"a", "b"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		unlock()
		if n := l.size(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}
