package cloudscale

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var purge = provider.DeleteOptions{Purge: true}

// fill puts n objects into the bucket.
func (c *cloud) fill(client *s3.Client, bucket string, n int) {
	c.t.Helper()
	g, ctx := errgroup.WithContext(c.t.Context())
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error { return client.PutObject(ctx, bucket, fmt.Sprintf("object/%05d", i), []byte("x")) })
	}
	c.must(g.Wait())
}

func TestPurgeTakesMoreThanOneBatch(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "full", Region: "lpg"})
	c.must(client.SetVersioning(t.Context(), b.Name, true))
	c.fill(client, b.Name, 1100) // versions
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for i := range 1050 { // delete markers
		g.Go(func() error { return client.DeleteObject(ctx, b.Name, fmt.Sprintf("object/%05d", i)) })
	}
	for i := range 1020 { // uploads
		g.Go(func() error {
			_, err := client.StartUpload(ctx, b.Name, fmt.Sprintf("upload/%05d", i))
			return err
		})
	}
	c.must(g.Wait())
	for _, key := range []string{"odd\x01key", "ä ö/../+%&<>\"'", strings.Repeat("k", 1000)} {
		c.must(client.PutObject(t.Context(), b.Name, key, []byte("x")))
	}
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrNotEmpty, "DeleteAll")
	c.ResetCalls()
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantLeft()
	// 2,153 versions and markers take three batches; a batch more is allowed.
	if n := c.count("DeleteObjects"); n < 3 || n > 4 {
		t.Errorf("made %d calls of DeleteObjects, want 3 or 4", n)
	}
}

func TestDeleteHealsAndRepeats(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	t.Run("the bucket went before its owner", func(t *testing.T) {
		b, client := c.make(provider.BucketSpec{Name: "half", Region: "rma"})
		c.must(client.DeleteBucket(t.Context(), b.Name))
		_, err := c.GetBucket(t.Context(), b.BucketRef)
		c.want(err, provider.ErrNotFound, "half")
		c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: b.Name, Region: b.Region}, provider.DeleteOptions{}))
		c.wantLeft()
	})
	t.Run("the owner was never given its bucket, and a stranger took the name", func(t *testing.T) {
		remove := c.Inject(emulator.Fault{Operation: "CreateBucket", CutConnection: true})
		_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "late", Region: "rma"})
		c.want(err, provider.ErrUnavailable)
		remove()
		_, owner := c.foreign("late", "rma")
		c.must(owner.PutObject(t.Context(), "late", "kept", []byte("data")))
		c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "late", Region: "rma"}, purge))
		c.wantLeft()
		if data, err := owner.GetObject(t.Context(), "late", "kept"); err != nil || string(data) != "data" {
			t.Errorf("the foreign bucket was touched: %q %v", data, err)
		}
	})
	t.Run("again, with and without the owner's ID", func(t *testing.T) {
		b, _ := c.make(provider.BucketSpec{Name: "gone", Region: "lpg"})
		for range 3 {
			c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
			c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "gone", Region: "lpg"}, purge))
		}
		c.wantLeft()
	})
}

func TestDeleteLeavesWhatIsNotOurs(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	foreign, owner := c.foreign("foreign", "rma")
	c.must(owner.PutObject(t.Context(), "foreign", "kept", []byte("data")))
	u, err := c.createUser(t.Context(), "person", map[string]string{"team": "a"})
	c.must(err)
	mine, _ := c.make(provider.BucketSpec{Name: "mine", Region: "rma"})

	for name, ref := range map[string]provider.BucketRef{
		"a foreign bucket by name":         {Name: "foreign", Region: "rma"},
		"a foreign bucket by another":      {Name: "foreign", Region: "lpg"},
		"a user without the mark":          {Name: "whatever", Region: "rma", OwnerID: u.id},
		"the owner of another bucket":      {Name: "other", Region: "rma", OwnerID: mine.OwnerID},
		"the foreign bucket with my owner": {Name: "foreign", Region: "rma", OwnerID: mine.OwnerID},
	} {
		c.ResetCalls()
		err := c.DeleteBucket(t.Context(), ref, purge)
		if _ = c.keep(err); !errors.Is(err, provider.ErrPermissionDenied) {
			t.Errorf("%s: got %v, want ErrPermissionDenied", name, err)
		}
		_, err = c.GetBucket(t.Context(), ref)
		if _ = c.keep(err); !errors.Is(err, provider.ErrPermissionDenied) {
			t.Errorf("GetBucket of %s: got %v, want ErrPermissionDenied", name, err)
		}
		for _, call := range c.Calls() {
			if call.Method != http.MethodGet && call.Method != http.MethodHead {
				t.Errorf("%s: made the call %s %s", name, call.Method, call.Operation)
			}
		}
	}
	// To this project the other project's user does not exist, but the bucket does.
	c.want(c.DeleteBucket(t.Context(), foreign.BucketRef, purge), provider.ErrPermissionDenied, foreign.OwnerID, "API token")
	if data, err := owner.GetObject(t.Context(), "foreign", "kept"); err != nil || string(data) != "data" {
		t.Errorf("the foreign bucket was touched: %q %v", data, err)
	}
	if n := len(c.cs.Users()); n != 3 {
		t.Errorf("%d users are left, want 3", n)
	}
}

