package cloudscale

import (
	"errors"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestRotationKeepsTheIdentity: COSI's account ID names the first user for ever,
// and by that alone what a rotation has made is found and ended.
func TestRotationKeepsTheIdentity(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	first, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
	c.must(err)
	ref := provider.AccountRef{Account: "ba-1"}
	for range 3 {
		key, err := c.RotateAccess(t.Context(), ref, provider.RotateOptions{})
		c.must(err)
		again, err := c.provider().GrantAccess(t.Context(), accessTo(b.BucketRef))
		c.must(err)
		if again.IdentityID != first.IdentityID || again.Credentials != key {
			t.Errorf("a grant after a rotation returns identity %s, was %s", again.IdentityID, first.IdentityID)
		}
	}
	c.must(c.RevokeAccess(t.Context(), provider.AccountRef{IdentityID: first.IdentityID}))
	c.wantAccesses()
}

// TestRotationLeavesOwnBuckets: a key that has made buckets for itself is not
// given up, and nothing is made in its place.
func TestRotationLeavesOwnBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	spec := accessTo(b.BucketRef)
	spec.OwnBuckets = provider.OwnBucketsPurge
	a, err := c.GrantAccess(t.Context(), spec)
	c.must(err)
	c.must(c.keyClient(a).CreateBucket(t.Context(), "own"))
	users := len(c.cs.Users())
	ref := provider.AccountRef{Account: "ba-1"}
	_, err = c.RotateAccess(t.Context(), ref, provider.RotateOptions{})
	c.want(err, provider.ErrPrecondition)
	if now := len(c.cs.Users()); now != users {
		t.Errorf("%d users, were %d", now, users)
	}
	fresh, err := c.RotateAccess(t.Context(), ref, provider.RotateOptions{KeepAccessKeyID: a.Credentials.AccessKeyID})
	c.must(err)
	c.want(c.RetireKeys(t.Context(), ref, fresh.AccessKeyID), provider.ErrPrecondition)
	c.must(c.keyClient(a).PutObject(t.Context(), b.Name, "x", []byte("x")))
}

// TestRotationMeetsRevocation: whichever comes first, no key is left.
func TestRotationMeetsRevocation(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	for range 20 {
		_, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
		c.must(err)
		other, done := c.provider(), make(chan error)
		go func() {
			_, err := c.RotateAccess(t.Context(), provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{})
			done <- err
		}()
		ref := provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}}
		err = other.RevokeAccess(t.Context(), ref)
		if rotated := <-done; rotated != nil && !errors.Is(rotated, provider.ErrNotFound) && !errors.Is(rotated, provider.ErrConflict) {
			t.Fatal(c.keep(rotated))
		}
		c.must(err)
		c.wantAccesses()
	}
}

// TestGrantReturnsTheLatestKey: while a rotation keeps the key before it, a grant by
// another process returns the new one, and ends neither.
func TestGrantReturnsTheLatestKey(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	first, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
	c.must(err)
	kept := first.Credentials
	for range 4 {
		key, err := c.RotateAccess(t.Context(), provider.AccountRef{Account: "ba-1"}, provider.RotateOptions{KeepAccessKeyID: kept.AccessKeyID})
		c.must(err)
		p := c.provider()
		c.trust(p)
		again, err := p.GrantAccess(t.Context(), accessTo(b.BucketRef))
		c.must(err)
		if again.Credentials != key {
			t.Errorf("a grant returned key %s, want %s", again.Credentials.AccessKeyID, key.AccessKeyID)
		}
		for _, credentials := range []provider.Credentials{kept, key} {
			again.Credentials = credentials
			c.must(c.keyClient(again).PutObject(t.Context(), b.Name, "key", []byte("x")))
		}
		kept = key
	}
}

// TestGrantMeetsRevocation: a user whose last bucket is revoked, and which another process
// lets into another one at this moment, keeps its key.
func TestGrantMeetsRevocation(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	one, _ := c.make(provider.BucketSpec{Name: "one", Region: "rma"})
	two, _ := c.make(provider.BucketSpec{Name: "two", Region: "rma"})
	first, err := c.GrantAccess(t.Context(), accessTo(one.BucketRef))
	c.must(err)
	var later provider.Access
	late := c.provider(func(config *Config) {
		config.Transport = &before{RoundTripper: c.spy, is: writesPolicy, f: func() {
			var err error
			later, err = c.GrantAccess(t.Context(), accessTo(two.BucketRef))
			c.must(err)
		}}
	})
	c.must(late.RevokeAccess(t.Context(), refOf("ba-1", one)))
	c.wantAccesses("one ba-1 out", "two ba-1")
	if later.Credentials != first.Credentials {
		t.Error("the later grant has another key")
	}
	c.must(c.keyClient(later).PutObject(t.Context(), "two", "key", []byte("x")))
}
