package crash

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// pairs are two RPCs on one bucket.
func pairs() []struct{ mine, theirs rpc } {
	const rw, ro = provider.ReadWrite, provider.ReadOnly
	return []struct{ mine, theirs rpc }{
		{grant(alice, ro, "one"), grant(bob, rw, "one")},
		{grant(alice, ro, "one"), revoke(carol, "one")},
		{revoke(carol, "one"), grant(bob, rw, "one")},
	}
}

// gapWait is short, because an access whose policy another process has written over
// is waited for in vain.
const gapWait = 2 * time.Second

// losses is in how many gaps of an RPC the other process may lose its work. STACKIT
// has no precondition for writing tags, so between reading and writing them there
// is one that nothing closes. A grant writes them twice, and looks for other buckets
// of the access between the first reading and the first writing.
func losses(c cloud) int {
	if c.name() == emulator.CloudStackit {
		return 3
	}
	return 0
}

// TestAnotherProcessInEveryGap: whatever another process does to the same bucket
// between two calls of an RPC, both end as if one had come after the other. What is
// lost nevertheless comes back when the RPC is repeated.
func TestAnotherProcessInEveryGap(t *testing.T) {
	for _, w := range newWorlds(t, emulator.Options{}, gapWait) {
		t.Run(w.name(), func(t *testing.T) {
			mine, theirs, err := w.twoProcesses(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pairs() {
				var lost []int
				gap := gap{mine: mine, theirs: theirs, first: p.mine, second: p.theirs}
				calls, err := w.inGap(t.Context(), &gap)
				if err != nil {
					t.Fatalf("%s, then %s: %v", p.mine.what, p.theirs.what, err)
				}
				gaps := 0
				for gap.at = 1; gap.at <= calls; gap.at++ {
					gap.whole = true
					if _, err := w.inGap(t.Context(), &gap); err != nil {
						t.Fatalf("%s, before call %d of %s: %v", p.theirs.what, gap.at, p.mine.what, err)
					}
					if !gap.whole {
						lost = append(lost, gap.at)
					}
					gaps++
				}
				t.Logf("%s in %d gaps of %s, lost before the calls %d", p.theirs.what, gaps, p.mine.what, lost)
				if gaps == 0 || len(lost) > losses(w) {
					t.Errorf("lost in %d gaps, at most %d", len(lost), losses(w))
				}
			}
		})
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

// gap is an RPC and another one that another process makes before its at-th call
// leaves, or after it for 0.
type gap struct {
	mine, theirs  *process
	first, second rpc
	at            int
	one           *snapshot // what is left where one RPC comes after the other
	whole         bool      // nothing was lost
}

// inGap makes both RPCs and returns how many calls the first one took.
func (w *world) inGap(ctx context.Context, g *gap) (calls int, err error) {
	l := newLife(w)
	for _, step := range []rpc{create("one"), grant(carol, provider.ReadWrite, "one")} {
		if err := l.settle(ctx, g.mine, step); err != nil {
			return 0, fmt.Errorf("before: %w", err)
		}
	}
	l.note(g.first)
	l.note(g.second)
	var between outcome
	var betweenErr error
	reached := false
	g.mine.wire.arm(0, false)
	g.mine.wire.gap(g.at, func() {
		reached = true
		between, betweenErr = l.insist(ctx, g.theirs, g.second, l)
	})
	o, err := l.insist(ctx, g.mine, g.first, l)
	calls = g.mine.wire.count()
	g.mine.wire.gap(0, nil)
	if !reached {
		between, betweenErr = l.insist(ctx, g.theirs, g.second, l)
	}
	if err := errors.Join(err, betweenErr); err != nil {
		return calls, err
	}
	l.take(g.second, between)
	l.take(g.first, o)
	if err := g.settled(ctx, l); err != nil {
		g.whole = false
		for _, r := range []rpc{g.second, g.first} {
			if _, err := l.insist(ctx, g.theirs, r, l); err != nil {
				return calls, fmt.Errorf("repeated: %w", err)
			}
		}
		if err := g.settled(ctx, l); err != nil {
			return calls, fmt.Errorf("repeated: %w", err)
		}
	}
	end, err := l.finish(ctx, g.theirs)
	if err == nil && len(end.lines) > 0 {
		err = fmt.Errorf("left over:\n%s", end)
	}
	return calls, err
}

// settled checks that all is as where one RPC comes after the other.
func (g *gap) settled(ctx context.Context, l *life) error {
	now := l.state(l.driver)
	if g.one == nil {
		g.one = &now
	}
	if text := differences(now, *g.one); text != "" {
		return fmt.Errorf("the cloud differs:\n%s", text)
	}
	return errors.Join(l.ordered(g.first), l.serves(ctx))
}
