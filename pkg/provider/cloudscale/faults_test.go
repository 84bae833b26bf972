package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// step is one method of the provider, to be disturbed.
type step struct {
	name    string
	prepare func(c *cloud) provider.Bucket
	run     func(ctx context.Context, p *Provider, b provider.Bucket) error
	left    []string // buckets, each with its owner, after an undisturbed run
	access  []string // accesses after an undisturbed run
}

func steps() []step {
	spec := provider.BucketSpec{Name: "bucket", Region: "lpg"}
	create := func(ctx context.Context, p *Provider, _ provider.Bucket) error {
		_, err := p.CreateBucket(ctx, spec)
		return err
	}
	exists := func(c *cloud) provider.Bucket {
		b, _ := c.make(spec)
		return b
	}
	full := func(c *cloud) provider.Bucket {
		b, client := c.make(spec)
		c.must(client.SetVersioning(c.t.Context(), b.Name, true))
		c.fill(client, b.Name, 3)
		c.must(client.DeleteObject(c.t.Context(), b.Name, "object/00001"))
		_, err := client.StartUpload(c.t.Context(), b.Name, "upload")
		c.must(err)
		return b
	}
	// Two accesses, and an object that one of them wrote.
	granted := func(c *cloud) provider.Bucket {
		b, _ := c.make(spec)
		for _, account := range []string{"ba-1", "ba-2"} {
			a, err := c.GrantAccess(c.t.Context(), accessOf(account, b, provider.ReadWrite))
			c.must(err)
			c.must(c.keyClient(a).PutObject(c.t.Context(), b.Name, account, []byte("data")))
		}
		return b
	}
	emptied := func(c *cloud) provider.Bucket {
		b := granted(c)
		for _, account := range []string{"ba-1", "ba-2"} {
			c.must(c.clientOf(c.Provider, b).DeleteObject(c.t.Context(), b.Name, account))
		}
		return b
	}
	bucket := []string{"bucket"}
	grant := func(spec func(b provider.Bucket) provider.AccessSpec) func(context.Context, *Provider, provider.Bucket) error {
		return func(ctx context.Context, p *Provider, b provider.Bucket) error {
			_, err := p.GrantAccess(ctx, spec(b))
			return err
		}
	}
	return []step{
		{"create", func(*cloud) provider.Bucket { return provider.Bucket{} }, create, bucket, nil},
		{"create of what exists", exists, create, bucket, nil},
		{
			"create of a foreign name",
			func(c *cloud) provider.Bucket {
				b, _ := c.foreign("bucket", "lpg")
				return b
			},
			func(ctx context.Context, p *Provider, b provider.Bucket) error {
				if err := create(ctx, p, b); !errors.Is(err, provider.ErrAlreadyExists) {
					return fmt.Errorf("got %w, want ErrAlreadyExists", err)
				}
				return nil
			}, nil, nil,
		},
		{"grant", exists, grant(func(b provider.Bucket) provider.AccessSpec { return accessTo(b.BucketRef) }), bucket, []string{"bucket ba-1"}},
		{"grant to one more, and another mode", granted, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			for _, spec := range []provider.AccessSpec{accessOf("ba-1", b, provider.ReadOnly), accessOf("ba-3", b, provider.WriteOnly)} {
				if _, err := p.GrantAccess(ctx, spec); err != nil {
					return err
				}
			}
			return nil
		}, bucket, []string{"bucket ba-1", "bucket ba-2", "bucket ba-3"}},
		{"grant of the shared key", exists, grant(func(b provider.Bucket) provider.AccessSpec { return sharedTo(b.BucketRef) }), bucket, nil},
		{"revoke of nothing", exists, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}})
		}, bucket, nil},
		{"revoke", granted, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}})
		}, bucket, []string{"bucket ba-2"}},
		{"rotate", granted, func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			_, err := p.RotateAccess(ctx, provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{})
			return err
		}, bucket, []string{"bucket ba-1", "bucket ba-2"}},
		{"rotate with a grace", granted, func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			first, err := keyOf(ctx, p, 0)
			if err == nil {
				_, err = p.RotateAccess(ctx, provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{KeepAccessKeyID: first})
			}
			return err
		}, bucket, []string{"bucket ba-1", "bucket ba-1", "bucket ba-2"}},
		{"retire a key", func(c *cloud) provider.Bucket {
			b := granted(c)
			first, err := keyOf(c.t.Context(), c.Provider, 0)
			c.must(err)
			_, err = c.RotateAccess(c.t.Context(), provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{KeepAccessKeyID: first})
			c.must(err)
			return b
		}, func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			second, err := keyOf(ctx, p, 1)
			if err == nil {
				err = p.RetireKeys(ctx, provider.AccountRef{Account: "ba-1"}, second)
			}
			return err
		}, bucket, []string{"bucket ba-1", "bucket ba-2"}},
		{"revoke after a rotation", func(c *cloud) provider.Bucket {
			b := granted(c)
			first, err := keyOf(c.t.Context(), c.Provider, 0)
			c.must(err)
			_, err = c.RotateAccess(c.t.Context(), provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{KeepAccessKeyID: first})
			c.must(err)
			return b
		}, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}})
		}, bucket, []string{"bucket ba-2"}},
		{"delete with accesses", emptied, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
		}, nil, nil},
		{"purge with accesses", granted, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.DeleteBucket(ctx, b.BucketRef, purge)
		}, nil, nil},
		{"delete", exists, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
		}, nil, nil},
		{"delete without the owner's ID", exists, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			b.OwnerID = ""
			return p.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
		}, nil, nil},
		{"purge", full, func(ctx context.Context, p *Provider, b provider.Bucket) error {
			return p.DeleteBucket(ctx, b.BucketRef, purge)
		}, nil, nil},
	}
}

