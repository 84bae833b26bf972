package stackit

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const testRegion = "eu01"

// cloud is an emulated STACKIT for the length of a test.
type cloud struct {
	*emulator.Stackit
	emu    *emulator.Emulator
	driver string
	// What was there before the case began.
	before map[string]bool
}

func newCloud(t *testing.T, o emulator.Options) *cloud {
	t.Helper()
	e, err := emulator.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &cloud{e.Stackit(), e, "cosi.zuber.dev", nil}
}

// fresh is the same cloud for a case of its own: another driver, which knows
// nothing of what is there.
func (c *cloud) fresh(name string) *cloud {
	before := map[string]bool{}
	for _, g := range c.Groups() {
		before[g.ID] = true
	}
	return &cloud{c.Stackit, c.emu, name + ".zuber.dev", before}
}

// again is the same cloud and driver for another case.
func (c *cloud) again() *cloud {
	same := c.fresh("")
	same.driver = c.driver
	return same
}

// provider is a new process of the driver: a provider without any memory.
func (c *cloud) provider(t *testing.T, change ...func(*Config)) *Provider {
	t.Helper()
	config := Config{
		DriverName: c.driver, APIURL: c.APIURL,
		Credentials:     Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(c.ServiceAccountKey()), nil }},
		PropagationWait: 5 * time.Second, ListingWait: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&config)
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p.waits = backoff{time.Millisecond, 20 * time.Millisecond}
	return p
}

func spec(name string) provider.BucketSpec {
	return provider.BucketSpec{Name: name, Region: testRegion}
}

func refOf(name string) provider.BucketRef { return provider.BucketRef{Name: name, Region: testRegion} }

func bucketOf(name string, tags map[string]string) *bucket {
	return &bucket{BucketRef: refOf(name), tags: tags}
}

func accessTo(account, bucket string, mode provider.Mode) provider.AccessSpec {
	return provider.AccessSpec{Account: account, Buckets: []provider.BucketAccess{{BucketRef: refOf(bucket), Mode: mode}}}
}

func mustCreate(t *testing.T, p *Provider, name string) provider.Bucket {
	t.Helper()
	b, err := p.CreateBucket(t.Context(), spec(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustGrant(t *testing.T, p *Provider, account, bucket string, mode provider.Mode) provider.Access {
	t.Helper()
	a, err := p.GrantAccess(t.Context(), accessTo(account, bucket, mode))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// s3As is a client with the key of an access.
func (c *cloud) s3As(t *testing.T, key provider.Credentials) *s3.Client {
	t.Helper()
	client, err := s3.New(s3.Config{Endpoint: c.Endpoints[testRegion], AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// admin runs f with the provider's admin key.
func (c *cloud) admin(t *testing.T, p *Provider, f func(*s3.Client) error) {
	t.Helper()
	e, err := parseEndpoint(c.Endpoints[testRegion])
	if err != nil {
		t.Fatal(err)
	}
	if err := p.asAdmin(t.Context(), testRegion, e, f); err != nil {
		t.Fatal(err)
	}
}

// stored returns the tags and the policy of a bucket.
func (c *cloud) stored(t *testing.T, p *Provider, name string) (tags map[string]string, policy string) {
	t.Helper()
	c.admin(t, p, func(client *s3.Client) (err error) {
		if tags, err = client.Tags(t.Context(), name); err != nil {
			return err
		}
		policy, err = client.Policy(t.Context(), name)
		return err
	})
	return tags, policy
}

// groups returns the project's credentials groups in the test region but the
// admin and those from before.
func (c *cloud) groups() []emulator.Group {
	var found []emulator.Group
	for _, g := range c.Groups() {
		if g.Project == c.ProjectID && g.Region == testRegion && g.DisplayName != adminName(c.driver) && !c.before[g.ID] {
			found = append(found, g)
		}
	}
	return found
}

// errCrash is what a call of a crashed process meets.
var errCrash = errors.New("the process has crashed")

// crashing carries requests out until the n-th, which it drops, or carries out
// and loses the answer of. After it nothing goes out any more.
type crashing struct {
	after  bool
	writes bool // count only what may change something
	crash  context.CancelFunc

	mu   sync.Mutex
	left int
}

func (c *crashing) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	passes := c.left > 0 && c.writes && req.Method == http.MethodGet
	if !passes {
		c.left--
	}
	left := c.left
	c.mu.Unlock()
	if left > 0 || passes {
		return http.DefaultTransport.RoundTrip(req)
	}
	if left == 0 && c.after {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	c.crash()
	return nil, errCrash
}

// crashed runs f in a process that crashes at its n-th call, and reports whether
// it got that far.
func (c *cloud) crashed(t *testing.T, n int, after bool, f func(context.Context, *Provider) error) bool {
	t.Helper()
	return c.crashedBy(t, &crashing{after: after, left: n}, f)
}

// crashedBy is crashed with the crash described.
func (c *cloud) crashedBy(t *testing.T, transport *crashing, f func(context.Context, *Provider) error) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	transport.crash = cancel
	n := transport.left
	p := c.provider(t, func(config *Config) { config.Transport = transport })
	err := f(ctx, p)
	transport.mu.Lock()
	defer transport.mu.Unlock()
	if transport.left > 0 && err != nil {
		t.Fatalf("undisturbed call %d: %v", n, err)
	}
	return transport.left <= 0
}
