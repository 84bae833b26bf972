package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestCreateMarksTheOwner(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for _, tc := range []struct {
		spec provider.BucketSpec
		tags map[string]string // besides the four that are always there
		want provider.Bucket
	}{
		{
			spec: provider.BucketSpec{Name: "plain", Region: "rma"},
			want: provider.Bucket{Endpoint: c.cs.Endpoints["rma"], DeletionPolicy: provider.DeleteIfEmpty},
		},
		{
			spec: provider.BucketSpec{Name: "with.dots", Region: "lpg", Endpoint: c.cs.Endpoints["lpg"] + "/", DeletionPolicy: provider.DeleteIfEmpty},
			want: provider.Bucket{Endpoint: c.cs.Endpoints["lpg"], DeletionPolicy: provider.DeleteIfEmpty},
		},
		{
			spec: provider.BucketSpec{Name: "all", Region: "rma", VirtualHosted: true, DeletionPolicy: provider.DeleteAll,
				Endpoint: strings.Replace(c.cs.Endpoints["rma"], "127.0.0.1", "localhost", 1)},
			tags: map[string]string{
				"zuber_addressing": "virtual", "zuber_deletion_policy": "DeleteAll",
				"zuber_endpoint": "http." + strings.TrimPrefix(c.cs.Endpoints["rma"], "http://127.0.0.1:") + ".localhost",
			},
			want: provider.Bucket{VirtualHosted: true, DeletionPolicy: provider.DeleteAll,
				Endpoint: strings.Replace(c.cs.Endpoints["rma"], "127.0.0.1", "localhost", 1)},
		},
	} {
		b, _ := c.make(tc.spec)
		tc.want.BucketRef = provider.BucketRef{Name: tc.spec.Name, Region: tc.spec.Region, OwnerID: b.OwnerID}
		tc.want.SigningRegion = "us-east-1"
		if b != tc.want {
			t.Errorf("CreateBucket(%+v) is %+v, want %+v", tc.spec, b, tc.want)
		}
		tags := map[string]string{
			"zuber_managed_by": testDriver, "zuber_bucket": tc.spec.Name, "zuber_role": "owner", "zuber_region": tc.spec.Region,
		}
		maps.Copy(tags, tc.tags)
		u, err := c.getUser(t.Context(), b.OwnerID)
		c.must(err)
		if !maps.Equal(u.tags, tags) {
			t.Errorf("tags are %v, want %v", u.tags, tags)
		}
		// A process that knows nothing reads the same back.
		got, err := c.provider().GetBucket(t.Context(), provider.BucketRef{Name: tc.spec.Name, Region: tc.spec.Region})
		c.must(err)
		if got != b {
			t.Errorf("GetBucket is %+v, want %+v", got, b)
		}
		if info, ok := c.bucketInfo(b.Name); !ok || info.Region != tc.spec.Region {
			t.Errorf("the bucket lives in %q, want %q", info.Region, tc.spec.Region)
		}
	}
	c.wantLeft("plain", "with.dots", "all")
}

// recorder keeps the requests that pass it.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, req.Clone(context.WithoutCancel(req.Context())))
	r.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

func TestCreateSendsNoLocationConstraint(t *testing.T) {
	r := &recorder{}
	c := newCloud(t, emulator.Options{}, func(c *Config) { c.Transport = r })
	for _, region := range []string{"rma", "lpg"} {
		c.make(provider.BucketSpec{Name: "bucket-" + region, Region: region})
	}
	creates := 0
	for _, req := range r.seen {
		if req.Method != http.MethodPut {
			continue
		}
		creates++
		if req.ContentLength != 0 || (req.Body != nil && req.Body != http.NoBody) || len(req.TransferEncoding) > 0 {
			t.Errorf("PUT %s has a body of %d bytes, want none", req.URL.Path, req.ContentLength)
		}
	}
	if creates != 2 {
		t.Errorf("saw %d PUTs, want 2", creates)
	}
}

func TestCreateRefusesWhatIsMalformedWithoutACall(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	long := "https://" + strings.Repeat("x", 60) + ".example.com"
	for name, spec := range map[string]provider.BucketSpec{
		"short":              {Name: "ab", Region: "rma"},
		"long":               {Name: strings.Repeat("a", 64), Region: "rma"},
		"upper case":         {Name: "Bucket", Region: "rma"},
		"underscore":         {Name: "a_b_c", Region: "rma"},
		"dots":               {Name: "a..b", Region: "rma"},
		"dot beside hyphen":  {Name: "a.-b", Region: "rma"},
		"ends in a hyphen":   {Name: "abc-", Region: "rma"},
		"address":            {Name: "192.168.1.1", Region: "rma"},
		"slash":              {Name: "abc/../x", Region: "rma"},
		"no region":          {Name: "abc"},
		"region with a path": {Name: "abc", Region: "rma/x"},
		"policy":             {Name: "abc", Region: "rma", DeletionPolicy: "Keep"},
		"endpoint":           {Name: "abc", Region: "rma", Endpoint: "objects.example.com"},
		"endpoint path":      {Name: "abc", Region: "rma", Endpoint: "https://objects.example.com/x"},
		"endpoint too long":  {Name: "abc", Region: "rma", Endpoint: long},
		"endpoint IPv6":      {Name: "abc", Region: "rma", Endpoint: "https://[::1]"},
		"certificate":        {Name: "a.b.c", Region: "rma", Endpoint: "https://objects.example.com", VirtualHosted: true},
	} {
		_, err := c.CreateBucket(t.Context(), spec)
		if _ = c.keep(err); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%s: got %v, want ErrInvalidArgument", name, err)
		}
	}
	if calls := c.Calls(); len(calls) != 0 {
		t.Errorf("made %d calls, want none", len(calls))
	}
}

