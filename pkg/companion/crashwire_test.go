package companion

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// errCrash is what every call of a process meets that has crashed.
var errCrash = errors.New("the process has crashed")

// crashWire carries the calls of one process out, to the cloud and to the API
// server, counts them, and ends the process at one of them: before it leaves, or
// after it was carried out and before its answer arrives.
type crashWire struct {
	next http.RoundTripper
	end  context.CancelFunc // of the process

	mu         sync.Mutex
	calls      int
	last       int // 0 is never
	carriedOut bool
	writes     bool // whether only calls that change something count
	crashed    bool
}

// arm begins to count, and lets the process crash at its n-th call from here; 0 lets
// it live. A call that only reads is no other one when it was carried out.
func (w *crashWire) arm(n int, carriedOut, writes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.last, w.carriedOut, w.writes = 0, n, carriedOut, carriedOut || writes
}

// dead reports whether the process has crashed.
func (w *crashWire) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crashed
}

func (w *crashWire) admit(method string) (last, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crashed {
		return false, true
	}
	if w.writes && (method == http.MethodGet || method == http.MethodHead) {
		return false, false
	}
	w.calls++
	w.crashed = w.calls == w.last
	return w.crashed, w.crashed && !w.carriedOut
}

// RoundTrip implements http.RoundTripper.
func (w *crashWire) RoundTrip(req *http.Request) (*http.Response, error) {
	last, refused := w.admit(req.Method)
	if last {
		defer w.end()
	}
	if refused {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errCrash
	}
	if !last {
		return w.next.RoundTrip(req)
	}
	resp, err := w.next.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(errCrash, resp.Body.Close())
}
