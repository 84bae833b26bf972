package cloudscale

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// grantedOwn makes a bucket, an access to it and a bucket of the access's own, in
// the other region, with an object.
func grantedOwn(c *cloud, own provider.OwnBuckets) (provider.Bucket, provider.Access) {
	c.t.Helper()
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	spec := accessOf("ba-1", b, provider.ReadWrite)
	spec.OwnBuckets = own
	a, err := c.GrantAccess(c.t.Context(), spec)
	c.must(err)
	client, err := c.client(c.defaultEndpoint("rma"), keyPair{a.Credentials.AccessKeyID, a.Credentials.SecretAccessKey})
	c.must(err)
	c.must(client.CreateBucket(c.t.Context(), "own"))
	c.must(client.PutObject(c.t.Context(), "own", "key", []byte("data")))
	return b, a
}

func TestRevokeRefusesOwnBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, a := grantedOwn(c, "")
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", []byte("data")))
	for range 2 {
		// Not even what may purge does so unasked.
		ref := refOf("ba-1", b)
		ref.PurgeOwn = true
		c.want(c.RevokeAccess(t.Context(), ref), provider.ErrPrecondition, "own", "ownBuckets", a.IdentityID)
		if _, err := c.keyClient(a).GetObject(t.Context(), b.Name, "key"); err == nil {
			t.Error("the access goes on reading")
		}
		// Nor does another grant let it in again.
		_, err := c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
		c.must(err)
	}
	c.wantAccesses("bucket ba-1 out", "bucket ba-2")
	client, err := c.client(c.defaultEndpoint("rma"), keyPair{a.Credentials.AccessKeyID, a.Credentials.SecretAccessKey})
	c.must(err)
	c.must(client.DeleteObject(t.Context(), "own", "key"))
	c.must(client.DeleteBucket(t.Context(), "own"))
	c.must(c.RevokeAccess(t.Context(), refOf("ba-1", b)))
	c.wantAccesses("bucket ba-2")
}

func TestRevokePurgesOwnBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, a := grantedOwn(c, provider.OwnBucketsPurge)
	// The class alone is not enough to delete data.
	c.want(c.RevokeAccess(t.Context(), refOf("ba-1", b)), provider.ErrPrecondition, "own", "--allow-delete-all")
	if info, ok := c.bucketInfo("own"); !ok || info.Objects != 1 {
		t.Fatalf("the data is gone: %+v", info)
	}
	ref := refOf("ba-1", b)
	ref.IdentityID, ref.PurgeOwn = a.IdentityID, true
	c.must(c.RevokeAccess(t.Context(), ref))
	if _, ok := c.bucketInfo("own"); ok {
		t.Error("the bucket is left")
	}
	c.wantAccesses()
	c.wantLeft("bucket")
}

func TestDeleteMeetsOwnBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := grantedOwn(c, provider.OwnBucketsPurge)
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{Purge: true}), provider.ErrPrecondition, "own")
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{PurgeOwn: true}))
	c.wantAccesses()
	c.wantLeft()
	if len(c.cs.Buckets()) != 0 {
		t.Error("the access's own bucket is left")
	}
}