func TestCreateNamesTheRegions(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "fra"})
	c.want(err, provider.ErrInvalidArgument, `"fra"`, "lpg, rma")
	c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	c.make(provider.BucketSpec{Name: "def", Region: "lpg"})
	if n := c.count("ListRegions"); n != 1 {
		t.Errorf("the regions were read %d times, want once", n)
	}
}

func TestCreateOfAForeignName(t *testing.T) {
	for _, home := range []string{"rma", "lpg"} {
		for _, region := range []string{"rma", "lpg"} {
			t.Run(home+" asked in "+region, func(t *testing.T) {
				c := newCloud(t, emulator.Options{})
				b, owner := c.foreign("taken", home)
				c.must(owner.PutObject(t.Context(), "taken", "kept", []byte("data")))
				_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "taken", Region: region})
				c.want(err, provider.ErrAlreadyExists, `"taken"`, region)
				c.wantLeft()
				if data, err := owner.GetObject(t.Context(), b.Name, "kept"); err != nil || string(data) != "data" {
					t.Errorf("the foreign bucket was touched: %q %v", data, err)
				}
				if n := len(c.cs.Users()); n != 1 {
					t.Errorf("%d users are left, want the foreign one", n)
				}
			})
		}
	}
}

// An earlier call made the owner and ended; then somebody took the name.
func TestCreateRemovesAnOwnerThatCameTooLate(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	remove := c.Inject(emulator.Fault{Operation: "CreateBucket", CutConnection: true})
	spec := provider.BucketSpec{Name: "taken", Region: "rma"}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable)
	remove()
	c.foreign("taken", "rma")
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrAlreadyExists)
	if n := len(c.cs.Users()); n != 1 {
		t.Errorf("%d users are left, want the foreign one", n)
	}
}

func TestCreateWithOtherParameters(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.make(provider.BucketSpec{Name: "fixed", Region: "rma"})
	for name, tc := range map[string]struct {
		spec  provider.BucketSpec
		texts []string
	}{
		"region":    {provider.BucketSpec{Name: "fixed", Region: "lpg"}, []string{"region", `"rma"`, `"lpg"`}},
		"endpoint":  {provider.BucketSpec{Name: "fixed", Region: "rma", Endpoint: "http://other.example"}, []string{"endpointURL", "other.example"}},
		"path":      {provider.BucketSpec{Name: "fixed", Region: "rma", VirtualHosted: true}, []string{"s3PathStyle", "true", "false"}},
		"retention": {provider.BucketSpec{Name: "fixed", Region: "rma", DeletionPolicy: provider.DeleteAll}, []string{"bucketDeletionPolicy", "DeleteAll"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.CreateBucket(t.Context(), tc.spec)
			c.want(err, provider.ErrAlreadyExists, tc.texts...)
		})
	}
	c.wantLeft("fixed")
}

// The endpoint answers 409 to the owner's own repetition after an ACL change.
func TestCreateAdoptsAfterA409OfTheOwn(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := provider.BucketSpec{Name: "mine", Region: "lpg"}
	made, _ := c.make(spec)
	c.Inject(emulator.Fault{Operation: "CreateBucket", Status: http.StatusConflict,
		Body: "<Error><Code>BucketAlreadyExists</Code><Message></Message></Error>"})
	again, err := c.CreateBucket(t.Context(), spec)
	c.must(err)
	if again != made {
		t.Errorf("got %+v, want %+v", again, made)
	}
}

func TestCreateTellsTheRealRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "moved", Region: "rma"})
	// The record was changed behind the driver's back.
	u, err := c.getUser(t.Context(), b.OwnerID)
	c.must(err)
	u.tags[tagRegion] = "lpg"
	c.must(c.updateTags(t.Context(), u.id, u.tags))
	_, err = c.CreateBucket(t.Context(), provider.BucketSpec{Name: "moved", Region: "lpg"})
	c.want(err, provider.ErrAlreadyExists, `region "rma"`)
	ref := provider.BucketRef{Name: "moved", Region: "lpg"}
	_, err = c.GetBucket(t.Context(), ref)
	c.want(err, provider.ErrInvalidArgument, `region "rma"`)
	c.want(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{Purge: true}), provider.ErrInvalidArgument, `region "rma"`)
	if info, ok := c.bucketInfo("moved"); !ok || info.OwnerUID != b.OwnerID {
		t.Error("the bucket in the other region was touched")
	}
}

