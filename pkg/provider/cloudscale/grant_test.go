package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

func modesOf() []provider.Mode {
	return []provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly}
}

func refOf(account string, b provider.Bucket) provider.AccountRef {
	return provider.AccountRef{Account: account, Buckets: []provider.BucketRef{b.BucketRef}}
}

func TestGrantGivesAnIdentityOfItsOwn(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	one, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	two, err := c.GrantAccess(t.Context(), accessOf("BA two", b, provider.ReadOnly))
	c.must(err)
	if one.IdentityID == b.OwnerID || one.IdentityID == two.IdentityID || one.Credentials == two.Credentials || one.Buckets[0] != b {
		t.Errorf("the accesses are %+v and %+v", one, two)
	}
	// A new process returns the same.
	again, err := c.provider().GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	if again.Credentials != one.Credentials || again.IdentityID != one.IdentityID {
		t.Error("a repeated grant returned another key")
	}
	policy, err := owner.Policy(t.Context(), b.Name)
	c.must(err)
	for _, id := range []string{b.OwnerID, one.IdentityID, two.IdentityID} {
		if !strings.Contains(policy, "arn:aws:iam:::user/"+id+`"`) {
			t.Errorf("the policy does not name %s: %s", id, policy)
		}
	}
	for _, u := range c.cs.Users() {
		if u.ID == two.IdentityID && (u.Tags[tagRole] != roleAccess || u.Tags[tagMember+bucketKey(b.Name)] != b.Name ||
			u.Tags[tagTerms+bucketKey(b.Name)] != "ro.lpg."+ownerTag(b.OwnerID)+".in" || len(u.Tags) != 5) {
			t.Errorf("tags %v", u.Tags)
		}
	}
	c.wantAccesses("bucket ba-1", "bucket "+accountTag("BA two"))
}

// The writer owns an object, and yet the owner of the bucket reads, copies and
// purges it.
func TestOwnerHasWhatAccessesWrite(t *testing.T) {
	for _, region := range []string{"rma", "lpg"} {
		c := newCloud(t, emulator.Options{})
		b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: region})
		for _, mode := range modesOf() {
			a, err := c.GrantAccess(t.Context(), accessOf("ba-"+string(mode), b, mode))
			c.must(err)
			key := "by " + string(mode)
			err = c.keyClient(a).PutObject(t.Context(), b.Name, key, []byte(mode))
			if mode == provider.ReadOnly {
				if s3.StatusCode(err) != http.StatusForbidden {
					t.Errorf("a reader writes: %v", err)
				}
				continue
			}
			c.must(err)
			for range 2 {
				got, err := owner.GetObject(t.Context(), b.Name, key)
				c.must(err)
				if string(got) != string(mode) {
					t.Errorf("read %q", got)
				}
				c.must(owner.CopyObject(t.Context(), b.Name, key, "copy of "+key))
				// Nor does it change when the writer is gone.
				c.must(c.RevokeAccess(t.Context(), refOf("ba-"+string(mode), b)))
			}
		}
		c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
		c.wantLeft()
		c.wantAccesses()
	}
}

// A writer cannot publish what it wrote, by no ACL that an upload can carry.
func TestWritersCannotPublish(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", []byte("data")))
	puts := 0
	for _, call := range c.Calls() {
		if call.Operation == "PutPublicAccessBlock" && strings.Contains(call.Path, b.Name) {
			puts++
		}
	}
	if puts != 1 {
		t.Errorf("public ACLs were switched off %d times, want once", puts)
	}
	nobody, err := c.client(b.Endpoint, keyPair{})
	c.must(err)
	if _, err := nobody.GetObject(t.Context(), b.Name, "key"); s3.StatusCode(err) != http.StatusForbidden {
		t.Errorf("anybody reads: %v", err)
	}
}

func TestModeOfAnAccessCanChange(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	c.must(owner.PutObject(t.Context(), b.Name, "key", []byte("data")))
	var first provider.Access
	for i, mode := range []provider.Mode{provider.ReadWrite, provider.WriteOnly, provider.ReadOnly, ""} {
		a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, mode))
		c.must(err)
		if i > 0 && a.Credentials != first.Credentials {
			t.Error("the key changed")
		}
		first = a
		_, readErr := c.keyClient(a).GetObject(t.Context(), b.Name, "key")
		writeErr := c.keyClient(a).PutObject(t.Context(), b.Name, "other", nil)
		if (readErr == nil) != (mode != provider.WriteOnly) || (writeErr == nil) != (mode != provider.ReadOnly) {
			t.Errorf("mode %q: read %v, write %v", mode, readErr, writeErr)
		}
	}
}

func TestPolicyEditedByHandIsRestored(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.WriteOnly))
	c.must(err)
	want, err := owner.Policy(t.Context(), b.Name)
	c.must(err)
	for _, edited := range []string{"", `{"Version":"2012-10-17","Statement":[]}`, strings.Replace(want, "s3:GetBucketVersioning", "s3:*", 1)} {
		c.must(owner.SetPolicy(t.Context(), b.Name, edited))
		_, err := c.provider().GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
		c.must(err)
		got, err := owner.Policy(t.Context(), b.Name)
		c.must(err)
		if got != want {
			t.Errorf("the policy is %s", got)
		}
	}
}