// keyOf returns the access key ID of ba-1 after so many rotations.
func keyOf(ctx context.Context, p *Provider, rotation int) (string, error) {
	found, err := p.accessesOf(ctx, "ba-1")
	if err != nil {
		return "", err
	}
	for _, a := range found {
		if a.rotation == rotation {
			key, err := a.key()
			return key.id, err
		}
	}
	return "", fmt.Errorf("no user of rotation %d among %d", rotation, len(found))
}

// A process may end at any outbound call, before it leaves or before its answer
// arrives. A repetition by a new process must end as an undisturbed run.
func TestAnyCallMayBeTheLast(t *testing.T) {
	for _, s := range append(steps(), spanSteps()...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			process := func(c *cloud) *Provider {
				p := c.provider()
				if s.name != "grant" {
					c.trust(p) // one step with a probe in it is enough
				}
				return p
			}
			c := newCloud(t, emulator.Options{})
			c.trust(c.Provider)
			b := s.prepare(c)
			c.ResetCalls()
			c.must(s.run(t.Context(), process(c), b))
			total := len(c.Calls())
			c.wantLeft(s.left...)
			c.wantAccesses(s.access...)
			want := c.endState()
			if total == 0 {
				t.Fatal("the step made no call")
			}
			for k := range total {
				for i, carriedOut := range []bool{false, true} {
					if testing.Short() && (k+3*i)%6 != 0 {
						continue
					}
					t.Run(fmt.Sprintf("call %d carried out %t", k, carriedOut), func(t *testing.T) {
						t.Parallel()
						c := newCloud(t, emulator.Options{})
						c.trust(c.Provider)
						b := s.prepare(c)
						last := emulator.Fault{After: k, Times: 1, CutConnection: !carriedOut, LoseAnswer: carriedOut}
						removes := []func(){c.Inject(last), c.Inject(emulator.Fault{After: k + 1, CutConnection: true})}
						p := process(c)
						// The dying process does not wait for its retries.
						p.api = newAPI(p.api.BaseURL, c.spy, p.config)
						p.transport = c.spy
						if err := c.keep(s.run(t.Context(), p, b)); err == nil {
							t.Error("the disturbed run succeeded")
						}
						for _, remove := range removes {
							remove()
						}
						c.must(s.run(t.Context(), process(c), b))
						c.wantLeft(s.left...)
						c.wantAccesses(s.access...)
						if got := c.endState(); got != want {
							t.Errorf("the end is\n%s\nwant\n%s", got, want)
						}
					})
				}
			}
		})
	}
}

