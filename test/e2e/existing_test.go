package e2e

import (
	"slices"
	"strings"
	"testing"
)

// bring makes an existing bucket of a Bucket that is gone, with the deletion
// policy given, and a claim for it.
func (s *story) bring(kept object, class, policy, claimName string) (claim, bucket object) {
	s.Helper()
	made := s.apply(
		manifest("Bucket", kept.name(), map[string]any{"spec": map[string]any{
			"driverName": driverName, "bucketClassName": class, "deletionPolicy": policy,
			"existingBucketID": kept.text("status", "bucketID"), "protocols": []string{"S3"}, "bucketClaim": map[string]any{},
		}}),
		manifest("BucketClaim", claimName, map[string]any{"spec": map[string]any{
			"existingBucketName": kept.name(), "protocols": []string{"S3"},
		}}),
	)
	return made[1], made[0]
}

// TestExisting: a bucket that Retain has kept is brought back as an existing
// bucket, with what is in it. With the policy Delete it goes with its new claim.
func TestExisting(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			class, accessClass := s.classWith("Retain", backend), s.accessClass()
			first := s.claim("archive", class)
			access := s.access("archive", "archive", accessClass)
			client := s.bucketInfo(access).s3()
			if err := client.put(t.Context(), "precious", "data"); err != nil {
				t.Fatal(err)
			}
			kept := s.bucket(first)
			s.delete(access, first)
			s.gone(kept)

			for _, policy := range []string{"Retain", "Delete"} {
				if left := leftInClouds(s.Emulator, first.text("metadata", "uid")); !slices.ContainsFunc(left, func(what string) bool {
					return strings.Contains(what, kept.name()) && strings.Contains(what, "1 objects")
				}) {
					t.Fatalf("left in the clouds: %q, want the bucket with its object", left)
				}
				claim, bucket := s.bring(kept, class, policy, "again")
				access := s.access("again", "again", accessClass)
				client = s.bucketInfo(access).s3()
				if content, err := client.read(t.Context(), "precious"); err != nil || content != "data" {
					t.Fatalf("the data of the bucket that was kept: %q, %v", content, err)
				}
				if policy == "Delete" {
					s.wantUsable(client)
					if err := client.remove(t.Context(), "precious"); err != nil {
						t.Fatal(err)
					}
				}
				s.delete(access, claim)
				s.gone(bucket)
				if err := client.put(t.Context(), "late", "x"); err == nil {
					t.Error("the key of a deleted access may still write")
				}
			}
		})
	}
}

// TestRetainRace: the Bucket and the claim of a bucket that is kept are gone
// before the sidecar has revoked an access. Its key works on until the bucket is
// brought back, as docs/upstream.md says.
func TestRetainRace(t *testing.T) {
	s := together(t)
	class := s.classWith("Retain", cloudscale)
	claim := s.ready(s.claim("archive", class))
	access := s.access("archive", "archive", s.accessClass())
	client, kept := s.bucketInfo(access).s3(), s.bucket(claim)
	for _, o := range []object{claim, kept} {
		s.patch(o, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		s.delete(o)
	}
	s.deleteSoon(access)
	s.event(access, "failed to fetch bucketClaim")
	s.wantUsable(client)

	again, bucket := s.bring(kept, class, "Delete", "archive")
	s.gone(access)
	if err := client.put(t.Context(), "late", "x"); !refused(err) {
		t.Errorf("the key of a deleted access may still write: %v", err)
	}
	s.delete(again)
	s.gone(bucket)
}

// TestExistingForeign: an existing bucket of another back end is not handed out.
func TestExistingForeign(t *testing.T) {
	s := together(t)
	foreign := object{"metadata": map[string]any{"name": s.className("foreign")}, "status": map[string]any{"bucketID": "elsewhere/rma/foreign"}}
	claim, _ := s.bring(foreign, s.class(cloudscale), "Retain", "foreign")
	s.ready(claim)
	s.told(s.access("foreign", "foreign", s.accessClass()), "not this driver's: …")
}
