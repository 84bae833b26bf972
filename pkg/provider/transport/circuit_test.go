package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// hang answers when the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// longest is the longest cooldown that chance makes.
const longest = DefaultCooldown + DefaultCooldown/5

func TestCircuitOpensAndCloses(t *testing.T) {
	inBubble(t, status(503), func(t *testing.T, b *bubble) {
		began := time.Now().UTC().Format(time.RFC3339)
		for range tripAfter {
			if code, err := b.control(t.Context()); code != 503 {
				t.Fatal(code, err)
			}
			time.Sleep(time.Second)
		}
		b.sent(tripAfter)
		for range 200 {
			_, err := b.control(t.Context())
			b.refused(err, "cloud API api.example unavailable since "+began, "it answered 503 Service Unavailable", "next try in ")
		}
		b.sent(0)
		// The trial fails, so that one call is all that an outage costs at a time.
		for range 3 {
			time.Sleep(longest)
			if code, err := b.control(t.Context()); code != 503 {
				t.Fatal(code, err)
			}
			_, err := b.control(t.Context())
			b.refused(err, began)
			b.sent(1)
		}
		time.Sleep(longest)
		b.serve(status(404))
		for range 20 {
			if code, err := b.control(t.Context()); code != 404 {
				t.Fatal(code, err)
			}
		}
		if opened, closed, refused := b.seen(CircuitOpened), b.seen(CircuitClosed), b.seen(CircuitRefused); opened != 1 || closed != 1 || refused != 203 {
			t.Errorf("opened %d, closed %d, refused %d times; want 1, 1 and 203", opened, closed, refused)
		}
		// The row begins anew.
		b.serve(status(500))
		for range tripAfter {
			if code, err := b.control(t.Context()); code != 500 {
				t.Fatal(code, err)
			}
		}
		_, err := b.control(t.Context())
		b.refused(err, time.Now().UTC().Format(time.RFC3339))
	})
}

// TestWhatOpensTheCircuit also shows that a stalled or torn answer is a failure.
func TestWhatOpensTheCircuit(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		limit   time.Duration // of each request
		cause   string
	}{
		"500":       {status(500), time.Hour, "it answered 500 Internal Server Error"},
		"502":       {status(502), time.Hour, "502 Bad Gateway"},
		"504":       {status(504), time.Hour, "504"},
		"599":       {status(599), time.Hour, "it answered 599"},
		"cut":       {cut, time.Hour, "no answer: "},
		"time-out":  {hang, time.Hour, "timeout awaiting response headers"},
		"deadline":  {hang, patience, "no answer within 10s"},
		"torn body": {torn, time.Hour, "its answer broke off: unexpected EOF"},
		"stall":     {stalling, time.Hour, "its answer broke off: the response body stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.handler, func(t *testing.T, b *bubble) {
				for i := range tripAfter {
					ctx, cancel := context.WithTimeout(t.Context(), c.limit)
					_, err := b.on(ctx, PlaneS3, fmt.Sprintf("http://s3.example/bucket-%d/", i%2))
					cancel()
					var r *refusedError
					if errors.As(err, &r) {
						t.Fatalf("refused after %d: %v", i, err)
					}
				}
				_, err := b.on(t.Context(), PlaneS3, "http://s3.example/bucket-3/")
				b.refused(err, "S3 endpoint s3.example", c.cause)
			})
		})
	}
}

func torn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, "some")
	_ = http.NewResponseController(w).Flush()
	cut(w, r)
}

