package cloudscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// audited is a cloud with two accesses to a bucket of the driver's, one of which also
// opens a person's bucket.
type audited struct {
	*cloud
	owner  string // ID
	access [2]provider.Access
}

const personPolicy = `{"Version":"2012-10-17", "Statement": [ {"Sid":"mine","Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::theirs/public/*"} ]}`

func newAudited(t *testing.T) *audited {
	t.Helper()
	a := &audited{cloud: newCloud(t, emulator.Options{})}
	a.trust(a.Provider)
	person, _ := a.person("theirs", "lpg")
	a.must(person.SetPolicy(t.Context(), "theirs", personPolicy))
	b, _ := a.make(provider.BucketSpec{Name: "bucket", Region: "lpg"})
	a.owner = b.OwnerID
	for n, mode := range []provider.Mode{provider.ReadWrite, provider.ReadOnly} {
		spec := accessOf(fmt.Sprintf("ba-%d", n+1), b, mode)
		if n == 1 {
			spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: provider.BucketRef{Name: "theirs", Region: "lpg", AccessOnly: true}, Mode: provider.ReadOnly})
		}
		var err error
		a.access[n], err = a.GrantAccess(t.Context(), spec)
		a.must(err)
	}
	return a
}

// state is everything that the cloud has, byte for byte.
func (a *audited) state() string {
	a.t.Helper()
	var all strings.Builder
	for _, u := range a.cs.Users() {
		fmt.Fprintln(&all, u.ID, u.DisplayName, u.Tags)
	}
	for _, b := range a.cs.Buckets() {
		s, err := a.cs.BucketSettings(b.Name)
		a.must(err)
		fmt.Fprintf(&all, "%s %+v\n", b.Name, s)
	}
	return all.String()
}

func (a *audited) tags(id string) map[string]string {
	for _, u := range a.cs.Users() {
		if u.ID == id {
			return u.Tags
		}
	}
	a.t.Fatalf("there is no user %s", id)
	return nil
}

// retag changes the tags of a user behind the driver's back.
func (a *audited) retag(id string, change func(map[string]string)) {
	a.t.Helper()
	tags := a.tags(id)
	change(tags)
	a.cs.SetUserTags(id, tags)
}

// edit changes the policy of a bucket behind the driver's back.
func (a *audited) edit(bucket string, change func(string) string) {
	a.t.Helper()
	s, err := a.cs.BucketSettings(bucket)
	a.must(err)
	edited := change(s.Policy)
	if edited == s.Policy {
		a.t.Fatalf("the edit changed nothing of %s", s.Policy)
	}
	s.Policy = edited
	a.must(a.cs.SetBucketSettings(bucket, s))
}

// find returns the findings of a new process.
func (a *audited) find() []provider.Finding {
	a.t.Helper()
	var all []provider.Finding
	for f, err := range a.provider().Audit(a.t.Context()) {
		a.must(err)
		all = append(all, f)
	}
	return all
}

func drifts(findings []provider.Finding) []provider.Drift {
	var all []provider.Drift
	for _, f := range findings {
		all = append(all, f.Drift)
	}
	slices.Sort(all)
	return all
}

func without(old string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, "", 1) }
}

// TestAuditRepairs: each kind of drift is found and named, and after its repair the
// cloud is what it was, byte for byte; what is not the driver's included.
func TestAuditRepairs(t *testing.T) {
	key := bucketKey("bucket")
	for name, tc := range map[string]struct {
		disturb func(a *audited)
		want    []provider.Drift
	}{
		"the policy is gone": {func(a *audited) { a.edit("bucket", func(string) string { return "" }) }, []provider.Drift{provider.DriftPolicy}},
		"the policy allows more": {func(a *audited) {
			a.edit("bucket", func(s string) string { return strings.Replace(s, "s3:GetObjectTagging", "s3:PutObject", 1) })
		}, []provider.Drift{provider.DriftPolicy}},
		"the policy is written anew": {func(a *audited) {
			a.edit("bucket", func(string) string { return strings.ReplaceAll(personPolicy, "theirs", "bucket") })
		}, []provider.Drift{provider.DriftAdmin}},
		"the owner's statement is cut": {func(a *audited) { a.edit("bucket", without(a.ownerText()+",")) }, []provider.Drift{provider.DriftAdmin}},
		"public ACLs count": {func(a *audited) {
			s, err := a.cs.BucketSettings("bucket")
			a.must(err)
			s.PublicAccessBlock = ""
			a.must(a.cs.SetBucketSettings("bucket", s))
		}, []provider.Drift{provider.DriftPublicAccess}},
		"the block breaks uploads": {func(a *audited) {
			s, err := a.cs.BucketSettings("bucket")
			a.must(err)
			s.PublicAccessBlock = strings.Replace(s.PublicAccessBlock, "<BlockPublicAcls>false", "<BlockPublicAcls>true", 1)
			a.must(a.cs.SetBucketSettings("bucket", s))
		}, []provider.Drift{provider.DriftPublicAccess}},
		"the owner's region is wrong": {func(a *audited) { a.retag(a.owner, func(m map[string]string) { m[tagRegion] = "rma" }) }, []provider.Drift{provider.DriftRegion}},
		"the owner's region is lost":  {func(a *audited) { a.retag(a.owner, func(m map[string]string) { delete(m, tagRegion) }) }, []provider.Drift{provider.DriftRegion}},
		"an access's region is wrong": {func(a *audited) {
			a.retag(a.access[0].IdentityID, func(m map[string]string) { m[tagTerms+key] = strings.Replace(m[tagTerms+key], ".lpg.", ".rma.", 1) })
		}, []provider.Drift{provider.DriftRegion}},
		"the terms are lost": {func(a *audited) {
			a.retag(a.access[1].IdentityID, func(m map[string]string) { delete(m, tagTerms+key) })
		}, []provider.Drift{provider.DriftTags}},
		"the terms are wrong": {func(a *audited) {
			a.retag(a.access[0].IdentityID, func(m map[string]string) { m[tagTerms+key] = "all" })
		}, []provider.Drift{provider.DriftTags}},
		"the name is lost": {func(a *audited) {
			a.retag(a.access[0].IdentityID, func(m map[string]string) { delete(m, tagMember+key) })
		}, []provider.Drift{provider.DriftTags}},
		"two accesses lose all": {func(a *audited) {
			for _, access := range a.access {
				a.retag(access.IdentityID, func(m map[string]string) { delete(m, tagMember+key); delete(m, tagTerms+key) })
			}
		}, []provider.Drift{provider.DriftTags, provider.DriftTags}},
		"our statements in a person's policy": {func(a *audited) {
			a.edit("theirs", func(s string) string { return strings.Replace(s, `"s3:GetObjectVersion"`, `"s3:DeleteObject"`, 1) })
		}, []provider.Drift{provider.DriftPolicy}},
		"our statements are cut": {func(a *audited) { a.edit("theirs", func(string) string { return personPolicy }) }, []provider.Drift{provider.DriftPolicy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAudited(t)
			if found := a.find(); len(found) > 0 {
				t.Fatalf("undisturbed: %+v", found)
			}
			before := a.state()
			tc.disturb(a)
			disturbed := a.state()
			if disturbed == before {
				t.Fatal("nothing was disturbed")
			}
			found := a.find()
			if got := drifts(found); !slices.Equal(got, tc.want) || a.state() != disturbed {
				t.Fatalf("found %+v, want %q, and nothing changed", found, tc.want)
			}
			for _, f := range found {
				if !f.Repairable || f.Problem == "" || f.Remedy == "" || f.Bucket == "" {
					t.Errorf("%+v", f)
				}
				a.must(a.provider().Repair(t.Context(), f))
			}
			if after := a.state(); after != before {
				t.Errorf("repaired to\n%s\nwant\n%s", after, before)
			}
			for _, f := range found {
				a.must(a.provider().Repair(t.Context(), f))
			}
			if found := a.find(); len(found) > 0 || a.state() != before {
				t.Errorf("after the repair: %+v", found)
			}
		})
	}
}

