package gc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// scene is an emulated cloud with a driver's things in it.
type scene struct {
	*testing.T
	emu    *emulator.Emulator
	region string
	open   func(http.RoundTripper) (provider.Provider, error)
}

func newScene(t *testing.T, kind string) *scene {
	t.Helper()
	emu, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := emu.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &scene{T: t, emu: emu, region: "rma"}
	s.open = func(rt http.RoundTripper) (provider.Provider, error) {
		cs := emu.Cloudscale()
		return cloudscale.New(cloudscale.Config{
			DriverName: testDriver, APIURL: cs.APIURL, Endpoints: cs.Endpoints, Transport: rt,
			Token: func() (provider.Secret, error) { return provider.NewSecret(cs.Token), nil },
		})
	}
	if kind == emulator.CloudStackit {
		s.region = "eu01"
		s.open = func(rt http.RoundTripper) (provider.Provider, error) {
			st := emu.Stackit()
			return stackit.New(stackit.Config{
				DriverName: testDriver, APIURL: st.APIURL, Transport: rt, Regions: []string{"eu01"}, ListingWait: 10 * time.Millisecond,
				Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(st.ServiceAccountKey()), nil }},
			})
		}
	}
	return s
}

func (s *scene) provider() provider.Provider {
	s.Helper()
	p, err := s.open(nil)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// account is what COSI calls the n-th access.
func account(n int) string { return fmt.Sprintf("ba-6a1e3b5c-9d2f-4e7a-8b1c-%012d", n) }

// fill makes buckets. Those called live are wanted, and so is one of their two
// accesses; the others have one that nobody wants, and the one called full holds data.
func (s *scene) fill(p provider.Provider, names ...string) (expect Expected) {
	s.Helper()
	expect.Ours = 1
	for n, name := range names {
		if _, err := p.CreateBucket(s.Context(), provider.BucketSpec{Name: name, Region: s.region}); err != nil {
			s.Fatal(err)
		}
		for m, wanted := range []bool{true, false} {
			live := strings.HasPrefix(name, "live")
			if wanted && !live {
				continue
			}
			ref := provider.BucketRef{Name: name, Region: s.region}
			a, err := p.GrantAccess(s.Context(), provider.AccessSpec{Account: account(2*n + m), Buckets: []provider.BucketAccess{{BucketRef: ref}}})
			if err != nil {
				s.Fatal(err)
			}
			if wanted {
				expect.AddAccount(account(2*n+m), a.IdentityID)
			}
			if name == "full" {
				s.put(a, name)
			}
		}
		if strings.HasPrefix(name, "live") {
			expect.AddBucket(name)
		}
	}
	return expect
}

// look returns everything that is in the clouds, without IDs, sorted.
func (s *scene) look() string {
	var all []string
	for _, u := range s.emu.Cloudscale().Users() {
		all = append(all, "user "+u.DisplayName)
	}
	for _, b := range append(s.emu.Cloudscale().Buckets(), s.emu.Stackit().Buckets()...) {
		all = append(all, fmt.Sprintf("bucket %s, %d objects", b.Name, b.Objects))
	}
	for _, g := range s.emu.Stackit().Groups() {
		all = append(all, "group "+g.DisplayName)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// collector is that of a new process.
func (s *scene) collector(expect Expected, rt http.RoundTripper) *Collector {
	s.Helper()
	p, err := s.open(rt)
	if err != nil {
		s.Fatal(err)
	}
	return collectorOver(expect, p)
}

// collect is a whole run.
func collect(ctx context.Context, c *Collector, purge bool) (*Plan, error) {
	plan, err := c.Look(ctx)
	if err != nil {
		return nil, err
	}
	if len(plan.Unread) > 0 {
		return plan, errors.Join(plan.Unread...)
	}
	return plan, c.Delete(ctx, plan, purge)
}

func outcomes(p *Plan) map[Outcome]int {
	found := map[Outcome]int{}
	for _, i := range p.Items {
		found[i.Outcome]++
	}
	return found
}

// onBoth runs a test over both clouds.
func onBoth(t *testing.T, f func(s *scene)) {
	t.Helper()
	for _, kind := range []string{emulator.CloudCloudscale, emulator.CloudStackit} {
		t.Run(kind, func(t *testing.T) { f(newScene(t, kind)) })
	}
}

// TestCollect: what is wanted stays, what holds data stays, everything else goes.
func TestCollect(t *testing.T) {
	onBoth(t, func(s *scene) {
		expect := s.fill(s.provider(), "live-1", "live-2", "orphan", "full")
		old := s.collector(expect, nil)
		old.MinAge = time.Hour
		plan, err := collect(s.Context(), old, true)
		if err != nil || plan.Orphans() != 0 || len(outcomes(plan)) != 1 {
			s.Fatalf("of what is an hour old at most: %v, %+v", err, plan.Items)
		}
		c := s.collector(expect, nil)
		plan, err = collect(s.Context(), c, false)
		if err != nil {
			s.Fatal(err)
		}
		left := s.look()
		for _, i := range plan.Items {
			want := Outcome("")
			switch {
			case i.Kind != provider.KindAccess && i.Bucket == "full":
				want = Refused
			case i.Verdict == Orphan:
				want = Deleted
			}
			if i.Outcome != want {
				s.Errorf("%+v: outcome %q, want %q (%v)", i.Resource, i.Outcome, want, i.Err)
			}
			if made, ok := i.Age(time.Now()); i.Verdict == Orphan && i.Kind != provider.KindAccess && (!ok || made > time.Hour) {
				s.Errorf("%+v: age %s, %t", i.Resource, made, ok)
			}
		}
		if !strings.Contains(left, "bucket full, 1 objects") || strings.Contains(left, "orphan") || !strings.Contains(left, "bucket live-2") {
			s.Errorf("left:\n%s", left)
		}
		if plan, err = collect(s.Context(), s.collector(expect, nil), true); err != nil || strings.Contains(s.look(), "full") {
			s.Errorf("with a purge: %v, %+v", err, plan.Items)
		}
	})
}

// errCrash is what the calls of a crashed process meet.
var errCrash = errors.New("the process has crashed")

// crashing carries requests out until the n-th, which it drops, or carries out and
// loses the answer of. After it nothing goes out any more.
type crashing struct {
	after bool
	crash context.CancelFunc

	mu   sync.Mutex
	left int
}

func (c *crashing) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.left--
	left := c.left
	c.mu.Unlock()
	if left > 0 {
		return http.DefaultTransport.RoundTrip(req)
	}
	if left == 0 && c.after {
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	c.crash()
	return nil, errCrash
}

// TestEveryCallMayBeTheLast: a run that is stopped at any outbound call, before it
// or after it was carried out, and run again, ends as an undisturbed one.
func TestEveryCallMayBeTheLast(t *testing.T) {
	onBoth(t, func(s *scene) {
		kind := s.Name()[strings.LastIndex(s.Name(), "/")+1:]
		undisturbed := newScene(s.T, kind)
		if _, err := collect(s.Context(), undisturbed.collector(undisturbed.fill(undisturbed.provider(), "live-1", "full"), nil), true); err != nil {
			s.Fatal(err)
		}
		want := undisturbed.look()
		for n := 1; ; n++ {
			// Odd calls are dropped, even ones are carried out and their answer is lost;
			// a long run does both for each.
			reached := false
			for _, after := range []bool{false, true} {
				if testing.Short() && after != (n%2 == 0) {
					continue
				}
				here := newScene(s.T, kind)
				expect := here.fill(here.provider(), "live-1", "full")
				ctx, cancel := context.WithCancel(s.Context())
				rt := &crashing{after: after, crash: cancel, left: n}
				_, err := collect(ctx, here.collector(expect, rt), true)
				cancel()
				reached = reached || rt.left <= 0
				if rt.left > 0 && err != nil {
					s.Fatalf("undisturbed run: %v", err)
				}
				if _, err := collect(s.Context(), here.collector(expect, nil), true); err != nil {
					s.Fatalf("repeated after a crash at call %d (carried out: %t): %v", n, after, err)
				}
				if got := here.look(); got != want {
					s.Fatalf("after a crash at call %d (carried out: %t) there is\n%s\nwant\n%s", n, after, got, want)
				}
			}
			if !reached {
				s.Logf("%d calls", n-1)
				return
			}
		}
	})
}

// put stores an object with the key of an access.
func (s *scene) put(a provider.Access, bucket string) {
	s.Helper()
	client, err := s3.New(s3.Config{Endpoint: a.Buckets[0].Endpoint, AccessKeyID: a.Credentials.AccessKeyID, SecretAccessKey: a.Credentials.SecretAccessKey.Reveal})
	if err != nil {
		s.Fatal(err)
	}
	if err := client.PutObject(s.Context(), bucket, "precious", []byte("data")); err != nil {
		s.Fatal(err)
	}
}
