package cloudscale

import (
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestAuditOfClusters: what carries another cluster's ID is neither told nor touched,
// also by who is handed a finding of that cluster's.
func TestAuditOfClusters(t *testing.T) {
	a := newAudited(t)
	kept, _ := a.make(ofTenant("kept", "rma"))
	a.make(ofTenant("lost", "rma"))
	a.forget("lost")
	for _, id := range []string{a.owner, kept.OwnerID, a.access[0].IdentityID, a.access[1].IdentityID} {
		a.retag(id, func(m map[string]string) { m[tagCluster] = "blue" })
	}
	a.retag(kept.OwnerID, func(m map[string]string) { m[tagRegion+bucketSuffix("kept")] = "lpg" })
	a.edit("bucket", func(string) string { return "" })
	in := func(cluster string) *Provider { return a.provider(func(c *Config) { c.ClusterID = cluster }) }
	audit := func(p *Provider) (found []provider.Finding) {
		for f, err := range p.Audit(t.Context()) {
			a.must(err)
			found = append(found, f)
		}
		return found
	}
	before := a.state()
	found := audit(in("blue"))
	if len(found) != 3 {
		t.Fatalf("its own cluster finds %+v, want 3", found)
	}
	for _, other := range []string{"green", ""} {
		p := in(other)
		if strange := audit(p); len(strange) > 0 {
			t.Errorf("cluster %q finds %+v", other, strange)
		}
		for _, f := range found {
			_ = a.keep(p.Repair(t.Context(), f)) // it may say whose it is
		}
		if after := a.state(); after != before {
			t.Fatalf("cluster %q made\n%s\nof\n%s", other, after, before)
		}
	}
	for _, f := range found {
		a.must(in("blue").Repair(t.Context(), f))
	}
	if left := audit(in("blue")); len(left) > 0 {
		t.Errorf("left are %+v", left)
	}
}