func TestRevokeFindsItsAccess(t *testing.T) {
	for name, ref := range map[string]func(b provider.Bucket, a provider.Access) provider.AccountRef{
		"by bucket": func(b provider.Bucket, _ provider.Access) provider.AccountRef { return refOf("ba-1", b) },
		"by account alone": func(provider.Bucket, provider.Access) provider.AccountRef {
			return provider.AccountRef{Account: "ba-1"}
		},
		"by identity alone": func(_ provider.Bucket, a provider.Access) provider.AccountRef {
			return provider.AccountRef{IdentityID: a.IdentityID}
		},
		"without the owner ID": func(provider.Bucket, provider.Access) provider.AccountRef {
			return provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{{Name: "bucket", Region: "rma"}}}
		},
		"with all": func(b provider.Bucket, a provider.Access) provider.AccountRef {
			r := refOf("ba-1", b)
			r.IdentityID = a.IdentityID
			return r
		},
	} {
		c := newCloud(t, emulator.Options{})
		b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
		other, err := c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadWrite))
		c.must(err)
		a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
		c.must(err)
		wrong := provider.AccountRef{Account: "ba-3", IdentityID: a.IdentityID}
		c.want(c.RevokeAccess(t.Context(), wrong), provider.ErrPermissionDenied, a.IdentityID)
		for range 2 {
			if err := c.keep(c.RevokeAccess(t.Context(), ref(b, a))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		c.wantAccesses("bucket ba-2")
		c.must(c.keyClient(other).PutObject(t.Context(), b.Name, "key", nil))
		policy, err := owner.Policy(t.Context(), b.Name)
		c.must(err)
		for line := range strings.SplitSeq(policy, `{"Sid"`) {
			if strings.Contains(line, a.IdentityID) && strings.Contains(line, allow) {
				t.Errorf("%s: the policy lets it in: %s", name, line)
			}
		}
	}
}

// A region that is not the recorded one stops nothing: the record tells where the
// bucket is.
func TestRevokeGoesByTheRecordedRegion(t *testing.T) {
	for name, change := range map[string]func(*provider.BucketRef){
		"another region": func(r *provider.BucketRef) { r.Region = "lpg" },
		"no such region": func(r *provider.BucketRef) { r.Region = "zrh" },
		"without owner":  func(r *provider.BucketRef) { r.Region, r.OwnerID = "lpg", "" },
	} {
		c := newCloud(t, emulator.Options{})
		b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
		second, _ := c.make(provider.BucketSpec{Name: "second", Region: "rma"})
		a, err := c.GrantAccess(t.Context(), spanSpec("ba-1", b.BucketRef, second.BucketRef))
		c.must(err)
		ref := provider.AccountRef{Account: "ba-1", IdentityID: a.IdentityID, Buckets: []provider.BucketRef{b.BucketRef, second.BucketRef}}
		change(&ref.Buckets[0])
		for range 2 { // the second time nothing is left that has a record
			if err := c.keep(c.RevokeAccess(t.Context(), ref)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.wantAccesses()
		policy, err := owner.Policy(t.Context(), b.Name)
		c.must(err)
		if strings.Contains(policy, a.IdentityID) {
			t.Errorf("%s: the policy still names the access: %s", name, policy)
		}
	}
}

// IDs do not name the driver: another one with a back end of the same name must not
// say that the access is gone.
func TestRevokeLeavesAccessesOfAnotherDriver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	other := c.provider(func(c *Config) { c.DriverName = "other.example" })
	c.trust(other)
	b, err := other.CreateBucket(t.Context(), provider.BucketSpec{Name: "bucket", Region: "rma"})
	c.must(err)
	a, err := other.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	for _, ref := range []provider.AccountRef{
		{Account: "ba-1", IdentityID: a.IdentityID, Buckets: []provider.BucketRef{b.BucketRef}},
		{Account: "ba-1", IdentityID: a.IdentityID},
		{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}},
		{IdentityID: a.IdentityID},
	} {
		c.want(c.RevokeAccess(t.Context(), ref), provider.ErrPermissionDenied, "other.example", testDriver, "different names")
	}
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", nil))
}

func TestRevokeWithoutItsBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	_, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(owner.DeleteBucket(t.Context(), b.Name))
	c.must(c.RevokeAccess(t.Context(), refOf("ba-1", b)))
	c.wantAccesses()
}

// A refused deletion leaves the accesses as they were.
func TestRefusedDeleteKeepsTheAccesses(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", []byte("data")))
	want, err := owner.Policy(t.Context(), b.Name)
	c.must(err)
	// A call that ended early has shut them out.
	alone, err := render(b.Name, b.OwnerID, nil)
	c.must(err)
	c.must(owner.SetPolicy(t.Context(), b.Name, alone))
	c.want(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrNotEmpty)
	got, err := owner.Policy(t.Context(), b.Name)
	c.must(err)
	if got != want {
		t.Errorf("the policy is %s", got)
	}
	c.wantAccesses("bucket ba-1")
}

