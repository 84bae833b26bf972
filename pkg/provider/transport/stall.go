package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errStalled is the cause of a body read that got nothing for too long.
var errStalled = errors.New("the response body stalled")

// stallGuard ends a response whose body delivers nothing for the time-out. A
// time-out over the whole exchange would cut long but healthy transfers.
type stallGuard struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (g *stallGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = &guardedBody{body: resp.Body, ctx: ctx, cancel: cancel, timeout: g.timeout}
	return resp, nil
}

// guardedBody cancels its request while a read takes longer than the time-out.
type guardedBody struct {
	body    io.ReadCloser
	ctx     context.Context // the request's own, kept to learn why a read failed
	cancel  context.CancelCauseFunc
	timeout time.Duration
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.timeout, func() { b.cancel(errStalled) })
	n, err := b.body.Read(p)
	timer.Stop()
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		return n, errStalled
	}
	return n, err
}

// Close implements io.Closer.
func (b *guardedBody) Close() error {
	defer b.cancel(nil)
	return b.body.Close()
}
