package companion

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// stoppable is a cache whose manager can be stopped before the cache is filled.
//
// A manager waits for its cache before anything else, and nothing but success ends that
// wait: when its context ends first, as with an API server that does not answer, it
// spins and never returns (controller-runtime up to v0.25.1, runnableGroup.Start).
type stoppable struct {
	cache.Cache
	ended   <-chan struct{} // when the manager is to stop
	started atomic.Bool
}

// newStoppable makes the cache of a manager that works until ctx ends.
func newStoppable(ctx context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		return &stoppable{Cache: c, ended: ctx.Done()}, err
	}
}

// WaitForCacheSync implements cache.Cache. To the first call, which is the manager's, the
// end is as good as a full cache: whatever reads from it would start later, and does not.
func (c *stoppable) WaitForCacheSync(ctx context.Context) bool {
	if c.started.Swap(true) {
		return c.Cache.WaitForCacheSync(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	full := make(chan bool, 1)
	go func() { full <- c.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-full:
		return ok
	case <-c.ended:
		return true
	}
}
