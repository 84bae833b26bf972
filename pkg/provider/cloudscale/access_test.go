package cloudscale

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

func accessTo(refs ...provider.BucketRef) provider.AccessSpec {
	spec := provider.AccessSpec{Account: "ba-1"}
	for _, ref := range refs {
		spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: ref})
	}
	return spec
}

func sharedTo(refs ...provider.BucketRef) provider.AccessSpec {
	spec := accessTo(refs...)
	spec.Credentials = provider.CredentialsShared
	return spec
}

func accessOf(account string, b provider.Bucket, mode provider.Mode) provider.AccessSpec {
	spec := accessTo(b.BucketRef)
	spec.Account, spec.Buckets[0].Mode = account, mode
	return spec
}

func TestSharedGrantReturnsTheOwnersKey(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "shared", Region: "lpg", DeletionPolicy: provider.DeleteAll})
	var first provider.Access
	for i, ref := range []provider.BucketRef{b.BucketRef, {Name: "shared", Region: "lpg"}} {
		a, err := c.provider().GrantAccess(t.Context(), sharedTo(ref))
		c.must(err)
		if a.IdentityID != b.OwnerID || len(a.Buckets) != 1 || a.Buckets[0] != b {
			t.Errorf("the access is %+v, want identity %s and the bucket %+v", a, b.OwnerID, b)
		}
		if i > 0 && a.Credentials != first.Credentials {
			t.Error("a repeated grant returned another key")
		}
		first = a
	}
	// Revoke leaves the shared key alone.
	ref := provider.AccountRef{Account: "ba-1", IdentityID: first.IdentityID, Buckets: []provider.BucketRef{b.BucketRef}}
	c.must(c.RevokeAccess(t.Context(), ref))
	again, err := c.GrantAccess(t.Context(), sharedTo(b.BucketRef))
	c.must(err)
	if again.Credentials != first.Credentials {
		t.Error("the key changed after a revoke")
	}
}

// outdated shows, once, the key that a user had before it was replaced.
type outdated struct {
	next http.RoundTripper
	done atomic.Bool
}

func (o *outdated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err != nil || !strings.HasPrefix(req.URL.Path, "/v1/objects-users") || o.done.Swap(true) {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	body = bytes.ReplaceAll(body, []byte(`"access_key":"`), []byte(`"access_key":"OLD`))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, err
}

// A key can be replaced between the moment it is read and the moment it is used.
func TestSharedGrantReturnsTheKeyThatWorks(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "rotated", Region: "rma"})
	current, err := c.GrantAccess(t.Context(), sharedTo(b.BucketRef))
	c.must(err)
	for _, ref := range []provider.BucketRef{b.BucketRef, {Name: "rotated", Region: "rma"}} {
		late := &outdated{next: c.spy}
		p := c.provider(func(c *Config) { c.Transport = late })
		c.ResetCalls()
		a, err := p.GrantAccess(t.Context(), sharedTo(ref))
		c.must(err)
		if a.Credentials != current.Credentials {
			t.Errorf("the granted key is %s, want %s, the one that works", a.Credentials.AccessKeyID, current.Credentials.AccessKeyID)
		}
		if n := c.count("ListBuckets"); n != 2 {
			t.Errorf("%d probes, want one with each key", n)
		}
	}
}