// Single faults that the transport does not hide: the call fails in a way that a
// repetition heals, or survives. Two kinds meet every call; the others, which differ
// in how the transport sees them and not in what the provider makes of them, take
// turns, so that every call meets one of those too. In short mode all take turns.
func TestSingleFaults(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html"}}
	faults := map[string]emulator.Fault{
		"502 page":     {Status: 502, Header: html, Body: "<html><head><title>502 Bad\nGateway</title></head></html>"},
		"500 empty":    {Status: 500},
		"503":          {Status: 503, Body: `{"detail":"maintenance"}`},
		"429":          {Status: 429, Header: http.Header{"Retry-After": {"0"}}},
		"cut":          {CutConnection: true},
		"lost":         {LoseAnswer: true},
		"reset":        {ResetBodyAfter: 1},
		"429 for ever": {Status: 429, Header: http.Header{"Retry-After": {"3600"}}},
	}
	names := slices.Sorted(maps.Keys(faults))
	for _, s := range steps() {
		for turn, name := range names {
			first, every := turn, len(names)
			if !testing.Short() && (name == "lost" || name == "502 page") {
				first, every = 0, 1
			}
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := newCloud(t, emulator.Options{})
				c.trust(c.Provider)
				b := s.prepare(c)
				for k := first; ; k += every {
					f := faults[name]
					f.After, f.Times = k, 1
					remove := c.Inject(f)
					c.ResetCalls()
					err := c.keep(s.run(t.Context(), c.Provider, b))
					hit := len(c.Calls()) > k
					remove()
					if f.Status == http.StatusTooManyRequests && err != nil {
						// This process leaves the endpoint alone for minutes.
						c.Provider = c.provider()
						c.trust(c.Provider)
					}
					if err != nil {
						if !errors.Is(err, provider.ErrUnavailable) && !errors.Is(err, provider.ErrAlreadyExists) &&
							!errors.Is(err, provider.ErrConflict) {
							t.Errorf("call %d: got %v, want an error that asks for a repetition", k, err)
						}
						c.must(s.run(t.Context(), c.Provider, b))
					}
					c.wantLeft(s.left...)
					c.wantAccesses(s.access...)
					if !hit {
						return
					}
					// The next round starts from the same state.
					for _, name := range s.left {
						_ = c.DeleteBucket(t.Context(), provider.BucketRef{Name: name, Region: "lpg"}, purge)
					}
					if s.name != "create of a foreign name" {
						b = s.prepare(c)
					}
				}
			})
		}
	}
}

func TestKeyThatIsLate(t *testing.T) {
	delay := map[string]emulator.Delay{"lpg": {Min: 150 * time.Millisecond, Max: 150 * time.Millisecond}}
	now := newClock()
	var told []time.Duration
	c := newCloud(t, emulator.Options{KeyDelay: delay, Now: now.Now}, func(c *Config) {
		c.KeyWait = time.Hour
		c.OnKeyWait = func(region string, waited time.Duration) {
			now.move(50 * time.Millisecond)
			if region == "lpg" {
				told = append(told, waited)
			}
		}
	})
	b, _ := c.make(provider.BucketSpec{Name: "late", Region: "lpg"})
	if n := c.count("CreateBucket"); n != 4 || len(told) != n-1 || !slices.IsSorted(told) {
		t.Errorf("%d calls of CreateBucket, told of %v; want 4 calls and one less waits, growing", n, told)
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	// The master knows at once.
	c.ResetCalls()
	c.make(provider.BucketSpec{Name: "prompt", Region: "rma"})
	if n := c.count("CreateBucket"); n != 1 {
		t.Errorf("%d calls of CreateBucket, want 1", n)
	}
}

// The owner's key is waited for by Grant too: the bucket can be older than the
// key if that was replaced.
func TestGrantWaitsForTheKey(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "lpg"})
	c.Inject(emulator.Fault{Operation: "ListBuckets", Times: 3, Status: 403, Body: "<Error><Code>InvalidAccessKeyId</Code></Error>"})
	c.ResetCalls()
	_, err := c.GrantAccess(t.Context(), sharedTo(b.BucketRef))
	c.must(err)
	if n := c.count("ListBuckets"); n != 4 {
		t.Errorf("%d probes, want 4", n)
	}
}

func TestKeyThatNeverComes(t *testing.T) {
	delay := map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}
	c := newCloud(t, emulator.Options{KeyDelay: delay}, func(c *Config) { c.KeyWait = 60 * time.Millisecond })
	spec := provider.BucketSpec{Name: "never", Region: "lpg"}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable, "never", "lpg", "after", "ms", "repeat")
	// The owner stays, and a repetition makes no second one.
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable)
	if n := len(c.cs.Users()); n != 1 {
		t.Errorf("%d owners, want 1", n)
	}
}

func TestOtherRefusalsAreNotWaitedFor(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for code, sentinel := range map[string]error{
		"AccessDenied":          provider.ErrPermissionDenied,
		"SignatureDoesNotMatch": provider.ErrUnauthenticated,
		"RequestTimeTooSkewed":  provider.ErrPrecondition,
	} {
		remove := c.Inject(emulator.Fault{Operation: "CreateBucket", Status: 403, Body: "<Error><Code>" + code + "</Code></Error>"})
		c.ResetCalls()
		_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "rma"})
		c.want(err, sentinel, code)
		if n := c.count("CreateBucket"); n != 1 {
			t.Errorf("%s: %d calls, want 1", code, n)
		}
		remove()
	}
}

