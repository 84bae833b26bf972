package cloudscale

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestProbeIsMadeOnceForARegion(t *testing.T) {
	var mu sync.Mutex
	var told []Verdict
	c := newCloud(t, emulator.Options{}, func(c *Config) {
		c.OnProbe = func(v Verdict) { mu.Lock(); defer mu.Unlock(); told = append(told, v) }
	})
	var wg sync.WaitGroup
	for _, region := range []string{"rma", "lpg", "rma", "lpg"} {
		wg.Go(func() {
			v, err := c.ProbePolicies(t.Context(), region, "")
			if c.keep(err) != nil || !v.Honoured || v.Region != region || v.Seen == "" {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	wg.Wait()
	if len(told) != 2 {
		t.Errorf("told of %+v, want one for each region", told)
	}
	c.wantLeft()
	if users, buckets := c.cs.Users(), c.cs.Buckets(); len(users)+len(buckets) != 0 {
		t.Errorf("left: %v, %v", users, buckets)
	}
	c.ResetCalls()
	_, err := c.ProbePolicies(t.Context(), "rma", "")
	c.must(err)
	if n := len(c.Calls()); n != 0 {
		t.Errorf("%d calls for what is known", n)
	}
	_, err = c.ProbePolicies(t.Context(), "zrh", "")
	c.want(err, provider.ErrInvalidArgument)
}

// What an endpoint does that does not honour policies, and what is said of it.
func TestProbeFindsOutAndSharedIsLeft(t *testing.T) {
	refusal := func(status int, code string) emulator.Fault {
		return emulator.Fault{Status: status, Body: "<Error><Code>" + code + "</Code></Error>"}
	}
	const listing = `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>`
	at := func(f emulator.Fault, operation string, after int) emulator.Fault {
		f.Operation, f.After = operation, after
		return f
	}
	for name, tc := range map[string]struct {
		fault emulator.Fault
		seen  string
	}{
		"open":            {at(emulator.Fault{Status: 200, Body: listing}, "ListObjectsV2", 0), "storage is open"},
		"tenants":         {at(refusal(404, "NoSuchBucket"), "ListObjectsV2", 0), "tenant"},
		"not implemented": {at(refusal(501, "NotImplemented"), "PutBucketPolicy", 0), "refuses a policy"},
		"refused":         {at(refusal(403, "AccessDenied"), "PutBucketPolicy", 0), "refuses a policy"},
		"malformed":       {at(refusal(400, "MalformedPolicy"), "PutBucketPolicy", 0), "refuses a policy"},
		"another":         {at(emulator.Fault{Status: 200, Body: "{}"}, "GetBucketPolicy", 0), "stores another policy"},
		"not obeyed":      {at(refusal(403, "AccessDenied"), "ListObjectsV2", 0), "does not let the user in"},
		"reading refused": {at(refusal(403, "AccessDenied"), "GetObject", 0), "but not read"},
		"not enforced":    {at(emulator.Fault{Status: 200, Header: http.Header{"Etag": {`"d41d8cd98f00b204e9800998ecf8427e"`}}}, "PutObject", 1), "lets the user write"},
		"for ever":        {at(emulator.Fault{Status: 200, Body: listing}, "ListObjectsV2", 2), "whose policy is removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, emulator.Options{})
			b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
			remove := c.Inject(tc.fault)
			_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadOnly))
			c.want(err, provider.ErrPrecondition, "bucket", "rma", tc.seen, "credentials to shared", "cannot cut off")
			remove()
			c.wantLeft("bucket")
			c.wantAccesses()
			// The verdict stands for a while, and shared credentials are what is left.
			c.ResetCalls()
			_, err = c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadOnly))
			c.want(err, provider.ErrPrecondition, tc.seen)
			if c.count("PutBucketPolicy") != 0 {
				t.Error("it was probed again at once")
			}
			_, err = c.GrantAccess(t.Context(), sharedTo(b.BucketRef))
			c.must(err)
			c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
			c.wantLeft()
		})
	}
}

// An outage during a probe is no verdict.
func TestProbeCutShortSaysNothing(t *testing.T) {
	for _, operation := range []string{"ListObjectsV2", "PutBucketPolicy", "GetBucketPolicy", "PutObject", "GetObject", "DeleteBucketPolicy", "CreateBucket", "CreateObjectsUser"} {
		c := newCloud(t, emulator.Options{})
		b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
		remove := c.Inject(emulator.Fault{Operation: operation, Status: 503})
		_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadOnly))
		c.want(err, provider.ErrUnavailable)
		remove()
		_, err = c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadOnly))
		c.must(err)
		c.wantLeft("bucket")
	}
}

func TestNotImplementedIsProbedAnew(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadOnly))
	c.must(err)
	remove := c.Inject(emulator.Fault{Operation: "PutBucketPolicy", Status: 501, Body: "<Error><Code>NotImplemented</Code></Error>"})
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
	c.want(err, provider.ErrUnavailable, "NotImplemented", "probes")
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
	c.want(err, provider.ErrPrecondition, "NotImplemented")
	remove()
	// A newer release is found when the refusal is old.
	c.probes.forget(b.Endpoint)
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
	c.must(err)
}

// What a probe of another process left is removed when it is old enough, and not
// before.
func TestLeftoversOfProbes(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	remove := c.Inject(emulator.Fault{Operation: "DeleteBucket", Status: 503})
	_, err := c.provider().ProbePolicies(t.Context(), "rma", "")
	c.must(err)
	remove()
	left := func() int { return len(c.cs.Users()) + len(c.cs.Buckets()) }
	if left() == 0 {
		t.Fatal("nothing was left")
	}
	for r, err := range c.Inventory(t.Context()) {
		c.must(err)
		if !strings.HasPrefix(r.Bucket, probePrefix) {
			t.Errorf("%+v", r)
		}
	}
	before := left()
	c.probes.age = time.Hour
	_, err = c.ProbePolicies(t.Context(), "rma", "")
	c.must(err)
	if left() != before {
		t.Errorf("%d left, want %d: it may still be running", left(), before)
	}
	c.probes.age = 0
	c.probes.sweepAt = time.Now().Add(-time.Second)
	_, err = c.ProbePolicies(t.Context(), "rma", "")
	c.must(err)
	if left() != 0 {
		t.Errorf("left: %v, %v", c.cs.Users(), c.cs.Buckets())
	}
}
