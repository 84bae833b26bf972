package e2e

import (
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// TestRestarts: whatever crashes or is restarted between two of a user's steps,
// the next step works, and in the end nothing is left.
func TestRestarts(t *testing.T) {
	s := alone(t)
	class, accessClass := s.class(cloudscale), s.accessClass()
	programs := []*cluster.Process{s.Driver, s.Sidecar, s.Controller, s.APIServer}
	for name, disturb := range map[string]func(*cluster.Process){"restarted": s.restart, "crashed": s.crash} {
		claim := s.claim(name, class)
		s.ready(claim)
		for _, p := range programs {
			disturb(p)
			access := s.access(name+"-"+p.Name, name, accessClass)
			client := s.bucketInfo(access).s3()
			s.wantUsable(client)
			disturb(p)
			s.delete(access)
			if err := client.put(t.Context(), "late", "x"); !refused(err) {
				t.Errorf("%s, %s: the key of a deleted access may still write: %v", p.Name, name, err)
			}
		}
		s.delete(claim)
	}
}
