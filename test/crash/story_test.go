package crash

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

var steps = flag.Int("steps", 10_000, "how many random steps TestRandomStories makes, about")

const (
	lanes      = 32 // stories at a time; they wait more than they work
	shortLanes = 4
	storySize  = 25 // actions of a story, on average; some are no steps
	// late is the longest that the emulated clouds take for what they do late: a
	// hundredth of what is known of the real ones, or less.
	late = 30 * time.Millisecond
)

// clock is the emulator's. It can be put forward, so that nobody has to wait until
// what is late has come.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) skip(d time.Duration) { c.ahead.Add(int64(d)) }

// lane tells one story after the other, each with a driver of its own. A world in
// which a story went wrong is not used again.
type lane struct {
	mu      sync.Mutex
	number  int
	stories int
	world   *world // nil when there is none to go on with
	clock   *clock
}

// TestRandomStories: whatever happens to a driver, every access may do what its
// last settled RPC says and nothing else, and nothing is left over in the end.
func TestRandomStories(t *testing.T) {
	wanted, lanes := *steps, lanes
	if testing.Short() {
		wanted, lanes = wanted/100, shortLanes
	}
	// About a fifth of the actions are no steps.
	checks := max(1, (wanted*5/4+lanes*storySize-1)/(lanes*storySize))
	if testing.Short() {
		checks *= 5 // of which rapid makes a fifth
	}
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for name, value := range map[string]int{"rapid.checks": checks, "rapid.steps": storySize} {
		if set[name] {
			continue
		}
		if err := flag.Set(name, strconv.Itoa(value)); err != nil {
			t.Fatal(err)
		}
	}
	count := &tally{}
	var all []*lane
	for n := range lanes / 2 {
		worlds, c := lateClouds(t, n)
		for i, w := range worlds {
			all = append(all, &lane{number: 2*n + i, world: w, clock: c})
		}
	}
	// As parallel tests there would be no more lanes than processors.
	var told sync.WaitGroup
	for _, l := range all {
		told.Go(func() {
			t.Run(fmt.Sprintf("%s/%d", l.world.name(), l.number), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { l.tell(t, rt, count) })
			})
		})
	}
	told.Wait()
	t.Logf("%s", count)
}

// tell is one story.
func (l *lane) tell(t *testing.T, rt *rapid.T, count *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil {
		worlds, c := lateClouds(t, l.number)
		l.world, l.clock = worlds[l.number%2], c
	}
	w := l.world
	l.world = nil
	l.stories++
	w.driver, w.cluster = fmt.Sprintf("s%d-%d.zuber.dev", l.number, l.stories), "blue"
	s := newStory(t.Context(), w, l.clock, count)
	rt.Repeat(s.actions())
	s.end(rt)
	l.world = w
}

// lateClouds starts both clouds, with everything late.
func lateClouds(t *testing.T, number int) ([]*world, *clock) {
	t.Helper()
	c := &clock{}
	sometimes := emulator.Delay{Min: time.Millisecond, Max: late, QuickShare: 0.7}
	return newWorlds(t, emulator.Options{
		Seed: uint64(number) + 1, Now: c.now, KeyDelay: map[string]emulator.Delay{"lpg": sometimes},
		Stackit: emulator.StackitOptions{ListDelay: emulator.Delay{Max: listingWait}, PolicyDelay: sometimes, KeyDelay: sometimes},
	}, propagationWait), c
}

// tally counts what has happened in all stories.
type tally struct {
	steps, rpcs, faults, crashes, restarts, deadlines, pairs, checks atomic.Int64
}

func (t *tally) String() string {
	var parts []string
	for _, c := range []struct {
		what string
		n    *atomic.Int64
	}{
		{"steps", &t.steps}, {"RPCs", &t.rpcs}, {"with faults", &t.faults}, {"crashes", &t.crashes}, {"restarts", &t.restarts},
		{"deadlines", &t.deadlines}, {"pairs at a time", &t.pairs}, {"S3 checks", &t.checks},
	} {
		parts = append(parts, fmt.Sprintf("%d %s", c.n.Load(), c.what))
	}
	return strings.Join(parts, ", ")
}

// insistIn repeats an RPC with what it meets until it is settled.
func (s *story) insistIn(ctx context.Context, slot int, r rpc, met trouble) (outcome, error) {
	s.tally.rpcs.Add(1)
	remove := met.inject(s)
	defer remove()
	var err error
	for try := range storyTries {
		p, startErr := s.process(slot)
		if startErr != nil {
			return outcome{}, startErr
		}
		bounded, cancel := ctx, context.CancelFunc(func() {})
		if try == 0 {
			p.wire.arm(met.crashAt, met.carriedOut)
			if met.deadline > 0 {
				bounded, cancel = context.WithTimeout(ctx, met.deadline)
			}
		}
		var o outcome
		var crashed bool
		o, crashed, err = s.call(bounded, p, func(ctx context.Context, p *process) (outcome, error) { return r.do(ctx, s.life, p) })
		cancel()
		switch {
		case crashed:
			s.tally.crashes.Add(1)
			s.restart(slot)
			err = errCrash
			continue
		case r.settled(err):
			p.wire.arm(0, false)
			return o, nil
		case !passing(err):
			return o, fmt.Errorf("%s, try %d: the error does not ask for a repetition: %w", r.what, try+1, err)
		}
		if try == storyTries/2 {
			// An outage that lasts is not what is tried here.
			remove()
		}
	}
	return outcome{}, fmt.Errorf("%s, repeated %d times: %w", r.what, storyTries, err)
}
