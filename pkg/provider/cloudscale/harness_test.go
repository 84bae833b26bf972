package cloudscale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const testDriver = "cosi.test.example"

// cloud is an emulated cloudscale.ch with a provider over it.
type cloud struct {
	*emulator.Emulator
	*Provider
	t   *testing.T
	cs  *emulator.Cloudscale
	spy *secretSpy
	// errs are all errors that went through keep.
	mu   sync.Mutex
	errs []error
}

// secretSpy remembers every secret key that an answer showed, so that errors can
// be searched for those of users that are gone, too.
type secretSpy struct {
	mu      sync.Mutex
	secrets map[string]bool
}

var secretPattern = regexp.MustCompile(`"secret_key":"([^"]+)"`)

func (s *secretSpy) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || !strings.HasPrefix(req.URL.Path, "/v1/") {
		return resp, err
	}
	body, readErr := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range secretPattern.FindAllSubmatch(body, -1) {
		s.secrets[string(m[1])] = true
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{readErr}))
	return resp, nil
}

// failing ends a body as the connection did.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// newCloud starts an emulator and a provider with short waits. Every error that
// a test passes through keep is searched for secrets at the end.
func newCloud(t *testing.T, options emulator.Options, change ...func(*Config)) *cloud {
	t.Helper()
	em, err := emulator.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := em.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cloud{Emulator: em, t: t, cs: em.Cloudscale(), spy: &secretSpy{secrets: map[string]bool{}}}
	c.Provider = c.provider(change...)
	t.Cleanup(c.noSecrets)
	return c
}

// provider makes another provider over the same cloud, as a new process would.
func (c *cloud) provider(change ...func(*Config)) *Provider {
	c.t.Helper()
	config := Config{
		DriverName: testDriver,
		Token:      fixedToken(c.cs.Token),
		APIURL:     c.cs.APIURL,
		Endpoints:  c.cs.Endpoints,
		KeyWait:    10 * time.Second,
		Transport:  c.spy,
	}
	for _, f := range change {
		f(&config)
	}
	p, err := New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	// What a process left that died in a test is removed by the next one.
	p.probes.age, p.probes.settle = 0, 100*time.Millisecond
	p.waits = backoff{first: 2 * time.Millisecond, most: 20 * time.Millisecond}
	rt := transport.New(transport.Options{Base: config.Transport, Backoff: time.Millisecond, Pacing: config.Pacing})
	p.transport, p.api = rt, newAPI(p.api.BaseURL, rt.As(transport.PlaneControl), config)
	return p
}

func fixedToken(token string) func() (provider.Secret, error) {
	return func() (provider.Secret, error) { return provider.NewSecret(token), nil }
}

func withToken(token string) func(*Config) {
	return func(c *Config) { c.Token = fixedToken(token) }
}

// keep remembers an error for the search for secrets, and returns it.
func (c *cloud) keep(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return err
}

// noSecrets fails the test if an error holds a token or a secret key, or wraps
// other than one sentinel.
func (c *cloud) noSecrets() {
	secrets := []string{c.cs.Token, c.cs.ReadOnlyToken, c.cs.ForeignToken}
	secrets = slices.AppendSeq(secrets, maps.Keys(c.spy.secrets))
	for _, err := range c.errs {
		text := fmt.Sprintf("%v %+v %#v", err, err, err)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				c.t.Errorf("an error shows a secret")
			}
		}
		if n := sentinels(err); n != 1 {
			c.t.Errorf("error wraps %d sentinels or context errors, want 1: %v", n, err)
		}
	}
}

// sentinels counts what an error wraps of the sentinels and the context's errors.
func sentinels(err error) int {
	n := 0
	for _, s := range append(provider.Sentinels(), context.Canceled, context.DeadlineExceeded) {
		if errors.Is(err, s) {
			n++
		}
	}
	return n
}

// want fails the test unless err wraps the sentinel and holds every text.
func (c *cloud) want(err, sentinel error, texts ...string) {
	c.t.Helper()
	_ = c.keep(err)
	if !errors.Is(err, sentinel) {
		c.t.Fatalf("got error %v, want %v", err, sentinel)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			c.t.Errorf("error %q does not say %q", err, text)
		}
	}
}

// must fails the test on an error.
func (c *cloud) must(err error) {
	c.t.Helper()
	if c.keep(err) != nil {
		c.t.Fatal(err)
	}
}

// make creates a bucket and returns it with a client of its owner.
func (c *cloud) make(spec provider.BucketSpec) (provider.Bucket, *s3.Client) {
	c.t.Helper()
	b, err := c.CreateBucket(c.t.Context(), spec)
	c.must(err)
	return b, c.clientOf(c.Provider, b)
}

// clientOf returns an S3 client with the key of the bucket's owner.
func (c *cloud) clientOf(p *Provider, b provider.Bucket) *s3.Client {
	c.t.Helper()
	u, err := p.getUser(c.t.Context(), b.OwnerID)
	c.must(err)
	key, err := u.key()
	c.must(err)
	client, err := p.client(b.Endpoint, key)
	c.must(err)
	return client
}

