package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const (
	testKey    = "AKTESTTESTTESTTEST00"
	testSecret = "a-secret-of-forty-characters-0123456789a"
)

// oneKey knows one key everywhere.
type oneKey struct{}

func (oneKey) Lookup(_, id string) (objectstore.Key, bool) {
	return objectstore.Key{Secret: testSecret, Identity: objectstore.Identity{UID: "user-1"}}, id == testKey
}

// recorder keeps copies of the requests' heads.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request
	next http.RoundTripper // nil means the default
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, req.Clone(context.WithoutCancel(req.Context())))
	r.mu.Unlock()
	if r.next != nil {
		return r.next.RoundTrip(req)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// newStore returns a client of an emulated region.
func newStore(t *testing.T, change ...func(*s3.Config)) *s3.Client {
	t.Helper()
	store := objectstore.New(objectstore.Options{
		Profile: objectstore.RGW, Keys: oneKey{}, Now: time.Now, Regions: []objectstore.Region{{Name: "rma", Domains: []string{"localhost"}}},
	})
	return against(t, store.Handler("rma"), change...)
}

// static is a key that is always the same.
func static(secret string) func() string { return func() string { return secret } }

// against returns a client of the handler.
func against(t *testing.T, h http.Handler, change ...func(*s3.Config)) *s3.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	config := s3.Config{Endpoint: server.URL, AccessKeyID: testKey, SecretAccessKey: static(testSecret)}
	for _, f := range change {
		f(&config)
	}
	c, err := s3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBucketLife(t *testing.T) {
	c := newStore(t)
	ctx := t.Context()
	must(t, c.CreateBucket(ctx, "bucket"))
	who, err := c.WhoAmI(ctx)
	must(t, err)
	if who.ID != "user-1" || !slices.Equal(who.Buckets, []string{"bucket"}) {
		t.Errorf("WhoAmI is %+v", who)
	}
	if where, err := c.BucketLocation(ctx, "bucket"); err != nil || where != "rma" {
		t.Errorf("the location is %q, %v", where, err)
	}
	if _, err := c.BucketLocation(ctx, "missing"); s3.Code(err) != "NoSuchBucket" || s3.StatusCode(err) != 404 {
		t.Errorf("the location of a missing bucket: %v", err)
	}
	must(t, c.PutObject(ctx, "bucket", "a/ä +%?#", []byte("data")))
	if err := c.DeleteBucket(ctx, "bucket"); s3.Code(err) != "BucketNotEmpty" {
		t.Errorf("delete of a full bucket: %v", err)
	}
	if _, err := c.GetObject(ctx, "bucket", "missing"); s3.Code(err) != "NoSuchKey" {
		t.Errorf("get of a missing key: %v", err)
	}
	for _, empty := range []bool{false, true} {
		if got, err := c.IsEmpty(ctx, "bucket"); err != nil || got != empty {
			t.Errorf("IsEmpty is %t, %v, want %t", got, err, empty)
		}
		if _, err := c.Purge(ctx, "bucket"); err != nil {
			t.Error(err)
		}
	}
	must(t, c.DeleteBucket(ctx, "bucket"))
	if err := c.DeleteBucket(ctx, "bucket"); s3.Code(err) != "NoSuchBucket" {
		t.Errorf("second delete: %v", err)
	}
}

func TestPolicy(t *testing.T) {
	c := newStore(t)
	ctx := t.Context()
	must(t, c.CreateBucket(ctx, "bucket"))
	if doc, err := c.Policy(ctx, "bucket"); doc != "" || err != nil {
		t.Errorf("no policy reads as %q, %v", doc, err)
	}
	const doc = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/user-1"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::bucket"]}]}`
	must(t, c.SetPolicy(ctx, "bucket", doc))
	if got, err := c.Policy(ctx, "bucket"); got != doc || err != nil {
		t.Errorf("the policy reads as %q, %v", got, err)
	}
	for range 2 {
		must(t, c.SetPolicy(ctx, "bucket", ""))
	}
	// Ceph 16 answers 200 to the deletion, 20 answers 204.
	for _, status := range []int{200, 204} {
		stub := against(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := stub.SetPolicy(ctx, "bucket", ""); err != nil {
			t.Errorf("deletion answered %d: %v", status, err)
		}
	}
	stub := against(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }))
	if err := stub.SetPolicy(ctx, "bucket", ""); s3.StatusCode(err) != 403 {
		t.Errorf("a refused deletion: %v", err)
	}
}

// Nothing on the wire may make an older Ceph store a wrong encoding or refuse to
// create a bucket.
func TestRequestsStayPlain(t *testing.T) {
	for _, region := range []string{"", "rma"} {
		rec := &recorder{}
		c := newStore(t, func(c *s3.Config) { c.Transport, c.SigningRegion, c.UserAgent = rec, region, "zuber/test" })
		ctx := t.Context()
		must(t, c.CreateBucket(ctx, "bucket"))
		must(t, c.PutObject(ctx, "bucket", "small", []byte("data")))
		must(t, c.PutMultipart(ctx, "bucket", "big", strings.NewReader(strings.Repeat("x", 6<<20)), 6<<20, 5<<20))
		_, err := c.Purge(ctx, "bucket")
		must(t, err)
		for _, req := range rec.seen {
			for name := range req.Header {
				if l := strings.ToLower(name); l == "x-amz-trailer" || strings.HasPrefix(l, "x-amz-checksum-") || strings.HasPrefix(l, "x-amz-sdk-checksum") {
					t.Errorf("%s %s has the header %s", req.Method, req.URL.Path, name)
				}
			}
			if strings.Contains(req.Header.Get("Content-Encoding"), "aws-chunked") || len(req.Trailer) > 0 {
				t.Errorf("%s %s has a trailer or is encoded", req.Method, req.URL.Path)
			}
			if !strings.HasPrefix(req.UserAgent(), "zuber/test ") {
				t.Errorf("the user agent is %q", req.UserAgent())
			}
			if strings.Contains(req.URL.RawQuery, "location") {
				t.Errorf("looked the bucket's location up")
			}
		}
		if create := rec.seen[0]; create.Method != http.MethodPut || create.ContentLength != 0 {
			t.Errorf("the first call is %s with %d bytes, want PUT without", create.Method, create.ContentLength)
		}
	}
}

func TestVirtualHosted(t *testing.T) {
	rec := &recorder{}
	c := newStore(t, func(c *s3.Config) {
		c.Transport, c.VirtualHosted = rec, true
		server := strings.TrimPrefix(c.Endpoint, "http://")
		c.Endpoint = strings.Replace(c.Endpoint, "127.0.0.1", "localhost", 1)
		// Not every resolver knows the names below localhost.
		rec.next = &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server)
		}}
	})
	must(t, c.CreateBucket(t.Context(), "bucket"))
	must(t, c.PutObject(t.Context(), "bucket", "key", []byte("data")))
	last := rec.seen[len(rec.seen)-1]
	if !strings.HasPrefix(last.URL.Host, "bucket.localhost:") || last.URL.Path != "/key" {
		t.Errorf("the object went to %s%s", last.URL.Host, last.URL.Path)
	}
}

func TestNothingIsRepeatedHere(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		calls := 0
		c := against(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(status)
		}))
		if err := c.CreateBucket(t.Context(), "bucket"); s3.StatusCode(err) != status || calls != 1 {
			t.Errorf("got %v after %d calls, want %d after 1", err, calls, status)
		}
	}
}

// The transport may repeat what was not carried out, so bodies must be replayable.
func TestBodiesCanBeReplayed(t *testing.T) {
	rec := &recorder{}
	c := newStore(t, func(c *s3.Config) { c.Transport = rec })
	must(t, c.CreateBucket(t.Context(), "bucket"))
	must(t, c.PutObject(t.Context(), "bucket", "key", []byte("data")))
	must(t, c.SetVersioning(t.Context(), "bucket", true))
	_, err := c.Purge(t.Context(), "bucket")
	must(t, err)
	for _, req := range rec.seen {
		if req.ContentLength <= 0 {
			continue
		}
		body, err := req.GetBody()
		must(t, err)
		data, err := io.ReadAll(body)
		if err != nil || int64(len(data)) != req.ContentLength {
			t.Errorf("%s %s replays %d bytes (%v), want %d", req.Method, req.URL, len(data), err, req.ContentLength)
		}
	}
}

func TestErrorsHoldNoTextOfOthers(t *testing.T) {
	const leak = "https://host/b?X-Amz-Signature=deadbeef"
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		code    string
		status  int
	}{
		"message": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			_, _ = fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", leak)
		}, "AccessDenied", 403},
		"empty message": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(409)
			_, _ = io.WriteString(w, "<Error><Code>BucketAlreadyExists</Code><Message></Message></Error>")
		}, "BucketAlreadyExists", 409},
		"code": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", leak)
		}, "", 400},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "<html>"+leak+"</html>")
		}, "", 502},
		"a proxy's 404": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "<html><title>404 Not Found</title></html>")
		}, "", 404},
		"truncated 404": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code>")
		}, "", 0},
		"empty 404": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "", 404},
		"a proxy's 403": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, "blocked")
		}, "", 403},
		"redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", leak)
			w.WriteHeader(301)
		}, "", 301},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, "", 0},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "<ListBucketResult>")
		}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := against(t, tc.handler)
			_, listErr := c.ListObjects(t.Context(), "bucket", "")
			_, whoErr := c.WhoAmI(t.Context())
			for _, err := range []error{listErr, whoErr} {
				var own *s3.Error
				if !errors.As(err, &own) || s3.Code(err) != tc.code || s3.StatusCode(err) != tc.status {
					t.Errorf("got %T %v, want code %q and status %d", err, err, tc.code, tc.status)
					continue
				}
				for _, bad := range []string{"Signature", "deadbeef", "http://", "?", "\n"} {
					if strings.Contains(err.Error(), bad) {
						t.Errorf("%q holds %q", err, bad)
					}
				}
			}
		})
	}
}

func TestContextEndsEverything(t *testing.T) {
	c := newStore(t)
	must(t, c.CreateBucket(t.Context(), "bucket"))
	must(t, c.PutObject(t.Context(), "bucket", "key", []byte("data")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"CreateBucket":   func() error { return c.CreateBucket(ctx, "bucket") },
		"DeleteBucket":   func() error { return c.DeleteBucket(ctx, "bucket") },
		"WhoAmI":         func() error { _, err := c.WhoAmI(ctx); return err },
		"BucketLocation": func() error { _, err := c.BucketLocation(ctx, "bucket"); return err },
		"IsEmpty":        func() error { _, err := c.IsEmpty(ctx, "bucket"); return err },
		"Purge":          func() error { _, err := c.Purge(ctx, "bucket"); return err },
		"AbortUploads":   func() error { _, err := c.AbortUploads(ctx, "bucket"); return err },
		"ListUploads":    func() error { _, err := c.ListUploads(ctx, "bucket"); return err },
		"ListObjects":    func() error { _, err := c.ListObjects(ctx, "bucket", ""); return err },
		"GetObject":      func() error { _, err := c.GetObject(ctx, "bucket", "key"); return err },
		"PutObject":      func() error { return c.PutObject(ctx, "bucket", "key", nil) },
		"DeleteObject":   func() error { return c.DeleteObject(ctx, "bucket", "key") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	if data, err := c.GetObject(t.Context(), "bucket", "key"); err != nil || string(data) != "data" {
		t.Errorf("the object is %q, %v", data, err)
	}
}

func TestNetworkTimeoutIsNotTheContexts(t *testing.T) {
	release := make(chan struct{})
	slow := http.DefaultTransport.(*http.Transport).Clone()
	slow.ResponseHeaderTimeout = 20 * time.Millisecond
	c := against(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }),
		func(c *s3.Config) { c.Transport = slow })
	defer close(release)
	_, whoErr := c.WhoAmI(t.Context())
	for _, err := range []error{whoErr, c.DeleteBucket(t.Context(), "bucket")} {
		if err == nil || errors.Is(err, context.DeadlineExceeded) || s3.StatusCode(err) != 0 {
			t.Errorf("got %v, want an error that is not the context's", err)
		}
	}
}

func TestUploads(t *testing.T) {
	c := newStore(t)
	ctx := t.Context()
	must(t, c.CreateBucket(ctx, "bucket"))
	want := map[s3.Upload]bool{}
	for i := range 3 {
		key := fmt.Sprintf("key/%d ä", i%2)
		id, err := c.StartUpload(ctx, "bucket", key)
		must(t, err)
		want[s3.Upload{Key: key, ID: id}] = true
	}
	got, err := c.ListUploads(ctx, "bucket")
	must(t, err)
	for _, u := range got {
		if !want[u] {
			t.Errorf("unexpected upload %+v", u)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d uploads, want %d", len(got), len(want))
	}
	if empty, err := c.IsEmpty(ctx, "bucket"); !empty || err != nil {
		t.Errorf("uploads count as content: %t %v", empty, err)
	}
	for _, n := range []int64{3, 0} {
		if aborted, err := c.AbortUploads(ctx, "bucket"); aborted != n || err != nil {
			t.Errorf("aborted %d, %v, want %d", aborted, err, n)
		}
	}
}

func TestPurgeFailsAsAWhole(t *testing.T) {
	listing := `<ListVersionsResult><Version><Key>a</Key><VersionId>1</VersionId></Version><Version><Key>b</Key><VersionId>1</VersionId></Version></ListVersionsResult>`
	for _, status := range []int{403, 503} {
		c := against(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<Error><Code>Whole</Code></Error>")
				return
			}
			_, _ = io.WriteString(w, listing)
		}))
		done, err := c.Purge(t.Context(), "bucket")
		if s3.Code(err) != "Whole" || s3.StatusCode(err) != status || done != (s3.Purged{}) {
			t.Errorf("got %+v, %v, want the error of the request and nothing done", done, err)
		}
	}
}

func TestNewRefusesWhatIsMalformed(t *testing.T) {
	for _, c := range []s3.Config{
		{Endpoint: ""}, {Endpoint: "host:80"}, {Endpoint: "ftp://host"}, {Endpoint: "http://"}, {Endpoint: "http://host/path"},
		{Endpoint: "http://host?x=1"}, {Endpoint: "http://user:hidden@host"},
		{Endpoint: "http://user:hidden@host\n"}, {Endpoint: "http://user:hidden@[::1"}, {Endpoint: "http://host", AccessKeyID: "a"},
		{Endpoint: "http://host", SecretAccessKey: static("hidden")},
	} {
		_, err := s3.New(c)
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", c.Endpoint, err)
		}
	}
}

func TestPublicACLsAndCopies(t *testing.T) {
	c := newStore(t)
	must(t, c.CreateBucket(t.Context(), "bucket"))
	for range 2 {
		must(t, c.IgnorePublicACLs(t.Context(), "bucket"))
	}
	must(t, c.PutObject(t.Context(), "bucket", "a key", []byte("data")))
	must(t, c.CopyObject(t.Context(), "bucket", "a key", "a copy"))
	if got, err := c.GetObject(t.Context(), "bucket", "a copy"); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := c.IgnorePublicACLs(t.Context(), "missing"); s3.Code(err) != "NoSuchBucket" {
		t.Errorf("got %v, want NoSuchBucket", err)
	}
	if err := c.CopyObject(t.Context(), "bucket", "missing", "a copy"); s3.Code(err) != "NoSuchKey" {
		t.Errorf("got %v, want NoSuchKey", err)
	}
}
