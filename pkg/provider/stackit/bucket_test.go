package stackit

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

func TestCreateTwice(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	first := mustCreate(t, c.provider(t), "bucket-1")
	want := provider.Bucket{BucketRef: refOf("bucket-1"), Endpoint: c.Endpoints[testRegion], SigningRegion: testRegion, DeletionPolicy: provider.DeleteIfEmpty}
	if first != want {
		t.Errorf("created %+v, want %+v", first, want)
	}
	p := c.provider(t)
	if again := mustCreate(t, p, "bucket-1"); again != first {
		t.Errorf("adopted %+v", again)
	}
	if got, err := p.GetBucket(t.Context(), refOf("bucket-1")); err != nil || got != first {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestCreateWithParameters(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	asked := provider.BucketSpec{Name: "bucket-1", Region: testRegion, Endpoint: "https://s3.example.org", VirtualHosted: true, DeletionPolicy: provider.DeleteAll}
	b, err := p.CreateBucket(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if b.Endpoint != asked.Endpoint || !b.VirtualHosted || b.DeletionPolicy != provider.DeleteAll {
		t.Errorf("%+v", b)
	}
	_, err = p.CreateBucket(t.Context(), spec("bucket-1"))
	if !errors.Is(err, provider.ErrAlreadyExists) || !strings.Contains(err.Error(), "endpointURL") {
		t.Error(err)
	}
}

// TestStrangersStayUntouched: buckets of the project without our mark, and of
// another project.
func TestStrangersStayUntouched(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	other := c.provider(t, func(config *Config) { config.DriverName = "other.zuber.dev" })
	foreign := c.provider(t, func(config *Config) {
		config.Credentials.Key = func() (provider.Secret, error) { return provider.NewSecret(c.ForeignServiceAccountKey()), nil }
	})
	mustCreate(t, other, "of-another-driver")
	mustCreate(t, foreign, "of-another-project")
	for _, name := range []string{"bare", "tagged", "tagged-as-bare", "with-policy", "with-object"} {
		if err := p.createBucket(t.Context(), refOf(name)); err != nil {
			t.Fatal(err)
		}
	}
	c.admin(t, p, func(client *s3.Client) error {
		return errors.Join(
			client.SetTags(t.Context(), "tagged", map[string]string{"team": "a"}),
			client.SetTags(t.Context(), "tagged-as-bare", map[string]string{tagManagedBy: c.driver, tagBucket: "bare"}),
			client.SetPolicy(t.Context(), "with-policy", strings.Replace(render("with-policy", testAdminURN, nil), testAdminURN, p.admins[testRegion].group.urn, 1)),
			client.PutObject(t.Context(), "with-object", "k", []byte("x")),
		)
	})
	for _, name := range []string{"bare", "tagged", "tagged-as-bare", "with-policy", "with-object", "of-another-driver", "of-another-project"} {
		_, err := p.CreateBucket(t.Context(), spec(name))
		want := provider.ErrAlreadyExists
		if name == "of-another-driver" { // whose admin group may be what this one is to be given
			want = provider.ErrPrecondition
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("create %s: %v", name, err)
		}
		_, err = p.GrantAccess(t.Context(), accessTo(testAccount, name, ""))
		if want := map[bool]error{true: provider.ErrNotFound, false: provider.ErrPermissionDenied}[name == "of-another-project"]; !errors.Is(err, want) {
			t.Errorf("grant %s: %v, want %v", name, err, want)
		}
		if err := p.DeleteBucket(t.Context(), refOf(name), provider.DeleteOptions{Purge: true}); name != "of-another-project" && !errors.Is(err, provider.ErrPermissionDenied) {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if n := len(c.Buckets()); n != 7 {
		t.Errorf("%d buckets are left", n)
	}
	for _, g := range c.groups() {
		if g.DisplayName != adminName("other.zuber.dev") {
			t.Errorf("left over: %v", g)
		}
	}
	tags, policy := c.stored(t, p, "bare")
	if len(tags) != 0 || policy != "" {
		t.Errorf("the bare bucket has %v, %s", tags, policy)
	}
}

// TestAnnouncedStrangers: an announcement that a crash has left claims an empty bucket
// that nobody has touched, and no other.
func TestAnnouncedStrangers(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	for name, touch := range map[string]func(*s3.Client, string) error{
		"tagged": func(client *s3.Client, name string) error {
			return client.SetTags(t.Context(), name, map[string]string{"team": "a"})
		},
		"with-policy": func(client *s3.Client, name string) error {
			return client.SetPolicy(t.Context(), name, render(name, p.admins[testRegion].group.urn, nil))
		},
		"with-object": func(client *s3.Client, name string) error {
			return client.PutObject(t.Context(), name, "k", []byte("x"))
		},
	} {
		c.admin(t, p, func(client *s3.Client) error {
			_, err := p.announce(t.Context(), refOf(name))
			return errors.Join(err, p.createBucket(t.Context(), refOf(name)), touch(client, name))
		})
		next := c.provider(t)
		tags, policy := c.stored(t, p, name)
		if _, err := next.CreateBucket(t.Context(), spec(name)); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Errorf("create %s: %v", name, err)
		}
		if err := next.DeleteBucket(t.Context(), refOf(name), provider.DeleteOptions{Purge: true}); !errors.Is(err, provider.ErrPermissionDenied) {
			t.Errorf("delete %s: %v", name, err)
		}
		if now, doc := c.stored(t, p, name); !maps.Equal(now, tags) || doc != policy {
			t.Errorf("%s has %v, %s", name, now, doc)
		}
	}
}

// TestStrangerAtTheSameMoment: somebody makes the bucket between our look and our
// making of it. What we announced must not claim it, also not with the next call.
func TestStrangerAtTheSameMoment(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	c.admin(t, p, func(*s3.Client) error { return p.createBucket(t.Context(), refOf("bucket-1")) })
	c.emu.Inject(emulator.Fault{Operation: "GetBucket", Times: 1, Status: http.StatusNotFound,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: notFound})
	for i, want := range []error{provider.ErrConflict, provider.ErrAlreadyExists} {
		if _, err := p.CreateBucket(t.Context(), spec("bucket-1")); !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i+1, err, want)
		}
	}
	tags, policy := c.stored(t, p, "bucket-1")
	if g := c.groups(); len(tags) != 0 || policy != "" || len(g) != 0 {
		t.Errorf("tags %v, policy %q, groups %v", tags, policy, g)
	}
}

// deadline is a context whose time runs out with the first deletion of objects that
// it carries out as a transport.
type deadline struct {
	context.Context
	out  chan struct{}
	once sync.Once
}

func (d *deadline) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && req.URL.Query().Has("delete") {
		d.once.Do(func() { close(d.out) })
	}
	return http.DefaultTransport.RoundTrip(req)
}

func (d *deadline) Done() <-chan struct{} { return d.out }

func (d *deadline) Err() error {
	select {
	case <-d.out:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestPurgeOutOfTime says how far it is, and is repeated.
func TestPurgeOutOfTime(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	client := c.s3As(t, mustGrant(t, p, testAccount, "bucket-1", "").Credentials)
	if err := client.PutObject(t.Context(), "bucket-1", "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	remove := c.emu.Inject(emulator.Fault{Operation: "DeleteObjects", Latency: time.Hour})
	ctx := &deadline{Context: t.Context(), out: make(chan struct{})}
	late := c.provider(t, func(config *Config) { config.Transport = ctx })
	err := late.DeleteBucket(ctx, refOf("bucket-1"), provider.DeleteOptions{Purge: true})
	if !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "0 versions were deleted") {
		t.Error(err)
	}
	remove()
	if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{Purge: true}); err != nil {
		t.Error(err)
	}
}

// TestEditedPolicyIsRestored by whatever RPC comes next, and with everything that
// was in it.
func TestEditedPolicyIsRestored(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustGrant(t, p, testAccount, "bucket-1", provider.ReadOnly)
	mustGrant(t, p, "ba-two", "bucket-1", provider.WriteOnly)
	_, want := c.stored(t, p, "bucket-1")
	edits := map[string]string{
		"removed": "",
		"opened":  strings.Replace(want, "deny-outsiders", "x", 1),
		"widened": strings.Replace(want, `"s3:GetObject",`, `"s3:GetObject","s3:PutObject",`, 1),
	}
	rpcs := map[string]func(*Provider) error{
		"create": func(p *Provider) error { _, err := p.CreateBucket(t.Context(), spec("bucket-1")); return err },
		"grant": func(p *Provider) error {
			_, err := p.GrantAccess(t.Context(), accessTo("ba-two", "bucket-1", provider.WriteOnly))
			return err
		},
		"revoke": func(p *Provider) error {
			return p.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-nobody", Buckets: []provider.BucketRef{refOf("bucket-1")}})
		},
	}
	for edit, doc := range edits {
		for rpc, run := range rpcs {
			c.admin(t, p, func(client *s3.Client) error { return client.SetPolicy(t.Context(), "bucket-1", doc) })
			if err := run(p); err != nil {
				t.Errorf("%s, %s: %v", edit, rpc, err)
			}
			if _, got := c.stored(t, p, "bucket-1"); !samePolicy(got, want) {
				t.Errorf("%s, then %s: %s", edit, rpc, got)
			}
		}
	}
}

// TestForeignTagsSurvive every change of ours.
func TestForeignTagsSurvive(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	foreign := map[string]string{"NTAP-SG-ILM-BUCKET-TAG": "gold", "team": "a b"}
	tags, _ := c.stored(t, p, "bucket-1")
	maps.Copy(tags, foreign)
	c.admin(t, p, func(client *s3.Client) error { return client.SetTags(t.Context(), "bucket-1", tags) })
	mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	if err := p.RevokeAccess(t.Context(), provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.stored(t, p, "bucket-1"); !maps.Equal(got, tags) {
		t.Errorf("%v, want %v", got, tags)
	}
}

// TestLostUpdateIsRepeated: another writer replaces the tags just after the last
// of ours.
func TestLostUpdateIsRepeated(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	other := &overwriting{}
	racing := c.provider(t, func(config *Config) { config.Transport = other })
	before, _ := c.stored(t, p, "bucket-1")
	other.after = func() {
		c.admin(t, p, func(client *s3.Client) error { return client.SetTags(context.Background(), "bucket-1", before) })
	}
	mustGrant(t, racing, testAccount, "bucket-1", provider.ReadWrite)
	if tags, _ := c.stored(t, p, "bucket-1"); len(tags) != 3 {
		t.Errorf("tags %v", tags)
	}
}

// overwriting lets another writer in after the second write of tags.
type overwriting struct {
	writes int
	after  func()
}

func (o *overwriting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if req.Method == http.MethodPut && strings.HasPrefix(req.URL.RawQuery, "tagging") {
		if o.writes++; o.writes == 2 {
			o.after()
		}
	}
	return resp, err
}

func TestMalformedTagsAreToldAndDeletable(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	tags, _ := c.stored(t, p, "bucket-1")
	tags[tagAccess+"07"] = "rubbish"
	c.admin(t, p, func(client *s3.Client) error { return client.SetTags(t.Context(), "bucket-1", tags) })
	_, create := p.CreateBucket(t.Context(), spec("bucket-1"))
	_, grant := p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	for rpc, err := range map[string]error{"create": create, "grant": grant} {
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), tagAccess+"07") {
			t.Errorf("%s: %v", rpc, err)
		}
	}
	if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if g := c.groups(); len(g) != 0 {
		t.Errorf("left over: %v", g)
	}
}

func TestDeleteKeepsData(t *testing.T) {
	for _, status := range []int{http.StatusConflict, http.StatusUnprocessableEntity} {
		c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{NotEmptyStatus: status}})
		p := c.provider(t)
		mustCreate(t, p, "bucket-1")
		a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
		client := c.s3As(t, a.Credentials)
		if err := client.PutObject(t.Context(), "bucket-1", "k", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := client.StartUpload(t.Context(), "bucket-1", "u"); err != nil {
			t.Fatal(err)
		}
		err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{})
		if !errors.Is(err, provider.ErrNotEmpty) {
			t.Error(err)
		}
		if data, err := client.GetObject(t.Context(), "bucket-1", "k"); err != nil || string(data) != "x" {
			t.Errorf("the access ended or the object is gone: %q, %v", data, err)
		}
		if u, err := client.ListUploads(t.Context(), "bucket-1"); err != nil || len(u) != 1 {
			t.Errorf("uploads %v, %v", u, err)
		}
		// A version under a delete marker is content too.
		c.admin(t, p, func(admin *s3.Client) error { return admin.SetVersioning(t.Context(), "bucket-1", true) })
		if err := client.DeleteObject(t.Context(), "bucket-1", "k"); err != nil {
			t.Fatal(err)
		}
		if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{}); !errors.Is(err, provider.ErrNotEmpty) {
			t.Error(err)
		}
		// What the check cannot see, the API refuses.
		if err := p.deleteBucket(t.Context(), refOf("bucket-1")); !errors.Is(err, provider.ErrNotEmpty) {
			t.Errorf("status %d: %v", status, err)
		}
		for range 2 {
			if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{Purge: true}); err != nil {
				t.Error(err)
			}
		}
		if b, g := c.Buckets(), c.groups(); len(b)+len(g) != 0 {
			t.Errorf("left over: %v, %v", b, g)
		}
	}
}