func TestOwnerThatVanishesWhileItsKeyIsWaitedFor(t *testing.T) {
	delay := map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}
	var c *cloud
	c = newCloud(t, emulator.Options{KeyDelay: delay}, func(config *Config) {
		config.OnKeyWait = func(string, time.Duration) {
			for _, u := range c.cs.Users() {
				c.must(c.deleteUser(t.Context(), u.ID))
			}
		}
	})
	_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "lpg"})
	c.want(err, provider.ErrConflict, "repeat")
}

func TestCancellationReturnsAtOnce(t *testing.T) {
	for _, plane := range []string{emulator.PlaneControl, emulator.PlaneS3} {
		for _, s := range steps() {
			t.Run(s.name+" "+plane, func(t *testing.T) {
				t.Parallel()
				c := newCloud(t, emulator.Options{})
				b := s.prepare(c)
				c.ResetCalls()
				remove := c.Inject(emulator.Fault{Plane: plane, Latency: 30 * time.Second})
				defer remove()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				defer cancel()
				began := time.Now()
				err := c.keep(s.run(ctx, c.Provider, b))
				if d := time.Since(began); d > 10*time.Second {
					t.Errorf("returned after %s", d)
				}
				reached := slices.ContainsFunc(c.Calls(), func(call emulator.Call) bool { return call.Plane == plane })
				if reached && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			})
		}
	}
}

func TestCancellationEndsTheWaitForAKey(t *testing.T) {
	delay := map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}
	ctx, cancel := context.WithCancel(t.Context())
	c := newCloud(t, emulator.Options{KeyDelay: delay}, func(c *Config) {
		c.OnKeyWait = func(string, time.Duration) { cancel() }
	})
	c.waits = backoff{first: 5 * time.Second, most: 5 * time.Second}
	began := time.Now()
	_, err := c.CreateBucket(ctx, provider.BucketSpec{Name: "abc", Region: "lpg"})
	c.want(err, context.Canceled)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("returned after %s", d)
	}
}

// The clean-up of a call that lost runs although its context has ended.
func TestCleanUpOutlivesTheContext(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	u, err := c.createUser(t.Context(), "made", map[string]string{tagManagedBy: testDriver})
	c.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Inject(emulator.Fault{Operation: "DeleteObjectsUser", Times: 2, Status: 503})
	cause := refuse(provider.ErrConflict, "cause")
	if err := c.removeMade(ctx, u.id, cause); !errors.Is(err, cause) || len(c.cs.Users()) != 0 {
		t.Errorf("got %v and %d users left, want the cause and none", err, len(c.cs.Users()))
	}
	u, err = c.createUser(t.Context(), "made", map[string]string{tagManagedBy: testDriver})
	c.must(err)
	c.Inject(emulator.Fault{Operation: "DeleteObjectsUser", Status: 403})
	c.want(c.removeMade(ctx, u.id, cause), provider.ErrConflict, u.id, "403")
}

func TestCallsDoNotGrow(t *testing.T) {
	measure := func(others int) map[string]map[string]int {
		c := newCloud(t, emulator.Options{})
		owner := c.provider(func(c *Config) { c.DriverName = "other.example" })
		for i := range others {
			_, err := owner.CreateBucket(t.Context(), provider.BucketSpec{Name: fmt.Sprintf("other-%d", i), Region: "rma"})
			c.must(err)
		}
		result := map[string]map[string]int{}
		for _, s := range steps() {
			b := s.prepare(c)
			c.ResetCalls()
			c.must(s.run(t.Context(), c.provider(), b))
			result[s.name] = map[string]int{}
			for _, call := range c.Calls() {
				result[s.name][call.Operation]++
			}
			for _, name := range s.left {
				c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: name, Region: "lpg"}, purge))
			}
			if s.name == "create of a foreign name" {
				p := c.provider(withToken(c.cs.ForeignToken), func(c *Config) { c.DriverName = "other.example" })
				c.must(p.DeleteBucket(t.Context(), b.BucketRef, purge))
			}
		}
		return result
	}
	few, many := measure(1), measure(1000)
	t.Logf("calls by RPC: %v", many)
	for name := range few {
		if !maps.Equal(few[name], many[name]) {
			t.Errorf("%s: calls with 1 other bucket %v, with 1000 %v", name, few[name], many[name])
		}
	}
}
