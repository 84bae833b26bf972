package stackit

import (
	"context"
	"slices"
	"sync"
)

// keyLock is a lock for each key. The zero value is ready; keys that nobody
// holds or waits for take no memory.
type keyLock struct {
	mu   sync.Mutex
	held map[string]*keyed
}

type keyed struct {
	token chan struct{} // holds one element while the key is free
	users int
}

// lock takes the locks of all keys, each once and in one order for all callers,
// and returns the function that frees them. It returns ctx.Err() when the
// context ends first.
func (l *keyLock) lock(ctx context.Context, keys ...string) (unlock func(), err error) {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var taken []string
	unlock = func() {
		for _, k := range taken {
			l.free(k, true)
		}
	}
	for _, k := range keys {
		if err := l.take(ctx, k); err != nil {
			unlock()
			return nil, err
		}
		taken = append(taken, k)
	}
	return unlock, nil
}

func (l *keyLock) take(ctx context.Context, key string) error {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyed{}
	}
	k := l.held[key]
	if k == nil {
		k = &keyed{token: make(chan struct{}, 1)}
		k.token <- struct{}{}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case <-k.token:
		return nil
	case <-ctx.Done():
		l.free(key, false)
		return ctx.Err()
	}
}

func (l *keyLock) free(key string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.held[key]
	if held {
		k.token <- struct{}{}
	}
	if k.users--; k.users == 0 {
		delete(l.held, key)
	}
}