// TestServiceIsEnabledOnlyWhenTheAPISaysSo, and by several at once.
func TestServiceIsEnabledOnlyWhenTheAPISaysSo(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{ServiceDisabled: true}})
	if err := c.provider(t).Check(t.Context()); err != nil {
		t.Errorf("check before the service is enabled: %v", err)
	}
	remove := c.emu.Inject(emulator.Fault{Operation: "ListCredentialsGroups", Status: http.StatusNotFound,
		Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>404</html>"})
	if _, err := c.provider(t).CreateBucket(t.Context(), spec("bucket-0")); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("a proxy's 404: %v", err)
	}
	remove()
	for _, call := range c.emu.Calls() {
		if call.Operation == "EnableService" {
			t.Fatal("the service was enabled for nothing")
		}
	}
	var wg sync.WaitGroup
	for _, name := range []string{"bucket-1", "bucket-2", "bucket-3"} {
		p := c.provider(t)
		wg.Go(func() {
			if _, err := p.CreateBucket(t.Context(), spec(name)); err != nil && !errors.Is(err, provider.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	admins := 0
	for _, g := range c.Groups() {
		if g.DisplayName == adminName("cosi.zuber.dev") {
			admins++
		}
	}
	if admins != 1 {
		t.Errorf("%d admin groups", admins)
	}
}

func TestUnknownRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	_, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "bucket-1", Region: "eu09"})
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "eu01, eu02") {
		t.Error(err)
	}
	regions, err := p.Regions(t.Context())
	if err != nil || strings.Join(regions, " ") != "eu01 eu02" {
		t.Errorf("%v, %v", regions, err)
	}
	if n := len(c.emu.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestBucketThatShowsLate: the API shows a new bucket some time after it says
// that it was made.
func TestBucketThatShowsLate(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	c.emu.Inject(emulator.Fault{Operation: "GetBucket", After: 1, Times: 3, Status: http.StatusNotFound,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: notFound})
	mustCreate(t, p, "bucket-1")
	impatient := c.provider(t, func(config *Config) { config.PropagationWait = 20 * time.Millisecond })
	c.emu.Inject(emulator.Fault{Operation: "GetBucket", Status: http.StatusNotFound,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: notFound})
	if _, err := impatient.CreateBucket(t.Context(), spec("bucket-2")); !errors.Is(err, provider.ErrUnavailable) {
		t.Error(err)
	}
}
