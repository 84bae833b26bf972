package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

func ofTenant(name, region string) provider.BucketSpec {
	return provider.BucketSpec{Name: name, Region: region, Tenant: "team-a"}
}

// wantTenant fails the test unless the buckets of "team-a" are exactly these, as
// recorded and as owned, and no user of it is without one.
func (c *cloud) wantTenant(names ...string) {
	c.t.Helper()
	ids := map[string]bool{}
	var recorded, owned []string
	for _, u := range c.cs.Users() {
		if u.Tags[tagTenant] != "team-a" {
			continue
		}
		ids[u.ID] = true
		found := bucketsOfTenant(user{id: u.ID, tags: u.Tags})
		if len(found) == 0 {
			c.t.Errorf("objects user %s of the tenant is left without a bucket", u.ID)
		}
		recorded = append(recorded, found...)
	}
	for _, b := range c.cs.Buckets() {
		if ids[b.OwnerUID] {
			owned = append(owned, b.Name)
		}
	}
	for what, got := range map[string][]string{"recorded": recorded, "owned": owned} {
		slices.Sort(got)
		if !slices.Equal(got, names) {
			c.t.Errorf("the tenant's buckets are, as %s, %q, want %q", what, got, names)
		}
	}
}

func TestTenantsOwner(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := ofTenant("first", "rma")
	spec.DeletionPolicy, spec.VirtualHosted = provider.DeleteAll, true
	first, _ := c.make(spec)
	second, _ := c.make(ofTenant("second", "lpg"))
	users := c.cs.Users()
	if len(users) != 1 || first.OwnerID != second.OwnerID || users[0].DisplayName != "zuber-tenant-team-a" {
		t.Fatalf("the owners of a tenant's buckets are %+v", users)
	}
	want := map[string]string{
		"zuber_managed_by": testDriver, "zuber_role": "tenant", "zuber_tenant": "team-a",
		"zuber_bucket_" + bucketKey("first"): "first", "zuber_region_" + bucketKey("first"): "rma",
		"zuber_addressing_" + bucketKey("first"): "virtual", "zuber_deletion_policy_" + bucketKey("first"): "DeleteAll",
		"zuber_bucket_" + bucketKey("second"): "second", "zuber_region_" + bucketKey("second"): "lpg",
	}
	if !maps.Equal(users[0].Tags, want) {
		t.Errorf("its tags are %v, want %v", users[0].Tags, want)
	}
	for key := range want {
		if len(key) > 57 {
			t.Errorf("the key %s has %d characters, and no more than 57 are known to be taken", key, len(key))
		}
	}
	// Without an ID it is found by the records.
	got, err := c.GetBucket(t.Context(), provider.BucketRef{Name: "first", Region: "rma"})
	c.must(err)
	if got != first || first.DeletionPolicy != provider.DeleteAll || !first.VirtualHosted || first.Tenant != "team-a" {
		t.Errorf("got %+v, made %+v", got, first)
	}
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "first", Region: "rma"}, provider.DeleteOptions{}))
	c.wantTenant("second")
	c.must(c.DeleteBucket(t.Context(), first.BucketRef, provider.DeleteOptions{}))
	c.must(c.DeleteBucket(t.Context(), second.BucketRef, provider.DeleteOptions{}))
	c.wantLeft()
}

func TestTenantsAreNamed(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	for _, tenant := range []string{"Team", "team_a", "-team", "team.", strings.Repeat("x", 64), "a b", "ä"} {
		spec := ofTenant("bucket", "rma")
		spec.Tenant = tenant
		_, err := c.CreateBucket(t.Context(), spec)
		c.want(err, provider.ErrInvalidArgument, "tenant")
	}
	if len(c.Calls()) > 0 {
		t.Error("a bad name of a tenant cost calls")
	}
}