// The token of another project finds no owner, which must not read as "gone".
func TestDeleteWithTheTokenOfAnotherProject(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "kept", Region: "lpg"})
	c.must(client.PutObject(t.Context(), "kept", "key", []byte("data")))
	p := c.provider(withToken(c.cs.ForeignToken))
	for _, id := range []string{"", b.OwnerID} {
		err := p.DeleteBucket(t.Context(), provider.BucketRef{Name: "kept", Region: "lpg", OwnerID: id}, purge)
		c.want(err, provider.ErrPermissionDenied, "kept")
	}
	c.wantLeft("kept")
	if data, err := client.GetObject(t.Context(), "kept", "key"); err != nil || string(data) != "data" {
		t.Errorf("the bucket was touched: %q %v", data, err)
	}
}

// A bucket that is gone stays gone when another one takes its name.
func TestDeleteOfAnOlderBucketOfTheName(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := provider.BucketSpec{Name: "again", Region: "rma"}
	older, _ := c.make(spec)
	c.must(c.DeleteBucket(t.Context(), older.BucketRef, purge))
	_, client := c.make(spec)
	c.must(client.PutObject(t.Context(), "again", "key", []byte("data")))
	c.must(c.DeleteBucket(t.Context(), older.BucketRef, purge))
	c.wantLeft("again")
	if data, err := client.GetObject(t.Context(), "again", "key"); err != nil || string(data) != "data" {
		t.Errorf("the newer bucket was touched: %q %v", data, err)
	}
}

// The request of a process that died can be carried out late, and makes an owner
// beside the one that its successor made.
func TestDeleteRemovesALateOwner(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "late", Region: "rma"})
	tags, err := record{bucket: "late", region: "rma"}.tags(testDriver)
	c.must(err)
	second, err := c.createUser(t.Context(), "second", tags)
	c.must(err)
	remove := c.Inject(emulator.Fault{Operation: "DeleteObjectsUser", Status: http.StatusConflict, Body: `{"detail":"owns buckets"}`})
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrConflict, second.id)
	remove()
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	c.wantLeft()
}

// A gateway's 404 about the owner must not read as "gone" either.
func TestDeleteBehindAGatewayThatKnowsNothing(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "hidden", Region: "rma"})
	for _, operation := range []string{"GetObjectsUser", "DeleteObjectsUser"} {
		remove := c.Inject(emulator.Fault{Operation: operation, Status: http.StatusNotFound, Body: `{"message":"no route"}`})
		c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrUnavailable, "check the API URL")
		remove()
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	c.wantLeft()
}

// Only the endpoint itself may say that a bucket is gone.
func TestDeleteBehindAProxyThatKnowsNothing(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "hidden", Region: "rma"})
	c.must(client.PutObject(t.Context(), "hidden", "key", []byte("data")))
	for _, operation := range []string{"ListObjectVersions", "DeleteObjects", "DeleteBucket"} {
		remove := c.Inject(emulator.Fault{Operation: operation, Status: http.StatusNotFound, Body: "<html><title>404</title></html>"})
		c.ResetCalls()
		c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable, "check the endpoint")
		if n := c.count("DeleteObjectsUser"); n != 0 {
			t.Errorf("%s: tried to delete the owner of a bucket that stands", operation)
		}
		remove()
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantLeft()
}

// A server that takes its host name for a bucket's says NoSuchBucket to
// everything; the bucket asked for stands all the same.
func TestEndpointThatListsNoBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "hidden", Region: "rma"})
	remove := c.Inject(emulator.Fault{Operation: "ListBuckets", Status: http.StatusNotFound, Body: "<Error><Code>NoSuchBucket</Code></Error>"})
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable, "hidden", b.Endpoint)
	_, err := c.GetBucket(t.Context(), b.BucketRef)
	c.want(err, provider.ErrUnavailable, b.Endpoint)
	c.wantLeft("hidden")
	remove()
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
}

func TestReferenceWithAnotherRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "here", Region: "rma"})
	for _, id := range []string{"", b.OwnerID} {
		ref := provider.BucketRef{Name: "here", Region: "lpg", OwnerID: id}
		c.want(c.DeleteBucket(t.Context(), ref, purge), provider.ErrInvalidArgument, `"rma"`, `"lpg"`)
	}
	err := c.DeleteBucket(t.Context(), provider.BucketRef{Name: "nothing", Region: "fra"}, purge)
	c.want(err, provider.ErrInvalidArgument, "lpg, rma")
	c.wantLeft("here")
}

func TestOwnerWithFurtherBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "first", Region: "rma"})
	c.must(client.CreateBucket(t.Context(), "second"))
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrPrecondition, "second", b.OwnerID)
	if _, ok := c.bucketInfo("second"); !ok {
		t.Fatal("a bucket that lacks the mark was deleted")
	}
	c.must(client.DeleteBucket(t.Context(), "second"))
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantLeft()
}

func TestWriterAfterTheCheckForEmptiness(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "raced", Region: "rma"})
	remove := c.Inject(emulator.Fault{Operation: "DeleteBucket", Status: http.StatusConflict, Body: "<Error><Code>BucketNotEmpty</Code></Error>"})
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrNotEmpty)
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable, "still writes")
	remove()
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
}

func TestPurgeReportsWhatIsLocked(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "locked", Region: "rma"})
	c.fill(client, b.Name, 3)
	const answer = `<DeleteResult><Error><Key>object/00001</Key><VersionId>v1</VersionId><Code>AccessDenied</Code><Message></Message></Error>` +
		`<Deleted><Key>object/00000</Key></Deleted></DeleteResult>`
	c.Inject(emulator.Fault{Operation: "DeleteObjects", Status: http.StatusOK, Body: answer})
	c.ResetCalls()
	err := c.DeleteBucket(t.Context(), b.BucketRef, purge)
	c.want(err, provider.ErrPrecondition, "object/00001", "AccessDenied", "delete 1 ")
	if n := c.count("DeleteObjects"); n != 1 {
		t.Errorf("tried %d times, want once", n)
	}
	if n := c.count("DeleteBucket"); n != 0 {
		t.Errorf("tried to delete the bucket %d times, want never", n)
	}
}

func TestPurgeThatRunsOutOfTime(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "huge", Region: "rma"})
	c.fill(client, b.Name, 1001)
	// The first batch passes, and the time runs out with the second.
	remove := c.Inject(emulator.Fault{Operation: "DeleteObjects", After: 1, Latency: time.Hour})
	ctx, batches := newDeadline(t.Context()), 0
	p := c.provider(func(config *Config) {
		config.Transport = &meddler{
			next: c.spy,
			fits: func(r *http.Request) bool {
				if r.Method == http.MethodPost && r.URL.Query().Has("delete") {
					batches++
				}
				return batches == 2
			},
			do: ctx.expire,
		}
	})
	c.want(p.DeleteBucket(ctx, b.BucketRef, purge), provider.ErrUnavailable, "1000 versions", "huge")
	remove()
	if info, _ := c.bucketInfo("huge"); info.Objects != 1 {
		t.Errorf("%d objects are left, want 1", info.Objects)
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantLeft()
}

func TestPurgeThatTheServerOnlyPretends(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "stuck", Region: "rma"})
	c.fill(client, b.Name, 2)
	c.Inject(emulator.Fault{Operation: "DeleteObjects", Status: http.StatusOK, Body: "<DeleteResult></DeleteResult>"})
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable)
	if n := c.count("DeleteObjects"); n > 2 {
		t.Errorf("tried %d times, want an end", n)
	}
}

func TestLargeObjectsAndMultipart(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "parts", Region: "lpg"})
	data := bytes.Repeat([]byte("0123456789abcdef"), 11<<16) // 11 MiB
	c.must(client.PutMultipart(t.Context(), b.Name, "big", bytes.NewReader(data), int64(len(data)), 5<<20))
	got, err := client.GetObject(t.Context(), b.Name, "big")
	c.must(err)
	if !bytes.Equal(got, data) {
		t.Error("the object differs from what was put")
	}
	if n := c.count("UploadPart"); n != 3 {
		t.Errorf("%d parts, want 3", n)
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
}

// TestAccessesAreShutOutBeforeTheData: when a deletion begins to take away what a bucket
// holds, and when it takes the bucket, no access reads or writes it any more.
func TestAccessesAreShutOutBeforeTheData(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for name, purge := range map[string]bool{"full": true, "empty": false} {
		b, owner := c.make(provider.BucketSpec{Name: name, Region: "rma"})
		a, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
		c.must(err)
		if purge {
			c.must(owner.PutObject(t.Context(), name, "key", []byte("x")))
		}
		met := false
		p := c.provider(func(config *Config) {
			config.Transport = &before{RoundTripper: c.spy, f: func() {
				met = true
				if err := c.keyClient(a).PutObject(t.Context(), name, "key", []byte("x")); s3.Code(err) != codeDenied {
					t.Errorf("%s: the access writes: %v", name, err)
				}
			}, is: func(req *http.Request) bool {
				return req.Method == http.MethodPost && req.URL.Query().Has("delete") || req.Method == http.MethodDelete && strings.HasPrefix(req.URL.Path, "/"+name)
			}}
		})
		c.must(p.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{Purge: purge}))
		if !met {
			t.Errorf("%s: nothing was deleted", name)
		}
	}
}
