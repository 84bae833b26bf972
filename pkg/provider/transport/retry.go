package transport

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// drainLimit is how much of a discarded answer is read so that its connection
// can be used again.
const drainLimit = 64 << 10

// retrier repeats requests; see New.
type retrier struct {
	next    http.RoundTripper
	tries   int
	backoff time.Duration // wait before the second try; doubles with each
	maxWait time.Duration // longest wait of a request without a deadline
}

// RoundTrip implements http.RoundTripper.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	hasBody := req.Body != nil && req.Body != http.NoBody
	if r.tries == 1 || (hasBody && req.GetBody == nil) {
		return r.next.RoundTrip(req)
	}
	// The body given is never sent: each try takes its own from GetBody.
	if req.Body != nil {
		_ = req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	e := &exchange{retrier: r, req: req, hasBody: hasBody}
	policy := retrypolicy.NewBuilder[*http.Response]().
		HandleIf(e.shouldRetry).
		WithMaxAttempts(r.tries).
		WithDelayFunc(func(failsafe.ExecutionAttempt[*http.Response]) time.Duration { return e.delay }).
		ReturnLastFailure().
		Build()
	// failsafehttp would read a body whole to replay it, so it sees none.
	bare := req.Clone(req.Context())
	bare.Body, bare.GetBody = nil, nil
	resp, err := failsafehttp.NewRoundTripper(e, policy).RoundTrip(bare)
	if err != nil {
		// The policy reports a cancellation instead of the answer it raced with.
		e.discard()
		return nil, err
	}
	return resp, nil
}

// exchange is one request with all its tries; one goroutine uses it.
type exchange struct {
	*retrier
	req     *http.Request
	hasBody bool
	sent    int
	delay   time.Duration  // before the next try
	last    *http.Response // the answer in hand, its body open
}

// RoundTrip carries one try out.
func (e *exchange) RoundTrip(bare *http.Request) (*http.Response, error) {
	e.discard()
	ctx := bare.Context()
	if e.sent > 0 {
		ctx = asRetry(ctx)
	}
	try := e.req.Clone(ctx)
	try.Body = nil
	if e.hasBody {
		body, err := e.req.GetBody()
		if err != nil {
			return nil, err
		}
		try.Body = body
	}
	e.sent++
	resp, err := e.next.RoundTrip(try)
	e.last = resp
	return resp, err
}

// discard closes the answer in hand.
func (e *exchange) discard() {
	if e.last == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, e.last.Body, drainLimit)
	_ = e.last.Body.Close()
	e.last = nil
}

// shouldRetry decides on the answer in hand and, if it says yes, sets the delay.
func (e *exchange) shouldRetry(resp *http.Response, err error) bool {
	if e.sent >= e.tries || e.req.Context().Err() != nil {
		return false
	}
	safe := e.req.Method == http.MethodGet || e.req.Method == http.MethodHead
	var asked time.Duration
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return false
	case err != nil:
		if !safe {
			return false
		}
	case resp.StatusCode == http.StatusTooManyRequests:
		asked = retryAfter(resp.Header, time.Now())
	case resp.StatusCode == http.StatusServiceUnavailable && safe:
		asked = retryAfter(resp.Header, time.Now())
	case resp.StatusCode < 500 || resp.StatusCode == http.StatusNotImplemented || !safe:
		return false
	}
	e.delay = asked
	if asked <= 0 {
		full := e.backoff << (e.sent - 1)
		e.delay = full/2 + rand.N(full/2+1) //nolint:gosec // jitter needs no secrecy
	}
	return e.delay <= budget(e.req.Context(), e.maxWait)
}

// retryAfter reads the Retry-After header as seconds or as a date. It returns 0
// when there is none or it cannot be read.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		// A number that overflows the duration must not become a short wait.
		const most = 24 * 60 * 60
		return time.Duration(min(max(seconds, 0), most)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
