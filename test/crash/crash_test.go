package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

var everyPoint = flag.Bool("every-point", false, "stop TestEveryCrashPoint also where the cloud is as at the point before")

const (
	// workers is how many points are tried at a time, each in a cloud of its own.
	workers = 6
	// mostFaults ends a row that is broken.
	mostFaults = 3
)

// point is where a process crashes: at its n-th call, 0 for none.
type point struct {
	call       int
	carriedOut bool
}

func (p point) String() string {
	switch {
	case p.call == 0:
		return "undisturbed"
	case p.carriedOut:
		return fmt.Sprintf("crashed after call %d", p.call)
	}
	return fmt.Sprintf("crashed before call %d", p.call)
}

// pointsOf returns where a process can crash whose calls lead through these clouds:
// before the first call and after each. After one was carried out and before the
// next leaves is the same to everybody else; so is, unless every point is wanted,
// what finds the cloud as the point before did.
func pointsOf(clouds []snapshot, every bool) []point {
	all := []point{{call: 1}}
	for i := 1; i < len(clouds); i++ {
		if every || !clouds[i].same(clouds[i-1]) {
			all = append(all, point{i, true})
		}
	}
	return all
}

// record is what a run of a row has left.
type record struct {
	calls   int
	clouds  []snapshot // before the first call and after each, of an undisturbed run
	settled snapshot   // after the RPC, or its repetition
	ids     map[string]string
	end     snapshot // after all is revoked and deleted
}

// TestEveryCrashPoint: after a crash at any outbound call of any RPC, a repetition
// by a new process ends as an undisturbed run, keys that were handed out go on
// working, none opens more than it may, and after the rest of the life cycle the
// cloud is as it was.
func TestEveryCrashPoint(t *testing.T) {
	pool := map[string]chan *world{}
	for range workers {
		for _, w := range newWorlds(t, emulator.Options{}, propagationWait) {
			if pool[w.name()] == nil {
				pool[w.name()] = make(chan *world, workers)
			}
			pool[w.name()] <- w
		}
	}
	var total, possible, drivers atomic.Int64
	// As parallel tests there would be no more rows at a time than processors.
	var played sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(pool)) {
		free := pool[name]
		at := func(r row, p point) (record, error) {
			w := <-free
			whose := w.driver
			if r.newcomer {
				w.driver = fmt.Sprintf("d%d.zuber.dev", drivers.Add(1))
			}
			if w.cluster != r.cluster {
				w.cluster, w.running = r.cluster, nil // the process knows another one
			}
			got, err := w.play(t.Context(), r, p)
			w.driver = whose
			if err != nil {
				w = another(t, w)
			}
			free <- w
			return got, err
		}
		for _, r := range rows() {
			if !r.runsOn(name) || testing.Short() && !r.brief() {
				continue
			}
			played.Go(func() {
				t.Run(name+"/"+r.name, func(t *testing.T) {
					stopped, of := crashEverywhere(t, r, func(p point) (record, error) { return at(r, p) })
					total.Add(int64(stopped))
					possible.Add(int64(of))
				})
			})
		}
	}
	played.Wait()
	t.Logf("stopped at %d points that differ, of %d", total.Load(), possible.Load())
}

// another returns a new world of the kind, for one in which something went wrong.
func another(t *testing.T, w *world) *world {
	t.Helper()
	all, err := openWorlds(t, emulator.Options{}, propagationWait)
	if err != nil {
		t.Error(err)
		return w
	}
	return all[slices.IndexFunc(all, func(o *world) bool { return o.name() == w.name() })]
}