// ownerText is the text of the owner's statement.
func (a *audited) ownerText() string {
	o, err := a.theOwner(a.t.Context(), "bucket")
	a.must(err)
	_, err = a.locate(a.t.Context(), &o)
	a.must(err)
	return ownerStatement(o)
}

// TestAuditMissingUser: what the policy says of a user that is gone goes.
func TestAuditMissingUser(t *testing.T) {
	a := newAudited(t)
	a.must(a.deleteUser(t.Context(), a.access[0].IdentityID))
	found := a.find()
	if len(found) != 1 || found[0].Drift != provider.DriftMissingUser || found[0].ID != a.access[0].IdentityID {
		t.Fatalf("%+v", found)
	}
	a.must(a.provider().Repair(t.Context(), found[0]))
	s, err := a.cs.BucketSettings("bucket")
	a.must(err)
	if found := a.find(); len(found) > 0 || strings.Contains(s.Policy, a.access[0].IdentityID) || !strings.Contains(s.Policy, a.access[1].IdentityID) {
		t.Errorf("%+v, policy %s", found, s.Policy)
	}
	_, err = a.keyClient(a.access[1]).ListObjects(t.Context(), "bucket", "")
	a.must(err)
}

// TestAuditLeavesAlone: what the driver cannot put right, and what lacks its mark, is
// told and not touched.
func TestAuditLeavesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(a *audited)
		want    provider.Drift
	}{
		"a user has lost the mark": {func(a *audited) {
			a.retag(a.access[0].IdentityID, func(m map[string]string) { delete(m, tagManagedBy) })
		}, provider.DriftTags},
		"the owner is locked out": {func(a *audited) {
			a.edit("bucket", func(s string) string { return strings.Replace(s, `"Effect":"Allow"`, `"Effect":"Deny"`, 1) })
		}, provider.DriftAdmin},
		"two owners": {func(a *audited) {
			_, err := a.createUser(t.Context(), "second", maps.Clone(a.tags(a.owner)))
			a.must(err)
		}, provider.DriftTags},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t)
			tc.disturb(a)
			before := a.state()
			found := a.find()
			if len(found) != 1 || found[0].Drift != tc.want || found[0].Repairable {
				t.Fatalf("%+v", found)
			}
			a.want(a.provider().Repair(t.Context(), found[0]), provider.ErrUnsupported)
			if after := a.state(); after != before {
				t.Errorf("the repair made\n%s\nof\n%s", after, before)
			}
		})
	}
}

// TestAuditOfRevoked: what a policy goes on denying to a user that was revoked and is
// gone is no drift, and does not hide what is.
func TestAuditOfRevoked(t *testing.T) {
	a := newAudited(t)
	a.must(a.RevokeAccess(t.Context(), provider.AccountRef{Account: "ba-1", IdentityID: a.access[0].IdentityID, Buckets: []provider.BucketRef{a.access[0].Buckets[0].BucketRef}}))
	s, err := a.cs.BucketSettings("bucket")
	a.must(err)
	if found := a.find(); len(found) > 0 || !strings.Contains(s.Policy, a.access[0].IdentityID) {
		t.Fatalf("%+v, policy %s", found, s.Policy)
	}
	a.edit("bucket", without(`,"s3:GetObjectTagging"`))
	if found := a.find(); len(found) != 1 || found[0].Drift != provider.DriftPolicy {
		t.Fatalf("%+v", found)
	}
}
