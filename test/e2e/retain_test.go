package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestRetain: with the deletion policy Retain the objects go, and so does every
// key, but the bucket stays with what is in it.
func TestRetain(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			claim := s.claim("archive", s.classWith("Retain", backend))
			access := s.access("archive", "archive", s.accessClass())
			client := s.bucketInfo(access).s3()
			if err := client.put(t.Context(), "precious", "data"); err != nil {
				t.Fatal(err)
			}
			bucket := s.bucket(claim)
			s.delete(access, claim)
			s.gone(bucket)
			s.keep(claim)
			if err := client.put(t.Context(), "late", "x"); !refused(err) {
				t.Errorf("the key of a deleted access may still write: %v", err)
			}
			left := leftInClouds(s.Emulator, claim.text("metadata", "uid"))
			if !slices.ContainsFunc(left, func(what string) bool {
				return strings.Contains(what, bucket.name()) && strings.Contains(what, "1 objects")
			}) {
				t.Errorf("left in the clouds: %q, want the bucket with its object", left)
			}
		})
	}
}
