package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// backend is the name of the only back end, as it stands in all IDs.
const backend = "cloud"

// world is a cloud and everything that a test has learnt of it.
type world struct {
	cloud
	emu       *emulator.Emulator
	driver    string
	cluster   string // its ID; empty is none
	transport *http.Transport
	seen      *secrets
	// running is a process that has outlived what it did; nil if there is none.
	running *process
	// dying are calls of crashed processes that have not returned yet.
	dying sync.WaitGroup
}

// newWorlds starts an emulator and returns its clouds. The adapters wait that long
// for what they do late.
func newWorlds(t *testing.T, o emulator.Options, wait time.Duration) []*world {
	t.Helper()
	all, err := openWorlds(t, o, wait)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// openWorlds is newWorlds for any goroutine.
func openWorlds(t *testing.T, o emulator.Options, wait time.Duration) ([]*world, error) {
	e, err := emulator.Start(o)
	if err != nil {
		return nil, err
	}
	var all []*world
	for _, c := range []cloud{rgw{e.Cloudscale(), wait}, grid{e.Stackit(), wait}} {
		all = append(all, &world{
			cloud: c, emu: e, driver: "cosi.zuber.dev", transport: &http.Transport{MaxIdleConnsPerHost: 8},
			seen: &secrets{byID: map[string]string{}, holder: map[string]string{}},
		})
	}
	t.Cleanup(func() {
		for _, w := range all {
			w.dying.Wait()
			w.transport.CloseIdleConnections()
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return all, nil
}

// process is one run of the driver. It shares no memory with another.
type process struct {
	*driver.Driver
	adapter provider.Provider
	wire    *wire
}

// start makes a process.
func (w *world) start() (*process, error) {
	p := &process{wire: newWire(w.transport, w.seen)}
	var err error
	if p.adapter, err = w.provider(w.driver, w.cluster, p.wire); err != nil {
		return nil, err
	}
	p.Driver, err = driver.New(driver.Config{
		Name: w.driver, ClusterID: w.cluster, Claims: claims{}, AllowDeleteAll: true, RevokeGrace: -1,
		Backends: []driver.Backend{{Name: backend, Kind: w.name(), Provider: p.adapter}},
		Now:      hourly(),
	})
	return p, err
}

// hourly is a clock that an hour goes by on between two looks at it: what a process has
// handed out has arrived when it is asked for the next thing, although another process
// may have handed out more since.
func hourly() func() time.Time {
	var looks atomic.Int64
	began := time.Now()
	return func() time.Time { return began.Add(time.Duration(looks.Add(1)) * time.Hour) }
}

// claims is a cluster whose Buckets are called after their claims, <namespace>.<claim>.
type claims struct{}

func (claims) ClaimOf(_ context.Context, bucketObject string) (driver.Claim, error) {
	namespace, name, _ := strings.Cut(bucketObject, ".")
	return driver.Claim{Namespace: namespace, Name: name, UID: bucketObject}, nil
}

func (claims) NamespaceLabels(context.Context, string) (map[string]string, error) { return nil, nil }

func (claims) BucketObjects(context.Context) ([]driver.BucketObject, error) { return nil, nil }

// call runs an RPC in the process and reports whether the process crashed in it.
// Nobody waits for what a crashed process is still doing.
func (w *world) call(ctx context.Context, p *process, f func(context.Context, *process) (outcome, error)) (o outcome, crashed bool, err error) {
	type result struct {
		outcome
		err error
	}
	done := make(chan result, 1)
	// A log of thousands of calls helps nobody.
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logr.Discard()), rpcTimeout)
	defer cancel()
	w.dying.Go(func() {
		o, err := f(ctx, p)
		done <- result{o, err}
	})
	select {
	case r := <-done:
		select {
		case <-p.wire.dead:
			return outcome{}, true, nil
		default:
			return r.outcome, false, r.err
		}
	case <-p.wire.dead:
		return outcome{}, true, nil
	}
}

// rpcTimeout ends an RPC that hangs, however slow the machine is.
const rpcTimeout = 5 * time.Minute

// tries is how often an RPC is repeated, at most, until it succeeds.
const tries = 6

// insist repeats an RPC in the process until it is settled, as a sidecar does.
func (w *world) insist(ctx context.Context, p *process, r rpc, l *life) (outcome, error) {
	var err error
	for range tries {
		var o outcome
		o, _, err = w.call(ctx, p, func(ctx context.Context, p *process) (outcome, error) { return r.do(ctx, l, p) })
		if r.settled(err) {
			o.refused = err != nil
			return o, nil
		}
	}
	return outcome{}, fmt.Errorf("%s, repeated %d times: %w", r.what, tries, err)
}

// settled reports whether the RPC ended as it shall.
func (r rpc) settled(err error) bool {
	if r.want != nil {
		return errors.Is(err, r.want)
	}
	return err == nil || r.might != nil && errors.Is(err, r.might)
}

// removeProbes deletes the buckets of probes that were cut short, as a later
// process does when they are old enough.
func (w *world) removeProbes(ctx context.Context) error {
	p, err := w.start()
	if err != nil {
		return err
	}
	for _, name := range w.state(w.driver).probes {
		id := strings.Join([]string{backend, w.region(), name}, "/")
		if err := p.DeleteBucket(ctx, id, map[string]string{"bucketDeletionPolicy": "DeleteAll"}); err != nil {
			return fmt.Errorf("what a probe left: %w", err)
		}
	}
	if left := w.state(w.driver).probes; len(left) > 0 {
		return fmt.Errorf("probes left %q", left)
	}
	return nil
}
