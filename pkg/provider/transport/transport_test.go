package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testRetrier retries without the waits of production.
func testRetrier(base http.RoundTripper) http.RoundTripper {
	return New(Options{Base: base, Backoff: time.Millisecond})
}

// script answers the n-th request with the n-th handler, and the last one for
// ever.
func script(t *testing.T, handlers ...http.HandlerFunc) (url string, calls *atomic.Int32) {
	t.Helper()
	calls = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1)) - 1
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "answer")
	}
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

// send returns the status and body, 0 for a transport error.
func send(t *testing.T, rt http.RoundTripper, req *http.Request) (int, string, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), nil
}

func request(ctx context.Context, t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestRetries(t *testing.T) {
	ok := status(http.StatusOK)
	for _, tc := range []struct {
		name     string
		method   string
		handlers []http.HandlerFunc
		status   int
		calls    int32
	}{
		{"get after a 500", "GET", []http.HandlerFunc{status(500), ok}, 200, 2},
		{"get after a 502 and a cut", "GET", []http.HandlerFunc{status(502), cut, ok}, 200, 3},
		{"get gives up and returns the last answer", "GET", []http.HandlerFunc{status(500), status(503), status(504)}, 504, 3},
		{"head after a 503", "HEAD", []http.HandlerFunc{status(503), ok}, 200, 2},
		{"get does not repeat a 501", "GET", []http.HandlerFunc{status(501)}, 501, 1},
		{"get does not repeat a 404", "GET", []http.HandlerFunc{status(404)}, 404, 1},
		{"post does not repeat a 500", "POST", []http.HandlerFunc{status(500)}, 500, 1},
		{"put does not repeat a 503 even with Retry-After", "PUT", []http.HandlerFunc{status(503, "Retry-After", "0")}, 503, 1},
		{"delete does not repeat a cut", "DELETE", []http.HandlerFunc{cut, ok}, 0, 1},
		{"post repeats a 429", "POST", []http.HandlerFunc{status(429, "Retry-After", "0"), ok}, 200, 2},
		{"delete repeats a 429 without Retry-After", "DELETE", []http.HandlerFunc{status(429), ok}, 200, 2},
		{"429 for ever", "PUT", []http.HandlerFunc{status(429)}, 429, 3},
		{"a Retry-After that cannot be read", "GET", []http.HandlerFunc{status(429, "Retry-After", "soon"), ok}, 200, 2},
		{"too long a Retry-After", "GET", []http.HandlerFunc{status(429, "Retry-After", "31"), ok}, 429, 1},
		{"an absurd Retry-After", "GET", []http.HandlerFunc{status(503, "Retry-After", "99999999999999"), ok}, 503, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, calls := script(t, tc.handlers...)
			got, _, err := send(t, testRetrier(nil), request(t.Context(), t, tc.method, url, nil))
			if got != tc.status || calls.Load() != tc.calls {
				t.Errorf("status %d (%v) after %d calls, want %d after %d", got, err, calls.Load(), tc.status, tc.calls)
			}
			if (err != nil) != (tc.status == 0) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestBodyIsReplayedWhole(t *testing.T) {
	url, calls := script(t, status(429, "Retry-After", "0"), echo)
	req := request(t.Context(), t, http.MethodPost, url, strings.NewReader("payload"))
	code, body, err := send(t, testRetrier(nil), req)
	if code != 200 || body != "payload" || calls.Load() != 2 {
		t.Errorf("got %d %q %v after %d calls, want the payload after 2", code, body, err, calls.Load())
	}
}

// onlyReader hides what NewRequest could replay.
type onlyReader struct{ io.Reader }

func TestBodyWithoutGetBodyIsSentOnce(t *testing.T) {
	url, calls := script(t, status(429, "Retry-After", "0"), echo)
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		calls.Store(0)
		req := request(t.Context(), t, method, url, onlyReader{strings.NewReader("payload")})
		code, _, err := send(t, testRetrier(nil), req)
		if code != 429 || calls.Load() != 1 {
			t.Errorf("%s: got %d %v after %d calls, want the 429 after 1", method, code, err, calls.Load())
		}
	}
}

func TestRetryAfterMustFitTheDeadline(t *testing.T) {
	url, calls := script(t, status(429, "Retry-After", "20"), status(200))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	code, body, err := send(t, testRetrier(nil), request(ctx, t, http.MethodGet, url, nil))
	if code != 429 || body != "answer" || calls.Load() != 1 {
		t.Errorf("got %d %q %v after %d calls, want the readable 429 after 1", code, body, err, calls.Load())
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("returned after %s, want at once", d)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	url, _ := script(t, status(429, "Retry-After", "1"), status(200))
	began := time.Now()
	code, _, err := send(t, testRetrier(nil), request(t.Context(), t, http.MethodPost, url, nil))
	if d := time.Since(began); code != 200 || d < time.Second {
		t.Errorf("got %d %v after %s, want 200 after at least 1 s", code, err, d)
	}
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"9223372036854775807":           24 * time.Hour,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:04:00 GMT": 0,
		"tomorrow":                      0,
	} {
		h := http.Header{}
		if value != "" {
			h.Set("Retry-After", value)
		}
		if got := retryAfter(h, now); got != want {
			t.Errorf("Retry-After %q is %s, want %s", value, got, want)
		}
	}
}

func TestCancellationEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := script(t, func(w http.ResponseWriter, r *http.Request) {
		status(429, "Retry-After", "20")(w, r)
		time.AfterFunc(50*time.Millisecond, cancel)
	})
	began := time.Now()
	_, _, err := send(t, testRetrier(nil), request(ctx, t, http.MethodGet, url, nil))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("returned after %s, want at once", d)
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	url, calls := script(t, status(200))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := send(t, testRetrier(nil), request(ctx, t, http.MethodGet, url, nil))
	if !errors.Is(err, context.Canceled) || calls.Load() != 0 {
		t.Errorf("got %v after %d calls, want context.Canceled after none", err, calls.Load())
	}
}

// tracker counts response bodies that are open.
type tracker struct {
	next http.RoundTripper
	open atomic.Int32
}

func (tr *tracker) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := tr.next.RoundTrip(req)
	if err == nil {
		tr.open.Add(1)
		resp.Body = &trackedBody{ReadCloser: resp.Body, tracker: tr}
	}
	return resp, err
}

type trackedBody struct {
	io.ReadCloser
	*tracker
	closed atomic.Bool
}

func (b *trackedBody) Close() error {
	if !b.closed.Swap(true) {
		b.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

func TestDiscardedBodiesAreClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, handlers := range map[string][]http.HandlerFunc{
		"success at last": {status(500), status(503), status(200)},
		"failure at last": {status(500), status(500), cut},
		"cancelled in the wait": {func(w http.ResponseWriter, r *http.Request) {
			status(503, "Retry-After", "20")(w, r)
			time.AfterFunc(20*time.Millisecond, cancel)
		}},
	} {
		url, _ := script(t, handlers...)
		tr := &tracker{next: http.DefaultTransport}
		use := t.Context()
		if strings.HasPrefix(name, "cancelled") {
			use = ctx
		}
		if _, _, err := send(t, testRetrier(tr), request(use, t, http.MethodGet, url, nil)); err != nil {
			t.Logf("%s: %v", name, err)
		}
		if n := tr.open.Load(); n != 0 {
			t.Errorf("%s: %d response bodies are left open", name, n)
		}
	}
}

func TestStalledBodyFails(t *testing.T) {
	release := make(chan struct{})
	url, _ := script(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "some")
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	defer close(release)
	rt := &stallGuard{next: http.DefaultTransport, timeout: 50 * time.Millisecond}
	resp, err := rt.RoundTrip(request(t.Context(), t, http.MethodGet, url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if !errors.Is(err, errStalled) || !bytes.Equal(data, []byte("some")) {
		t.Errorf("read %q, %v; want the delivered part and that it stalled", data, err)
	}
}

func TestSlowBodyIsNotCut(t *testing.T) {
	url, _ := script(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for range 10 {
			select {
			case <-tick.C:
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	rt := &stallGuard{next: http.DefaultTransport, timeout: 200 * time.Millisecond}
	code, body, err := send(t, rt, request(t.Context(), t, http.MethodGet, url, nil))
	if code != 200 || body != "xxxxxxxxxx" {
		t.Errorf("got %d %q %v, want the whole body", code, body, err)
	}
}

func TestDefaultBaseHasTimeouts(t *testing.T) {
	b := newBase(DefaultMaxConcurrent)
	if b.TLSHandshakeTimeout <= 0 || b.ResponseHeaderTimeout < 50*time.Second || b.IdleConnTimeout <= 0 || b.DialContext == nil {
		t.Errorf("the default base lacks a time-out: %+v", b)
	}
}
