package cloudscale

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

func TestExistingBucketIsFound(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for i := range 20 {
		_, err := c.createUser(t.Context(), fmt.Sprintf("bystander %d", i), map[string]string{})
		c.must(err)
	}
	c.person("their", "lpg")
	ours, _ := c.make(provider.BucketSpec{Name: "ours", Region: "lpg"})
	info, _ := c.bucketInfo("their")
	ref := provider.BucketRef{Name: "their", Region: "lpg", AccessOnly: true}
	want := provider.Bucket{
		BucketRef: ref, Endpoint: c.defaultEndpoint("lpg"), SigningRegion: signingRegion, DeletionPolicy: provider.DeleteIfEmpty,
	}
	want.OwnerID = info.OwnerUID
	b, err := c.GetBucket(t.Context(), ref)
	c.must(err)
	if b != want {
		t.Errorf("got %+v, want %+v", b, want)
	}
	// Whoever knows the owner, from the ID or from before, asks nobody else.
	for range 2 {
		c.ResetCalls()
		_, err = c.GetBucket(t.Context(), ref)
		c.must(err)
		if n := c.count("ListBuckets"); n != 1 {
			t.Errorf("%d users were asked", n)
		}
		ref = want.BucketRef
		c.theirIDs.set("their", "")
	}
	// A bucket of ours is that, whatever the reference says.
	ours.AccessOnly = true
	b, err = c.GetBucket(t.Context(), ours.BucketRef)
	c.must(err)
	if b.AccessOnly {
		t.Errorf("got %+v", b)
	}
	if n := c.count("UpdateObjectsUser") + c.count("PutBucketPolicy") + c.count("PutPublicAccessBlock"); n != 0 {
		t.Error("GetBucket changes something")
	}
}

func TestExistingBucketRefusals(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	their, _ := c.person("their", "rma")
	c.must(their.PutObject(t.Context(), "their", "key", []byte("data")))
	c.foreign("foreign", "rma")
	ours, _ := c.make(provider.BucketSpec{Name: "ours", Region: "rma"})
	// Buckets of users that serve a driver for something else.
	c.must(c.clientOf(c.Provider, ours).CreateBucket(t.Context(), "by-an-owner"))
	ourOwner := ours.OwnerID
	info, _ := c.bucketInfo("their")
	const remedy = "set the class parameter adoptExisting to accessOnly"
	for name, tc := range map[string]struct {
		ref   provider.BucketRef
		want  error
		texts []string
	}{
		"not allowed":          {provider.BucketRef{Name: "their", Region: "rma"}, provider.ErrPermissionDenied, []string{remedy}},
		"not allowed, by ID":   {provider.BucketRef{Name: "their", Region: "rma", OwnerID: info.OwnerUID}, provider.ErrPermissionDenied, []string{remedy}},
		"missing":              {provider.BucketRef{Name: "missing", Region: "rma", AccessOnly: true}, provider.ErrNotFound, nil},
		"another region":       {provider.BucketRef{Name: "their", Region: "lpg", AccessOnly: true}, provider.ErrInvalidArgument, []string{"rma"}},
		"no region":            {provider.BucketRef{Name: "their", Region: "zrh", AccessOnly: true}, provider.ErrInvalidArgument, []string{"zrh"}},
		"another project":      {provider.BucketRef{Name: "foreign", Region: "rma", AccessOnly: true}, provider.ErrPermissionDenied, []string{"project"}},
		"of an owner":          {provider.BucketRef{Name: "by-an-owner", Region: "rma", AccessOnly: true}, provider.ErrPermissionDenied, []string{"project"}},
		"of an owner, by ID":   {provider.BucketRef{Name: "by-an-owner", Region: "rma", OwnerID: ourOwner, AccessOnly: true}, provider.ErrPermissionDenied, []string{ourOwner}},
		"not the owner":        {provider.BucketRef{Name: "foreign", Region: "rma", OwnerID: info.OwnerUID, AccessOnly: true}, provider.ErrPermissionDenied, []string{info.OwnerUID}},
		"the owner is unknown": {provider.BucketRef{Name: "their", Region: "rma", OwnerID: "0123", AccessOnly: true}, provider.ErrNotFound, nil},
	} {
		for _, call := range []func() error{
			func() error { _, err := c.GetBucket(t.Context(), tc.ref); return err },
			func() error { _, err := c.GrantAccess(t.Context(), accessTo(tc.ref)); return err },
		} {
			err := call()
			if err == nil {
				t.Errorf("%s: succeeded", name)
				continue
			}
			c.want(err, tc.want, append(tc.texts, tc.ref.Name)...)
			c.theirIDs.set(tc.ref.Name, "")
		}
	}
	_, err := c.GrantAccess(t.Context(), sharedTo(provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}))
	c.want(err, provider.ErrPrecondition, "their", "perAccess")
	c.want(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "their", Region: "rma"}, purge), provider.ErrPermissionDenied, remedy)
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "foreign", Region: "rma", AccessOnly: true}, purge))
	c.wantAccesses()
	if got, err := their.GetObject(t.Context(), "their", "key"); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
}

