package cloudscale

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// What a request of a writer looks like.
func writesPolicy(req *http.Request) bool {
	return req.Method == http.MethodPut && req.URL.Query().Has("policy")
}

func writesTags(req *http.Request) bool {
	return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/objects-users/")
}

func makesUser(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/objects-users")
}

// users counts who holds the key or waits for it.
func (l *keyLock) users(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[key]; k != nil {
		return k.users
	}
	return 0
}

// oneAtATime fails the test unless the second call waits for the key while the first
// one is about to send the request.
func (c *cloud) oneAtATime(lock func(*Provider) *keyLock, key string, is func(*http.Request) bool, first, second func(*Provider) error) {
	c.t.Helper()
	var met atomic.Bool
	reached, release := make(chan struct{}), make(chan struct{})
	hook := &before{RoundTripper: c.spy, f: func() { close(reached); <-release }, is: func(req *http.Request) bool {
		return is(req) && met.CompareAndSwap(false, true)
	}}
	p := c.provider(func(config *Config) { config.Transport = hook })
	c.trust(p)
	c.must(conformance.OneAtATime(reached, release, func() int { return lock(p).users(key) },
		func() error { return first(p) }, func() error { return second(p) }))
}

// In one process whatever changes a bucket's policy waits for whoever does.
func TestOneWriterOfAPolicy(t *testing.T) {
	for name, second := range map[string]func(*testing.T, *Provider, provider.Bucket, provider.Access) error{
		"grant": func(t *testing.T, p *Provider, b provider.Bucket, _ provider.Access) error {
			_, err := p.GrantAccess(t.Context(), accessOf("ba-3", b, provider.ReadOnly))
			return err
		},
		"revoke": func(t *testing.T, p *Provider, b provider.Bucket, _ provider.Access) error {
			return p.RevokeAccess(t.Context(), refOf("ba-1", b))
		},
		"rotate": func(t *testing.T, p *Provider, _ provider.Bucket, _ provider.Access) error {
			_, err := p.RotateAccess(t.Context(), provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{})
			return err
		},
		"retire": func(t *testing.T, p *Provider, _ provider.Bucket, a provider.Access) error {
			return p.RetireKeys(t.Context(), provider.AccountRef{Account: "ba-1"}, a.Credentials.AccessKeyID)
		},
		"delete": func(t *testing.T, p *Provider, b provider.Bucket, _ provider.Access) error {
			return p.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
			a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
			c.must(err)
			c.oneAtATime(func(p *Provider) *keyLock { return &p.buckets }, b.Name, writesPolicy,
				func(p *Provider) error {
					_, err := p.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
					return err
				},
				func(p *Provider) error { return second(t, p, b, a) })
		})
	}
}

// In one process two calls for one account, which have no bucket in common, do not
// write over one another's records and make no second user.
func TestOneWriterOfAnAccess(t *testing.T) {
	accounts := func(p *Provider) *keyLock { return &p.accounts }
	for _, known := range []bool{false, true} {
		c := newCloud(t, emulator.Options{})
		var buckets []provider.Bucket
		for _, name := range []string{"one", "two", "three"} {
			b, _ := c.make(provider.BucketSpec{Name: name, Region: "rma"})
			buckets = append(buckets, b)
		}
		grant := func(b provider.Bucket) func(*Provider) error {
			return func(p *Provider) error {
				_, err := p.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
				return err
			}
		}
		if !known {
			c.oneAtATime(accounts, "ba-1", makesUser, grant(buckets[0]), grant(buckets[1]))
			c.wantAccesses("one ba-1", "two ba-1")
			continue
		}
		c.must(grant(buckets[0])(c.Provider))
		c.oneAtATime(accounts, "ba-1", writesTags, grant(buckets[1]), grant(buckets[2]))
		c.wantAccesses("one ba-1", "three ba-1", "two ba-1")
		c.oneAtATime(accounts, "ba-1", writesTags,
			func(p *Provider) error { return p.RevokeAccess(t.Context(), refOf("ba-1", buckets[0])) },
			func(p *Provider) error { return p.RevokeAccess(t.Context(), refOf("ba-1", buckets[1])) })
		c.wantAccesses("one ba-1 out", "three ba-1", "two ba-1 out")
	}
}