// Processes that grant and revoke at the same time end in the policy of those who
// are left.
func TestConcurrentWritersOfAPolicy(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	c.must(owner.PutObject(t.Context(), b.Name, "key", []byte("data")))
	_, err := c.GrantAccess(t.Context(), accessOf("ba-first", b, provider.ReadOnly))
	c.must(err)
	const n = 6
	var wg sync.WaitGroup
	kept := make([]provider.Access, n)
	for i := range n {
		p := c.provider(func(*Config) {})
		p.probes.set(Verdict{Endpoint: b.Endpoint, Honoured: true})
		wg.Go(func() {
			account := fmt.Sprintf("ba-%d", i)
			persist := func(f func() error) {
				for {
					err := c.keep(f())
					if !errors.Is(err, provider.ErrConflict) && !errors.Is(err, provider.ErrUnavailable) {
						if err != nil {
							t.Error(err)
						}
						return
					}
				}
			}
			persist(func() error {
				_, err := p.GrantAccess(t.Context(), accessOf(account+"-gone", b, provider.ReadWrite))
				return err
			})
			persist(func() (err error) {
				kept[i], err = p.GrantAccess(t.Context(), accessOf(account, b, provider.ReadOnly))
				return err
			})
			persist(func() error { return p.RevokeAccess(t.Context(), refOf(account+"-gone", b)) })
		})
	}
	wg.Wait()
	// A last writer may have read before the others wrote; the next grant mends it.
	_, err = c.GrantAccess(t.Context(), accessOf("ba-first", b, provider.ReadOnly))
	c.must(err)
	for i, a := range kept {
		if _, err := c.keyClient(a).GetObject(t.Context(), b.Name, "key"); err != nil {
			t.Errorf("access %d: %v", i, err)
		}
	}
	policy, err := owner.Policy(t.Context(), b.Name)
	c.must(err)
	if n := strings.Count(policy, `"Effect":"Allow"`); n != 1+2*7 {
		t.Errorf("%d Allow statements, want 15: %s", n, policy)
	}
}

// An access whose bucket was made anew under the same name is not let in.
func TestAccessOfAFormerBucketIsNotLetIn(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	old := access{account: "ba-old", buckets: map[string]membership{
		b.Name: {bucket: b.Name, region: b.Region, owner: ownerTag("another"), mode: provider.ReadWrite, stage: stageIn, uid: "another"},
	}}
	u, err := c.createUser(t.Context(), "old", old.asTags(testDriver))
	c.must(err)
	_, err = c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	policy, err := c.clientOf(c.Provider, b).Policy(t.Context(), b.Name)
	c.must(err)
	if strings.Contains(policy, u.id) || strings.Contains(policy, "another") {
		t.Errorf("the policy names it: %s", policy)
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	c.wantAccesses()
}

func TestSharedAccessMovesToItsOwn(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	shared, err := c.GrantAccess(t.Context(), sharedTo(b.BucketRef))
	c.must(err)
	c.must(c.keyClient(shared).PutObject(t.Context(), b.Name, "key", []byte("data")))
	own, err := c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
	c.must(err)
	got, err := c.keyClient(own).GetObject(t.Context(), b.Name, "key")
	c.must(err)
	// The shared key is the owner's and goes on working, and revoking one leaves the other alone.
	ref := refOf("ba-1", b)
	ref.IdentityID = shared.IdentityID
	c.must(c.RevokeAccess(t.Context(), ref))
	if _, err := c.keyClient(shared).GetObject(t.Context(), b.Name, "key"); err != nil || string(got) != "data" {
		t.Errorf("read %q, then %v", got, err)
	}
	c.wantAccesses("bucket ba-2")
}

// late keys, in the proportions of the cloud and two hundred times faster.
func TestLateKeysOfAccesses(t *testing.T) {
	const most = 100 * time.Millisecond
	delay := map[string]emulator.Delay{"lpg": {Min: most, Max: most}}
	var mu sync.Mutex
	waits := map[string]int{}
	c := newCloud(t, emulator.Options{KeyDelay: delay}, func(c *Config) {
		c.OnKeyWait = func(region string, _ time.Duration) { mu.Lock(); defer mu.Unlock(); waits[region]++ }
	})
	for _, region := range []string{"rma", "lpg"} {
		b, owner := c.make(provider.BucketSpec{Name: "bucket-" + region, Region: region})
		c.must(owner.PutObject(t.Context(), b.Name, "key", []byte("data")))
		for _, mode := range modesOf() {
			a, err := c.GrantAccess(t.Context(), accessOf("ba-"+string(mode), b, mode))
			c.must(err)
			// The workload does not begin with a dead key.
			if _, err := c.keyClient(a).BucketLocation(t.Context(), b.Name); err != nil {
				t.Errorf("%s %s: %v", region, mode, err)
			}
			// A removed key works on for a while in lpg, but opens nothing.
			client := c.keyClient(a)
			if mode == provider.ReadWrite {
				c.must(client.PutObject(t.Context(), b.Name, "own", []byte("data")))
			}
			c.must(c.RevokeAccess(t.Context(), refOf("ba-"+string(mode), b)))
			for _, key := range []string{"key", "own"} {
				if _, err := client.GetObject(t.Context(), b.Name, key); s3.StatusCode(err) != http.StatusForbidden {
					t.Errorf("%s %s: a revoked key reads %s: %v", region, mode, key, err)
				}
			}
		}
	}
	if waits["rma"] != 0 || waits["lpg"] == 0 {
		t.Errorf("waits %v, want some in lpg alone", waits)
	}
}

func TestKeyOfAnAccessThatNeverComes(t *testing.T) {
	c := newCloud(t, emulator.Options{}, func(c *Config) { c.KeyWait = 60 * time.Millisecond })
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	_, err := c.ProbePolicies(t.Context(), "lpg", "")
	c.must(err)
	c.must(c.SetKeyDelay(map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}))
	for range 2 {
		_, err = c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
		c.want(err, provider.ErrUnavailable, "bucket", "lpg", "ms", "repeat")
	}
	// Its identity waits for the repetition and opens nothing; other accesses do not wait for it.
	c.wantAccesses("bucket ba-1 new")
	c.must(c.SetKeyDelay(nil))
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadWrite))
	c.must(err)
	c.must(c.RevokeAccess(t.Context(), refOf("ba-1", b)))
	c.wantAccesses("bucket ba-2")
}

func TestGrantInTheWrongRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	wrong := accessTo(provider.BucketRef{Name: b.Name, Region: "rma"})
	_, err := c.GrantAccess(t.Context(), wrong)
	c.want(err, provider.ErrInvalidArgument, "lpg")
	c.wantAccesses()
}

// Repetitions under faults leave the owners and nothing else, also where every
// fourth access spans two buckets and one that the driver did not make.
func TestGrantAndRevokeRepeatedUnderFaults(t *testing.T) {
	// Four of a hundred calls fail, and a round makes some thirty.
	rounds := 250
	if testing.Short() {
		rounds = 25
	}
	c := newCloud(t, emulator.Options{Seed: 1, KeyDelay: map[string]emulator.Delay{"lpg": {Max: 5 * time.Millisecond}}})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	c.make(provider.BucketSpec{Name: "second", Region: "rma"})
	their, _ := c.person("their", "rma")
	c.must(their.SetPolicy(t.Context(), "their", theirText))
	removes := []func(){
		c.Inject(emulator.Fault{Probability: 0.02, Status: http.StatusServiceUnavailable}),
		c.Inject(emulator.Fault{Probability: 0.01, LoseAnswer: true}),
		c.Inject(emulator.Fault{Probability: 0.01, CutConnection: true}),
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 4 {
		p := c.provider() // as another process
		p.probes.age = time.Minute
		wg.Go(func() {
			for i := range work {
				account := fmt.Sprintf("ba-%d", i)
				spec := accessOf(account, b, modesOf()[i%3])
				if i%4 == 0 {
					spec = spanSpec(account, spanRefs()...)
				}
				repeat(t, func(ctx context.Context) error {
					_, err := p.GrantAccess(ctx, spec)
					return err
				})
				repeat(t, func(ctx context.Context) error {
					return p.RevokeAccess(ctx, provider.AccountRef{Account: account, Buckets: refsOf(spec)})
				})
			}
			// What its probe may have left.
			p.probes.age = 0
			for _, region := range []string{"lpg", "rma"} {
				repeat(t, func(ctx context.Context) error { return p.sweep(ctx, region) })
			}
		})
	}
	for i := range rounds {
		work <- i
	}
	close(work)
	wg.Wait()
	for _, remove := range removes {
		remove()
	}
	c.probes.age = 0
	c.must(c.sweep(t.Context(), "lpg"))
	c.must(c.sweep(t.Context(), "rma"))
	c.wantLeft("bucket", "second")
	c.wantAccesses()
	if n := len(c.cs.Users()); n != 3 {
		t.Errorf("%d users are left, want the owners of the three buckets", n)
	}
	if policy, err := their.Policy(t.Context(), "their"); err != nil || policy != theirText {
		t.Errorf("%v: the policy of others is %s", err, policy)
	}
}

// repeat does what a sidecar does.
func repeat(t *testing.T, f func(context.Context) error) {
	t.Helper()
	for try := 0; ; try++ {
		err := f(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, provider.ErrUnavailable) && !errors.Is(err, provider.ErrConflict) || try == 500 {
			t.Error(err)
			return
		}
		if pause(t.Context(), time.Millisecond) != nil {
			return
		}
	}
}