// meddler is a transport that does something before the first request that fits.
type meddler struct {
	next http.RoundTripper
	fits func(*http.Request) bool
	once sync.Once
	do   func()
}

func (m *meddler) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.fits(req) {
		m.once.Do(m.do)
	}
	return m.next.RoundTrip(req)
}

// What is written at the last moment keeps the bucket, with its accesses.
func TestWriteBeforeTheDeletionKeepsTheAccesses(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	before := strings.Replace(c.endState(), "0 objects", "2 objects", 1)
	last := &meddler{
		next: c.spy,
		fits: func(r *http.Request) bool { return r.Method == http.MethodDelete && r.URL.Path == "/bucket/" },
		do:   func() { c.must(owner.PutObject(t.Context(), b.Name, "key", []byte("data"))) },
	}
	p := c.provider(func(config *Config) { config.Transport = last })
	c.trust(p)
	c.want(p.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}), provider.ErrNotEmpty)
	if info, _ := c.bucketInfo("bucket"); info.Objects != 1 {
		t.Fatalf("%d objects, want the one written at the last moment", info.Objects)
	}
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "other", []byte("data")))
	if after := c.endState(); after != before {
		t.Errorf("it is left as\n%s\nbefore\n%s", after, before)
	}
	c.must(p.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantAccesses()
	c.wantLeft()
}

func TestSurplusIdentitiesOfAnAccount(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	first, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	surplus := access{account: "ba-1", buckets: map[string]membership{
		b.Name: {bucket: b.Name, region: b.Region, owner: ownerTag(b.OwnerID), mode: provider.ReadWrite, stage: stageNew},
	}}
	_, err = c.createUser(t.Context(), "surplus", surplus.asTags(testDriver))
	c.must(err)
	// The one that may have been delivered stays the answer.
	again, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	if again.IdentityID != first.IdentityID {
		t.Error("another identity was preferred")
	}
	c.must(c.RevokeAccess(t.Context(), refOf("ba-1", b)))
	c.wantAccesses()
	_, err = c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	if c.must(err); errors.Is(err, provider.ErrConflict) {
		t.Error(err)
	}
}

// The API may refuse to delete a user for the objects that it wrote.
func TestUserThatTheAPIKeeps(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessOf("ba-1", b, provider.ReadWrite))
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "key", []byte("data")))
	remove := c.Inject(emulator.Fault{Operation: "DeleteObjectsUser", Status: 400, Body: `{"detail":"It owns objects."}`})
	c.want(c.RevokeAccess(t.Context(), refOf("ba-1", b)), provider.ErrUnavailable, "owns objects", "repeat")
	if _, err := c.keyClient(a).GetObject(t.Context(), b.Name, "key"); err == nil {
		t.Error("the revoked key goes on reading")
	}
	remove()
	// A bucket that is deleted takes the objects with it before the user goes.
	c.ResetCalls()
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	var order []string
	for _, call := range c.Calls() {
		if call.Operation == "DeleteBucket" || call.Operation == "DeleteObjectsUser" {
			order = append(order, call.Operation)
		}
	}
	if want := []string{"DeleteBucket", "DeleteObjectsUser", "DeleteObjectsUser"}; !slices.Equal(order, want) {
		t.Errorf("deleted in the order %q, want %q", order, want)
	}
	c.wantLeft()
	c.wantAccesses()
}

// TestStraysGoWithTheirBucket: the deletion of a bucket that is gone with its owner ends
// the accesses to it.
func TestStraysGoWithTheirBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, owner := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	_, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
	c.must(err)
	c.must(owner.DeleteBucket(t.Context(), b.Name))
	c.must(c.deleteUser(t.Context(), b.OwnerID))
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	c.wantAccesses()
}
