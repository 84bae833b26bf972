package companion

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// eventsLast is less than the time for which the API server keeps events. An
// older object's success may have been told in an event that is gone.
const eventsLast = 50 * time.Minute

// news tells what has become ready of late, so that a success is told once also
// across restarts: an object that was ready before the companion looked is news
// only while the event about it would still be there. It is safe for concurrent
// use.
type news struct {
	now func() time.Time

	mu      sync.Mutex
	pending map[types.NamespacedName]string // UIDs of those seen to be not ready
}

func newNews(now func() time.Time) *news {
	return &news{now: now, pending: map[types.NamespacedName]string{}}
}

// is reports whether the object is ready and that is news.
func (n *news) is(m meta, ready bool) bool {
	key := types.NamespacedName{Namespace: m.namespace, Name: m.name}
	n.mu.Lock()
	defer n.mu.Unlock()
	waited := n.pending[key] == m.uid
	if !ready {
		n.pending[key] = m.uid
		return false
	}
	delete(n.pending, key)
	return waited || n.now().Sub(m.created) < eventsLast
}

// forget drops an object that is gone.
func (n *news) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pending, key)
}
