package e2e

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// freed waits until accesses that were deleted are gone, with their Secrets. For
// those that upstream's sidecar has abandoned it does what docs/upstream.md says.
func (s *story) freed(accesses ...object) {
	s.Helper()
	for _, access := range accesses {
		names := []string{"NAMESPACE", s.ns, "ACCESS", access.name(), "SECRET", access.text("spec", "credentialsSecretName")}
		secret := s.secretPath(access)
		var since time.Time
		s.eventually(func() error {
			still := s.absent(s.Context(), access)
			if still == nil || !s.abandoned(access) {
				return still
			}
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) < grace {
				return still
			}
			s.Logf("upstream's sidecar has abandoned it: %v", still)
			return errors.Join(still, s.try(s.advice("patch bucketaccess", names...)...))
		})
		s.eventually(func() error {
			_, err := s.Get(s.Context(), secret)
			if missing(err) {
				return nil
			}
			return errors.Join(errors.New("there is still "+secret), err, s.try(s.advice("secret SECRET", names...)...))
		})
	}
}

// abandoned reports whether an access is in a state that the sidecar never ends:
// its claim is gone, or its Secret is.
func (s *story) abandoned(access object) bool {
	claim := strings.TrimSuffix(access.path(), "bucketaccesses/"+access.name()) + "bucketclaims/" + access.text("spec", "bucketClaimName")
	for _, path := range []string{claim, s.secretPath(access)} {
		if _, err := s.Get(s.Context(), path); missing(err) {
			return true
		}
	}
	return false
}

func (s *story) secretPath(access object) string {
	return "/api/v1/namespaces/" + access.text("metadata", "namespace") + "/secrets/" + access.text("spec", "credentialsSecretName")
}

// patch merges fields into an object. One that is gone stays so.
func (s *story) patch(o object, fields map[string]any) {
	s.Helper()
	if _, err := s.Send(s.Context(), http.MethodPatch, o.path(), fields); err != nil && !missing(err) {
		s.Fatal(err)
	}
}
