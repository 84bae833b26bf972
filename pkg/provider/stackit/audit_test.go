package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// COSI's names end in a UID.
const (
	auditedBucket = "bucket-6a1e3b5c-9d2f-4e7a-8b1c-000000000009"
	personsBucket = "theirs"
	personsPolicy = `{"Statement":[ {"Sid":"mine","Effect":"Deny","Principal":"*","Action":"s3:PutObject","Resource":"arn:aws:s3:::theirs/public/*"} ]}`
)

// audited is a cloud with two accesses to a bucket of the driver's, and one to a
// bucket of somebody else.
type audited struct {
	*cloud
	*testing.T
	access [3]provider.Access
}

func newAudited(t *testing.T) *audited {
	t.Helper()
	a := &audited{cloud: newCloud(t, emulator.Options{}), T: t}
	p := a.process()
	mustCreate(t, p, auditedBucket)
	a.must(p.createBucket(t.Context(), refOf(personsBucket)))
	a.admin(t, p, func(c *s3.Client) error { return c.SetPolicy(t.Context(), personsBucket, personsPolicy) })
	for n, mode := range []provider.Mode{provider.ReadWrite, provider.ReadOnly} {
		a.access[n] = mustGrant(t, p, fmt.Sprintf("ba-6a1e3b5c-9d2f-4e7a-8b1c-%012d", n), auditedBucket, mode)
	}
	spec := accessTo("ba-6a1e3b5c-9d2f-4e7a-8b1c-000000000002", personsBucket, provider.ReadOnly)
	spec.Buckets[0].AccessOnly = true
	var err error
	a.access[2], err = p.GrantAccess(t.Context(), spec)
	a.must(err)
	return a
}

func (a *audited) process() *Provider { return a.provider(a.T) }

func (a *audited) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// state is everything that the cloud has, byte for byte, but for the admin's keys,
// of which each process makes one.
func (a *audited) state() string {
	a.Helper()
	var all strings.Builder
	for _, g := range a.Groups() {
		if g.DisplayName == adminName(a.driver) {
			g.Keys = 0
		}
		fmt.Fprintf(&all, "%+v\n", g)
	}
	for _, name := range []string{auditedBucket, personsBucket} {
		s, err := a.BucketSettings(testRegion, name)
		a.must(err)
		fmt.Fprintf(&all, "%s %+v\n", name, s)
	}
	return all.String()
}

// edit changes the policy or the tags of a bucket behind the driver's back.
func (a *audited) edit(bucket string, policy, tags func(string) string) {
	a.Helper()
	s, err := a.BucketSettings(testRegion, bucket)
	a.must(err)
	before := s
	if policy != nil {
		s.Policy = policy(s.Policy)
	}
	if tags != nil {
		s.Tagging = tags(s.Tagging)
	}
	if s == before {
		a.Fatalf("the edit changed nothing of %+v", s)
	}
	a.must(a.SetBucketSettings(testRegion, bucket, s))
}

func (a *audited) find() []provider.Finding {
	a.Helper()
	var all []provider.Finding
	for f, err := range a.process().Audit(a.Context()) {
		a.must(err)
		all = append(all, f)
	}
	return all
}

// untag takes a tag out of a document of tags.
func untag(key string) func(string) string {
	return func(doc string) string {
		for part := range strings.SplitSeq(doc, "<Tag>") {
			if strings.Contains(part, "<Key>"+key) {
				part, _, _ = strings.Cut(part, "</Tag>")
				return strings.Replace(doc, "<Tag>"+part+"</Tag>", "", 1)
			}
		}
		return doc
	}
}

func replaced(old, by string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, by, 1) }
}

func written(text string) func(string) string { return func(string) string { return text } }

