package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// closeTimeout bounds how long close waits for connections to end.
const closeTimeout = 10 * time.Second

// endpoint is one listener's worth of a cloud.
type endpoint struct {
	cloud  string
	plane  string
	region string // S3 plane only
	// handler carries calls out; operation names a call without reading its body.
	handler   http.Handler
	operation func(*http.Request) string
	// bound is told the base URL, without a trailing slash, before the first call.
	bound func(url string)
}

// listeners is a set of HTTP servers that begin and end together.
type listeners struct {
	servers []*http.Server
	serving sync.WaitGroup
	cancel  context.CancelFunc

	mu      sync.Mutex
	idle    chan struct{} // closed when closing and nothing is open
	open    int           // connections and running handlers
	closing bool
}

// listen binds one address per endpoint and serves them. On an error all are closed.
func listen(address string, eps []endpoint) (*listeners, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var bound []net.Listener
	for i := range eps {
		p := port
		if port != 0 {
			p += i
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err != nil {
			cancel()
			for _, l := range bound {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("listen: %w", err)
		}
		bound = append(bound, l)
		eps[i].bound(baseURL(l.Addr()))
	}
	ls := &listeners{cancel: cancel, idle: make(chan struct{})}
	for i, l := range bound {
		srv := &http.Server{
			Handler:           ls.counted(eps[i].handler),
			ReadHeaderTimeout: 30 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ConnState:         ls.connState,
		}
		ls.servers = append(ls.servers, srv)
		ls.serving.Go(func() {
			// Serve ends with ErrServerClosed only; an accept that fails for good
			// shows at the client as a refused connection.
			_ = srv.Serve(l)
		})
	}
	return ls, nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: %w", address, err)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: the port must be a number from 0 to 65535", address)
	}
	return host, int(n), nil
}

// baseURL is the address a client on this machine reaches a listener at.
func baseURL(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return "http://" + a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// counted lets close wait for a handler whose connection was hijacked: net/http
// no longer counts that connection while the handler still runs.
func (ls *listeners) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ls.add(1)
		defer ls.add(-1)
		h.ServeHTTP(w, r)
	})
}

func (ls *listeners) connState(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		ls.add(1)
	case http.StateClosed, http.StateHijacked:
		ls.add(-1)
	case http.StateActive, http.StateIdle:
	}
}

func (ls *listeners) add(n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open += n
	ls.checkIdle()
}

// checkIdle needs mu.
func (ls *listeners) checkIdle() {
	if !ls.closing || ls.open != 0 {
		return
	}
	select {
	case <-ls.idle:
	default:
		close(ls.idle)
	}
}

func (ls *listeners) close() error {
	ls.cancel()
	var errs []error
	for _, srv := range ls.servers {
		errs = append(errs, srv.Close())
	}
	ls.serving.Wait()
	// A connection accepted while the first Close ran is not among those it ended.
	for _, srv := range ls.servers {
		errs = append(errs, srv.Close())
	}
	ls.mu.Lock()
	ls.closing = true
	ls.checkIdle()
	ls.mu.Unlock()

	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-ls.idle:
	case <-timer.C:
		errs = append(errs, fmt.Errorf("connections or calls are still open after %s", closeTimeout))
	}
	return errors.Join(errs...)
}
