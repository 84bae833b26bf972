package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
)

// gate is the way to one endpoint, which all requests of the process share:
// every try of a retry, a purge's thousands and a probe pass it one by one.
type gate struct {
	endpoint Endpoint
	next     http.RoundTripper
	names    operations
	maxWait  time.Duration
	slots    bulkhead.Bulkhead[any]

	// mu is held while the circuit is asked or told, so that events come in
	// order.
	mu      sync.Mutex
	circuit *circuit
	pause   pause
	onEvent func(Event)
	onCall  func(Call)
}

func newGate(g *gates, e Endpoint) *gate {
	return &gate{
		endpoint: e,
		next:     g.next,
		names:    g.names,
		maxWait:  g.maxWait,
		slots:    bulkhead.New[any](uint(g.pacing.MaxConcurrent)),
		circuit:  newCircuit(e, g.pacing),
		pause:    pause{endpoint: e, first: g.backoff},
		onEvent:  g.pacing.OnEvent,
		onCall:   g.pacing.OnCall,
	}
}

// RoundTrip implements http.RoundTripper. An answer holds its slot until its
// body has ended, unless it is one that a caller may wait over.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	call := Call{Endpoint: g.endpoint, Operation: g.names.of(g.endpoint.Plane, req), Retry: isRetry(req.Context())}
	c, err := g.enter(req)
	if err != nil {
		call.Outcome = OutcomeRefused
		g.onCall(call)
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := g.next.RoundTrip(req)
	call.Took, call.Outcome = time.Since(c.began), outcomeOf(req.Context(), resp, err)
	g.onCall(call)
	if err != nil {
		c.leave(judgeError(req.Context(), err, time.Since(c.began)))
		return nil, err
	}
	g.heed(resp)
	switch result := judgeStatus(resp.StatusCode); {
	case result.verdict == failed, resp.StatusCode == http.StatusTooManyRequests:
		c.leave(result)
	default:
		resp.Body = &countedBody{ReadCloser: resp.Body, crossing: c}
	}
	return resp, nil
}

// enter waits until the request may be sent. It fails at once where waiting is
// of no use.
func (g *gate) enter(req *http.Request) (*crossing, error) {
	ctx := req.Context()
	for {
		// Asked before the queue too: with every slot held by a request that
		// hangs, nobody should wait to be refused.
		wait, _, err := g.look(ctx, false)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			if err := sleep(ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		if err := g.slots.AcquirePermit(ctx); err != nil {
			return nil, err
		}
		wait, trial, err := g.look(ctx, true)
		if err == nil && wait == 0 {
			return &crossing{gate: g, ctx: ctx, trial: trial, target: targetOf(g.endpoint, req), began: time.Now()}, nil
		}
		g.slots.ReleasePermit()
		if err != nil {
			return nil, err
		}
	}
}

// look says whether a request may be sent, must wait, or is refused. With take
// it also takes the circuit's leave, which is a trial when the circuit is half
// open.
func (g *gate) look(ctx context.Context, take bool) (wait time.Duration, trial bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if err := g.circuit.refusal(now); err != nil {
		g.refused(CircuitRefused)
		return 0, false, err
	}
	if wait = g.pause.until.Sub(now); wait > 0 {
		if wait > budget(ctx, g.maxWait) {
			g.refused(PauseRefused)
			return 0, false, g.pause.refusal()
		}
		return wait, false, nil
	}
	if !take {
		return 0, false, nil
	}
	if trial, err = g.circuit.take(now); err != nil {
		g.refused(CircuitRefused)
	}
	return 0, trial, err
}

func (g *gate) refused(why Happening) {
	g.onEvent(Event{What: why, Endpoint: g.endpoint, Since: g.circuit.since, Until: g.pause.until, Cause: g.circuit.cause})
}

// heed makes everybody wait if the answer asks for it.
func (g *gate) heed(resp *http.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pause.heed(resp, time.Now()) {
		g.onEvent(Event{What: Paused, Endpoint: g.endpoint, Until: g.pause.until, Cause: g.pause.cause})
	}
}

// crossing is a request that passed the gate, until its outcome is known.
type crossing struct {
	gate   *gate
	ctx    context.Context // the request's own, kept to tell its end from a failure
	trial  bool
	target string
	began  time.Time
	once   sync.Once
}

// leave tells the outcome and frees the slot; only the first call counts.
func (c *crossing) leave(r result) {
	c.once.Do(func() {
		c.gate.mu.Lock()
		c.gate.circuit.record(r, c.target, c.trial, time.Now())
		c.gate.mu.Unlock()
		c.gate.slots.ReleasePermit()
	})
}

// countedBody ends its crossing with the body.
type countedBody struct {
	io.ReadCloser
	crossing *crossing
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), b.crossing.ctx.Err() != nil:
		b.crossing.leave(result{verdict: answered})
	default:
		b.crossing.leave(result{failed, "its answer broke off: " + clip(err.Error())})
	}
	return n, err
}

// Close implements io.Closer.
func (b *countedBody) Close() error {
	defer b.crossing.leave(result{verdict: answered})
	return b.ReadCloser.Close()
}

// targetOf is what a failure at an S3 endpoint may be confined to: the bucket.
// The other planes serve everybody from one place.
func targetOf(e Endpoint, req *http.Request) string {
	if e.Plane != PlaneS3 {
		return ""
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	return bucket
}

// budget is how long a request may wait: until its deadline, or for otherwise.
func budget(ctx context.Context, otherwise time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return otherwise
}

// sleep waits, or returns ctx.Err() when the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