// TestAuditRepairs: each kind of drift is found and named, and after its repair the
// cloud is what it was, byte for byte; what is not the driver's included.
func TestAuditRepairs(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(a *audited)
		want    []provider.Drift
	}{
		"the policy is gone":     {func(a *audited) { a.edit(auditedBucket, written(""), nil) }, []provider.Drift{provider.DriftPolicy}},
		"the policy allows more": {func(a *audited) { a.edit(auditedBucket, replaced(`"s3:GetObject"`, `"s3:DeleteObject"`), nil) }, []provider.Drift{provider.DriftPolicy}},
		"the policy is written anew": {func(a *audited) {
			a.edit(auditedBucket, written(strings.ReplaceAll(personsPolicy, "theirs", auditedBucket)), nil)
		}, []provider.Drift{provider.DriftAdmin}},
		"the admin is not exempt": {func(a *audited) {
			a.edit(auditedBucket, func(s string) string {
				s = strings.Replace(s, `"`+a.adminURN()+`"`, `"`+a.group(0).URN+`"`, 1)
				return strings.Replace(s, `"Action":"s3:*"`, `"Action":"s3:GetObject"`, 1)
			}, nil)
		}, []provider.Drift{provider.DriftAdmin}},
		"the ledger is lost": {func(a *audited) { a.edit(auditedBucket, nil, untag(tagAccess)) }, []provider.Drift{provider.DriftTags, provider.DriftTags}},
		"a URN is wrong": {func(a *audited) {
			a.edit(auditedBucket, nil, func(s string) string {
				short := strings.TrimPrefix(a.group(0).URN, stem(a.adminURN()))
				return strings.Replace(s, ":"+short, ":wrong", 1)
			})
		}, []provider.Drift{provider.DriftPolicy, provider.DriftTags}},
		"our statements in their policy": {func(a *audited) { a.edit(personsBucket, replaced(`"s3:GetObject"`, `"s3:DeleteObject"`), nil) }, []provider.Drift{provider.DriftPolicy}},
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
			found := a.find()
			var got []provider.Drift
			for _, f := range found {
				got = append(got, f.Drift)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) || a.state() != disturbed {
				t.Fatalf("found %+v, want %q, and nothing changed", found, tc.want)
			}
			for range 2 {
				for _, f := range found {
					if !f.Repairable || f.Problem == "" || f.Remedy == "" || f.Bucket == "" {
						t.Errorf("%+v", f)
					}
					a.must(a.process().Repair(t.Context(), f))
				}
				if after := a.state(); after != before {
					t.Errorf("repaired to\n%s\nwant\n%s", after, before)
				}
			}
			if found := a.find(); len(found) > 0 || a.state() != before {
				t.Errorf("after the repair: %+v", found)
			}
		})
	}
}

// group is the credentials group of the n-th access.
func (a *audited) group(n int) emulator.Group {
	a.Helper()
	for _, g := range a.groups() {
		if g.DisplayName == groupName(fmt.Sprintf("ba-6a1e3b5c-9d2f-4e7a-8b1c-%012d", n)) {
			return g
		}
	}
	a.Fatalf("access %d has no group", n)
	return emulator.Group{}
}

func (a *audited) adminURN() string {
	for _, g := range a.Groups() {
		if g.DisplayName == adminName(a.driver) {
			return g.URN
		}
	}
	a.Fatal("there is no admin group")
	return ""
}

// TestAuditMissingUser: an access whose group is gone ends, in every kind of bucket,
// and the others go on.
func TestAuditMissingUser(t *testing.T) {
	for n, bucket := range map[int]string{0: auditedBucket, 2: personsBucket} {
		t.Run(bucket, func(t *testing.T) {
			a := newAudited(t)
			id := a.group(n).ID
			a.must(a.process().removeGroup(t.Context(), testRegion, id))
			found := a.find()
			if len(found) != 1 || found[0].Drift != provider.DriftMissingUser || found[0].ID != id || found[0].Bucket != bucket {
				t.Fatalf("%+v", found)
			}
			a.must(a.process().Repair(t.Context(), found[0]))
			s, err := a.BucketSettings(testRegion, bucket)
			a.must(err)
			if found := a.find(); len(found) > 0 || bucket == personsBucket && s.Policy != personsPolicy || strings.Contains(s.Policy, id) {
				t.Errorf("%+v, policy %s", found, s.Policy)
			}
			if _, err := a.s3As(t, a.access[1].Credentials).ListObjects(t.Context(), auditedBucket, ""); err != nil {
				t.Errorf("the other access: %v", err)
			}
		})
	}
}

