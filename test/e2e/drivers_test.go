package e2e

import (
	"errors"
	"testing"
)

// TestTwoDrivers: another vendor's driver and its sidecar in the same cluster.
// Neither driver touches what is the other's, although upstream sends both every
// revocation.
func TestTwoDrivers(t *testing.T) {
	s := alone(t)
	other := s.startOther()
	class, accessClass := s.className("other"), s.className("other-key")
	s.apply(
		manifest("BucketClass", class, map[string]any{"driverName": otherName, "deletionPolicy": "Delete"}),
		manifest("BucketAccessClass", accessClass, map[string]any{"driverName": otherName, "authenticationType": "Key"}),
	)
	theirs, ours := s.claim("theirs", class), s.claim("ours", s.class(cloudscale))
	theirAccess, ourAccess := s.access("theirs", "theirs", accessClass), s.access("ours", "ours", s.accessClass())
	theirAccess, ourAccess = s.ready(theirAccess), s.ready(ourAccess)
	if info := s.bucketInfo(theirAccess); info.Spec.SecretS3.AccessKeyID != "other" {
		t.Error("the Secret is not of the other driver")
	}
	client := s.bucketInfo(ourAccess).s3()
	s.wantUsable(client)
	wantCall := func(want bool, rpc, id string) {
		t.Helper()
		if other.called(rpc, id) != want {
			t.Errorf("other driver: %s of %s: %v, want %v", rpc, id, !want, want)
		}
	}
	wantCall(true, "create", "bucket-"+theirs.text("metadata", "uid"))
	wantCall(false, "create", "bucket-"+ours.text("metadata", "uid"))
	wantCall(false, "grant", "ba-"+ourAccess.text("metadata", "uid"))
	if left := leftInClouds(s.Emulator, theirs.text("metadata", "uid")); len(left) > 0 {
		t.Errorf("the driver has made what is another's: %q", left)
	}

	// Their revocation reaches our driver, which refuses it, and ours theirs.
	s.delete(theirAccess)
	s.told(theirAccess, "not this driver's: …")
	wantCall(true, "revoke", theirAccess.text("status", "accountID"))
	s.wantUsable(client)
	s.delete(ourAccess)
	s.eventually(func() error {
		if !other.called("revoke", ourAccess.text("status", "accountID")) {
			return errors.New("upstream no longer sends revocations to every driver: docs/upstream.md is out of date")
		}
		return nil
	})
	if err := client.put(t.Context(), "late", "x"); !refused(err) {
		t.Errorf("the key of a deleted access may still write: %v", err)
	}

	// Their sidecar takes the finalizers off our Bucket; ours deletes it meanwhile.
	buckets := []object{s.bucket(theirs), s.bucket(ours)}
	s.delete(theirs, ours)
	s.gone(buckets...)
	wantCall(false, "delete", buckets[1].text("status", "bucketID"))
	s.eventually(func() error {
		if left := leftInClouds(s.Emulator, ours.text("metadata", "uid")); len(left) > 0 {
			return errors.New(left[0])
		}
		return nil
	})
}
