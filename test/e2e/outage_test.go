package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// TestOutage: the clouds fail while users make and delete. Users are told, and
// everything is made up for once the clouds are back.
func TestOutage(t *testing.T) {
	s := alone(t)
	for _, backend := range []string{cloudscale, stackit} {
		class, accessClass := s.class(backend), s.accessClass()
		old := s.claim(backend+"-old", class)
		leaving := s.access(backend+"-leaving", old.name(), accessClass)
		client := s.bucketInfo(leaving).s3()
		s.ready(old)

		end := s.Emulator.Inject(emulator.Fault{Cloud: backend, Status: http.StatusServiceUnavailable, Body: "maintenance"})
		made := s.claim(backend+"-made", class)
		joining := s.access(backend+"-joining", old.name(), accessClass)
		s.failed(s.bucketOf(made), "FailedCreateBucket")
		s.failed(joining, "FailedGrantAccess")
		s.deleteSoon(leaving)
		s.failed(leaving, "FailedRevokeAccess")
		end()

		s.gone(leaving)
		if err := client.put(t.Context(), "late", "x"); !refused(err) {
			t.Errorf("the key of a deleted access may still write: %v", err)
		}
		s.wantUsable(s.bucketInfo(joining).s3())
		s.ready(made)
	}
}

// failed waits for an event with a reason that tells of the cloud's answer.
func (s *story) failed(o object, reason string) {
	s.Helper()
	s.eventually(func() error {
		all := s.events(o)
		for _, text := range all {
			if strings.HasPrefix(text, reason+": ") && strings.Contains(text, "503") {
				return nil
			}
		}
		return fmt.Errorf("%s has no event %s with the cloud's 503; it has: %q", o, reason, all)
	})
}