// In one process the buckets of a tenant are recorded one after the other.
func TestOneWriterOfATenant(t *testing.T) {
	tenants := func(p *Provider) *keyLock { return &p.tenants }
	c := newCloud(t, emulator.Options{})
	create := func(name string) func(*Provider) error {
		return func(p *Provider) error {
			_, err := p.CreateBucket(t.Context(), ofTenant(name, "rma"))
			return err
		}
	}
	c.oneAtATime(tenants, "team-a", makesUser, create("one"), create("two"))
	c.oneAtATime(tenants, "team-a", writesTags, create("three"), func(p *Provider) error {
		return p.DeleteBucket(t.Context(), provider.BucketRef{Name: "one", Region: "rma"}, provider.DeleteOptions{})
	})
	if users := c.cs.Users(); len(users) != 1 || len(bucketsOfTenant(user{tags: users[0].Tags})) != 2 {
		t.Errorf("the users are %+v", users)
	}
}

// writtenOver returns a provider after some of whose changes of tags, counted from 1,
// another process, which has read them before, writes them as they were.
func (c *cloud) writtenOver(userID string, changes ...int32) *Provider {
	c.t.Helper()
	was, err := c.getUser(c.t.Context(), userID)
	c.must(err)
	var rt http.RoundTripper = c.spy
	for _, n := range changes {
		var written atomic.Int32
		rt = &before{RoundTripper: rt, f: func() { c.must(c.updateTags(c.t.Context(), userID, was.tags)) }, is: func(req *http.Request) bool {
			if writesTags(req) {
				written.Add(1)
				return false
			}
			return written.Load() == n
		}}
	}
	p := c.provider(func(config *Config) { config.Transport, config.KeyWait = rt, time.Second })
	c.trust(p)
	return p
}

// TestRecordWrittenOver: the record of a tenant's bucket that another process has written
// over, before or after the bucket was made, is written again.
func TestRecordWrittenOver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(ofTenant("one", "rma"))
	p := c.writtenOver(b.OwnerID, 1, 2)
	_, err := p.CreateBucket(t.Context(), ofTenant("two", "rma"))
	c.must(err)
	_, err = p.GetBucket(t.Context(), provider.BucketRef{Name: "two", Region: "rma"})
	c.must(err)
	owner, err := c.getUser(t.Context(), b.OwnerID)
	c.must(err)
	made := c.provider(func(config *Config) {
		config.Transport = &before{RoundTripper: c.spy, f: func() { c.must(c.updateTags(t.Context(), owner.id, owner.tags)) }, is: func(req *http.Request) bool {
			return req.Method == http.MethodPut && strings.Trim(req.URL.Path, "/") == "three"
		}}
	})
	_, err = made.CreateBucket(t.Context(), ofTenant("three", "rma"))
	c.must(err)
	owner, err = c.getUser(t.Context(), b.OwnerID)
	c.must(err)
	if names := bucketsOfTenant(owner); !slices.Equal(names, []string{"one", "three", "two"}) {
		t.Errorf("recorded are %q", names)
	}
}

// TestTagsWrittenOver: what another process undoes by writing older tags of an access is
// done again, whether that brings somebody back or shuts somebody out.
func TestTagsWrittenOver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	one, _ := c.make(provider.BucketSpec{Name: "one", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessTo(one.BucketRef))
	c.must(err)
	for i, name := range []string{"two", "three"} {
		b, _ := c.make(provider.BucketSpec{Name: name, Region: "rma"})
		_, err = c.writtenOver(a.IdentityID, int32(i+1)).GrantAccess(t.Context(), accessTo(b.BucketRef))
		c.must(err)
		c.must(c.keyClient(a).PutObject(t.Context(), name, "key", []byte("x")))
	}
	c.must(c.writtenOver(a.IdentityID, 1).RevokeAccess(t.Context(), refOf("ba-1", one)))
	c.wantAccesses("one ba-1 out", "three ba-1", "two ba-1")
	if err := c.keyClient(a).PutObject(t.Context(), "one", "key", []byte("x")); s3.Code(err) != codeDenied {
		t.Errorf("the revoked key writes: %v", err)
	}
}

