package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// pair is two RPCs that meet in a bucket.
type pair struct {
	name         string
	before       []rpc
	mine, theirs rpc
	// ends: no key is left that may open anything, also where work is lost.
	ends bool
	// writes is how often mine changes the tags of the bucket on STACKIT.
	writes int
	// tenant is on cloudscale.ch alone, and overwrites how often mine changes the tags
	// of the tenant's owner.
	tenant     bool
	overwrites int
}

func pairs() []pair {
	const rw, ro = provider.ReadWrite, provider.ReadOnly
	one, two := create("one"), create("two")
	carols := []rpc{one, grant(carol, rw, "one")}
	rotation := rotate(carol, false, "one")
	rotation.might = provider.ErrNotFound // where it is revoked already
	rotationOfTwo := rotate(carol, false, "one", "two")
	rotationOfTwo.might = provider.ErrNotFound
	spanned := []rpc{one, two, grant(carol, rw, "one", "two")}
	return []pair{
		{name: "revoke and grant", before: carols, mine: revoke(carol, "one"), theirs: grant(bob, rw, "one"), writes: 1},
		{name: "grant and grant", before: carols, mine: grant(alice, ro, "one"), theirs: grant(bob, rw, "one"), writes: 2},
		{name: "grant and revoke", before: carols, mine: grant(alice, ro, "one"), theirs: revoke(carol, "one"), writes: 2},
		{name: "grant of two and grant", before: []rpc{one, two}, mine: grant(alice, ro, "one", "two"), theirs: grant(bob, rw, "two"), writes: 2},
		{name: "grant of one more and grant", before: append(carols, two), mine: grant(carol, rw, "one", "two"), theirs: grant(bob, ro, "one"), writes: 1},
		{name: "revoke one of two and grant", before: spanned, mine: revoke(carol, "two"), theirs: grant(bob, rw, "two"), writes: 1},
		{name: "rotate and grant", before: carols, mine: rotate(carol, false, "one"), theirs: grant(bob, rw, "one"), writes: 2},
		{name: "rotate and revoke", before: carols, mine: rotation, theirs: revoke(carol, "one"), writes: 2, ends: true},
		{name: "revoke and rotate", before: carols, mine: revoke(carol, "one"), theirs: rotation, writes: 1, ends: true},
		{name: "rotate and revoke one of two", before: spanned, mine: rotationOfTwo, theirs: revoke(carol, "two"), writes: 2},
		{name: "revoke one of two and rotate", before: spanned, mine: revoke(carol, "two"), theirs: rotationOfTwo, writes: 1},

		{name: "create and create for a new tenant", mine: ofTenant("one"), theirs: ofTenant("two"), tenant: true},
		{name: "create and create of one for a tenant", mine: ofTenant("one"), theirs: ofTenant("one"), tenant: true},
		{name: "create and create for a tenant", before: []rpc{ofTenant("three")}, mine: ofTenant("one"), theirs: ofTenant("two"), tenant: true, overwrites: 1},
		{name: "create and delete for a tenant", before: []rpc{ofTenant("two"), ofTenant("three")}, mine: ofTenant("one"), theirs: remove("two"), tenant: true, overwrites: 1},
		{name: "create and delete the last of a tenant", before: []rpc{ofTenant("two")}, mine: ofTenant("one"), theirs: remove("two"), tenant: true},
		{name: "delete and create for a tenant", before: []rpc{ofTenant("one"), ofTenant("three")}, mine: remove("one"), theirs: ofTenant("two"), tenant: true, overwrites: 1},
		{name: "delete the last of a tenant and create", before: []rpc{ofTenant("one")}, mine: remove("one"), theirs: ofTenant("two"), tenant: true},
		{name: "delete and delete of a tenant's", before: []rpc{ofTenant("one"), ofTenant("two")}, mine: remove("one"), theirs: remove("two"), tenant: true, overwrites: 1},
	}
}

// gapWait is short, because an access whose policy another process has written over
// is waited for in vain.
const gapWait = 2 * time.Second

// losses is in how many gaps the other process may lose its work. STACKIT's S3 takes
// no precondition for tags, so whatever another process does from beginning to end
// after they are read and before they are written is undone by the writing, and what
// is read back shows nothing of it. That is one gap for each writing, and no more: what
// the other one does not end in it, it notices itself when it reads back. The same holds
// of the tags of a tenant's owner, which cloudscale.ch replaces all at once.
func (p pair) losses(c cloud) int {
	if c.name() == emulator.CloudStackit {
		return p.writes
	}
	return p.overwrites
}

