package stackit

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is exponential waiting with jitter.
type backoff struct{ first, most time.Duration }

var defaultBackoff = backoff{first: 500 * time.Millisecond, most: 4 * time.Second}

// after returns the wait after the n-th attempt, n from 1: between half and all
// of a value that doubles from first to most.
func (b backoff) after(n int) time.Duration {
	full := b.most
	if shift := n - 1; shift < 16 && b.first<<shift < b.most {
		full = b.first << shift
	}
	return full/2 + rand.N(full/2+1) //nolint:gosec // jitter needs no secrecy
}

// pause waits, or returns ctx.Err() when the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// budget is the wait for one named delay.
type budget struct {
	backoff
	left  time.Duration
	tries int
	// forKey is how much of it went by while a key was not known; 0 once that is told.
	forKey time.Duration
}

// next waits for the next attempt. It returns false when the budget is spent,
// and ctx.Err() when the context has ended.
func (b *budget) next(ctx context.Context) (bool, error) {
	if b.left <= 0 {
		return false, nil
	}
	b.tries++
	d := min(b.after(b.tries), b.left)
	b.left -= d
	return true, pause(ctx, d)
}
