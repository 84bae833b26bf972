package cloudscale

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// twice makes a bucket "twice" with an object and a second user that carries its
// mark.
func twice(t *testing.T) (c *cloud, b provider.Bucket, second user) {
	t.Helper()
	c = newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "twice", Region: "rma"})
	c.must(client.PutObject(t.Context(), "twice", "kept", []byte("data")))
	tags, err := record{bucket: "twice", region: "rma"}.tags(testDriver)
	c.must(err)
	second, err = c.createUser(t.Context(), "second", tags)
	c.must(err)
	return c, b, second
}

func TestTwoOwnersAreRefused(t *testing.T) {
	c, b, second := twice(t)
	ref := provider.BucketRef{Name: "twice", Region: "rma"}
	_, err := c.GetBucket(t.Context(), ref)
	c.want(err, provider.ErrConflict, b.OwnerID, second.id)
	_, err = c.GrantAccess(t.Context(), provider.AccessSpec{Account: "ba-1", Buckets: []provider.BucketAccess{{BucketRef: ref}}})
	c.want(err, provider.ErrConflict, b.OwnerID, second.id)
	// An ID that names the owner is not ambiguous.
	_, err = c.GetBucket(t.Context(), b.BucketRef)
	c.must(err)

	// The second one owns something, so who is who is for people to say.
	key, err := second.key()
	c.must(err)
	s, err := c.client(c.cs.Endpoints["rma"], key)
	c.must(err)
	c.must(s.CreateBucket(t.Context(), "of-the-second"))
	_, err = c.CreateBucket(t.Context(), provider.BucketSpec{Name: "twice", Region: "rma"})
	c.want(err, provider.ErrConflict, b.OwnerID, second.id)
	c.want(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{Purge: true}), provider.ErrConflict, b.OwnerID, second.id)
	if len(c.cs.Users()) != 2 {
		t.Error("a refused call removed an owner")
	}
}

func TestTwoOwnersAreSettledWhenOneHasNothing(t *testing.T) {
	c, b, _ := twice(t)
	again, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "twice", Region: "rma"})
	c.must(err)
	if again.OwnerID != b.OwnerID {
		t.Errorf("the owner became %s, want %s, which has the bucket", again.OwnerID, b.OwnerID)
	}
	c.wantLeft("twice")

	c, b, second := twice(t)
	ref := provider.BucketRef{Name: "twice", Region: "rma"}
	// What cannot be known is not settled.
	remove := c.Inject(emulator.Fault{Operation: "ListBuckets", Status: http.StatusForbidden, Body: "<Error><Code>InvalidAccessKeyId</Code></Error>"})
	c.want(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{Purge: true}), provider.ErrConflict, b.OwnerID, second.id)
	remove()
	c.want(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{}), provider.ErrNotEmpty)
	c.wantLeft("twice")
	c.must(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{Purge: true}))
	c.wantLeft()
}

// While none of several owners has the bucket, another process may be making it
// with any of them: all go on with the same one, and the others go when it has it.
func TestTwoOwnersWithoutABucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	tags, err := record{bucket: "twice", region: "lpg"}.tags(testDriver)
	c.must(err)
	var ids []string
	for range 3 {
		u, err := c.createUser(t.Context(), "owner", tags)
		c.must(err)
		ids = append(ids, u.id)
	}
	spec := provider.BucketSpec{Name: "twice", Region: "lpg"}
	remove := c.Inject(emulator.Fault{Operation: "CreateBucket", Status: http.StatusInternalServerError})
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable)
	remove()
	if n := len(c.cs.Users()); n != 3 {
		t.Errorf("a call that made no bucket left %d owners of 3", n)
	}
	b, err := c.CreateBucket(t.Context(), spec)
	c.must(err)
	if want := slices.Min(ids); b.OwnerID != want {
		t.Errorf("the owner is %s, want %s, the first of them", b.OwnerID, want)
	}
	c.wantLeft("twice")
}

// TestDeleteOfSeveralOwners: those that creations cut short have left go, none of
// them is named, and none has the bucket.
func TestDeleteOfSeveralOwners(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	tags, err := record{bucket: "twice", region: "lpg"}.tags(testDriver)
	c.must(err)
	for range 3 {
		_, err := c.createUser(t.Context(), "owner", tags)
		c.must(err)
	}
	c.want(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "twice", Region: "rma"}, provider.DeleteOptions{}), provider.ErrInvalidArgument)
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "twice", Region: "lpg"}, provider.DeleteOptions{}))
	c.wantLeft()
}

// A call that could not look for other owners leaves its own to the next one.
func TestSurplusOwnerIsRemovedLater(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	remove := c.Inject(emulator.Fault{Operation: "ListObjectsUsers", After: 1, Status: http.StatusInternalServerError})
	spec := provider.BucketSpec{Name: "later", Region: "rma"}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable, "later")
	remove()
	tags, err := record{bucket: "later", region: "rma"}.tags(testDriver)
	c.must(err)
	_, err = c.createUser(t.Context(), "of another process", tags)
	c.must(err)
	_, err = c.CreateBucket(t.Context(), spec)
	c.must(err)
	c.wantLeft("later")
}

// Calls that make the bucket at the same time, each at its own pace, find their way
// with owners whose removed keys work on for a while: none is told for good that the
// name is taken.
func TestConcurrentCreatesAtOddPaces(t *testing.T) {
	late := map[string]emulator.Delay{"lpg": {Max: 30 * time.Millisecond}}
	for seed := range uint64(6) {
		c := newCloud(t, emulator.Options{Seed: seed, KeyDelay: late})
		for _, operation := range []string{"ListObjectsUsers", "CreateObjectsUser", "CreateBucket", "DeleteObjectsUser", "GetObjectsUser", "DeleteBucket"} {
			c.Inject(emulator.Fault{Operation: operation, Probability: 0.5, Latency: 25 * time.Millisecond})
		}
		var wg sync.WaitGroup
		for range 8 {
			p := c.provider() // as another process
			wg.Go(func() {
				repeat(t, func(ctx context.Context) error {
					_, err := p.CreateBucket(ctx, provider.BucketSpec{Name: "one", Region: "lpg"})
					return c.keep(err)
				})
			})
		}
		wg.Wait()
		c.wantLeft("one")
	}
}

// What the endpoint calls taken and does not show is being made or removed.
func TestTakenNameThatIsNotThere(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.Inject(emulator.Fault{Operation: "CreateBucket", Times: 1, Status: http.StatusConflict, Body: "<Error><Code>BucketAlreadyExists</Code></Error>"})
	spec := provider.BucketSpec{Name: "passing", Region: "rma"}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrConflict, "repeat")
	_, err = c.CreateBucket(t.Context(), spec)
	c.must(err)
	c.wantLeft("passing")
}

// onCreate runs do before the first CreateBucket call leaves.
type onCreate struct {
	once sync.Once
	do   func()
}

func (o *onCreate) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut && req.URL.Path == "/vanishing/" {
		o.once.Do(o.do)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Where removed keys work on for a while, an owner that another call removed can
// still make the bucket, which nobody could delete afterwards.
func TestCreateWithAnOwnerThatVanishes(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	hook := &onCreate{do: func() {
		c.must(c.SetKeyDelay(map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}))
		c.must(c.deleteUser(t.Context(), c.cs.Users()[0].ID))
	}}
	c.Provider = c.provider(func(cfg *Config) { cfg.Transport = hook })
	spec := provider.BucketSpec{Name: "vanishing", Region: "lpg"}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrConflict, "removed by another call")
	c.wantLeft()
}