// TestAnotherProcessInEveryGap: whatever another process does to the same bucket
// between two calls of an RPC, both end as if one had come after the other. What is
// lost nevertheless comes back when the RPC is repeated.
func TestAnotherProcessInEveryGap(t *testing.T) {
	for i, p := range pairs() {
		for n, cloud := range []string{emulator.CloudCloudscale, emulator.CloudStackit} {
			if testing.Short() && i > 0 || p.tenant && cloud != emulator.CloudCloudscale {
				continue
			}
			t.Run(cloud+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				everyGap(t, newWorlds(t, emulator.Options{}, gapWait)[n], p)
			})
		}
	}
}

func everyGap(t *testing.T, w *world, p pair) {
	t.Helper()
	first, second, err := w.twoProcesses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gap := gap{pair: p, first: first, second: second}
	calls := 0
	for _, gap.at = range []int{theirsFirst, mineFirst} {
		if calls, err = w.inGap(t.Context(), &gap); err != nil {
			t.Fatalf("one after the other: %v", err)
		}
	}
	if calls == 0 {
		t.Fatal("there is no gap")
	}
	var lost []int
	for gap.at = 1; gap.at <= calls; gap.at++ {
		gap.lost = nil
		if _, err := w.inGap(t.Context(), &gap); err != nil {
			t.Fatalf("before call %d: %v", gap.at, err)
		}
		if gap.lost != nil {
			lost = append(lost, gap.at)
			if len(lost) > p.losses(w) {
				t.Errorf("before call %d: %v", gap.at, gap.lost)
			}
		}
	}
	t.Logf("%d gaps, lost before the calls %d", calls, lost)
	if len(lost) > p.losses(w) {
		t.Errorf("lost in %d gaps, at most %d", len(lost), p.losses(w))
	}
}

// twoProcesses returns two that know all they need of the cloud.
func (w *world) twoProcesses(ctx context.Context) (one, two *process, err error) {
	for _, p := range []**process{&one, &two} {
		if *p, err = w.start(); err == nil {
			err = w.prepare(ctx, (*p).adapter)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return one, two, nil
}

// Where there is no gap.
const (
	theirsFirst = -1
	mineFirst   = 0
)

// gap is an RPC and another one that another process makes before its at-th call
// leaves.
type gap struct {
	pair
	first, second *process
	at            int
	orders        []snapshot // what is left where one RPC comes after the other
	lost          error      // what was
}

// inGap makes both RPCs and returns how many calls the first one took.
func (w *world) inGap(ctx context.Context, g *gap) (calls int, err error) {
	l := newLife(w)
	for _, step := range g.before {
		if err := l.settle(ctx, g.first, step); err != nil {
			return 0, fmt.Errorf("before: %w", err)
		}
	}
	l.note(g.mine)
	l.note(g.theirs)
	var between outcome
	var betweenErr error
	reached := g.at == theirsFirst
	if reached {
		between, betweenErr = l.insist(ctx, g.second, g.theirs, l)
	}
	g.first.wire.arm(0, false)
	g.first.wire.gap(g.at, func() {
		reached = true
		between, betweenErr = l.insist(ctx, g.second, g.theirs, l)
	})
	o, err := l.insist(ctx, g.first, g.mine, l)
	calls = g.first.wire.count()
	g.first.wire.gap(0, nil)
	if !reached {
		between, betweenErr = l.insist(ctx, g.second, g.theirs, l)
	}
	if err := errors.Join(err, betweenErr); err != nil {
		return calls, err
	}
	l.take(g.theirs, between)
	l.take(g.mine, o)
	if g.ends {
		if err := l.watch(ctx, l.may); err != nil {
			return calls, err
		}
	}
	if err := g.settled(ctx, l); err != nil {
		g.lost = err
		for _, r := range []rpc{g.theirs, g.mine} {
			o, err := l.insist(ctx, g.second, r, l)
			if err != nil {
				return calls, fmt.Errorf("repeated: %w", err)
			}
			l.take(r, o)
		}
		if err := g.settled(ctx, l); err != nil {
			return calls, fmt.Errorf("repeated: %w", err)
		}
	}
	end, err := l.finish(ctx, g.second)
	if err == nil && len(end.lines) > 0 {
		err = fmt.Errorf("left over:\n%s", end)
	}
	return calls, err
}

// settled checks that all is as where one RPC comes after the other.
func (g *gap) settled(ctx context.Context, l *life) error {
	now := l.state(l.driver)
	if g.at <= 0 {
		g.orders = append(g.orders, now)
	}
	if !slices.ContainsFunc(g.orders, func(s snapshot) bool { return differences(now, s) == "" }) {
		return fmt.Errorf("the cloud differs:\n%s", differences(now, g.orders[0]))
	}
	return errors.Join(l.ordered(g.mine), l.serves(ctx))
}
