package stackit

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// users counts who holds the key or waits for it.
func (l *keyLock) users(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.held[key]; k != nil {
		return k.users
	}
	return 0
}

// holding keeps the first request of a kind, once it is armed, until it is released.
type holding struct {
	mu      sync.Mutex
	is      func(*http.Request) bool
	reached chan struct{}
	release chan struct{}
}

// arm returns what is closed when the request is about to leave, and what lets it go.
func (h *holding) arm(is func(*http.Request) bool) (reached, release chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.is, h.reached, h.release = is, make(chan struct{}), make(chan struct{})
	return h.reached, h.release
}

func (h *holding) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	met, reached, release := h.is != nil && h.is(req), h.reached, h.release
	if met {
		h.is = nil
	}
	h.mu.Unlock()
	if met {
		close(reached)
		<-release
	}
	return http.DefaultTransport.RoundTrip(req)
}

func writesTags(req *http.Request) bool {
	return req.Method == http.MethodPut && strings.HasPrefix(req.URL.RawQuery, "tagging")
}

func makesBucket(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/bucket/")
}

// oneAtATime fails the test unless the second call waits for the lock while the first
// one is about to send the request.
func oneAtATime(t *testing.T, p *Provider, h *holding, key string, is func(*http.Request) bool, first, second func() error) {
	t.Helper()
	reached, release := h.arm(is)
	if err := conformance.OneAtATime(reached, release, func() int { return p.locks.users(key) }, first, second); err != nil {
		t.Error(err)
	}
}

// In one process whatever changes a bucket waits for whoever does, also where the
// bucket is found to be concerned on the way.
func TestOneWriterOfABucket(t *testing.T) {
	const account, other = "ba-1", "ba-2"
	lockOf := func(name string) string { return bucketKey(refOf(name)) }
	ref := provider.AccountRef{Account: account, Buckets: []provider.BucketRef{refOf("one")}}
	for name, c := range map[string]struct {
		key    string
		held   string // the bucket that the first call grants access to
		second func(p *Provider, a provider.Access) error
	}{
		"create": {lockOf("one"), "one", func(p *Provider, _ provider.Access) error {
			_, err := p.CreateBucket(t.Context(), spec("one"))
			return err
		}},
		"grant": {lockOf("one"), "one", func(p *Provider, _ provider.Access) error {
			_, err := p.GrantAccess(t.Context(), accessTo("ba-3", "one", provider.ReadOnly))
			return err
		}},
		"revoke": {lockOf("one"), "one", func(p *Provider, _ provider.Access) error { return p.RevokeAccess(t.Context(), ref) }},
		"rotate": {lockOf("one"), "one", func(p *Provider, _ provider.Access) error {
			_, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
			return err
		}},
		"retire": {lockOf("one"), "one", func(p *Provider, a provider.Access) error {
			return p.RetireKeys(t.Context(), ref, a.Credentials.AccessKeyID)
		}},
		"delete": {lockOf("one"), "one", func(p *Provider, _ provider.Access) error {
			return p.DeleteBucket(t.Context(), refOf("one"), provider.DeleteOptions{})
		}},
		"delete, with an access to both": {lockOf("two"), "two", func(p *Provider, _ provider.Access) error {
			return p.DeleteBucket(t.Context(), refOf("one"), provider.DeleteOptions{})
		}},
		"grant of one, which has both": {lockOf("two"), "two", func(p *Provider, _ provider.Access) error {
			_, err := p.GrantAccess(t.Context(), accessTo(account, "one", provider.ReadWrite))
			return err
		}},
		"revoke of one, which has both": {lockOf("two"), "two", func(p *Provider, _ provider.Access) error {
			return p.RevokeAccess(t.Context(), ref)
		}},
		"rotate of one, which has both": {lockOf("two"), "two", func(p *Provider, _ provider.Access) error {
			_, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var h holding
			p := newCloud(t, emulator.Options{}).provider(t, func(config *Config) { config.Transport = &h })
			mustCreate(t, p, "one")
			mustCreate(t, p, "two")
			both := accessTo(account, "one", provider.ReadWrite)
			if c.held == "two" {
				both.Buckets = append(both.Buckets, accessTo(account, "two", provider.ReadWrite).Buckets...)
			}
			a, err := p.GrantAccess(t.Context(), both)
			if err != nil {
				t.Fatal(err)
			}
			oneAtATime(t, p, &h, c.key, writesTags, func() error {
				_, err := p.GrantAccess(t.Context(), accessTo(other, c.held, provider.ReadOnly))
				return err
			}, func() error { return c.second(p, a) })
		})
	}
}

