package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// limitTo makes a small limit.
func limitTo(n int) func(*Options) { return func(o *Options) { o.Pacing.MaxConcurrent = n } }

func TestConcurrencyIsLimited(t *testing.T) {
	release := make(chan struct{})
	for name, handler := range map[string]http.HandlerFunc{
		"no answer": func(w http.ResponseWriter, r *http.Request) { <-release; status(200)(w, r) },
		"half a body": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("some"))
			_ = http.NewResponseController(w).Flush()
			<-release
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, handler, func(t *testing.T, b *bubble) {
				release = make(chan struct{}) // of this bubble
				var group sync.WaitGroup
				for range 50 {
					group.Go(func() {
						if code, err := b.control(t.Context()); code != 200 || err != nil {
							t.Error(code, err)
						}
					})
				}
				for range 10 {
					synctest.Wait()
					b.sent(5)
					for range 5 {
						release <- struct{}{}
					}
				}
				group.Wait()
				b.sent(0)
			}, limitTo(5))
		})
	}
}

// TestWaitersAreServedInOrder: a purge with its thousands of calls holds nobody
// back for longer than one round, and a waiter that gives up is not in the way.
func TestWaitersAreServedInOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	release := make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		order = append(order, r.URL.Path)
		mu.Unlock()
		<-release
		status(200)(w, r)
	}
	inBubble(t, handler, func(t *testing.T, b *bubble) {
		release = make(chan struct{})
		var group sync.WaitGroup
		send := func(ctx context.Context, path string, want error) {
			group.Go(func() {
				if _, err := b.on(ctx, PlaneS3, "http://s3.example"+path); !errors.Is(err, want) {
					t.Errorf("%s: %v", path, err)
				}
			})
			synctest.Wait()
		}
		var want []string
		brief, cancel := context.WithCancel(t.Context())
		for i := range 6 {
			path := fmt.Sprintf("/purged/%d", i)
			want = append(want, path)
			send(t.Context(), path, nil)
			if i == 2 {
				send(brief, "/given-up", context.Canceled)
				send(t.Context(), "/other", nil)
				want = append(want, "/other")
			}
		}
		cancel()
		for range want {
			release <- struct{}{}
		}
		group.Wait()
		if got := strings.Join(order, " "); got != strings.Join(want, " ") {
			t.Errorf("served %s, want %s", got, strings.Join(want, " "))
		}
	}, limitTo(1))
}

// TestPauseHoldsEverybody: one answer is enough.
func TestPauseHoldsEverybody(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"429": status(429, "Retry-After", "20"),
		"503": status(503, "Retry-After", "20"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, answer, func(t *testing.T, b *bubble) {
				began := time.Now()
				if code, err := b.control(t.Context()); code < 429 {
					t.Fatal(code, err)
				}
				b.sent(1)
				b.serve(status(200))
				var group sync.WaitGroup
				for range 100 {
					group.Go(func() {
						code, err := b.control(t.Context())
						if waited := time.Since(began); code != 200 || waited < 20*time.Second || waited > 21*time.Second {
							t.Errorf("%d %v after %s", code, err, waited)
						}
					})
				}
				synctest.Wait()
				// Who cannot wait so long learns it at once, and when.
				ctx, cancel := context.WithTimeout(t.Context(), 19*time.Second)
				_, err := b.control(ctx)
				cancel()
				b.refused(err, "cloud API api.example", "until "+began.Add(20*time.Second).UTC().Format(time.RFC3339), "it answered "+name)
				// Who gives up while waiting does so at once, too.
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				if _, err := b.control(ctx); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				b.sent(0)
				group.Wait()
				b.sent(100)
				if n := b.seen(Paused); n != 1 || b.seen(PauseRefused) != 1 || b.seen(CircuitOpened) != 0 {
					t.Errorf("%+v", b.events)
				}
			})
		})
	}
}

// TestPauseIsBounded: no answer stops a back end for hours.
func TestPauseIsBounded(t *testing.T) {
	inBubble(t, status(429, "Retry-After", "99999999999"), func(t *testing.T, b *bubble) {
		if code, err := b.control(t.Context()); code != 429 {
			t.Fatal(code, err)
		}
		// Without a deadline, too.
		_, err := b.control(t.Context())
		b.refused(err, time.Now().Add(pauseLimit).UTC().Format(time.RFC3339))
		time.Sleep(pauseLimit)
		b.serve(status(200))
		if code, err := b.control(t.Context()); code != 200 {
			t.Error(code, err)
		}
	})
}

// TestPauseWithoutRetryAfter: a 429 alone makes everybody wait, longer each
// time, and those that were under way together count as one.
func TestPauseWithoutRetryAfter(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		together := make(chan struct{})
		b.serve(func(w http.ResponseWriter, r *http.Request) { <-together; status(429)(w, r) })
		wait := func(want int) time.Duration {
			began := time.Now()
			if code, err := b.control(t.Context()); code != want {
				t.Error(code, err)
			}
			return time.Since(began)
		}
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() { wait(429) })
		}
		synctest.Wait()
		close(together)
		group.Wait()
		b.sent(5)
		var waits []time.Duration
		for range 8 {
			waits = append(waits, wait(429))
		}
		b.sent(8)
		want := "[200ms 400ms 800ms 1.6s 3.2s 6.4s 10s 10s]"
		if got := fmt.Sprint(waits); got != want {
			t.Errorf("waited %s, want %s", got, want)
		}
		b.serve(status(200))
		wait(200)
		b.serve(status(429))
		if first, second := wait(429), wait(429); first != 0 || second != DefaultBackoff {
			t.Errorf("after a good answer it waits %s and %s", first, second)
		}
	})
}

// TestRefusedBodiesAreClosed: net/http's contract for round trippers.
func TestRefusedBodiesAreClosed(t *testing.T) {
	inBubble(t, status(429, "Retry-After", "3600"), func(t *testing.T, b *bubble) {
		for i := range 3 {
			closed := false
			body := struct {
				*strings.Reader
				closing
			}{strings.NewReader("payload"), func() error { closed = true; return nil }}
			resp, err := b.RoundTrip(request(t.Context(), t, http.MethodPut, "http://s3.example/bucket/key", body))
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err == nil) != (i == 0) || !closed {
				t.Errorf("request %d: %v, closed %t", i, err, closed)
			}
		}
	})
}

// closing is a function as an io.Closer.
type closing func() error

func (c closing) Close() error { return c() }