// TestAuditLeavesAlone: what the driver cannot put right, and what lacks its mark, is
// told and not touched.
func TestAuditLeavesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(a *audited)
		want    provider.Drift
	}{
		"the mark is lost": {func(a *audited) { a.edit(auditedBucket, nil, written("")) }, provider.DriftTags},
		"a tag of the ledger is garbled": {func(a *audited) {
			a.edit(auditedBucket, nil, replaced("<Key>"+tagAccess+"00</Key><Value>RW", "<Key>"+tagAccess+"00</Key><Value>XX"))
		}, provider.DriftTags},
		"the admin is locked out": {func(a *audited) {
			a.edit(auditedBucket, replaced(`"`+a.adminURN()+`"`, `"`+a.group(0).URN+`"`), nil)
		}, provider.DriftAdmin},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t)
			tc.disturb(a)
			before := a.state()
			found := a.find()
			if len(found) != 1 || found[0].Drift != tc.want || found[0].Repairable {
				t.Fatalf("%+v", found)
			}
			if err := a.process().Repair(t.Context(), found[0]); !errors.Is(err, provider.ErrUnsupported) {
				t.Errorf("repair: %v", err)
			}
			if after := a.state(); after != before {
				t.Errorf("the repair made\n%s\nof\n%s", after, before)
			}
		})
	}
}

// TestAuditEnds: it makes no call when its context has ended.
func TestAuditEnds(t *testing.T) {
	a := newAudited(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.emu.ResetCalls()
	for _, err := range a.process().Audit(ended) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if calls := a.emu.Calls(); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
}

// TestAuditOfClusters: what carries another cluster's ID is neither told nor touched,
// also by who is handed a finding of that cluster's.
func TestAuditOfClusters(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	in := func(cluster string) *Provider {
		return c.provider(t, func(config *Config) { config.ClusterID = cluster })
	}
	blue := in("blue")
	mustCreate(t, blue, auditedBucket)
	mustGrant(t, blue, testAccount, auditedBucket, provider.ReadOnly)
	policy := func() (text string) {
		c.admin(t, blue, func(client *s3.Client) (err error) {
			text, err = client.Policy(t.Context(), auditedBucket)
			return err
		})
		return text
	}
	good := policy()
	drifted := strings.Replace(good, `"s3:GetObject"`, `"s3:PutObject"`, 1)
	if drifted == good {
		t.Fatalf("nothing drifts in %s", good)
	}
	c.admin(t, blue, func(client *s3.Client) error { return client.SetPolicy(t.Context(), auditedBucket, drifted) })
	audit := func(p *Provider) (found []provider.Finding) {
		for f, err := range p.Audit(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, f)
		}
		return found
	}
	found := audit(in("blue"))
	if len(found) != 1 || found[0].Drift != provider.DriftPolicy {
		t.Fatalf("its own cluster finds %+v", found)
	}
	for _, other := range []string{"green", ""} {
		p := in(other)
		if strange := audit(p); len(strange) > 0 {
			t.Errorf("cluster %q finds %+v", other, strange)
		}
		_ = p.Repair(t.Context(), found[0]) // it may say whose it is
		if policy() != drifted {
			t.Errorf("cluster %q has repaired it", other)
		}
	}
	if err := in("blue").Repair(t.Context(), found[0]); err != nil || policy() != good {
		t.Errorf("%v, %s", err, policy())
	}
}