// Of two calls that name the same buckets in opposite orders, neither gets the lock that
// the other one comes to last.
func TestBucketLocksHaveAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Provider
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		one, two := provider.BucketRef{Name: "one"}, provider.BucketRef{Name: "two"}
		var free []func()
		for _, ref := range []provider.BucketRef{one, two} {
			unlock, err := p.lockBuckets(ctx, []provider.BucketRef{ref})
			if err != nil {
				t.Fatal(err)
			}
			free = append(free, unlock)
		}
		var both sync.WaitGroup
		for _, refs := range [][]provider.BucketRef{{one, two, one}, {two, one}} {
			both.Go(func() {
				unlock, err := p.lockBuckets(ctx, refs)
				if err != nil {
					t.Errorf("%v: %v", refs, err)
					return
				}
				unlock()
			})
		}
		// Each of them waits for the lock that it takes first.
		synctest.Wait()
		for _, unlock := range slices.Backward(free) {
			unlock()
			synctest.Wait()
		}
		both.Wait()
	})
}

// TestMarkRemovedMeanwhile: a user that has lost the mark since a call found it is left
// as it is.
func TestMarkRemovedMeanwhile(t *testing.T) {
	theirs := map[string]string{"team": "theirs"}
	for name, run := range map[string]func(c *cloud, p *Provider, b provider.Bucket) error{
		"revoke": func(c *cloud, p *Provider, b provider.Bucket) error {
			return p.RevokeAccess(c.t.Context(), refOf("ba-1", b))
		},
		"create for a tenant": func(c *cloud, p *Provider, _ provider.Bucket) error {
			_, err := p.CreateBucket(c.t.Context(), ofTenant("another", "rma"))
			return err
		},
		"delete for a tenant": func(c *cloud, p *Provider, b provider.Bucket) error {
			return p.DeleteBucket(c.t.Context(), b.BucketRef, provider.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			b, _ := c.make(ofTenant("bucket", "rma"))
			id := b.OwnerID
			b.OwnerID = ""
			if name == "revoke" {
				a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
				c.must(err)
				id = a.IdentityID
			}
			p := c.provider(func(config *Config) {
				config.Transport = &before{RoundTripper: c.spy, f: func() { c.must(c.updateTags(t.Context(), id, theirs)) }, is: func(req *http.Request) bool {
					return req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/"+id)
				}}
			})
			c.want(run(c, p, b), provider.ErrPermissionDenied, id, "lost the mark")
			if u, err := c.getUser(t.Context(), id); err != nil || !maps.Equal(u.tags, theirs) {
				t.Errorf("the user has the tags %v, %v", u.tags, err)
			}
		})
	}
}

// TestGrantWaitsForThePolicy: no key is handed out before the endpoint lets it into the
// bucket.
func TestGrantWaitsForThePolicy(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	c.trust(c.Provider)
	// The first one asks as the owner.
	denied := emulator.Fault{Operation: "GetBucketLocation", After: 1, Times: 3, Status: http.StatusForbidden, Body: "<Error><Code>AccessDenied</Code></Error>"}
	c.Inject(denied)
	c.ResetCalls()
	a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", []byte("x")))
	if n := c.count("GetBucketLocation"); n != 5 {
		t.Errorf("the endpoint was asked %d times, want 5", n)
	}
	denied.Times = 0
	c.Inject(denied)
	p := c.provider(func(config *Config) { config.KeyWait = 100 * time.Millisecond })
	c.trust(p)
	_, err = p.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadWrite))
	c.want(err, provider.ErrUnavailable, "does not let objects user")
}
