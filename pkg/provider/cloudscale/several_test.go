package cloudscale

import (
	"context"
	"encoding/json"
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
	"github.com/zuber-storage/zuber/pkg/s3"
)

// theirText is the policy of the bucket that the driver did not make.
const theirText = `{ "Version":"2012-10-17" , "Statement" : {"Sid":"Theirs","Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::their/public/*"} }`

// The buckets of the span: two of ours in two regions and one that is not.
func spanRefs() []provider.BucketRef {
	return []provider.BucketRef{{Name: "bucket", Region: "lpg"}, {Name: "second", Region: "rma"}, {Name: "their", Region: "rma", AccessOnly: true}}
}

func spanSpec(account string, refs ...provider.BucketRef) provider.AccessSpec {
	spec := accessTo(refs...)
	spec.Account = account
	for i, ref := range refs {
		if ref.Name == "second" {
			spec.Buckets[i].Mode = provider.ReadOnly
		}
	}
	return spec
}

// makeSpan makes the buckets, and an access of another account to each.
func makeSpan(c *cloud) {
	c.t.Helper()
	client, _ := c.person("their", "rma")
	c.must(client.SetPolicy(c.t.Context(), "their", theirText))
	for _, ref := range spanRefs()[:2] {
		c.make(provider.BucketSpec{Name: ref.Name, Region: ref.Region})
	}
	_, err := c.GrantAccess(c.t.Context(), spanSpec("ba-2", spanRefs()[1]))
	c.must(err)
}

func makeGrantedSpan(c *cloud) provider.Access {
	c.t.Helper()
	makeSpan(c)
	a, err := c.GrantAccess(c.t.Context(), spanSpec("ba-1", spanRefs()...))
	c.must(err)
	return a
}

// spanSteps are methods of the provider on accesses that span buckets.
func spanSteps() []step {
	empty := func(c *cloud) provider.Bucket { makeSpan(c); return provider.Bucket{} }
	granted := func(c *cloud) provider.Bucket { makeGrantedSpan(c); return provider.Bucket{} }
	grant := func(refs ...provider.BucketRef) func(context.Context, *Provider, provider.Bucket) error {
		return func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			a, err := p.GrantAccess(ctx, spanSpec("ba-1", refs...))
			if err == nil && len(a.Buckets) != len(refs) {
				return fmt.Errorf("answered for %d buckets, want %d", len(a.Buckets), len(refs))
			}
			return err
		}
	}
	revoke := func(refs ...provider.BucketRef) func(context.Context, *Provider, provider.Bucket) error {
		return func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			return p.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: refs})
		}
	}
	remove := func(ref provider.BucketRef) func(context.Context, *Provider, provider.Bucket) error {
		return func(ctx context.Context, p *Provider, _ provider.Bucket) error {
			return p.DeleteBucket(ctx, ref, purge)
		}
	}
	r := spanRefs()
	unmarked := provider.BucketRef{Name: "their", Region: "rma"}
	both := []string{"bucket", "second"}
	all := []string{"bucket ba-1", "second ba-1", "second ba-2", "their ba-1"}
	return []step{
		{"grant of a span", empty, grant(r...), both, all},
		{"grant of a span in another order", granted, grant(r[2], r[1], r[0]), both, all},
		{"grant of more buckets", func(c *cloud) provider.Bucket {
			makeSpan(c)
			_, err := c.GrantAccess(c.t.Context(), spanSpec("ba-1", r[0]))
			c.must(err)
			return provider.Bucket{}
		}, grant(r...), both, all},
		{"revoke of a span", granted, revoke(r...), both, []string{"second ba-2"}},
		{"revoke of a span by account", granted, revoke(), both, []string{"second ba-2"}},
		{"revoke of a part", granted, revoke(r[0], unmarked), both, []string{"bucket ba-1 out", "second ba-1", "second ba-2", "their ba-1 out"}},
		{"delete of a part", granted, remove(r[0]), []string{"second"}, []string{"second ba-1", "second ba-2", "their ba-1"}},
		{"delete of what is not ours", granted, remove(r[2]), both, []string{"bucket ba-1", "second ba-1", "second ba-2", "their ba-1 out"}},
	}
}

