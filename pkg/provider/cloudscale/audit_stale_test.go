package cloudscale

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// repairAfter repairs the only fault of the bucket after something has happened since
// it was found.
func (c *cloud) repairAfter(bucket string, meanwhile func()) {
	c.t.Helper()
	found := 0
	_, err := c.inspect(c.t.Context(), provider.BucketRef{Name: bucket, Region: "lpg"}, func(f fault) error {
		found++
		meanwhile()
		return f.fix(c.t.Context())
	})
	c.must(err)
	if found != 1 {
		c.t.Errorf("bucket %q has %d faults, want 1", bucket, found)
	}
}

// A repair of a tenant's record leaves those that others wrote since the fault was found.
func TestRepairOfRegionKeepsOtherRecords(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.make(ofTenant("first", "lpg"))
	u := c.tenantUser()
	u.tags[tagRegion+bucketSuffix("first")] = "rma"
	c.cs.SetUserTags(u.id, u.tags)
	c.repairAfter("first", func() { c.make(ofTenant("second", "lpg")) })
	c.wantTenant("first", "second")
	if region := c.tenantUser().tags[tagRegion+bucketSuffix("first")]; region != "lpg" {
		t.Errorf("the tag says region %q after the repair", region)
	}
}

// A repair gives no bucket back to an owner that has forgotten it, or lost the mark,
// since the fault was found.
func TestRepairOfRegionOfAFormerOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   provider.BucketSpec
		suffix string
		change func(*cloud, user)
	}{
		"a tenant forgets it": {ofTenant("first", "lpg"), bucketSuffix("first"), func(c *cloud, u user) {
			c.cs.SetUserTags(u.id, withoutBucket(u.tags, "first"))
		}},
		"the mark goes": {provider.BucketSpec{Name: "first", Region: "lpg"}, "", func(c *cloud, u user) {
			tags := maps.Clone(u.tags)
			delete(tags, tagManagedBy)
			c.cs.SetUserTags(u.id, tags)
		}},
		"it goes": {provider.BucketSpec{Name: "first", Region: "lpg"}, "", func(c *cloud, u user) {
			client := c.clientOf(c.Provider, provider.Bucket{BucketRef: provider.BucketRef{OwnerID: u.id}, Endpoint: c.cs.Endpoints["lpg"]})
			c.must(client.DeleteBucket(c.t.Context(), "first"))
			c.must(c.deleteUser(c.t.Context(), u.id))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			b, _ := c.make(tc.spec)
			u, err := c.getUser(t.Context(), b.OwnerID)
			c.must(err)
			u.tags[tagRegion+tc.suffix] = "rma"
			c.cs.SetUserTags(u.id, u.tags)
			var left []emulator.User
			c.repairAfter("first", func() {
				tc.change(c, u)
				left = c.cs.Users()
			})
			if after := c.cs.Users(); len(after) != len(left) || len(left) > 0 && !maps.Equal(after[0].Tags, left[0].Tags) {
				t.Errorf("the repair made %+v of %+v", after, left)
			}
		})
	}
}

// A repair of an access's tags leaves what a grant or a revocation has written since
// the fault was found.
func TestRepairOfAccessKeepsANewerRecord(t *testing.T) {
	key := bucketKey("bucket")
	for name, tc := range map[string]struct {
		disturb, meanwhile func(map[string]string, string)
	}{
		"lost": {
			func(m map[string]string, _ string) { delete(m, tagTerms+key) },
			func(m map[string]string, terms string) { m[tagTerms+key] = strings.TrimSuffix(terms, ".in") + ".out" },
		},
		"in another region": {
			func(m map[string]string, terms string) { m[tagTerms+key] = strings.Replace(terms, ".lpg.", ".rma.", 1) },
			func(m map[string]string, _ string) { delete(m, tagTerms+key); delete(m, tagMember+key) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t)
			id := a.access[0].IdentityID
			terms := a.tags(id)[tagTerms+key]
			a.retag(id, func(m map[string]string) { tc.disturb(m, terms) })
			var left map[string]string
			a.repairAfter("bucket", func() {
				a.retag(id, func(m map[string]string) { tc.meanwhile(m, terms) })
				left = maps.Clone(a.tags(id))
			})
			if after := a.tags(id); !maps.Equal(after, left) {
				t.Errorf("the repair made %v of %v", after, left)
			}
		})
	}
}

// An access that goes while it is repaired is no failure.
func TestRepairOfAnAccessThatGoes(t *testing.T) {
	a := newAudited(t)
	id := a.access[0].IdentityID
	a.retag(id, func(m map[string]string) { delete(m, tagTerms+bucketKey("bucket")) })
	a.repairAfter("bucket", func() { a.must(a.deleteUser(context.WithoutCancel(t.Context()), id)) })
}