func stalling(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "some")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestWhatDoesNotOpenTheCircuit: none of these says that the endpoint is down.
func TestWhatDoesNotOpenTheCircuit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	chance := func(p float64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			code := http.StatusOK
			if random.Float64() < p {
				code = http.StatusServiceUnavailable
			}
			status(code)(w, r)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		plane   Plane
		limit   time.Duration
		cancel  bool
	}{
		"400":                      {handler: status(400), plane: PlaneControl},
		"401":                      {handler: status(401), plane: PlaneControl},
		"403 of a late key":        {handler: status(403), plane: PlaneS3},
		"404":                      {handler: status(404), plane: PlaneControl},
		"408":                      {handler: status(408), plane: PlaneControl},
		"409":                      {handler: status(409), plane: PlaneControl},
		"429":                      {handler: status(429), plane: PlaneControl},
		"501":                      {handler: status(501), plane: PlaneS3},
		"one call in twenty":       {handler: chance(0.05), plane: PlaneControl},
		"one call in five":         {handler: chance(0.2), plane: PlaneControl},
		"one bucket's 503":         {handler: status(503), plane: PlaneS3},
		"one bucket's time-out":    {handler: hang, plane: PlaneS3, limit: patience},
		"the caller's cancelling":  {handler: hang, plane: PlaneControl, cancel: true},
		"the caller's short limit": {handler: hang, plane: PlaneControl, limit: patience - time.Second},
		"a body not read":          {handler: stalling, plane: PlaneControl, limit: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.handler, func(t *testing.T, b *bubble) {
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.limit, time.Hour))
					if c.cancel {
						time.AfterFunc(time.Minute/2, cancel)
					}
					_, err := b.on(ctx, c.plane, "http://host.example/bucket/key")
					cancel()
					var r *refusedError
					if errors.As(err, &r) {
						t.Fatal(err)
					}
				}
				b.sent(100)
				if n := b.seen(CircuitOpened); n != 0 {
					t.Errorf("it opened %d times", n)
				}
			})
		})
	}
}

// open makes the control plane's circuit open and waits until a trial is due.
func (b *bubble) open() {
	b.t.Helper()
	b.serve(status(503))
	for range tripAfter {
		if code, err := b.control(b.t.Context()); code != 503 {
			b.t.Fatal(code, err)
		}
	}
	b.sent(tripAfter)
	time.Sleep(longest)
}

// TestHalfOpenLetsOneThrough: also when the one is given up by its caller.
func TestHalfOpenLetsOneThrough(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.open()
		b.serve(hang)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			trial := make(chan error, 1)
			go func() {
				_, err := b.control(ctx)
				trial <- err
			}()
			synctest.Wait()
			for range 50 {
				_, err := b.control(t.Context())
				b.refused(err, "it is being tried right now")
			}
			b.sent(1)
			cancel()
			if err := <-trial; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		b.serve(status(200))
		for range 5 {
			if code, err := b.control(t.Context()); code != 200 {
				t.Error(code, err)
			}
		}
	})
}

// TestEndpointsAreApart: what one endpoint does has no bearing on another.
func TestEndpointsAreApart(t *testing.T) {
	down := func(w http.ResponseWriter, r *http.Request) {
		code := http.StatusOK
		if r.Host == "s3.one.example" {
			code = http.StatusServiceUnavailable
		}
		status(code)(w, r)
	}
	inBubble(t, down, func(t *testing.T, b *bubble) {
		for i := range tripAfter {
			if code, err := b.on(t.Context(), PlaneS3, fmt.Sprintf("http://s3.one.example/%d", i)); code != 503 {
				t.Fatal(code, err)
			}
		}
		_, err := b.on(t.Context(), PlaneS3, "http://S3.ONE.example/x")
		b.refused(err, "S3 endpoint s3.one.example")
		for e, url := range map[Endpoint]string{
			{PlaneS3, "s3.two.example"}: "http://s3.two.example/x", {PlaneControl, "api.example"}: "http://api.example/x",
			{PlaneToken, "s3.one.example:81"}: "http://s3.one.example:81/token",
		} {
			code, err := b.on(t.Context(), e.Plane, url)
			if err != nil || code != 200 && code != 503 {
				t.Errorf("%s: %d %v", e, code, err)
			}
		}
		if n := b.seen(Used); n != 4 {
			t.Errorf("%d endpoints are known, want 4", n)
		}
	})
}

// TestRetriesPassTheCircuit: a retry is a request like any other, and a refusal
// is not retried.
func TestRetriesPassTheCircuit(t *testing.T) {
	retries := func(o *Options) { o.Tries = 3 }
	inBubble(t, status(503), func(t *testing.T, b *bubble) {
		for range 3 {
			if code, err := b.control(t.Context()); code != 503 {
				t.Fatal(code, err)
			}
		}
		b.sent(9)
		began := time.Now()
		for range 100 {
			_, err := b.control(t.Context())
			b.refused(err, "it answered 503")
		}
		b.sent(1)
		if waited := time.Since(began); waited > DefaultBackoff {
			t.Errorf("refusals took %s", waited)
		}
	}, retries)
}
