package loop

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Back-off of a failed operation, as upstream's.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// operation is what an event asks of a listener.
type operation struct {
	what string
	do   func(context.Context) error
	// once marks an operation that is not repeated when it fails.
	once bool
}

// queue holds the newest operation of each object. An object is worked on by one
// worker at a time; different objects are worked on at once.
type queue struct {
	keys workqueue.TypedRateLimitingInterface[types.UID]

	mu      sync.Mutex
	pending map[types.UID]*operation
}

func newQueue() *queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry)
	return &queue{keys: workqueue.NewTypedRateLimitingQueue(limiter), pending: map[types.UID]*operation{}}
}

// put replaces what the object still waits for.
func (q *queue) put(uid types.UID, op *operation) {
	q.mu.Lock()
	q.pending[uid] = op
	q.mu.Unlock()
	q.keys.Add(uid)
}

// run works until the queue is shut down.
func (q *queue) run(ctx context.Context) {
	for {
		uid, down := q.keys.Get()
		if down {
			return
		}
		q.work(ctx, uid)
		q.keys.Done(uid)
	}
}

func (q *queue) work(ctx context.Context, uid types.UID) {
	q.mu.Lock()
	op := q.pending[uid]
	q.mu.Unlock()
	if op == nil {
		return
	}
	err := op.do(ctx)
	if err != nil {
		klog.ErrorS(err, "Failed", "operation", op.what, "uid", uid)
	}
	if err != nil && !op.once {
		// The limiter is never told to forget an object: as with upstream, its
		// back-off goes on where it was.
		q.keys.AddRateLimited(uid)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[uid] == op {
		delete(q.pending, uid)
	}
}