// endState tells what is in the cloud, with names in place of random IDs: the
// policies, and the tags of the users. Of a bucket of ours, statements about
// users that are gone do not count.
func (c *cloud) endState() string {
	c.t.Helper()
	var names []string // old, new
	var lines []string
	users := map[string]user{}
	for _, u := range c.cs.Users() {
		if u.Project != "own" {
			continue
		}
		a := recordedAccess(user{id: u.ID, tags: u.Tags})
		names = append(names, u.ID, "<"+u.Tags[tagRole]+" "+a.account+u.Tags[tagBucket]+">", ownerTag(u.ID), "<digest of "+u.Tags[tagBucket]+">")
		users[u.ID] = user{id: u.ID, tags: u.Tags}
		var tags []string
		for k, v := range u.Tags {
			if k == tagIdentity || k == tagRotation {
				v = "<of a rotation>" // the ID of a user that is gone, and how many were made on the way
			}
			tags = append(tags, k+"="+v)
		}
		slices.Sort(tags)
		lines = append(lines, "user "+strings.Join(tags, " "))
	}
	for _, b := range c.cs.Buckets() {
		if u := users[b.OwnerUID]; u.id == "" || u.tags[tagPurpose] != "" {
			continue
		}
		u, err := c.getUser(c.t.Context(), b.OwnerUID)
		c.must(err)
		key, err := u.key()
		c.must(err)
		client, err := c.client(c.cs.Endpoints[b.Region], key)
		c.must(err)
		policy, err := client.Policy(c.t.Context(), b.Name)
		c.must(err)
		if p := (policyDocument{}); u.tags[tagManagedBy] != "" && json.Unmarshal([]byte(policy), &p) == nil {
			p.Statement = slices.DeleteFunc(p.Statement, func(s policyStatement) bool {
				id := strings.TrimPrefix(s.Principal.AWS[0], "arn:aws:iam:::user/")
				return users[id].id == ""
			})
			var statements []string
			for _, s := range p.Statement {
				statements = append(statements, fmt.Sprint(s))
			}
			slices.Sort(statements)
			if policy = strings.Join(statements, "\n"); len(statements) == 1 {
				policy = "" // the owner alone, which is as good as none
			}
		}
		lines = append(lines, fmt.Sprintf("bucket %s in %s: %d objects, %s", b.Name, b.Region, b.Objects, policy))
	}
	text := strings.NewReplacer(names...).Replace(strings.Join(lines, "\n"))
	sorted := strings.Split(text, "\n")
	slices.Sort(sorted)
	return strings.Join(sorted, "\n")
}

// The order of the request makes no difference, and the answer has it.
func TestSpanInAnyOrder(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	first := makeGrantedSpan(c)
	r := spanRefs()
	c.ResetCalls()
	p := c.provider()
	c.trust(p)
	again, err := p.GrantAccess(t.Context(), spanSpec("ba-1", r[1], r[2], r[0]))
	c.must(err)
	if again.Credentials != first.Credentials || again.IdentityID != first.IdentityID {
		t.Error("another key")
	}
	for i, b := range again.Buckets {
		if want := first.Buckets[(i+1)%3]; b != want {
			t.Errorf("bucket %d is %+v, want %+v", i, b, want)
		}
	}
	if n := c.count("UpdateObjectsUser") + c.count("CreateObjectsUser") + c.count("PutBucketPolicy"); n != 0 {
		t.Errorf("a repetition made %d changes", n)
	}
}

