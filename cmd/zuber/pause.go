package main

import (
	"context"
	"time"
)

// pause waits for some time. It reports whether that is over, and false as soon as ctx
// ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