// crashEverywhere stops at the points of a row, and returns at how many and how
// many there are.
func crashEverywhere(t *testing.T, r row, at func(point) (record, error)) (stopped, points int) {
	t.Helper()
	reference, err := at(point{})
	if err != nil {
		t.Errorf("undisturbed: %v", err)
		return 0, 0
	}
	calls := reference.calls
	if calls == 0 || len(reference.clouds) != calls+1 {
		t.Errorf("the RPC made %d calls, seen %d", calls, len(reference.clouds)-1)
		return 0, 0
	}
	var faults atomic.Int64
	var all errgroup.Group
	all.SetLimit(workers)
	where := pointsOf(reference.clouds, *everyPoint)
	for _, p := range where {
		all.Go(func() error {
			if faults.Load() >= mostFaults {
				return nil
			}
			got, err := at(p)
			if err == nil && !r.abandoned {
				err = got.compare(reference)
			}
			if err != nil {
				faults.Add(1)
				t.Errorf("%s of %d: %v", p, calls, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls, so %d points: stopped at the %d that differ", calls, 2*calls, len(where))
	return len(where), 2 * calls
}

// compare reports what is not as in an undisturbed run. A crash may cost a key of
// an identity that can have several: nobody knows whether it was handed out.
func (got record) compare(want record) error {
	if text := differences(got.settled, want.settled); text != "" {
		return fmt.Errorf("the cloud differs from that of an undisturbed run:\n%s", text)
	}
	for identity, n := range want.settled.keys {
		if left := got.settled.keys[identity]; left < n || left > n+1 {
			return fmt.Errorf("%s has %d keys, undisturbed %d", identity, left, n)
		}
	}
	for what, id := range want.ids {
		if got.ids[what] != id {
			return fmt.Errorf("the ID of %s is %q, undisturbed %q", what, got.ids[what], id)
		}
	}
	return nil
}

// play lets a row happen in the world, with a crash at the point. The process that
// ends one life begins the next, as one that has been running for long.
func (w *world) play(ctx context.Context, r row, at point) (got record, err error) {
	before, l := w.state(w.driver), newLife(w)
	p, err := l.begin(ctx, r)
	if err != nil {
		return got, fmt.Errorf("before: %w", err)
	}
	l.note(r.run)
	p.wire.arm(at.call, at.carriedOut)
	if at.call == 0 {
		look := func() { got.clouds = append(got.clouds, w.state(w.driver)) }
		look()
		p.wire.watched(look)
	}
	o, crashed, err := w.call(ctx, p, func(ctx context.Context, p *process) (outcome, error) { return r.run.do(ctx, l, p) })
	got.calls = p.wire.count()
	p.wire.watched(nil)
	switch {
	case crashed != (at.call > 0):
		return got, fmt.Errorf("it made %d calls and crashed: %t (%w)", got.calls, crashed, err)
	case crashed:
		if err := errors.Join(l.ordered(r.run), l.watch(ctx, l.may, l.after(r.run))); err != nil {
			return got, fmt.Errorf("when it had crashed: %w", err)
		}
		if p, err = w.start(); err != nil {
			return got, err
		}
		if !r.abandoned {
			if o, err = w.insist(ctx, p, r.run, l); err != nil {
				return got, err
			}
		}
	case !r.run.settled(err):
		return got, fmt.Errorf("%s: %w", r.run.what, err)
	}
	if !crashed || !r.abandoned {
		l.take(r.run, o)
		got.settled, got.ids = w.state(w.driver), l.ids()
		if err := l.serves(ctx); err != nil {
			return got, err
		}
	}
	got.end, err = l.finish(ctx, p)
	if text := differences(got.end, before); err == nil && text != "" {
		err = fmt.Errorf("after the whole life cycle the cloud is not as before:\n%s", text)
	}
	if err == nil && !r.newcomer {
		w.running = p
	}
	return got, err
}

// begin makes what the row finds and returns the process that shall make its RPC.
func (l *life) begin(ctx context.Context, r row) (*process, error) {
	p := l.running
	l.running = nil
	var err error
	if p == nil || r.newcomer {
		if p, err = l.start(); err != nil {
			return nil, err
		}
	}
	steps := r.before
	if len(steps) == 0 && !r.newcomer {
		steps = []rpc{create("former"), remove("former")}
	}
	for _, step := range steps {
		if err := l.settle(ctx, p, step); err != nil {
			return nil, err
		}
	}
	delete(l.bucketIDs, "former")
	switch {
	case r.cold:
		return l.start()
	case r.run.account != "":
		return p, l.prepare(ctx, p.adapter)
	}
	return p, nil
}

// settle makes an RPC that nothing disturbs.
func (l *life) settle(ctx context.Context, p *process, r rpc) error {
	l.note(r)
	o, err := l.insist(ctx, p, r, l)
	if err == nil {
		l.take(r, o)
	}
	return err
}

// ids returns the IDs that COSI keeps, without what the cloud drew at random.
func (l *life) ids() map[string]string {
	all := map[string]string{}
	for what, id := range l.bucketIDs {
		all["bucket "+what] = withoutOwner(id)
	}
	for what, id := range l.accountIDs {
		all["account "+what] = withoutOwner(id)
	}
	return all
}

// finish revokes and deletes all that the life was about, and draws the cloud.
func (l *life) finish(ctx context.Context, p *process) (snapshot, error) {
	for _, account := range slices.Sorted(maps.Keys(l.touched)) {
		if err := l.settle(ctx, p, revoke(account, l.touched[account]...)); err != nil {
			return snapshot{}, fmt.Errorf("at the end: %w", err)
		}
	}
	for bucket := range l.strangers {
		delete(l.bucketIDs, bucket)
		if err := l.giveBack(ctx, bucket); err != nil {
			return snapshot{}, err
		}
	}
	for _, bucket := range slices.Sorted(maps.Keys(l.bucketIDs)) {
		if err := l.settle(ctx, p, remove(bucket, "bucketDeletionPolicy=DeleteAll")); err != nil {
			return snapshot{}, fmt.Errorf("at the end: %w", err)
		}
	}
	if err := l.removeProbes(ctx); err != nil {
		return snapshot{}, err
	}
	return l.state(l.driver), nil
}
