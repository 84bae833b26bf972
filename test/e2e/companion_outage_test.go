package e2e

import (
	"errors"
	"strings"
	"testing"
)

// TestCompanionWithoutAPIServer: the API server is away for so long that the
// companion loses its Lease. The driver does not mind, and the companion goes on
// once the API server is back.
func TestCompanionWithoutAPIServer(t *testing.T) {
	s := alone(t)
	claim := s.claim("photos", s.class(cloudscale))
	access := s.access("photos", "photos", s.accessClass())
	s.annotate(access, envSecret, "photos-env")
	info := s.bucketInfo(access)
	want := variablesOf(t, info, info.Spec.BucketName)
	s.wantVariables("photos-env", want)

	before, pid := len(s.Driver.Log()), s.Driver.PID()
	s.APIServer.Kill()
	s.eventually(func() error {
		if !strings.Contains(s.Driver.Log()[before:], "leader election lost") {
			return errors.New("the companion still has its Lease")
		}
		return nil
	})
	if !s.Driver.Running() || s.Driver.PID() != pid {
		t.Fatal("the driver has ended with the API server")
	}
	s.wantUsable(info.s3())
	s.start(s.APIServer)
	s.deleteSoon(s.secretNamed("photos-env"))
	s.wantVariables("photos-env", want)
	s.ready(claim)
	if s.Driver.PID() != pid {
		t.Error("the driver was started again")
	}
}

// TestDriverStartsWithoutAPIServer: the driver serves although its companion
// finds no API server.
func TestDriverStartsWithoutAPIServer(t *testing.T) {
	s := alone(t)
	s.APIServer.Kill()
	s.restart(s.Driver) // ready is what the driver says of itself
	s.logged("the companion waits for the API server")
	s.start(s.APIServer)
	s.ready(s.claim("photos", s.class(stackit)))
}
