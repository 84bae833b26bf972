package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// companionEvents counts the companion's events about an object by their reason.
func (s *story) companionEvents(o object) (map[string]int, error) {
	got, err := s.Get(s.Context(), "/api/v1/namespaces/"+s.ns+"/events?fieldSelector=involvedObject.uid="+o.text("metadata", "uid"))
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	for _, e := range object(got).list("items") {
		if e.text("source", "component") == "zuber-companion" {
			all[e.text("reason")]++
		}
	}
	return all, nil
}

// wantOnce expects one event with that reason, which has not been repeated.
func (s *story) wantOnce(o object, reason string) {
	s.Helper()
	s.eventually(func() error {
		all, err := s.companionEvents(o)
		if err == nil && all[reason] != 1 {
			err = fmt.Errorf("%s has the companion's events %v, want %s once", o, all, reason)
		}
		return err
	})
}

// TestClaimEvents: what the driver says about a bucket stands with its claim, and
// a success once, also across restarts.
func TestClaimEvents(t *testing.T) {
	s := alone(t)
	class, accessClass := s.class(cloudscale), s.accessClass()
	end := s.Emulator.Inject(emulator.Fault{Cloud: cloudscale, Status: http.StatusServiceUnavailable, Body: "maintenance"})
	claim := s.claim("photos", class)
	s.failed(claim, "FailedCreateBucket")
	wrong := s.claim("nowhere", s.class(cloudscale, "region", "nowhere"))
	s.event(wrong, `FailedCreateBucket: `)
	end()
	access := s.access("photos", "photos", accessClass)
	s.ready(access)
	for _, restart := range []bool{false, true} {
		if restart {
			s.crash(s.Driver)
			s.annotate(access, envSecret, "photos-env") // done by the new process
			s.wantVariables("photos-env", variablesOf(t, s.bucketInfo(access), s.bucket(claim).name()))
		}
		s.wantOnce(claim, "Provisioned")
		s.wantOnce(access, "AccessGranted")
	}
	// Upstream's events about the same failure are one, and so are the claim's.
	bucket := s.bucketOf(wrong)
	s.eventually(func() error {
		theirs, ours := s.events(bucket), s.events(wrong)
		for _, text := range ours {
			if strings.HasPrefix(text, "FailedCreateBucket: ") && !contains(theirs, text) {
				return fmt.Errorf("%q is not an event of %s", text, bucket)
			}
		}
		if len(ours) == 0 || len(ours) > len(theirs) {
			return errors.New(strings.Join(ours, "; "))
		}
		return nil
	})
}

func contains(all []string, text string) bool {
	for _, one := range all {
		if one == text {
			return true
		}
	}
	return false
}