// More users than anybody should ask, and users that cannot be asked.
func TestExistingBucketOfTooManyUsers(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.person("their", "rma")
	ref := provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}
	for code, want := range map[string]error{"UserSuspended": provider.ErrPermissionDenied, codeUnknownKey: provider.ErrUnavailable} {
		remove := c.Inject(emulator.Fault{Operation: "ListBuckets", Status: 403, Body: "<Error><Code>" + code + "</Code></Error>"})
		_, err := c.GetBucket(t.Context(), ref)
		c.want(err, want, "their")
		remove()
	}
	for i := range searchLimit {
		_, err := c.createUser(t.Context(), fmt.Sprint(i), map[string]string{})
		c.must(err)
	}
	_, err := c.GetBucket(t.Context(), ref)
	c.want(err, provider.ErrPrecondition, "their", "<ID of the objects user>")
	info, _ := c.bucketInfo("their")
	ref.OwnerID = info.OwnerUID
	_, err = c.GetBucket(t.Context(), ref)
	c.must(err)
}

// Neither the bucket nor its owner is marked, and its public access block stays.
func TestExistingBucketIsLeftAlone(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	their, _ := c.person("their", "rma")
	ref := provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}
	c.ResetCalls()
	a, err := c.GrantAccess(t.Context(), accessTo(ref))
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), "their", "key", []byte("data")))
	if _, err := their.GetObject(t.Context(), "their", "key"); err != nil {
		t.Errorf("the owner does not read what an access wrote: %v", err)
	}
	info, _ := c.bucketInfo("their")
	for _, u := range c.cs.Users() {
		if u.ID == info.OwnerUID && (len(u.Tags) != 1 || u.Tags["team"] != "theirs") {
			t.Errorf("the owner's tags are %v", u.Tags)
		}
	}
	if c.count("PutPublicAccessBlock")+c.count("PutBucketTagging")+c.count("PutBucketAcl") != 0 {
		t.Error("more than the policy is changed")
	}
	// Public uploads are the owner's affair, and not those of an access afterwards.
	if err := c.keyClient(a).CreateBucket(t.Context(), "their"); s3.StatusCode(err) != http.StatusConflict {
		t.Errorf("created over it: %v", err)
	}
}