// A bucket whose record is lost is not recorded for whoever asks for its name in
// another region: a repair of the region would then hand it over.
func TestLostRecordIsNotWrittenForAnotherRegion(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	spec := ofTenant("a-b-c", "rma")
	spec.Claim = provider.ClaimRef{Namespace: "a-b", Name: "c"}
	c.make(spec)
	c.forget("a-b-c")
	spec.Claim, spec.Region = provider.ClaimRef{Namespace: "a", Name: "b-c"}, "lpg"
	_, err := c.CreateBucket(t.Context(), spec)
	c.want(err, provider.ErrPrecondition, "lost the record")
	if tags := c.tenantUser().tags; len(bucketsOfTenant(user{tags: tags})) > 0 {
		t.Errorf("the tags are %v", tags)
	}
}

// A limit of the cloud's on the buckets or tags of one user leaves nothing of the
// bucket, and what was there.
func TestTenantIsFull(t *testing.T) {
	full := emulator.Fault{Operation: "CreateBucket", Status: http.StatusBadRequest, Body: "<Error><Code>TooManyBuckets</Code></Error>"}
	crowded := emulator.Fault{Operation: "UpdateObjectsUser", Status: http.StatusBadRequest, Body: `{"detail":"Too many tags."}`}
	for name, fault := range map[string]emulator.Fault{"of buckets": full, "of tags": crowded} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			c.make(ofTenant("first", "rma"))
			remove := c.Inject(fault)
			_, err := c.CreateBucket(t.Context(), ofTenant("second", "rma"))
			c.want(err, provider.ErrQuotaExceeded, "team-a", "more tenants", "objectsUser perBucket")
			remove()
			c.wantTenant("first")
		})
	}
	c := newCloud(t, emulator.Options{})
	c.Inject(full)
	_, err := c.CreateBucket(t.Context(), ofTenant("first", "rma"))
	c.want(err, provider.ErrQuotaExceeded)
	c.wantLeft()
}

// A name that somebody has leaves no record of it.
func TestTenantAndATakenName(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.foreign("taken", "rma")
	c.make(provider.BucketSpec{Name: "own", Region: "rma"})
	c.make(ofTenant("kept", "rma"))
	other := ofTenant("kept", "rma")
	other.Tenant = "team-b"
	for _, spec := range []provider.BucketSpec{ofTenant("taken", "rma"), ofTenant("own", "rma"), other, {Name: "kept", Region: "rma"}} {
		_, err := c.CreateBucket(t.Context(), spec)
		c.want(err, provider.ErrAlreadyExists, spec.Name)
	}
	_, err := c.CreateBucket(t.Context(), ofTenant("taken", "lpg"))
	c.want(err, provider.ErrAlreadyExists)
	c.wantTenant("kept")
	if n := len(c.cs.Users()); n != 3 {
		t.Errorf("%d objects users are left, want those of the three buckets", n)
	}
	// Also after a crash that left an owner that the bucket never had.
	tags, err := record{bucket: "kept", region: "rma"}.tags(testDriver)
	c.must(err)
	stray, err := c.createUser(t.Context(), "stray", tags)
	c.must(err)
	a, err := c.GrantAccess(t.Context(), provider.AccessSpec{Account: "ba-1", Buckets: []provider.BucketAccess{{
		BucketRef: provider.BucketRef{Name: "kept", Region: "rma", OwnerID: c.tenantUser().id}}}})
	c.must(err)
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "kept", Region: "rma", OwnerID: stray.id}, provider.DeleteOptions{Purge: true}))
	c.must(c.keyClient(a).PutObject(t.Context(), "kept", "key", nil))
	c.wantTenant("kept")
}

// tenantUser returns the first owner of "team-a".
func (c *cloud) tenantUser() user {
	c.t.Helper()
	users, err := c.usersOfTenant(c.t.Context(), "team-a")
	c.must(err)
	if len(users) == 0 {
		c.t.Fatal("the tenant has no owner")
	}
	return users[0]
}

// forget takes a bucket out of the record of its tenant's owner, as a process does
// that writes what it read too early.
func (c *cloud) forget(bucket string) {
	c.t.Helper()
	u := c.tenantUser()
	c.must(c.updateTags(c.t.Context(), u.id, withoutBucket(u.tags, bucket)))
}

