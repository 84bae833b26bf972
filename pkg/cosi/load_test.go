package cosi

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
)

// What a crowd of RPCs may take of the heap, with the emulator and gRPC's client in
// the same process. Both are several times what it does take.
const (
	heapOfCrowd = 256 << 20 // at most at one time
	heapLeft    = 4 << 20   // when it is gone
)

// heldBucket is a way to a cloud on which the requests about one bucket wait.
type heldBucket struct {
	*http.Transport
	bucket  string
	arrived chan struct{} // closed when the first one is there
	release chan struct{}
	once    sync.Once
}

func (h *heldBucket) RoundTrip(req *http.Request) (*http.Response, error) {
	if path.Base(req.URL.Path) == h.bucket {
		h.once.Do(func() { close(h.arrived) })
		select {
		case <-h.release:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return h.Transport.RoundTrip(req)
}

// TestCrowd sends 1,000 RPCs through the socket at once. Those on one bucket wait for
// a call that the cloud does not answer, and all others must come to an end before it
// does.
func TestCrowd(t *testing.T) {
	size := 1000
	if testing.Short() {
		size = 100
	}
	eachCloud(t, func(t *testing.T, s *site) {
		before := goleak.IgnoreCurrent()
		held := &heldBucket{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, bucket: "slow-bucket",
			arrived: make(chan struct{}), release: make(chan struct{})}
		s.transport = held
		o, _ := options(t, s.driver(s.adapter()))
		o.RPCTimeout = time.Hour // how long a crowd takes is the machine's affair
		r := start(t, o)
		conn := dial(t, r.path)
		older := &Client{process: &process{conn: conn, close: conn.Close}, rpcs: newV1alpha1RPCs(conn)}
		both := []*Client{older, older.Speaking(V1alpha2)}
		others := newOthers(t, s, both, 20)
		others.crowd(size / 5) // fills what is kept for good
		s.ResetCalls()
		base, mapped := heap()

		slow := newSlow(t, s, both, size/10)
		<-held.arrived
		others.crowd(size - size/10)
		if n := slow.done.Load(); n != 0 {
			t.Errorf("%d calls on the slow bucket were answered before the cloud did", n)
		}
		if _, now := heap(); now > mapped+heapOfCrowd {
			t.Errorf("the heap took %d bytes more", now-mapped)
		}
		slow.giveUp()
		close(held.release)
		slow.end()
		others.remove()
		s.empty()

		s.ResetCalls()
		if now, _ := heap(); now > base+heapLeft {
			t.Errorf("of %d RPCs the heap kept %d bytes", size, now-base)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		r.stop()
		if err := within(t, "Run returns", r.done); err != nil {
			t.Error(err)
		}
		held.CloseIdleConnections()
		goleak.VerifyNone(t, before)
	})
}

// heap is how many bytes are in use, and how many ever were at most.
func heap() (used, mapped uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one only moves what pools hold
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapSys
}

// others are buckets that are not slow, each with an access.
type others struct {
	t      *testing.T
	s      *site
	both   []*Client
	ids    []string
	grants []Granted
}

func newOthers(t *testing.T, s *site, both []*Client, n int) *others {
	t.Helper()
	o := &others{t: t, s: s, both: both, ids: make([]string, n), grants: make([]Granted, n)}
	o.each(n, func(i int) (err error) {
		c := both[i%2]
		if o.ids[i], err = c.CreateBucket(t.Context(), o.name(i), s.params()); err == nil {
			o.grants[i], err = c.GrantAccess(t.Context(), o.ids[i], fmt.Sprint("ba-", i), nil)
		}
		return err
	})
	return o
}

func (*others) name(i int) string { return fmt.Sprint("other-bucket-", i) }

// each does something n times at once and waits for all of them.
func (o *others) each(n int, do func(i int) error) {
	o.t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				o.t.Errorf("call %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// crowd repeats calls and makes wrong ones, n at once, as sidecars do when they start.
func (o *others) crowd(n int) {
	o.t.Helper()
	ctx := o.t.Context()
	o.each(n, func(i int) error {
		c, at := o.both[i%2], i/2%len(o.ids)
		switch i / 2 % 5 {
		case 0:
			if id, err := c.CreateBucket(ctx, o.name(at), o.s.params()); err != nil || id != o.ids[at] {
				return fmt.Errorf("created %q again as %q: %w", o.ids[at], id, err)
			}
		case 1:
			g, err := c.GrantAccess(ctx, o.ids[at], fmt.Sprint("ba-", at), nil)
			if err != nil || g.AccountID != o.grants[at].AccountID || g.SecretAccessKey != o.grants[at].SecretAccessKey {
				return fmt.Errorf("granted %q again as %q: %w", o.grants[at].AccountID, g.AccountID, err)
			}
		case 2:
			if id, err := o.both[1].ExistingBucket(ctx, o.ids[at], nil); err != nil || id != o.ids[at] {
				return fmt.Errorf("found %q as %q: %w", o.ids[at], id, err)
			}
		case 3:
			_, err := c.CreateBucket(ctx, "No Name", o.s.params())
			codeIs(o.t, err, codes.InvalidArgument, "bucket name")
		default:
			codeIs(o.t, c.RevokeAccess(ctx, o.ids[at], "nobody"), codes.InvalidArgument, "account ID")
		}
		return nil
	})
}

// remove ends what newOthers made.
func (o *others) remove() {
	o.t.Helper()
	o.each(len(o.ids), func(i int) error {
		c := o.both[(i+1)%2]
		if err := c.RevokeAccess(o.t.Context(), o.ids[i], o.grants[i].AccountID); err != nil {
			return err
		}
		return c.DeleteBucket(o.t.Context(), o.ids[i], o.s.params())
	})
}

// slow are calls on the bucket that the cloud does not answer for: every other one
// gives up when it is told to.
type slow struct {
	t          *testing.T
	s          *site
	both       []*Client
	stop       context.CancelFunc
	done       atomic.Int32
	ids        []string
	impatient  sync.WaitGroup
	persistent sync.WaitGroup
}

func newSlow(t *testing.T, s *site, both []*Client, n int) *slow {
	t.Helper()
	l := &slow{t: t, s: s, both: both, ids: make([]string, n)}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	for i := range n {
		c := both[i/2%2]
		if i%2 == 0 {
			l.persistent.Go(func() {
				id, err := c.CreateBucket(t.Context(), "slow-bucket", s.params())
				l.done.Add(1)
				if err != nil {
					t.Error(err)
				}
				l.ids[i] = id
			})
			continue
		}
		l.impatient.Go(func() {
			_, err := c.CreateBucket(ctx, "slow-bucket", s.params())
			l.done.Add(1)
			codeIs(t, err, codes.Canceled)
		})
	}
	return l
}

// giveUp makes every other call give up and waits for its end.
func (l *slow) giveUp() {
	l.stop()
	l.impatient.Wait()
}

// end waits for the calls that did not give up and deletes the bucket.
func (l *slow) end() {
	l.t.Helper()
	l.persistent.Wait()
	for i := 2; i < len(l.ids); i += 2 {
		if l.ids[i] != l.ids[0] {
			l.t.Errorf("the calls on one bucket returned %q and %q", l.ids[0], l.ids[i])
		}
	}
	if err := l.both[0].DeleteBucket(l.t.Context(), l.ids[0], l.s.params()); err != nil {
		l.t.Error(err)
	}
}
