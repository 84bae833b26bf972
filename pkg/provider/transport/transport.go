// Package transport is the HTTP behaviour that all adapters share: time-outs on
// every step, a few retries where a repetition is safe, Retry-After, and for each
// endpoint a limit of concurrent requests and a circuit breaker.
//
// A request passes, from the outside in, the retries, the gate of its endpoint
// and the guard of its body. Each try passes the gate anew, so that retries are
// limited, paused and refused like all else.
package transport

import (
	"net"
	"net/http"
	"time"
)

// The time-outs of the default base. Waiting for the response header is
// generous because a metrics query and a multi-object delete of 1,000 versions
// are known to take far more than ten seconds.
const (
	dialTimeout           = 5 * time.Second
	tlsTimeout            = 5 * time.Second
	responseHeaderTimeout = 60 * time.Second
	idleConnTimeout       = 30 * time.Second
	keepAlive             = 30 * time.Second
)

// DefaultTries is how often a request is sent at most.
const DefaultTries = 3

// DefaultBackoff is the wait before the second try.
const DefaultBackoff = 200 * time.Millisecond

// maxWait is the longest wait of a request without a deadline.
const maxWait = 30 * time.Second

// stallTimeout bounds the time between two pieces of a response body.
const stallTimeout = 60 * time.Second

// Options configures New. The zero value is usable.
type Options struct {
	// Base carries the requests out; nil means a transport of its own with
	// time-outs for dialling, TLS and the response header.
	Base http.RoundTripper
	// Tries is how often one request is sent at most; 0 means DefaultTries,
	// 1 turns retries off.
	Tries int
	// Backoff is the wait before the second try, where no answer asks for
	// another; it doubles with each try and is shortened by up to half at random.
	// 0 means DefaultBackoff.
	Backoff time.Duration
	// Pacing spares the endpoints.
	Pacing Pacing
	// Root is the path of the control plane's base, and Routes are what it has below
	// it, as patterns of http.ServeMux. They are for the names of calls alone.
	Root   string
	Routes []string
}

// Transport carries the requests of one back end. It is an http.RoundTripper for
// the S3 plane, and As gives those of the others.
type Transport struct {
	retries retrier // without its next
	gates   *gates
}

// New returns a transport, safe for concurrent use, that
//
//   - repeats GET and HEAD on 5xx answers and transport errors, with
//     exponential back-off and jitter;
//   - repeats any method after a 429, because such a request was not carried
//     out, and waits as long as Retry-After says (seconds or a date);
//   - honours Retry-After of a 503 on GET and HEAD likewise;
//   - sends no more than Pacing.MaxConcurrent requests to an Endpoint at a time;
//   - makes all requests to an endpoint wait that answered 429, or 503 with
//     Retry-After, for at most five minutes, and lets those fail at once that
//     cannot wait so long;
//   - lets requests fail at once after ten in a row had a 5xx answer, a time-out
//     or no answer, until one that is let through now and then is answered. Any
//     other answer ends a row, failures of one bucket count as one, and what the
//     caller cancels counts for nothing.
//
// A request with a body is repeated only if it has GetBody. A wait that does not
// fit the context's deadline (or 30 s without one) is not begun: the answer in
// hand is returned at once. The body of a discarded answer is closed, a
// cancelled context ends any wait at once, and a response body that delivers
// nothing for a minute fails.
func New(opts Options) *Transport {
	pacing := opts.Pacing.withDefaults()
	base := opts.Base
	if base == nil {
		base = newBase(pacing.MaxConcurrent)
	}
	tries := opts.Tries
	if tries <= 0 {
		tries = DefaultTries
	}
	backoff := opts.Backoff
	if backoff <= 0 {
		backoff = DefaultBackoff
	}
	return &Transport{
		retries: retrier{tries: tries, backoff: backoff, maxWait: maxWait},
		gates: &gates{
			next:    &stallGuard{next: base, timeout: stallTimeout},
			names:   newOperations(opts.Root, opts.Routes),
			pacing:  pacing,
			backoff: backoff,
			maxWait: maxWait,
			all:     map[Endpoint]*gate{},
		},
	}
}

// As returns the round tripper for the requests of a plane.
func (t *Transport) As(plane Plane) http.RoundTripper {
	r := t.retries
	r.next = &planeTransport{t.gates, plane}
	return &r
}

// RoundTrip implements http.RoundTripper for the S3 plane.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.As(PlaneS3).RoundTrip(req)
}

// newBase returns a transport with a time-out on every step.
func newBase(maxConcurrent int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   tlsTimeout,
		ResponseHeaderTimeout: responseHeaderTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleConnTimeout,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   maxConcurrent,
	}
}