// A bucket whose record was written over stays usable, is found by the audit, heals
// with a repeated creation, and keeps the tenant's owner.
func TestLostRecordOfATenantsBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(ofTenant("lost", "lpg"))
	other, _ := c.make(ofTenant("other", "rma"))
	c.forget("lost")

	got, err := c.GetBucket(t.Context(), b.BucketRef)
	c.must(err)
	if got != b {
		t.Errorf("got %+v, want %+v", got, b)
	}
	_, err = c.GetBucket(t.Context(), provider.BucketRef{Name: "never", Region: "rma", OwnerID: b.OwnerID})
	c.want(err, provider.ErrNotFound)
	spec := provider.AccessSpec{Account: "ba-1", Buckets: []provider.BucketAccess{{BucketRef: b.BucketRef}, {BucketRef: other.BucketRef}}}
	a, err := c.GrantAccess(t.Context(), spec)
	c.must(err)
	c.must(c.keyClient(a).PutObject(t.Context(), "lost", "key", nil))
	c.must(c.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1", Buckets: []provider.BucketRef{b.BucketRef}}))
	if err := c.keyClient(a).PutObject(t.Context(), "lost", "key", nil); err == nil {
		t.Error("an access to a bucket that is not recorded outlives its revocation")
	}

	c.must(c.DeleteBucket(t.Context(), other.BucketRef, provider.DeleteOptions{}))
	if names := bucketsOfTenant(c.tenantUser()); len(names) > 0 {
		t.Errorf("the last record is gone, and there are still %q", names)
	}
	var orphan provider.Resource
	for r, err := range c.Inventory(t.Context()) {
		c.must(err)
		if r.Kind == provider.KindOwner {
			orphan = r
		}
	}
	if orphan.ID != b.OwnerID || orphan.Bucket != "" {
		t.Errorf("the inventory tells %+v of a tenant without records", orphan)
	}
	c.want(c.Reclaim(t.Context(), orphan), provider.ErrPrecondition, "owns a bucket")

	var found []provider.Finding
	for f, err := range c.Audit(t.Context()) {
		c.must(err)
		found = append(found, f)
	}
	if len(found) != 1 || found[0].Drift != provider.DriftTags || found[0].ID != b.OwnerID || found[0].Bucket != "lost" || found[0].Region != "lpg" || !found[0].Repairable {
		t.Fatalf("the audit found %+v", found)
	}
	c.must(c.Repair(t.Context(), found[0]))
	c.must(c.Repair(t.Context(), found[0]))
	c.wantTenant("lost")
	for f, err := range c.Audit(t.Context()) {
		t.Errorf("after the repair the audit finds %+v, %v", f, err)
	}
	c.forget("lost")
	again, err := c.CreateBucket(t.Context(), ofTenant("lost", "lpg"))
	c.must(err)
	if again != b {
		t.Errorf("made again it is %+v, want %+v", again, b)
	}
	c.wantTenant("lost")
	c.forget("lost")
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{Purge: true}))
	c.wantLeft()
}

// A tag that names the wrong region is found and corrected for a tenant's bucket, too.
func TestRegionOfATenantsBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.make(ofTenant("bucket", "lpg"))
	u := c.tenantUser()
	u.tags[tagRegion+bucketSuffix("bucket")] = "rma"
	c.must(c.updateTags(t.Context(), u.id, u.tags))
	for f, err := range c.Audit(t.Context()) {
		c.must(err)
		if f.Drift != provider.DriftRegion || !f.Repairable {
			t.Errorf("found %+v", f)
		}
		c.must(c.Repair(t.Context(), f))
	}
	_, err := c.GetBucket(t.Context(), provider.BucketRef{Name: "bucket", Region: "lpg"})
	c.must(err)
}