// An endpoint of another region would make a bucket that nobody could use or
// delete.
func TestCreateAtAnEndpointOfAnotherRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := provider.BucketSpec{Name: "lost", Region: "rma", Endpoint: c.cs.Endpoints["lpg"]}
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrInvalidArgument, `region "lpg"`, spec.Endpoint)
	c.wantLeft()

	// A call that ended in the middle is made good, too.
	remove := c.Inject(emulator.Fault{Operation: "GetBucketLocation", CutConnection: true})
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable)
	remove()
	c.wantLeft("lost")
	_, err = c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrInvalidArgument, `region "lpg"`)
	c.wantLeft()
}

// An endpoint that is no S3 at all may answer anything with 200.
func TestCreateThatTheServerOnlyPretends(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := provider.BucketSpec{Name: "nowhere", Region: "rma"}
	remove := c.Inject(emulator.Fault{Operation: "CreateBucket", Status: http.StatusOK, Body: "<html>welcome</html>"})
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrUnavailable, "check the endpoint")
	remove()
	c.make(spec)
	c.wantLeft("nowhere")
}

func TestCreateAtTheLimit(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.Inject(emulator.Fault{Operation: "CreateBucket", Status: http.StatusBadRequest, Body: "<Error><Code>TooManyBuckets</Code></Error>"})
	_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "rma"})
	c.want(err, provider.ErrQuotaExceeded, "limit")
	c.wantLeft()
}

func TestOwnersOfOthersAreNotOurs(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for i, tags := range []map[string]string{
		{tagManagedBy: "other.example", tagBucket: "abc", tagRole: roleOwner},
		{tagManagedBy: testDriver, tagRole: roleAccess, tagMember + bucketKey("abc"): "abc", tagTerms + bucketKey("abc"): "rw.rma.0123456789abcdef.in"},
		{tagBucket: "abc"},
		{tagManagedBy: testDriver, tagBucket: "abcd", tagRole: roleOwner},
	} {
		_, err := c.createUser(t.Context(), fmt.Sprint(i), tags)
		c.must(err)
	}
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	if n := len(c.cs.Users()); n != 3 {
		t.Errorf("%d users are left, want the 3 that are neither the bucket's owner nor an access to it", n)
	}
}

func TestConcurrentCreatesEndInOne(t *testing.T) {
	for _, region := range []string{"rma", "lpg"} {
		t.Run(region, func(t *testing.T) {
			c := newCloud(t, emulator.Options{KeyDelay: map[string]emulator.Delay{"lpg": {Max: 50 * time.Millisecond}}})
			const n = 12
			var wg sync.WaitGroup
			ids := make([]string, n)
			errs := make([]error, n)
			for i := range n {
				p := c.provider()
				wg.Go(func() {
					for {
						b, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "one", Region: region})
						if _ = c.keep(err); errors.Is(err, provider.ErrConflict) || errors.Is(err, provider.ErrUnavailable) {
							continue
						}
						ids[i], errs[i] = b.OwnerID, err
						return
					}
				})
			}
			wg.Wait()
			for i := range n {
				if errs[i] != nil || ids[i] != ids[0] {
					t.Errorf("call %d: owner %q, error %v; want owner %q", i, ids[i], errs[i], ids[0])
				}
			}
			c.wantLeft("one")
		})
	}
}

// Calls for one name in two regions at the same time end in one bucket; the other
// region is told where it is.
func TestConcurrentCreatesInTwoRegions(t *testing.T) {
	c := newCloud(t, emulator.Options{KeyDelay: map[string]emulator.Delay{"lpg": {Max: 20 * time.Millisecond}}})
	for range 5 {
		var wg sync.WaitGroup
		made := make([]bool, 2)
		for i, region := range []string{"rma", "lpg"} {
			p := c.provider()
			wg.Go(func() {
				for {
					_, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "one", Region: region})
					_ = c.keep(err)
					if errors.Is(err, provider.ErrConflict) || errors.Is(err, provider.ErrUnavailable) {
						continue
					}
					made[i] = err == nil
					if err != nil && !errors.Is(err, provider.ErrAlreadyExists) {
						t.Error(err)
					}
					return
				}
			})
		}
		wg.Wait()
		if made[0] == made[1] {
			t.Errorf("made %v, want one of them", made)
		}
		c.wantLeft("one")
		region := "rma"
		if made[1] {
			region = "lpg"
		}
		c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "one", Region: region}, provider.DeleteOptions{}))
	}
}
