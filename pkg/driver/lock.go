package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// keyLock is a set of mutexes by key. It keeps an entry only while somebody
// holds the key or waits for it. Whoever waits gets the key in the order of
// arrival: a release hands it to the first in the channel's queue, and no call
// that comes later can take it in between. So nobody waits for ever while the
// holders come to an end. A waiter whose context ends leaves the queue.
type keyLock struct {
	observer Observer

	mu      sync.Mutex
	entries map[string]*keyEntry
}

// keyEntry is one key's mutex: whoever has put a token into the channel holds it.
type keyEntry struct {
	token chan struct{}
	users int // holders and waiters; guarded by keyLock.mu
}

func newKeyLock() *keyLock { return &keyLock{observer: unobserved{}, entries: map[string]*keyEntry{}} }

// lock waits for the key until ctx ends, and returns the function that releases
// it, to be called once.
func (l *keyLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", key, err)
	}
	l.mu.Lock()
	e := l.entries[key]
	if e == nil {
		e = &keyEntry{token: make(chan struct{}, 1)}
		l.entries[key] = e
	}
	e.users++
	l.mu.Unlock()

	began := time.Now()
	select {
	case e.token <- struct{}{}:
		l.observer.LockTaken(time.Since(began))
		return func() {
			l.observer.LockFreed()
			<-e.token
			l.leave(key, e)
		}, nil
	case <-ctx.Done():
		l.observer.LockGivenUp(time.Since(began))
		l.leave(key, e)
		return nil, fmt.Errorf("bucket %s: waiting for another call on it: %w", key, ctx.Err())
	}
}

// lockAll takes several keys, always in the same order, so that calls which
// share some of them cannot block one another for ever. It stands in the queue of
// one key at a time.
func (l *keyLock) lockAll(ctx context.Context, keys []string) (unlock func(), err error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(keys)))
	held := make([]func(), 0, len(sorted))
	release := func() {
		for _, u := range slices.Backward(held) {
			u()
		}
	}
	for _, k := range sorted {
		u, err := l.lock(ctx, k)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, u)
	}
	return release, nil
}

func (l *keyLock) leave(key string, e *keyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(l.entries, key)
	}
}
