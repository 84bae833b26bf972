package cloudscale

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// nowhere is an endpoint at which nobody answers.
const nowhere = "http://127.0.0.1:1"

func forClaim(spec provider.BucketSpec, namespace, name string) provider.BucketSpec {
	spec.Claim = provider.ClaimRef{Namespace: namespace, Name: name}
	return spec
}

// eitherOwner runs the test with a bucket that has an owner of its own, and with one of a
// tenant.
func eitherOwner(t *testing.T, test func(t *testing.T, c *cloud, spec provider.BucketSpec)) {
	for name, spec := range map[string]provider.BucketSpec{
		"own owner":      {Name: "a-b-c", Region: "rma"},
		"tenant's owner": ofTenant("a-b-c", "rma"),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			test(t, c, spec)
		})
	}
}

// unmade begins with the bucket, and gets no further than its record. The tenant gets
// another bucket then.
func (c *cloud) unmade(spec provider.BucketSpec) {
	c.t.Helper()
	spec.Endpoint = nowhere
	_, err := c.CreateBucket(c.t.Context(), spec)
	c.want(err, provider.ErrUnavailable)
	if _, made := c.bucketInfo(spec.Name); made {
		c.t.Fatal("the bucket was made")
	}
	c.make(ofTenant("other", "rma"))
}

// A claim that is made anew, with a class that is corrected, is not held to what was
// recorded of a bucket that never came.
func TestCorrectedClass(t *testing.T) {
	eitherOwner(t, func(t *testing.T, c *cloud, spec provider.BucketSpec) {
		spec = forClaim(spec, "a-b", "c")
		c.unmade(spec)
		users := len(c.cs.Users())
		spec.Region, spec.DeletionPolicy = "lpg", provider.DeleteAll
		c.Provider = c.provider()
		b, _ := c.make(spec)
		if b.Endpoint != c.cs.Endpoints["lpg"] || b.Region != "lpg" || b.DeletionPolicy != provider.DeleteAll || b.Tenant != spec.Tenant {
			t.Errorf("it was made as %+v", b)
		}
		if n := len(c.cs.Users()); n != users {
			t.Errorf("%d objects users became %d", users, n)
		}
		again, err := c.provider().GetBucket(t.Context(), provider.BucketRef{Name: "a-b-c", Region: "lpg"})
		c.must(err)
		if again != b {
			t.Errorf("recorded is %+v, made was %+v", again, b)
		}
		// What was made is what it is.
		spec.Region = "rma"
		_, err = c.CreateBucket(t.Context(), spec)
		c.want(err, provider.ErrAlreadyExists, "region")
	})
}

// A claim whose bucket never came keeps its name from another claim as long as it is
// wanted, and no longer.
func TestUnmadeBucketOfAnotherClaim(t *testing.T) {
	eitherOwner(t, func(t *testing.T, c *cloud, spec provider.BucketSpec) {
		first, second := forClaim(spec, "a-b", "c"), forClaim(spec, "a", "b-c")
		c.unmade(first)
		before := c.cs.Users()
		_, err := c.CreateBucket(t.Context(), second)
		c.want(err, provider.ErrPrecondition, "a-b/c", "zuber gc", "another name")
		if len(c.cs.Users()) != len(before) {
			t.Errorf("%+v became %+v", before, c.cs.Users())
		}
		// As gc does, once the cluster knows nothing of it. Its endpoint does not answer.
		c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "a-b-c", Region: "rma"}, provider.DeleteOptions{}))
		c.wantTenant("other")
		c.make(second)
		_, err = c.CreateBucket(t.Context(), first)
		c.want(err, provider.ErrAlreadyExists, "a/b-c")
	})
}

// A tenant is part of whose bucket it is, and a record moves to no other objects user.
func TestUnmadeBucketOfAnotherTenant(t *testing.T) {
	eitherOwner(t, func(t *testing.T, c *cloud, spec provider.BucketSpec) {
		spec = forClaim(spec, "a-b", "c")
		c.unmade(spec)
		spec.Tenant = "team-b"
		_, err := c.CreateBucket(t.Context(), spec)
		c.want(err, provider.ErrPrecondition, "zuber gc")
		if n := len(c.cs.Buckets()); n != 1 {
			t.Errorf("there are %d buckets", n)
		}
	})
}

// An owner that has a bucket, or accesses to the one that is gone, keeps its record.
func TestRecordOfWhatWasMadeStays(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	spec := forClaim(provider.BucketSpec{Name: "a-b-c", Region: "rma"}, "a-b", "c")
	b, client := c.make(spec)
	spec.DeletionPolicy = provider.DeleteAll
	refused := func(why string) {
		t.Helper()
		if _, err := c.CreateBucket(t.Context(), spec); c.keep(err) == nil {
			t.Fatalf("the record was replaced although %s", why)
		} else {
			c.want(err, provider.ErrAlreadyExists, "bucketDeletionPolicy")
		}
	}
	refused("the bucket is there")
	_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(client.DeleteBucket(t.Context(), "a-b-c"))
	refused("there is an access to it")
	c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1"}))
	c.must(client.CreateBucket(t.Context(), "another"))
	refused("its owner has another bucket")
	// An owner that cannot be asked may have it.
	remove := c.Inject(emulator.Fault{Plane: emulator.PlaneS3, Status: http.StatusNotImplemented})
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable, "bucketDeletionPolicy")
	remove()
}

// before runs f once, before the first request of the operation leaves.
type before struct {
	http.RoundTripper
	is   func(*http.Request) bool
	once sync.Once
	f    func()
}

func (b *before) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.is(req) {
		b.once.Do(b.f)
	}
	return b.RoundTripper.RoundTrip(req)
}

// Of two processes that make one bucket of one claim with different parameters, the
// one whose record is replaced does not say that it was made its way.
func TestRecordReplacedMeanwhile(t *testing.T) {
	eitherOwner(t, func(t *testing.T, c *cloud, spec provider.BucketSpec) {
		old := forClaim(spec, "a-b", "c")
		corrected := old
		corrected.DeletionPolicy = provider.DeleteAll
		hook := &before{RoundTripper: c.spy, f: func() { c.make(corrected) }, is: func(req *http.Request) bool {
			return req.Method == http.MethodPut && req.URL.Path == "/a-b-c/" || req.Method == http.MethodPut && req.URL.Path == "/a-b-c"
		}}
		late := c.provider(func(config *Config) { config.Transport = hook })
		_, err := late.CreateBucket(t.Context(), old)
		c.want(err, provider.ErrConflict, "repeat the call")
		_, err = late.CreateBucket(context.WithoutCancel(t.Context()), old)
		c.want(err, provider.ErrAlreadyExists, "bucketDeletionPolicy")
		got, err := c.GetBucket(t.Context(), provider.BucketRef{Name: "a-b-c", Region: "rma"})
		c.must(err)
		if got.DeletionPolicy != provider.DeleteAll {
			t.Errorf("recorded is %+v", got)
		}
	})
}
