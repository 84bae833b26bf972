package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// TestRoles does everything that the sidecar does for a user, and compares what
// it asked the API server for with what config/rbac allows it: neither is more.
func TestRoles(t *testing.T) {
	s := together(t)
	accessClass := s.accessClass()
	// Granted and revoked by hand, then deleted with the claim.
	claim := s.claim("photos", s.class(cloudscale))
	first, second := s.access("first", "photos", accessClass), s.access("second", "photos", accessClass)
	s.ready(first)
	s.ready(second)
	s.delete(first)
	s.delete(claim)
	s.gone(second)
	// A failure, reported and reported again.
	s.event(s.bucketOf(s.claim("nowhere", s.class(cloudscale, "region", "nowhere"))), "nowhere")
	// An existing bucket without parameters takes those of its class.
	existing := s.apply(manifest("Bucket", s.className("existing"), map[string]any{"spec": map[string]any{
		"driverName": driverName, "bucketClassName": s.class(cloudscale), "deletionPolicy": "Retain",
		"existingBucketID": "cloudscale/rma/no-such-bucket", "protocols": []string{"S3"}, "bucketClaim": map[string]any{},
	}}))[0]
	s.ready(existing)
	s.ready(s.apply(manifest("BucketClaim", "existing", map[string]any{"spec": map[string]any{
		"existingBucketName": existing.name(), "protocols": []string{"S3"},
	}}))[0])

	allowed := map[string]bool{}
	for _, path := range []string{"clusterroles/zuber", "namespaces/zuber-system/roles/zuber-leader-election"} {
		role, err := s.Get(t.Context(), "/apis/rbac.authorization.k8s.io/v1/"+path)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range object(role).list("rules") {
			for _, resource := range rule.at("resources").([]any) {
				for _, verb := range rule.at("verbs").([]any) {
					allowed[fmt.Sprint(verb, " ", resource)] = true
				}
			}
		}
	}
	s.eventually(func() error {
		requests, err := s.Requests(cluster.SidecarUser)
		if err != nil {
			return err
		}
		unused := maps.Clone(allowed)
		for r := range requests {
			what := r.Verb + " " + r.Resource
			if !allowed[what] {
				t.Fatalf("the sidecar asked for %q, which is not granted", what)
			}
			delete(unused, what)
		}
		if len(unused) > 0 {
			return fmt.Errorf("granted and not used: %q", slices.Sorted(maps.Keys(unused)))
		}
		return nil
	})
}