// A key is waited for once at each endpoint, however many buckets are there.
func TestSpanSharesTheWaitForItsKey(t *testing.T) {
	const most = 150 * time.Millisecond
	c := newCloud(t, emulator.Options{KeyDelay: map[string]emulator.Delay{"lpg": {Min: most, Max: most}}})
	c.trust(c.Provider)
	var refs []provider.BucketRef
	for i := range 6 {
		b, _ := c.make(provider.BucketSpec{Name: fmt.Sprintf("bucket-%d", i), Region: "lpg"})
		refs = append(refs, b.BucketRef)
	}
	c.ResetCalls()
	a, err := c.GrantAccess(t.Context(), spanSpec("ba-1", refs...))
	c.must(err)
	refusedLists, locations := 0, 0
	for _, call := range c.Calls() {
		if call.Status == http.StatusForbidden {
			switch call.Operation {
			case "ListBuckets":
				refusedLists++
			case "GetBucketLocation":
				locations++
			}
		}
	}
	if refusedLists == 0 || locations != 0 {
		t.Errorf("%d refusals of the new key before it was known, and %d after, want some and none", refusedLists, locations)
	}
	for i := range refs {
		if _, err := c.keyClient(a).ListObjects(t.Context(), refs[i].Name, ""); err != nil {
			t.Error(err)
		}
	}
}

// The limits of the tags are not known: many buckets work, and a refusal opens
// nothing.
func TestSpanOfManyBuckets(t *testing.T) {
	n := 128
	if testing.Short() {
		n = 20
	}
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	var refs []provider.BucketRef
	for i := range n {
		b, _ := c.make(provider.BucketSpec{Name: fmt.Sprintf("a-bucket-with-quite-a-long.name-%03d", i), Region: []string{"rma", "lpg"}[i%2]})
		refs = append(refs, b.BucketRef)
	}
	few, err := c.GrantAccess(t.Context(), spanSpec("ba-1", refs[:2]...))
	c.must(err)
	before := c.endState()
	remove := c.Inject(emulator.Fault{Operation: "UpdateObjectsUser", Status: 400, Body: `{"tags":"Too many."}`})
	_, err = c.GrantAccess(t.Context(), spanSpec("ba-1", refs...))
	c.want(err, provider.ErrQuotaExceeded, refs[0].Name, fmt.Sprintf("and %d more", n-16), "Too many", "fewer buckets")
	remove()
	remove = c.Inject(emulator.Fault{Operation: "CreateObjectsUser", Status: 400, Body: `{"tags":"Too many."}`})
	_, err = c.GrantAccess(t.Context(), spanSpec("ba-2", refs...))
	c.want(err, provider.ErrQuotaExceeded, "Too many", "fewer buckets")
	remove()
	if after := c.endState(); after != before {
		t.Errorf("refused calls left\n%s\nbefore\n%s", after, before)
	}
	all, err := c.GrantAccess(t.Context(), spanSpec("ba-1", refs...))
	c.must(err)
	if all.Credentials != few.Credentials {
		t.Error("another key")
	}
	c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1", IdentityID: all.IdentityID, Buckets: refs}))
	c.wantAccesses()
}

// What fails on one bucket is said of that bucket, with one cause.
func TestSpanErrorsNameTheBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	makeSpan(c)
	r := spanRefs()
	missing := []provider.BucketRef{{Name: "missing-1", Region: "rma"}, r[0], {Name: "missing-2", Region: "lpg"}}
	before := c.endState()
	_, err := c.GrantAccess(t.Context(), spanSpec("ba-1", missing...))
	c.want(err, provider.ErrNotFound, `"missing-1": `, `"missing-2": `, "2 of 3 buckets failed")
	if strings.Count(err.Error(), `"bucket": `) != 0 {
		t.Errorf("a bucket is blamed that did not fail: %v", err)
	}
	_, err = c.GrantAccess(t.Context(), sharedTo(r[:2]...))
	c.want(err, provider.ErrInvalidArgument, `"bucket"`, `"second"`, "perAccess")
	if after := c.endState(); after != before {
		t.Errorf("refused calls left\n%s\nbefore\n%s", after, before)
	}
	c.Inject(emulator.Fault{Operation: "PutBucketPolicy", Status: 503})
	_, err = c.GrantAccess(t.Context(), spanSpec("ba-1", r...))
	c.want(err, provider.ErrUnavailable, `"bucket": `, `"second": `, `"their": `)
}

