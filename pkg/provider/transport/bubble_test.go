package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bubble is an HTTP server over connections in memory and a transport to it,
// both in the time of a synctest bubble, where waits cost nothing.
type bubble struct {
	*Transport
	t       *testing.T
	calls   atomic.Int32
	handler atomic.Pointer[http.HandlerFunc]

	mu     sync.Mutex
	events []Event
}

// pipes is a listener that is dialled in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs test with a server of the handler and a transport without
// retries, unless change says otherwise.
func inBubble(t *testing.T, handler http.HandlerFunc, test func(*testing.T, *bubble), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t}
		b.serve(handler)
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.calls.Add(1)
			(*b.handler.Load())(w, r)
		}), ReadHeaderTimeout: time.Minute}
		var group sync.WaitGroup
		group.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		base := newBase(DefaultMaxConcurrent)
		base.DialContext, base.Proxy = listener.dial, nil
		opts := Options{Base: base, Tries: 1, Pacing: Pacing{OnEvent: b.see}}
		for _, f := range change {
			f(&opts)
		}
		b.Transport = New(opts)
		test(t, b)
		base.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
}

// serve replaces the handler.
func (b *bubble) serve(h http.HandlerFunc) { b.handler.Store(&h) }

func (b *bubble) see(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// seen counts the events of a kind.
func (b *bubble) seen(what Happening) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if e.What == what {
			n++
		}
	}
	return n
}

// on sends a GET on a plane and reads the answer; status 0 is an error.
func (b *bubble) on(ctx context.Context, plane Plane, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := b.As(plane).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// control asks the control plane.
func (b *bubble) control(ctx context.Context) (int, error) {
	return b.on(ctx, PlaneControl, "http://api.example/v1/things")
}

// refused fails the test unless err says that the request was not sent, with
// all the words.
func (b *bubble) refused(err error, words ...string) {
	b.t.Helper()
	var r *refusedError
	if !errors.As(err, &r) {
		b.t.Errorf("got %v, want a refusal", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(r.Error(), w) {
			b.t.Errorf("%q does not say %q", r, w)
		}
	}
}

// sent fails the test unless so many requests reached the server since the last
// time it was asked.
func (b *bubble) sent(want int32) {
	b.t.Helper()
	if n := b.calls.Swap(0); n != want {
		b.t.Errorf("%d requests were sent, want %d", n, want)
	}
}