// In one process a bucket is made once, and an access to buckets that two calls name
// has one group.
func TestOneMaker(t *testing.T) {
	var h holding
	c := newCloud(t, emulator.Options{})
	p := c.provider(t, func(config *Config) { config.Transport = &h })
	create := func() error {
		_, err := p.CreateBucket(t.Context(), spec("one"))
		return err
	}
	oneAtATime(t, p, &h, bucketKey(refOf("one")), makesBucket, create, create)
	mustCreate(t, p, "two")
	grant := func(bucket string) func() error {
		return func() error {
			_, err := p.GrantAccess(t.Context(), accessTo("ba-1", bucket, provider.ReadWrite))
			return err
		}
	}
	oneAtATime(t, p, &h, accountKey(groupName("ba-1")), writesTags, grant("one"), grant("two"))
	if groups := c.groups(); len(groups) != 1 || groups[0].Keys != 1 {
		t.Errorf("groups %v", groups)
	}
}

// TestPolicyWrittenOver: another process puts the policy back that it has read before,
// once after each call's first write. The call writes its own again.
func TestPolicyWrittenOver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "one")
	for _, call := range []func(*Provider) error{
		func(p *Provider) error {
			_, err := p.GrantAccess(t.Context(), accessTo("ba-1", "one", provider.ReadOnly))
			return err
		},
		func(p *Provider) error {
			return p.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{refOf("one")}})
		},
	} {
		_, before := c.stored(t, p, "one")
		var once sync.Once
		over := afterPolicy(func() {
			once.Do(func() {
				c.admin(t, p, func(client *s3.Client) error { return client.SetPolicy(t.Context(), "one", before) })
			})
		})
		if err := call(c.provider(t, func(config *Config) { config.Transport = over })); err != nil {
			t.Fatal(err)
		}
		tags, policy := c.stored(t, p, "one")
		adm, err := p.adminGroup(t.Context(), testRegion, false)
		if err != nil {
			t.Fatal(err)
		}
		m, err := decodeMarks(tags, adm.urn)
		if err != nil || policy == before || !samePolicy(policy, render("one", adm.urn, m.members())) {
			t.Errorf("policy %s, %v", policy, err)
		}
	}
}

// TestMarkRemovedMeanwhile: a bucket that has lost the mark since a call looked is left
// as it is.
func TestMarkRemovedMeanwhile(t *testing.T) {
	var h holding
	c := newCloud(t, emulator.Options{})
	p := c.provider(t, func(config *Config) { config.Transport = &h })
	mustCreate(t, p, "one")
	reached, release := h.arm(func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/credentials-groups") })
	theirs := map[string]string{"team": "a"}
	other := c.provider(t)
	go func() {
		<-reached
		defer close(release)
		e, err := parseEndpoint(c.Endpoints[testRegion])
		if err == nil {
			err = other.asAdmin(t.Context(), testRegion, e, func(client *s3.Client) error { return client.SetTags(t.Context(), "one", theirs) })
		}
		if err != nil {
			t.Error(err)
		}
	}()
	_, err := p.GrantAccess(t.Context(), accessTo("ba-1", "one", provider.ReadWrite))
	if !errors.Is(err, provider.ErrConflict) || !strings.Contains(err.Error(), "mark") {
		t.Error(err)
	}
	if tags, _ := c.stored(t, p, "one"); !maps.Equal(tags, theirs) {
		t.Errorf("tags %v", tags)
	}
}

// TestAdminKeepsItsKeys: whatever a ledger says, the admin's keys are not deleted.
func TestAdminKeepsItsKeys(t *testing.T) {
	p := newCloud(t, emulator.Options{}).provider(t)
	mustCreate(t, p, "one")
	adm, err := p.adminGroup(t.Context(), testRegion, false)
	if err != nil {
		t.Fatal(err)
	}
	before, err := p.listKeys(t.Context(), testRegion, adm.id)
	if err != nil || len(before) == 0 {
		t.Fatalf("%v, %v", before, err)
	}
	if err := p.removeKeys(t.Context(), testRegion, strings.ToUpper(adm.id)); !errors.Is(err, provider.ErrPermissionDenied) {
		t.Error(err)
	}
	if now, err := p.listKeys(t.Context(), testRegion, adm.id); err != nil || len(now) != len(before) {
		t.Errorf("%v, %v", now, err)
	}
}

// TestKeysOfTwoProcesses: two processes grant one access at a time, and both keys stand
// in the ledger, without which one would be the first to be pruned.
func TestKeysOfTwoProcesses(t *testing.T) {
	var h holding
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "one")
	mustGrant(t, p, "ba-1", "one", provider.ReadWrite)
	late := c.provider(t, func(config *Config) { config.Transport = &h })
	c.admin(t, late, func(*s3.Client) error { return nil })
	reached, release := h.arm(func(req *http.Request) bool {
		return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/access-key")
	})
	go func() {
		<-reached
		defer close(release)
		if _, err := c.provider(t).GrantAccess(t.Context(), accessTo("ba-1", "one", provider.ReadWrite)); err != nil {
			t.Error(err)
		}
	}()
	mustGrant(t, late, "ba-1", "one", provider.ReadWrite)
	tags, _ := c.stored(t, p, "one")
	adm, err := p.adminGroup(t.Context(), testRegion, false)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeMarks(tags, adm.urn); err != nil || len(m.entries) != 1 || len(m.entries[0].keys) != 3 {
		t.Errorf("ledger %+v, %v", m.entries, err)
	}
}