func TestGrantRefusals(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, client := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	other, _ := c.make(provider.BucketSpec{Name: "def", Region: "rma"})
	c.foreign("foreign", "rma")
	mode := func(m provider.Mode) provider.AccessSpec {
		s := sharedTo(b.BucketRef)
		s.Buckets[0].Mode = m
		return s
	}
	strange := accessTo(b.BucketRef)
	strange.Credentials = "mine"
	odd := accessTo(b.BucketRef)
	odd.OwnBuckets = "keep"
	closed, _ := c.make(provider.BucketSpec{Name: "closed", Region: "rma", SharedCredentials: provider.SharedForbidden})
	for name, tc := range map[string]struct {
		spec provider.AccessSpec
		want error
	}{
		"no account":      {provider.AccessSpec{Buckets: accessTo(b.BucketRef).Buckets}, provider.ErrInvalidArgument},
		"no bucket":       {accessTo(), provider.ErrInvalidArgument},
		"a bucket twice":  {accessTo(b.BucketRef, b.BucketRef), provider.ErrInvalidArgument},
		"shared for two":  {sharedTo(b.BucketRef, other.BucketRef), provider.ErrInvalidArgument},
		"credentials":     {strange, provider.ErrInvalidArgument},
		"own buckets":     {odd, provider.ErrInvalidArgument},
		"forbidden":       {sharedTo(closed.BucketRef), provider.ErrPrecondition},
		"read only":       {mode(provider.ReadOnly), provider.ErrUnsupported},
		"write only":      {mode(provider.WriteOnly), provider.ErrUnsupported},
		"unknown mode":    {mode("Append"), provider.ErrInvalidArgument},
		"missing":         {accessTo(provider.BucketRef{Name: "missing", Region: "rma"}), provider.ErrNotFound},
		"foreign":         {accessTo(provider.BucketRef{Name: "foreign", Region: "rma"}), provider.ErrPermissionDenied},
		"malformed name":  {accessTo(provider.BucketRef{Name: "A", Region: "rma"}), provider.ErrInvalidArgument},
		"malformed owner": {accessTo(provider.BucketRef{Name: "abc", Region: "rma", OwnerID: "../regions"}), provider.ErrInvalidArgument},
		"owner gone":      {accessTo(provider.BucketRef{Name: "abc", Region: "rma", OwnerID: "0123"}), provider.ErrNotFound},
	} {
		_, err := c.GrantAccess(t.Context(), tc.spec)
		if _ = c.keep(err); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	c.must(client.DeleteBucket(t.Context(), "abc"))
	_, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
	c.want(err, provider.ErrNotFound, "abc")
}

func TestRevoke(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	person, err := c.createUser(t.Context(), "person", map[string]string{})
	c.must(err)
	for name, tc := range map[string]struct {
		ref  provider.AccountRef
		want error
	}{
		"nothing named":       {provider.AccountRef{}, nil},
		"no account":          {provider.AccountRef{IdentityID: b.OwnerID, Buckets: []provider.BucketRef{b.BucketRef}}, nil},
		"absent bucket":       {provider.AccountRef{Account: "a", Buckets: []provider.BucketRef{{Name: "missing", Region: "rma"}}}, nil},
		"absent identity":     {provider.AccountRef{Account: "a", IdentityID: "0123"}, nil},
		"unmarked identity":   {provider.AccountRef{Account: "a", IdentityID: person.id}, provider.ErrPermissionDenied},
		"unmarked owner":      {provider.AccountRef{Account: "a", Buckets: []provider.BucketRef{{Name: "abc", Region: "rma", OwnerID: person.id}}}, provider.ErrPermissionDenied},
		"malformed identity":  {provider.AccountRef{Account: "a", IdentityID: "a/b"}, provider.ErrInvalidArgument},
		"malformed reference": {provider.AccountRef{Account: "a", Buckets: []provider.BucketRef{{Name: "abc"}}}, provider.ErrInvalidArgument},
	} {
		err := c.RevokeAccess(t.Context(), tc.ref)
		if _ = c.keep(err); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	c.wantLeft("abc")
}

func TestCapabilities(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	if caps := c.Capabilities(); !caps.Rotation || caps.SharedKeys || len(caps.Modes) != 3 {
		t.Errorf("capabilities are %+v", caps)
	}
}

func TestInventory(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.foreign("foreign", "rma")
	_, err := c.createUser(t.Context(), "person", map[string]string{})
	c.must(err)
	want := map[provider.Resource]bool{}
	for name, region := range map[string]string{"abc": "rma", "def": "lpg"} {
		b, _ := c.make(provider.BucketSpec{Name: name, Region: region})
		want[provider.Resource{Kind: provider.KindOwner, ID: b.OwnerID, Bucket: name, Region: region}] = true
		want[provider.Resource{Kind: provider.KindBucket, ID: name, Bucket: name, Region: region}] = true
	}
	a, err := c.GrantAccess(t.Context(), accessTo(provider.BucketRef{Name: "abc", Region: "rma"}))
	c.must(err)
	want[provider.Resource{Kind: provider.KindAccess, ID: a.IdentityID, Bucket: "abc", Region: "rma", Account: "ba-1"}] = true
	n := 0
	for r, err := range c.Inventory(t.Context()) {
		c.must(err)
		if n++; !want[r] {
			t.Errorf("unexpected %+v", r)
		}
	}
	if n != len(want) {
		t.Errorf("%d resources, want %d", n, len(want))
	}
	next, stop := iter.Pull2(c.Inventory(t.Context()))
	if _, err, ok := next(); err != nil || !ok {
		t.Errorf("the first resource: %v, %t", err, ok)
	}
	stop() // a consumer may stop early
	c.Inject(emulator.Fault{Operation: "ListObjectsUsers", Status: 401})
	for r, err := range c.Inventory(t.Context()) {
		c.want(err, provider.ErrUnauthenticated)
		if r != (provider.Resource{}) {
			t.Errorf("an error came with %+v", r)
		}
	}
}