// A policy that is not understood is refused and stays; a statement with our
// prefix is ours.
func TestExistingPolicies(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	their, _ := c.person("their", "lpg")
	ref := provider.BucketRef{Name: "their", Region: "lpg", AccessOnly: true}
	remove := c.Inject(emulator.Fault{Operation: "GetBucketPolicy", Status: 200, Body: `["not a policy"]`})
	_, err := c.GrantAccess(t.Context(), accessTo(ref))
	c.want(err, provider.ErrPrecondition, "their", "not understood")
	if c.count("PutBucketPolicy") != 0 {
		t.Error("it was written")
	}
	remove()
	c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1"}))
	c.wantAccesses()

	forged := strings.Replace(strings.Replace(theirText, `"Theirs"`, `"`+c.sids()+`rw-forged-o"`, 1), "{\"Sid", `[{"Sid`, 1)
	forged = strings.Replace(forged, `/*"}`, `/*"}]`, 1)
	c.must(their.SetPolicy(t.Context(), "their", forged))
	_, err = c.GrantAccess(t.Context(), accessTo(ref))
	c.must(err)
	policy, err := their.Policy(t.Context(), "their")
	c.must(err)
	if strings.Contains(policy, "forged") {
		t.Errorf("the policy is %s", policy)
	}
	// The owner's key is replaced, and the policy edited, behind the driver's back.
	c.must(their.SetPolicy(t.Context(), "their", theirText))
	late := &outdated{next: c.spy}
	p := c.provider(func(c *Config) { c.Transport = late })
	c.trust(p)
	_, err = p.GrantAccess(t.Context(), spanSpec("ba-1", ref))
	c.must(err)
	c.must(p.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1"}))
	if policy, err = their.Policy(t.Context(), "their"); err != nil || policy != theirText && policy != "" {
		t.Errorf("%v: the policy is %s", err, policy)
	}
	c.wantAccesses()
}

// A delete that is refused, because the reference does not say AccessOnly, ends
// the accesses all the same.
func TestRefusedDeleteOfAnExistingBucketEndsItsAccesses(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	their, _ := c.person("their", "rma")
	ref := provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}
	a, err := c.GrantAccess(t.Context(), accessTo(ref))
	c.must(err)
	ref.AccessOnly = false
	for range 2 {
		c.want(c.DeleteBucket(t.Context(), ref, purge), provider.ErrPermissionDenied, "accessOnly")
	}
	c.wantAccesses()
	if _, err := c.keyClient(a).ListObjects(t.Context(), "their", ""); s3.StatusCode(err) != http.StatusForbidden {
		t.Errorf("the key goes on: %v", err)
	}
	if policy, err := their.Policy(t.Context(), "their"); err != nil || policy != "" {
		t.Errorf("%v: the policy is %s", err, policy)
	}
}

// A foreign bucket goes and comes back as somebody else's, or as ours: an access
// to the former one is not let in.
func TestExistingBucketThatIsMadeAnew(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	_, remove := c.person("their", "rma")
	ref := provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}
	old, err := c.GrantAccess(t.Context(), accessTo(ref))
	c.must(err)
	c.must(remove(t.Context()))
	b, _ := c.make(provider.BucketSpec{Name: "their", Region: "rma"})
	_, err = c.GrantAccess(t.Context(), accessOf("ba-2", b, provider.ReadOnly))
	c.must(err)
	if _, err := c.keyClient(old).ListObjects(t.Context(), "their", ""); s3.StatusCode(err) != http.StatusForbidden {
		t.Errorf("the access to the former bucket opens the new one: %v", err)
	}
	c.must(c.DeleteBucket(t.Context(), ref, purge))
	c.wantAccesses("their ba-2")
	c.wantLeft("their")
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantAccesses()
}

// Drivers of several clusters share an existing bucket, and each leaves the others'
// accesses alone.
func TestExistingBucketOfTwoDrivers(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	their, _ := c.person("their", "rma")
	ref := provider.BucketRef{Name: "their", Region: "rma", AccessOnly: true}
	for _, policy := range []string{"", strings.Replace(strings.Replace(theirText, "{\"Sid", `[{"Sid`, 1), `/*"}`, `/*"}]`, 1)} {
		c.must(their.SetPolicy(t.Context(), "their", policy))
		other := c.provider(func(c *Config) { c.DriverName = "other.example" })
		for _, p := range []*Provider{other, c.Provider} {
			c.trust(p)
		}
		theirs, err := other.GrantAccess(t.Context(), accessTo(ref))
		c.must(err)
		ours, err := c.GrantAccess(t.Context(), accessTo(ref))
		c.must(err)
		c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1"}))
		c.must(c.keyClient(theirs).PutObject(t.Context(), "their", "key", nil))
		if err := c.keyClient(ours).PutObject(t.Context(), "their", "key", nil); s3.StatusCode(err) != http.StatusForbidden {
			t.Errorf("the revoked key goes on: %v", err)
		}
		c.must(other.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1"}))
		if got, err := their.Policy(t.Context(), "their"); err != nil || got != policy {
			t.Errorf("%v: the policy is %s, want %s", err, got, policy)
		}
	}
}
