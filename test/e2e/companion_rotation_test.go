package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The annotations of rotation.
const (
	rotateAt      = "zuber.dev/rotate-credentials-at"
	rotationGrace = "zuber.dev/rotation-grace"
)

// rotated waits until COSI's Secret has another key, and returns it.
func (s *story) rotated(access object, old bucketInfo) bucketInfo {
	s.Helper()
	var fresh bucketInfo
	s.within(long, func() error {
		if fresh = s.bucketInfo(access); fresh.Spec.SecretS3.AccessKeyID == old.Spec.SecretS3.AccessKeyID {
			return fmt.Errorf("%s has its old key; events: %s", access, strings.Join(s.events(access), "; "))
		}
		return nil
	})
	return fresh
}

// ended waits until a key opens nothing any more. It reads, because what it wrote
// meanwhile would stay.
func (s *story) ended(c bucketClient) {
	s.Helper()
	s.eventually(func() error {
		if _, err := c.read(s.Context(), "none"); !refused(err) {
			return fmt.Errorf("a replaced key: %w", errors.Join(err, errors.New("it is not refused")))
		}
		return nil
	})
}

// wantOneKey checks that the clouds know one key of an access.
func (s *story) wantOneKey(access object) {
	s.Helper()
	left := leftInClouds(s.Emulator, access.text("metadata", "uid"))
	if len(left) != 1 || strings.Contains(left[0], "credentials group") && !strings.Contains(left[0], "with 1 keys") {
		s.Errorf("%s has in the clouds: %q", access, left)
	}
}

// TestRotation: an annotation gives an access a new key, in COSI's Secret and in the
// env Secret. With a grace both work until it is over.
func TestRotation(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			s.claim("photos", s.class(backend))
			access := s.access("photos", "photos", s.accessClass())
			s.annotate(access, envSecret, "photos-env")
			first := s.bucketInfo(access)
			s.wantVariables("photos-env", variablesOf(t, first, first.Spec.BucketName))

			s.annotate(access, rotateAt, "monday")
			second := s.rotated(access, first)
			s.wantOnce(access, "CredentialsRotated")
			s.ended(first.s3())
			s.wantUsable(second.s3())
			s.wantVariables("photos-env", variablesOf(t, second, second.Spec.BucketName))
			s.wantOneKey(access)

			s.annotate(access, rotationGrace, "soon")
			s.annotate(access, rotateAt, "tuesday")
			s.event(access, `RotationRefused: zuber.dev/rotation-grace: "soon": want a duration`)
			s.annotate(access, rotationGrace, "1h")
			third := s.rotated(access, second)
			s.event(access, "goes on working for 1h0m0s")
			s.wantVariables("photos-env", variablesOf(t, third, third.Spec.BucketName))
			for _, info := range []bucketInfo{second, third} {
				s.wantUsable(info.s3())
			}
			s.annotate(access, rotationGrace, "")
			s.ended(second.s3())
			s.wantUsable(third.s3())
			s.eventually(func() error {
				events := s.events(access)
				if n := len(slices.DeleteFunc(events, func(e string) bool { return !strings.HasPrefix(e, "CredentialsRotated") })); n != 2 {
					return fmt.Errorf("told %d times", n)
				}
				return nil
			})
		})
	}
}

// TestRotateManyAcrossCrash: one command for all accesses with a label. The driver
// is killed when the first ones have their new key; all get one, once.
func TestRotateManyAcrossCrash(t *testing.T) {
	const each = 5
	s := alone(t)
	accessClass := s.accessClass()
	var accesses []object
	before := map[string]bucketInfo{}
	for _, backend := range []string{cloudscale, stackit} {
		s.claim(backend, s.class(backend))
		for i := range each {
			accesses = append(accesses, s.access(fmt.Sprintf("%s-%d", backend, i), backend, accessClass))
		}
	}
	for _, a := range accesses {
		s.patch(a, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "x"}}})
		before[a.name()] = s.bucketInfo(a)
	}
	s.kubectl("annotate", "bucketaccess", "--namespace", s.ns, "-l", "team=x", rotateAt+"=today")
	s.eventually(func() error {
		for _, a := range accesses {
			if slices.ContainsFunc(s.events(a), func(e string) bool { return strings.HasPrefix(e, "CredentialsRotated") }) {
				return nil
			}
		}
		return errors.New("nothing is rotated")
	})
	s.crash(s.Driver)
	for _, a := range accesses {
		fresh := s.rotated(a, before[a.name()])
		s.wantOnce(a, "CredentialsRotated")
		s.ended(before[a.name()].s3())
		s.wantUsable(fresh.s3())
		s.wantOneKey(a)
		if again := s.bucketInfo(a); again.Spec.SecretS3.AccessKeyID != fresh.Spec.SecretS3.AccessKeyID {
			t.Errorf("%s was rotated twice", a)
		}
	}
}
