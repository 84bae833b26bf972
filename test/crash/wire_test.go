package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// errCrash is what every call of a process meets that has crashed.
var errCrash = errors.New("the process has crashed")

// wire carries the calls of one process out, counts them, and ends the process at
// one of them: before it leaves, or after it was carried out and before its answer
// arrives. Nothing goes out after that.
type wire struct {
	next http.RoundTripper
	seen *secrets
	dead chan struct{} // closed when the process has crashed

	mu         sync.Mutex
	calls      int
	watch      func() // called after each answer; nil is nobody
	gapAt      int    // the call before which between runs; 0 is never
	between    func()
	last       int // 0 is never
	carriedOut bool
	crashed    bool
}

func newWire(next http.RoundTripper, seen *secrets) *wire {
	return &wire{next: next, seen: seen, dead: make(chan struct{})}
}

// arm begins to count, and lets the process crash at its n-th call from here; 0
// lets it live.
func (w *wire) arm(n int, carriedOut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.last, w.carriedOut = 0, n, carriedOut
}

// count returns the number of calls since arm.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// watched lets f be called after each answer.
func (w *wire) watched(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch = f
}

// gap lets f run before the n-th call since arm leaves.
func (w *wire) gap(n int, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gapAt, w.between = n, f
}

// pass runs what belongs before the call that was just admitted.
func (w *wire) pass() {
	w.mu.Lock()
	f := w.between
	here := f != nil && w.calls == w.gapAt
	if here {
		w.between = nil
	}
	w.mu.Unlock()
	if here {
		f()
	}
}

// admit counts a call and says what becomes of it.
func (w *wire) admit() (last, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crashed {
		return false, true
	}
	w.calls++
	w.crashed = w.calls == w.last
	return w.crashed, false
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	last, refused := w.admit()
	w.pass()
	if refused || last && !w.carriedOut {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		if last {
			close(w.dead)
		}
		return nil, errCrash
	}
	if !last {
		resp, err := w.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watch != nil {
			w.watch()
		}
		return resp, w.seen.look(req, resp)
	}
	defer close(w.dead)
	resp, err := w.next.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := w.seen.look(req, resp); err != nil {
		return nil, err
	}
	return nil, errCrash
}

// secrets remembers every key that the control plane has told anybody, also in
// answers that were lost: a key that exists may be used.
type secrets struct {
	mu     sync.Mutex
	byID   map[string]string // secret access key by access key ID
	holder map[string]string // credentials group by access key ID, where there are such
}

// answer is what holds keys in the answers of both clouds.
type answer struct {
	Keys []struct {
		AccessKey string `json:"access_key"`
		SecretKey string `json:"secret_key"`
	} `json:"keys"`
	AccessKey       string `json:"accessKey"`
	SecretAccessKey string `json:"secretAccessKey"`
}

// look reads an answer of a control plane and puts its body back. An answer whose
// body is cut has nothing to tell.
func (s *secrets) look(req *http.Request, resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	body, readErr := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		return err
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), ending{readErr}))
	if !bytes.Contains(body, []byte("secret")) {
		return nil
	}
	var one answer
	var many []answer
	if json.Unmarshal(body, &one) == nil {
		many = append(many, one)
	} else if json.Unmarshal(body, &many) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range many {
		for _, k := range a.Keys {
			s.byID[k.AccessKey] = k.SecretKey
		}
		if a.SecretAccessKey != "" {
			s.byID[a.AccessKey] = a.SecretAccessKey
			s.holder[a.AccessKey] = req.URL.Query().Get("credentials-group")
		}
	}
	return nil
}

// ending ends a body as the connection did.
type ending struct{ err error }

func (e ending) Read([]byte) (int, error) {
	if e.err == nil {
		return 0, io.EOF
	}
	return 0, e.err
}

// all returns copies of both tables.
func (s *secrets) all() (byID, holder map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byID), maps.Clone(s.holder)
}
