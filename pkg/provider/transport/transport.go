// Package transport is the HTTP behaviour that all adapters share: time-outs on
// every step, a few retries where a repetition is safe, and Retry-After.
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
	maxIdleConnsPerHost   = 16
)

// DefaultTries is how often a request is sent at most.
const DefaultTries = 3

// DefaultBackoff is the wait before the second try.
const DefaultBackoff = 200 * time.Millisecond

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
}

// New returns a round tripper, safe for concurrent use, that
//
//   - repeats GET and HEAD on 5xx answers and transport errors, with
//     exponential back-off and jitter;
//   - repeats any method after a 429, because such a request was not carried
//     out, and waits as long as Retry-After says (seconds or a date);
//   - honours Retry-After of a 503 on GET and HEAD likewise.
//
// A request with a body is repeated only if it has GetBody. A wait that does not
// fit the context's deadline (or 30 s without one) is not begun: the answer in
// hand is returned at once. The body of a discarded answer is closed, a
// cancelled context ends any wait at once, and a response body that delivers
// nothing for a minute fails.
func New(opts Options) http.RoundTripper {
	base := opts.Base
	if base == nil {
		base = newBase()
	}
	tries := opts.Tries
	if tries <= 0 {
		tries = DefaultTries
	}
	backoff := opts.Backoff
	if backoff <= 0 {
		backoff = DefaultBackoff
	}
	return &retrier{
		next:    &stallGuard{next: base, timeout: stallTimeout},
		tries:   tries,
		backoff: backoff,
		maxWait: 30 * time.Second,
	}
}

// newBase returns a transport with a time-out on every step.
func newBase() *http.Transport {
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
		MaxIdleConnsPerHost:   maxIdleConnsPerHost,
	}
}
