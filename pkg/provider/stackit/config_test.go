package stackit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestNewReportsAllFaults(t *testing.T) {
	_, err := New(Config{
		DriverName: "Bad_Name", Regions: []string{"EU/1"}, APIURL: "ftp://x", ProjectID: "p", AdminGroupID: "g", AdminKeyTTL: time.Minute,
		Endpoints: map[string]string{"eu01": "h"}, PropagationWait: -1, ListingWait: -1, TokenURL: "::",
	})
	if !errors.Is(err, provider.ErrInvalidArgument) {
		t.Fatal(err)
	}
	for _, want := range []string{"Bad_Name", "EU/1", "API URL", "project ID", "admin group ID", "admin keys", "eu01", "propagation", "listings", "token URL", "exactly one"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	key := func() (provider.Secret, error) {
		return provider.NewSecret(testKey("http://h/token", testProject)), nil
	}
	for want, c := range map[string]Config{
		"one region":         {AdminGroupID: testGroup, Credentials: Credentials{Key: key}},
		"exactly one":        {Credentials: Credentials{Key: key, FederationEmail: "sa@x"}, ProjectID: testProject},
		"needs a project ID": {Credentials: Credentials{FederationEmail: "sa@x"}},
		"no file":            {Credentials: Credentials{Key: func() (provider.Secret, error) { return provider.Secret{}, errors.New("no file") }}},
	} {
		c.DriverName = "d"
		if _, err := New(c); !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestBadKeys: each would panic in the SDK or fail there with the first call.
func TestBadKeys(t *testing.T) {
	edit := func(f func(key, credentials map[string]any)) string {
		var key map[string]any
		if err := json.Unmarshal([]byte(testKey("http://h/token", testProject)), &key); err != nil {
			t.Fatal(err)
		}
		f(key, key["credentials"].(map[string]any))
		text, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for want, key := range map[string]string{
		"is empty":                  " \n",
		"bare private key":          testPrivateKey(),
		"not JSON":                  "{",
		"expected form":             `"text"`,
		"no credentials":            edit(func(k, _ map[string]any) { delete(k, "credentials") }),
		"no private key":            edit(func(_, c map[string]any) { delete(c, "privateKey") }),
		"cannot be read":            edit(func(_, c map[string]any) { c["privateKey"] = "-----BEGIN X-----" }),
		"lacks kid":                 edit(func(_, c map[string]any) { delete(c, "kid") }),
		"tokenEndpoint":             edit(func(_, c map[string]any) { c["tokenEndpoint"] = "token" }),
		"projectId":                 edit(func(k, _ map[string]any) { k["projectId"] = "../x" }),
		"set it in the back end":    edit(func(k, _ map[string]any) { delete(k, "projectId") }),
		"is not JSON of":            edit(func(k, _ map[string]any) { k["id"] = "no UUID" }),
		"JSON that the portal expo": edit(func(_, c map[string]any) { c["sub"] = "no UUID" }),
	} {
		_, err := New(Config{DriverName: "d", Credentials: Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(key), nil }}})
		if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if strings.Contains(fmt.Sprint(err), "BEGIN") {
			t.Errorf("%s: the error repeats the key", want)
		}
	}
}

// reloading is a provider whose key a test replaces.
type reloading struct {
	*Provider
	f   *fakeAPI
	mu  sync.Mutex
	key string
	err error
	now time.Time
	saw []CredentialState
}

func newReloading(t *testing.T) *reloading {
	f := newFakeAPI(t)
	f.on("GET ", saysJSON(200, `{"project":"`+testProject+`","scope":"PUBLIC"}`))
	f.on("GET /bucket/b-1", saysJSON(404, notFound))
	r := &reloading{f: f, key: testKey(f.URL+"/token", testProject), now: time.Now()}
	r.Provider = f.provider(t, func(c *Config) {
		c.Now = func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
		c.Credentials.Key = func() (provider.Secret, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return provider.NewSecret(r.key), r.err
		}
		c.OnCredentials = func(s CredentialState) { r.saw = append(r.saw, s) }
	})
	return r
}

// use replaces the key and makes a call after the source is due again.
func (r *reloading) use(t *testing.T, key string, err error) {
	t.Helper()
	r.mu.Lock()
	r.key, r.err = key, err
	r.now = r.now.Add(reloadEvery)
	r.mu.Unlock()
	if _, err := r.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("the call failed: %v", err)
	}
}

func TestHotReload(t *testing.T) {
	r := newReloading(t)
	old := r.key
	r.use(t, old, nil)
	if n := r.f.count("GET "); n != 0 {
		t.Errorf("the same key was tried %d times", n)
	}
	began := r.CredentialState()
	if began.Rejected != nil || began.ValidUntil.Year() != 2030 {
		t.Errorf("state %+v", began)
	}
	for want, c := range map[string]struct {
		key string
		err error
	}{
		"not JSON":       {"{", nil},
		"restart":        {testKey(r.f.URL+"/token", "22222222-2222-4333-8444-555555555555"), nil},
		"no such secret": {"", errors.New("no such secret")},
	} {
		r.use(t, c.key, c.err)
		state := r.CredentialState()
		if state.Rejected == nil || !strings.Contains(state.Rejected.Error(), want) || state.LoadedAt != began.LoadedAt {
			t.Errorf("%s: %+v", want, state)
		}
	}
	r.use(t, old, nil)
	if state := r.CredentialState(); state.Rejected != nil {
		t.Errorf("the old key is back and %v", state.Rejected)
	}
	r.use(t, strings.Replace(old, "kid-1", "kid-2", 1), nil)
	if state := r.CredentialState(); state.Rejected != nil || !state.LoadedAt.After(began.LoadedAt) {
		t.Errorf("a good key: %+v", state)
	}
	if n := len(r.saw); n != 5 {
		t.Errorf("%d changes were told, want 3 rejections, their end and the new key", n)
	}
}

// TestHotReloadTriesFirst: a key that the cloud refuses does not replace one that
// works, and is not tried with every call.
func TestHotReloadTriesFirst(t *testing.T) {
	r := newReloading(t)
	r.f.on("GET ", saysJSON(403, `{"message":"Unauthorized"}`))
	bad := strings.Replace(r.key, "kid-1", "kid-bad", 1)
	for range 3 {
		r.use(t, bad, nil)
	}
	if n := r.f.count("GET "); n != 1 {
		t.Errorf("tried %d times", n)
	}
	if state := r.CredentialState(); !errors.Is(state.Rejected, provider.ErrPermissionDenied) {
		t.Errorf("%+v", state)
	}
	r.f.on("GET ", saysJSON(404, notFound)) // the service is not enabled: the key is good
	r.mu.Lock()
	r.now = r.now.Add(rejectedFor)
	r.mu.Unlock()
	r.use(t, bad, nil)
	if state := r.CredentialState(); state.Rejected != nil {
		t.Errorf("%+v", state)
	}
}

// In a bubble a call that waits for ever is told at once.
func TestLock(t *testing.T) { synctest.Test(t, locks) }

func locks(t *testing.T) {
	var l keyLock
	ctx := t.Context()
	unlock, err := l.lock(ctx, "b", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := l.lock(waiting, "c", "a")
		done <- err
	}()
	free, err := l.lock(ctx, "d")
	if err != nil {
		t.Fatal(err)
	}
	free()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	unlock()
	counter := 0
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			keys := []string{"a", "b"}
			if i%2 == 0 {
				keys = []string{"b", "a"}
			}
			unlock, err := l.lock(ctx, keys...)
			if err != nil {
				t.Error(err)
				return
			}
			counter++
			unlock()
		})
	}
	wg.Wait()
	if counter != 50 || len(l.held) != 0 {
		t.Errorf("%d of 50 ran, %d locks are left", counter, len(l.held))
	}
}
