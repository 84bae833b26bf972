package cloudscale

import (
	"context"
	"sync"
)

// keyLock is a lock for each key. The zero value is ready; keys that nobody
// holds or waits for take no memory.
type keyLock struct {
	mu   sync.Mutex
	keys map[string]*keyed
}

type keyed struct {
	token chan struct{} // holds an element while somebody has the key
	users int
}

// lock takes the lock of the key and returns the function that frees it, or
// ctx.Err() when the context ends first.
func (l *keyLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.keys == nil {
		l.keys = map[string]*keyed{}
	}
	k := l.keys[key]
	if k == nil {
		k = &keyed{token: make(chan struct{}, 1)}
		l.keys[key] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.keys, key)
		}
	}
	select {
	case k.token <- struct{}{}:
		return func() { <-k.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
