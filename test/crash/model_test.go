package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// story is the model of one driver's buckets and accesses, and the processes that
// serve them.
type story struct {
	*life
	ctx   context.Context
	clock *clock
	tally *tally

	exists   map[string]bool // buckets
	data     map[string]bool // buckets that hold an object
	accounts int             // how many accesses there have been

	mu        sync.Mutex
	processes [2]*process
	// returned is the key that a process has returned for an account.
	returned [2]map[string]string
}

func newStory(ctx context.Context, w *world, c *clock, count *tally) *story {
	return &story{
		life: newLife(w), ctx: ctx, clock: c, tally: count, exists: map[string]bool{}, data: map[string]bool{},
		returned: [2]map[string]string{{}, {}},
	}
}

// process returns the one in the slot, and starts it if there is none.
func (s *story) process(slot int) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[slot] == nil {
		p, err := s.start()
		if err != nil {
			return nil, err
		}
		s.processes[slot], s.returned[slot] = p, map[string]string{}
	}
	return s.processes[slot], nil
}

// restart ends the process in the slot.
func (s *story) restart(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.restarts.Add(1)
	s.processes[slot] = nil
}

// purged is the bucket that may be deleted with its data.
const purged = "bucket-b"

// make makes the bucket, with what its class says each time: one is named after its
// claim, and where buckets can share an owner, the other two are a tenant's.
func (s *story) make(bucket string) rpc {
	var class []string
	if s.name() == emulator.CloudCloudscale {
		class = team()
	}
	switch bucket {
	case "bucket-a":
		return createFor("prod", bucket)
	case purged:
		class = append(class, "bucketDeletionPolicy=DeleteAll")
	}
	return create(bucket, class...)
}

func drawBucketName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"bucket-a", "bucket-b", "bucket-c"}).Draw(t, "bucket")
}

// live returns the accounts that have an access, sorted.
func (s *story) live() []string {
	found := map[string]bool{}
	for k := range s.may {
		found[k[0]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// drawLive draws an account with an access, or skips the step.
func (s *story) drawLive(t *rapid.T) (account string, buckets []string, mode provider.Mode) {
	all := s.live()
	if len(all) == 0 {
		t.Skip("there is no access")
	}
	account = rapid.SampledFrom(all).Draw(t, "account")
	for k, m := range s.may {
		if k[0] == account {
			buckets, mode = append(buckets, k[1]), m
		}
	}
	slices.Sort(buckets)
	return account, buckets, mode
}

// newAccount names another access.
func (s *story) newAccount() string {
	s.accounts++
	return fmt.Sprintf("ba-%08x-0000-4000-9000-000000000000", s.accounts)
}

// drawGrant draws a new access to buckets that exist.
func (s *story) drawGrant(t *rapid.T) rpc {
	bucket := drawBucketName(t)
	buckets := []string{bucket}
	if rapid.IntRange(0, 3).Draw(t, "spans") == 0 {
		if other := drawBucketName(t); other != bucket && s.exists[other] {
			buckets = append(buckets, other)
		}
	}
	mode := rapid.SampledFrom([]provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly}).Draw(t, "mode")
	r := grant(s.newAccount(), mode, buckets...)
	if !s.exists[bucket] {
		r.want = provider.ErrNotFound
	}
	return r
}

func (s *story) drawDelete(t *rapid.T) rpc {
	bucket := drawBucketName(t)
	r := remove(bucket)
	if s.data[bucket] && bucket != purged {
		r.want = provider.ErrNotEmpty
	}
	return r
}

// actions returns what can happen.
func (s *story) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create": func(t *rapid.T) {
			bucket := drawBucketName(t)
			s.step(t, s.make(bucket))
		},
		"grant":       func(t *rapid.T) { s.step(t, s.drawGrant(t)) },
		"grant more":  func(t *rapid.T) { s.step(t, s.drawGrant(t)) },
		"delete":      func(t *rapid.T) { s.step(t, s.drawDelete(t)) },
		"grant again": func(t *rapid.T) { account, buckets, mode := s.drawLive(t); s.step(t, grant(account, mode, buckets...)) },
		"rotate": func(t *rapid.T) {
			account, buckets, _ := s.drawLive(t)
			s.step(t, rotate(account, rapid.Bool().Draw(t, "keep"), buckets...))
		},
		"retire": func(t *rapid.T) { account, buckets, _ := s.drawLive(t); s.step(t, retire(account, buckets...)) },
		"revoke": func(t *rapid.T) { account, buckets, _ := s.drawLive(t); s.step(t, revoke(account, buckets...)) },
		"revoke what is gone": func(t *rapid.T) {
			s.step(t, revoke(s.newAccount(), drawBucketName(t)))
		},
		"existing": func(t *rapid.T) {
			bucket := drawBucketName(t)
			r := existing(bucket)
			if !s.exists[bucket] {
				r.want = provider.ErrNotFound
			}
			s.step(t, r)
		},
		"two at a time": s.pair,
		"write":         s.write,
		"garbage":       s.garbage,
		"restart": func(t *rapid.T) {
			if rapid.Bool().Draw(t, "not now") {
				t.Skip("a new process costs much")
			}
			s.restart(rapid.IntRange(0, 1).Draw(t, "process"))
		},
	}
}