// What gc removes is a tenant's owner that records nothing and owns nothing.
func TestReclaimOfATenant(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	b, _ := c.make(ofTenant("bucket", "rma"))
	idle := provider.Resource{Kind: provider.KindOwner, ID: b.OwnerID}
	c.want(c.Reclaim(t.Context(), idle), provider.ErrPrecondition, "bucket")
	own, _ := c.make(provider.BucketSpec{Name: "own", Region: "rma"})
	c.want(c.Reclaim(t.Context(), provider.Resource{Kind: provider.KindOwner, ID: own.OwnerID}), provider.ErrPermissionDenied)
	c.want(c.Reclaim(t.Context(), provider.Resource{Kind: provider.KindOwner, ID: b.OwnerID, Bucket: "bucket"}), provider.ErrPermissionDenied)
	at, err := c.Created(t.Context(), idle)
	c.must(err)
	made, err := c.Created(t.Context(), provider.Resource{Kind: provider.KindBucket, ID: "bucket", Bucket: "bucket", Region: "rma"})
	c.must(err)
	if !at.IsZero() || time.Since(made) > time.Hour {
		t.Errorf("the tenant is of %s, its bucket of %s", at, made)
	}
	c.must(c.clientOf(c.Provider, b).DeleteBucket(t.Context(), "bucket"))
	c.forget("bucket")
	for range 2 {
		c.must(c.Reclaim(t.Context(), idle))
	}
	c.must(c.DeleteBucket(t.Context(), own.BucketRef, provider.DeleteOptions{}))
	c.wantLeft()
}

// Two owners of one tenant, as two processes make them at the same time: a bucket
// that both record ends with the one that has it, and what each has stays.
func TestTwoOwnersOfATenant(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	holding := func(names ...string) user {
		tags := map[string]string{}
		for _, name := range names {
			more, err := record{bucket: name, region: "rma", tenant: "team-a"}.tags(testDriver)
			c.must(err)
			maps.Copy(tags, more)
		}
		u, err := c.createUser(t.Context(), "tenant", tags)
		c.must(err)
		return u
	}
	one, two := holding("both", "one"), holding("both", "two")
	ref := provider.BucketRef{Name: "both", Region: "rma"}
	_, err := c.GetBucket(t.Context(), ref)
	c.want(err, provider.ErrConflict, one.id, two.id)
	b, err := c.CreateBucket(t.Context(), ofTenant("both", "rma"))
	c.must(err)
	if want := min(one.id, two.id); b.OwnerID != want {
		t.Errorf("the owner is %s, want %s, the first of them", b.OwnerID, want)
	}
	for name, u := range map[string]user{"one": one, "two": two} {
		b, err := c.CreateBucket(t.Context(), ofTenant(name, "rma"))
		c.must(err)
		if b.OwnerID != u.id {
			t.Errorf("bucket %s was recorded with %s and made with %s", name, u.id, b.OwnerID)
		}
	}
	c.wantTenant("both", "one", "two")
	c.must(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{}))
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "two", Region: "rma"}, provider.DeleteOptions{}))
	if left := c.tenantUser(); left.id != one.id {
		t.Errorf("left is the owner %s, want %s", left.id, one.id)
	}
	c.must(c.DeleteBucket(t.Context(), provider.BucketRef{Name: "one", Region: "rma"}, provider.DeleteOptions{}))

	// Of several that record a bucket which nobody has, all forget it with the first.
	holding("both")
	holding("both")
	c.must(c.DeleteBucket(t.Context(), ref, provider.DeleteOptions{}))
	c.wantLeft()
}