// Processes that grant and revoke spans of one account and delete its buckets, all
// at the same time, leave nothing that a last revocation does not end.
func TestSpansUnderContention(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	makeSpan(c)
	r := spanRefs()
	var wg sync.WaitGroup
	run := func(f func(ctx context.Context, p *Provider) error) {
		p := c.provider()
		c.trust(p)
		wg.Go(func() {
			for range 5 {
				err := c.keep(f(t.Context(), p))
				for _, ok := range []error{nil, provider.ErrConflict, provider.ErrUnavailable, provider.ErrNotFound} {
					if errors.Is(err, ok) {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, refs := range [][]provider.BucketRef{{r[0], r[1]}, {r[1], r[0]}, {r[2], r[1]}} {
		run(func(ctx context.Context, p *Provider) error {
			_, err := p.GrantAccess(ctx, spanSpec("ba-1", refs...))
			return err
		})
	}
	run(func(ctx context.Context, p *Provider) error {
		return p.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: r[:2]})
	})
	run(func(ctx context.Context, p *Provider) error { return p.DeleteBucket(ctx, r[0], purge) })
	run(func(ctx context.Context, p *Provider) error { return p.DeleteBucket(ctx, r[2], purge) })
	wg.Wait()
	// What a sidecar does in the end.
	repeat(t, func(ctx context.Context) error {
		return c.RevokeAccess(ctx, provider.AccountRef{Account: "ba-1", Buckets: r})
	})
	c.wantAccesses("second ba-2")
	repeat(t, func(ctx context.Context) error {
		_, err := c.GrantAccess(ctx, spanSpec("ba-2", r[1], r[2]))
		return err
	})
	repeat(t, func(ctx context.Context) error { return c.RevokeAccess(ctx, provider.AccountRef{Account: "ba-2"}) })
	if !strings.Contains(c.endState(), "bucket their in rma: 0 objects, "+theirText) {
		t.Errorf("the policy of others is not what it was: %s", c.endState())
	}
	repeat(t, func(ctx context.Context) error { return c.DeleteBucket(ctx, r[0], purge) })
	c.wantLeft("second")
}

// What is done behind the driver's back to a span is mended by the next grant, and
// does not keep a revocation from ending it.
func TestSpanMeddledWith(t *testing.T) {
	for name, meddle := range map[string]func(c *cloud, a provider.Access){
		"its user is deleted": func(c *cloud, a provider.Access) { c.must(c.deleteUser(c.t.Context(), a.IdentityID)) },
		"its tags are cleared": func(c *cloud, a provider.Access) {
			c.must(c.updateTags(c.t.Context(), a.IdentityID, map[string]string{tagManagedBy: testDriver, tagRole: roleAccess, tagAccount: "ba-1"}))
		},
		"the policies are removed": func(c *cloud, a provider.Access) {
			for _, b := range a.Buckets {
				c.must(c.clientOf(c.Provider, b).SetPolicy(c.t.Context(), b.Name, ""))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, granted := range []bool{true, false} {
				c := newCloud(t, emulator.Options{})
				c.trust(c.Provider)
				a := makeGrantedSpan(c)
				meddle(c, a)
				if granted {
					again, err := c.GrantAccess(t.Context(), spanSpec("ba-1", spanRefs()...))
					c.must(err)
					c.must(c.clientFor(again, 2).PutObject(t.Context(), "their", "key", nil))
					_, err = c.clientFor(again, 1).ListObjects(t.Context(), "second", "")
					c.must(err)
				}
				var refs []provider.BucketRef
				for _, b := range a.Buckets {
					refs = append(refs, b.BucketRef)
				}
				c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1", IdentityID: a.IdentityID, Buckets: refs}))
				c.wantAccesses("second ba-2")
				if state := c.endState(); strings.Contains(state, sidPrefix+"rw") || strings.Contains(state, c.sids()) {
					t.Errorf("a policy names who is gone: %s", state)
				}
			}
		})
	}
}

// clientFor returns an S3 client with a granted key for one of its buckets.
func (c *cloud) clientFor(a provider.Access, i int) *s3.Client {
	c.t.Helper()
	one := a
	one.Buckets = a.Buckets[i:]
	return c.keyClient(one)
}