// step makes one RPC, in spite of all it meets, and checks what it has led to.
func (s *story) step(t *rapid.T, r rpc) {
	slot := rapid.IntRange(0, 1).Draw(t, "process")
	met := drawTrouble(t, s)
	t.Logf("process %d: %s %s, meets %+v", slot, r.what, r.account, met)
	s.note(r)
	o, err := s.insistIn(s.ctx, slot, r, met)
	if err != nil {
		t.Fatal(err)
	}
	s.settleWith(t, slot, r, o)
	s.check(t, r)
}

// pair makes two RPCs at a time: in two processes on two buckets, or in one.
func (s *story) pair(t *rapid.T) {
	first, second := s.drawGrant(t), s.drawGrant(t)
	if rapid.Bool().Draw(t, "create") {
		bucket := drawBucketName(t)
		second = s.make(bucket)
	}
	slots := [2]int{0, 1}
	if slices.ContainsFunc(first.buckets, func(b string) bool { return slices.Contains(second.buckets, b) }) {
		// Two processes that change one bucket at a time may undo one another's work.
		slots[1] = 0
		if second.account == "" {
			t.Skip("a creation beside a grant to the bucket has no one outcome")
		}
	}
	rpcs := [2]rpc{first, second}
	t.Logf("processes %d: %s %s | %s %s", slots, first.what, first.account, second.what, second.account)
	var outcomes [2]outcome
	var errs [2]error
	var both sync.WaitGroup
	for i := range rpcs {
		s.note(rpcs[i])
	}
	for i := range rpcs {
		both.Go(func() { outcomes[i], errs[i] = s.insistIn(s.ctx, slots[i], rpcs[i], trouble{}) })
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	s.tally.pairs.Add(1)
	for i := range rpcs {
		s.settleWith(t, slots[i], rpcs[i], outcomes[i])
	}
	s.check(t, first)
}

// settleWith makes the model follow.
func (s *story) settleWith(t *rapid.T, slot int, r rpc, o outcome) {
	s.tally.steps.Add(1)
	s.take(r, o)
	// What is late has come before anybody looks.
	s.clock.skip(2 * late)
	if r.want != nil {
		delete(s.touched, r.account)
		return
	}
	switch r.kind {
	case kindCreate:
		s.exists[r.buckets[0]] = true
	case kindDelete:
		delete(s.exists, r.buckets[0])
		delete(s.data, r.buckets[0])
	case kindRevoke:
		delete(s.touched, r.account)
	case kindGrant:
		id := o.credentials.AccessKeyID
		if was := s.returned[slot][r.account]; was != "" && was != id {
			t.Fatalf("process %d returned another key of %s than before", slot, r.account)
		}
		s.returned[slot][r.account] = id
	case kindRotate:
		delete(s.returned[1-slot], r.account)
		s.returned[slot][r.account] = o.credentials.AccessKeyID
	case kindRetire:
		for _, returned := range s.returned {
			if returned[r.account] != s.last(r.account) {
				delete(returned, r.account)
			}
		}
	}
}

// check tries the first and the last key of accounts on the buckets of the RPC:
// those of its own account, and of another one.
func (s *story) check(t *rapid.T, r rpc) {
	whose := []string{r.account}
	if n := len(s.handed); n > 0 {
		whose = append(whose, s.handed[rapid.IntRange(0, n-1).Draw(t, "beside")].account)
	}
	ctx, cancel := context.WithTimeout(s.ctx, rpcTimeout)
	defer cancel()
	for _, h := range s.ends(whose) {
		for _, bucket := range r.buckets {
			if !s.exists[bucket] {
				continue
			}
			err := s.try(ctx, h.key(), bucket, func(a attempt, open bool) error {
				s.tally.checks.Add(1)
				if may := s.may.allowed(a, h.account, bucket) && !h.gone; open != may {
					return fmt.Errorf("it may %s: %t, want %t", a.name, open, may)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("a key of %s on bucket %s: %v", h.account, bucket, err)
			}
		}
	}
}

// ends returns the first and the last key of each account that it may still use, as
// between them a driver may prune, and the last one that has been replaced.
func (s *story) ends(accounts []string) []handed {
	var found []handed
	for _, account := range slices.Compact(slices.Sorted(slices.Values(accounts))) {
		var first, last, gone *handed
		for i := range s.handed {
			switch h := &s.handed[i]; {
			case h.account != account:
			case h.gone:
				gone = h
			case first == nil:
				first = h
			default:
				last = h
			}
		}
		if last != nil && last.AccessKeyID == first.AccessKeyID {
			last = nil
		}
		for _, h := range []*handed{first, last, gone} {
			if h != nil {
				found = append(found, *h)
			}
		}
	}
	return found
}

// write puts an object into a bucket or removes it again.
func (s *story) write(t *rapid.T) {
	bucket := drawBucketName(t)
	if !s.exists[bucket] {
		t.Skip("there is no bucket")
	}
	c, err := s.admin(bucket)
	if err != nil {
		t.Fatal(err)
	}
	s.tally.steps.Add(1)
	if s.data[bucket] {
		err = c.DeleteObject(s.ctx, bucket, "data")
	} else {
		err = c.PutObject(s.ctx, bucket, "data", []byte("data"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.data[bucket] = !s.data[bucket]
}

// wellFormed is what the parts of an ID look like; the rest is garbage.
var wellFormed = regexp.MustCompile(`^[a-zA-Z0-9._-]+(/[a-zA-Z0-9._-]+){1,4}$`)

// garbage sends an ID that is not this driver's: an error, and no call.
func (s *story) garbage(t *rapid.T) {
	p, err := s.process(0)
	if err != nil {
		t.Fatal(err)
	}
	id := rapid.OneOf(
		rapid.StringN(1, 40, 80).Filter(func(s string) bool { return !wellFormed.MatchString(s) }),
		rapid.SampledFrom([]string{"other/lpg/bucket-a", "/", "a/b/c/d/e/f", backend + "/../bucket-a", backend + "/lpg/bucket-a/x y"}),
	).Draw(t, "id")
	p.wire.arm(0, false)
	s.tally.steps.Add(1)
	errs := map[string]error{"delete": p.DeleteBucket(s.ctx, id, nil)}
	_, errs["existing"] = p.GetExistingBucket(s.ctx, id, nil)
	g := grant(s.newAccount(), provider.ReadWrite, "x")
	s.bucketIDs["x"] = id
	_, errs["rotate"] = rotate(g.account, false, "x").do(s.ctx, s.life, p)
	errs["retire"] = p.RetireKeys(s.ctx, s.rotation(g.account, []string{"x"}))
	_, errs["grant"] = g.do(s.ctx, s.life, p)
	_, errs["revoke"] = revoke(g.account, "x").do(s.ctx, s.life, p)
	delete(s.bucketIDs, "x")
	for what, err := range errs {
		if !errors.Is(err, provider.ErrInvalidArgument) {
			t.Fatalf("%s of the ID %q: got %v, want ErrInvalidArgument", what, id, err)
		}
	}
	if n := p.wire.count(); n > 0 {
		t.Fatalf("the ID %q cost %d calls", id, n)
	}
}

// end revokes and deletes all, and wants nothing left.
func (s *story) end(t *rapid.T) {
	p, err := s.process(0)
	if err != nil {
		t.Fatal(err)
	}
	s.clock.skip(2 * late)
	left, err := s.finish(s.ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.lines) > 0 {
		t.Fatalf("left over:\n%s", left)
	}
}
