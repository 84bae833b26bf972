package clients

import (
	"context"
	"net/http"
	"sync"
)

// refusals counts what an endpoint refused, to end a program that does not take
// no for an answer.
type refusals struct {
	mu     sync.Mutex
	counts map[string]int // by method and path
	most   int
	stop   context.CancelFunc
}

// end calls stop with the most-th refusal of the same request from here on until
// the returned function is called; 0 is never.
func (r *refusals) end(most int, stop context.CancelFunc) (done func()) {
	r.set(most, stop)
	return func() { r.set(0, nil) }
}

func (r *refusals) set(most int, stop context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts, r.most, r.stop = map[string]int{}, most, stop
}

// note looks at an answer and leaves it as it is.
func (r *refusals) note(resp *http.Response) error {
	if resp.StatusCode != http.StatusForbidden {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := resp.Request.Method + " " + resp.Request.URL.Path
	if r.counts[key]++; r.most > 0 && r.counts[key] == r.most {
		r.stop()
	}
	return nil
}