// Processes that make and delete the buckets of one tenant, each at its own pace,
// where removed keys work on for a while and requests fail: what was made is there and
// usable, and no owner is left without a bucket.
func TestTenantStorm(t *testing.T) {
	late := map[string]emulator.Delay{"lpg": {Max: 30 * time.Millisecond}}
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		c := newCloud(t, emulator.Options{Seed: seed, KeyDelay: late})
		for _, operation := range []string{"ListObjectsUsers", "CreateObjectsUser", "UpdateObjectsUser", "CreateBucket", "DeleteObjectsUser", "GetObjectsUser", "DeleteBucket"} {
			c.Inject(emulator.Fault{Operation: operation, Probability: 0.4, Latency: 20 * time.Millisecond})
			c.Inject(emulator.Fault{Operation: operation, Probability: 0.03, Status: http.StatusServiceUnavailable})
		}
		var wg sync.WaitGroup
		var kept []string
		ids := make([]provider.Bucket, 8)
		for i := range ids {
			p := c.provider() // as another process
			name := fmt.Sprintf("bucket-%d", i)
			if i%2 == 0 {
				kept = append(kept, name)
			}
			wg.Go(func() {
				for round := range 3 {
					repeat(t, func(ctx context.Context) (err error) {
						ids[i], err = p.CreateBucket(ctx, ofTenant(name, "lpg"))
						return c.keep(err)
					})
					if i%2 == 0 && round == 2 {
						return
					}
					repeat(t, func(ctx context.Context) error {
						return c.keep(p.DeleteBucket(ctx, ids[i].BucketRef, provider.DeleteOptions{}))
					})
				}
			})
		}
		wg.Wait()
		// A record that was written over in the meantime is one that the audit restores.
		repeat(t, func(ctx context.Context) error {
			for f, err := range c.Audit(ctx) {
				if err == nil {
					err = c.Repair(ctx, f)
				}
				if c.keep(err) != nil {
					return err
				}
			}
			return nil
		})
		for i, b := range ids {
			repeat(t, func(ctx context.Context) error {
				_, err := c.GetBucket(ctx, b.BucketRef)
				if i%2 > 0 && errors.Is(err, provider.ErrNotFound) {
					return nil
				}
				return c.keep(err)
			})
		}
		for _, b := range c.cs.Buckets() {
			if !slices.Contains(kept, b.Name) {
				t.Errorf("seed %d: bucket %s is left", seed, b.Name)
			}
		}
		for i := range ids {
			repeat(t, func(ctx context.Context) error {
				return c.keep(c.DeleteBucket(ctx, ids[i].BucketRef, provider.DeleteOptions{}))
			})
		}
		c.cleanTenants(seed)
	}
}

// cleanTenants does what gc does with the owners of tenants that have nothing, and
// wants nothing left.
func (c *cloud) cleanTenants(seed uint64) {
	c.t.Helper()
	repeat(c.t, func(ctx context.Context) error {
		for r, err := range c.Inventory(ctx) {
			switch {
			case err != nil:
			case r.Kind == provider.KindOwner && r.Bucket == "":
				err = c.Reclaim(ctx, r)
			case r.Kind == provider.KindOwner:
				err = c.DeleteBucket(ctx, provider.BucketRef{Name: r.Bucket, Region: r.Region, OwnerID: r.ID}, provider.DeleteOptions{})
			}
			if c.keep(err) != nil {
				return err
			}
		}
		return nil
	})
	if u, b := c.cs.Users(), c.cs.Buckets(); len(u)+len(b) > 0 {
		c.t.Errorf("seed %d: left are %d objects users and %d buckets: %+v", seed, len(u), len(b), u)
	}
}

// TestTenantOfAnotherDriver: the owner that another driver of the project has for a
// tenant of the same name is left alone.
func TestTenantOfAnotherDriver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	other := c.provider(func(config *Config) { config.DriverName = "other.example" })
	theirs, err := other.CreateBucket(t.Context(), ofTenant("theirs", "rma"))
	c.must(err)
	before := c.cs.Users()
	ours, _ := c.make(ofTenant("ours", "rma"))
	if ours.OwnerID == theirs.OwnerID {
		t.Error("the bucket belongs to the other driver's user")
	}
	_, err = c.CreateBucket(t.Context(), ofTenant("theirs", "rma"))
	c.want(err, provider.ErrAlreadyExists, "theirs")
	for _, id := range []string{"", theirs.OwnerID} {
		ref := provider.BucketRef{Name: "theirs", Region: "rma", OwnerID: id}
		c.want(c.DeleteBucket(t.Context(), ref, purge), provider.ErrPermissionDenied, "theirs")
	}
	c.must(c.DeleteBucket(t.Context(), ours.BucketRef, purge))
	if now := c.cs.Users(); len(now) != 1 || !maps.Equal(now[0].Tags, before[0].Tags) {
		t.Errorf("the users are %+v, were %+v", now, before)
	}
}