// foreign creates a bucket in another project, by another driver.
func (c *cloud) foreign(name, region string) (provider.Bucket, *s3.Client) {
	c.t.Helper()
	p := c.provider(withToken(c.cs.ForeignToken), func(c *Config) { c.DriverName = "other.example" })
	b, err := p.CreateBucket(c.t.Context(), provider.BucketSpec{Name: name, Region: region})
	c.must(err)
	return b, c.clientOf(p, b)
}

// person makes an objects user of the project without any mark and a bucket of
// its own, and returns its client and what removes both with the content.
func (c *cloud) person(bucket, region string) (*s3.Client, func(context.Context) error) {
	c.t.Helper()
	u, err := c.createUser(c.t.Context(), "person", map[string]string{"team": "theirs"})
	c.must(err)
	var client *s3.Client
	err = c.withKey(c.t.Context(), identity{u.id, region, c.cs.Endpoints[region]}, &u, func(known *s3.Client) error {
		client = known
		return known.CreateBucket(c.t.Context(), bucket)
	})
	c.must(err)
	return client, func(ctx context.Context) error {
		_, err := client.Purge(ctx, bucket)
		if err == nil {
			err = client.DeleteBucket(ctx, bucket)
		}
		if s3.Code(err) == codeUnknownKey || s3.Code(err) == codeMissing {
			err = nil // it is done already
		}
		return errors.Join(err, c.deleteUser(ctx, u.id))
	}
}

// count returns how many calls had the operation.
func (c *cloud) count(operation string) int {
	n := 0
	for _, call := range c.Calls() {
		if call.Operation == operation {
			n++
		}
	}
	return n
}

// wantAccesses fails the test unless these are all accesses of ours, as "bucket
// account", with the stage if that is not in, sorted.
func (c *cloud) wantAccesses(want ...string) {
	c.t.Helper()
	var got []string
	for _, u := range c.cs.Users() {
		if u.Tags[tagManagedBy] == testDriver && u.Tags[tagRole] == roleAccess {
			a := recordedAccess(user{id: u.ID, tags: u.Tags})
			for _, name := range a.names() {
				got = append(got, strings.TrimSuffix(name+" "+a.account+" "+string(a.buckets[name].stage), " in"))
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		c.t.Errorf("left are the accesses %q, want %q", got, want)
	}
}

// trust spares the provider the probes.
func (c *cloud) trust(p *Provider) {
	for _, endpoint := range c.cs.Endpoints {
		p.probes.set(Verdict{Endpoint: endpoint, Honoured: true})
	}
}

// keyClient returns an S3 client with a granted key.
func (c *cloud) keyClient(a provider.Access) *s3.Client {
	c.t.Helper()
	client, err := c.client(a.Buckets[0].Endpoint, keyPair{a.Credentials.AccessKeyID, a.Credentials.SecretAccessKey})
	c.must(err)
	return client
}

// wantLeft fails the test unless exactly the named buckets exist, each with
// exactly one owner of ours, and nothing of a probe.
func (c *cloud) wantLeft(names ...string) {
	c.t.Helper()
	var buckets, owners []string
	ids := map[string]string{}
	for _, u := range c.cs.Users() {
		if u.Tags[tagManagedBy] == testDriver && (u.Tags[tagRole] != roleAccess || u.Tags[tagPurpose] != "") {
			name := resourcesOf(user{id: u.ID, tags: u.Tags})[0].Bucket
			owners = append(owners, name)
			ids[u.ID] = name
		}
	}
	for _, b := range c.cs.Buckets() {
		if ids[b.OwnerUID] == b.Name {
			buckets = append(buckets, b.Name)
		}
	}
	slices.Sort(buckets)
	slices.Sort(owners)
	slices.Sort(names)
	if !slices.Equal(buckets, names) || !slices.Equal(owners, names) {
		c.t.Errorf("left are the buckets %q and the owners of %q, want %q for both", buckets, owners, names)
	}
}

// bucketInfo returns what the store holds under the name.
func (c *cloud) bucketInfo(name string) (objectstore.BucketInfo, bool) {
	for _, b := range c.cs.Buckets() {
		if b.Name == name {
			return b, true
		}
	}
	return objectstore.BucketInfo{}, false
}

// clock is a time that stands still but for what a test moves it by.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// deadline is a context whose time runs out when a test says so.
type deadline struct {
	context.Context
	out  chan struct{}
	once sync.Once
}

func newDeadline(ctx context.Context) *deadline {
	return &deadline{Context: ctx, out: make(chan struct{})}
}

func (d *deadline) expire() { d.once.Do(func() { close(d.out) }) }

func (d *deadline) Done() <-chan struct{} { return d.out }

func (d *deadline) Err() error {
	select {
	case <-d.out:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
