package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/v1alpha2"
)

// TestCompanionOfV1alpha2 lets the companion find a cluster without COSI, which
// v1alpha2 comes to later, and then does for its users what it does for those of
// v1alpha1.
func TestCompanionOfV1alpha2(t *testing.T) {
	s := withoutCOSI(t)
	c := s.Cluster
	s.logged("the cluster has no objectstorage.k8s.io")
	if err := v1alpha2.Install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.logged(`"cosi":"v1alpha2"`)
	c.Driver.Extra = []string{"--allow-wipe-annotation"}
	s.restart(c.Driver)
	peer, err := v1alpha2.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()

	for _, backend := range []string{cloudscale, stackit} {
		s.companionOfV1alpha2(backend)
		s.moreSamples(backend)
	}
	s.tenantsOfV1alpha2()
	if left := leftInClouds(c.Emulator, ""); len(left) != 0 {
		t.Errorf("left in the clouds: %q", left)
	}
}

func (s *story) companionOfV1alpha2(backend string) {
	s.Helper()
	class := func(name, region string) string {
		return manifest2("BucketClass", backend+name, map[string]any{"driverName": driverName, "deletionPolicy": "Delete",
			"parameters": map[string]string{"backend": backend, "region": region}})
	}
	claim := func(name, class string) string {
		return manifest2("BucketClaim", name, map[string]any{"bucketClassName": backend + class, "protocols": []string{"S3"}})
	}
	made := s.apply(class("", regionOf(backend)), class("-wrong", "nowhere"), claim("photos", ""), claim("old.archive", ""), claim("nowhere", "-wrong"),
		manifest2("BucketAccessClass", backend, map[string]any{"driverName": driverName, "authenticationType": "Key", "multiBucketAccess": "MultipleBuckets",
			"parameters": map[string]string{"envSecretSuffix": "-env"}}),
		manifest2("BucketAccess", "both", map[string]any{"bucketAccessClassName": backend, "protocol": "S3", "bucketClaims": []map[string]string{
			{"bucketClaimName": "photos", "accessMode": "ReadWrite", "accessSecretName": "photos-cosi"},
			{"bucketClaimName": "old.archive", "accessMode": "ReadWrite", "accessSecretName": "archive-cosi"},
		}}))
	classes, photos, archive, nowhere, access := []object{made[0], made[1], made[5]}, made[2], made[3], made[4], made[6]
	s.settled(access)
	first, second := s.cosiSecret("photos-cosi"), s.cosiSecret("archive-cosi")

	want := variablesOf(s.T, first, first.Spec.BucketName)
	for suffix, of := range map[string]bucketInfo{"_PHOTOS": first, "_OLD_ARCHIVE": second} {
		for key, value := range variablesOf(s.T, of, of.Spec.BucketName) {
			want[key+suffix] = value
		}
	}
	s.wantVariables("both-env", want)
	s.patch(s.secretNamed("both-env"), map[string]any{"stringData": map[string]any{"S3_BUCKET": "other"}})
	s.wantVariables("both-env", want)
	s.annotate(access, envSecret, "both-moved")
	s.wantVariables("both-moved", want)
	s.gone(s.secretNamed("both-env"))
	s.annotate(access, envKeys, "bucket=BUCKET")
	renamed := maps.Clone(want)
	for _, suffix := range []string{"", "_PHOTOS", "_OLD_ARCHIVE"} {
		renamed["BUCKET"+suffix] = want["S3_BUCKET"+suffix]
		delete(renamed, "S3_BUCKET"+suffix)
	}
	s.wantVariables("both-moved", renamed)

	s.annotate(access, rotateAt, "today")
	s.wantOnce(access, "CredentialsRotated")
	old := first
	first, second = s.cosiSecret("photos-cosi"), s.cosiSecret("archive-cosi")
	for _, info := range []bucketInfo{first, second} {
		if info.Spec.SecretS3.AccessKeyID == old.Spec.SecretS3.AccessKeyID {
			s.Error("a Secret has the old key")
		}
		s.wantUsable(info.s3())
	}
	s.ended(old.s3())
	for key := range renamed {
		switch {
		case strings.HasPrefix(key, "AWS_ACCESS_KEY_ID"):
			renamed[key] = first.Spec.SecretS3.AccessKeyID
		case strings.HasPrefix(key, "AWS_SECRET_ACCESS_KEY"):
			renamed[key] = first.Spec.SecretS3.AccessSecretKey
		}
	}
	s.wantVariables("both-moved", renamed)

	s.wantOnce(photos, "Provisioned")
	s.wantOnce(archive, "Provisioned")
	s.event(access, "AccessGranted: Access to bucket "+second.Spec.BucketName)
	s.event(nowhere, `ProvisioningFailed: COSI Sidecar error: `)
	s.event(nowhere, `"nowhere"`)

	for _, info := range []bucketInfo{first, second} {
		if err := info.s3().put(s.Context(), "precious", "data"); err != nil {
			s.Fatal(err)
		}
	}
	s.annotate(photos, wipeOnDelete, "true")
	s.delete(access)
	s.gone(s.secretNamed("both-moved"))
	s.delete(photos)
	s.deleteSoon(archive)
	s.eventually(func() error {
		bucket, err := s.Get(s.Context(), "/apis/objectstorage.k8s.io/v1alpha2/buckets/"+second.Spec.BucketName)
		if err == nil && !strings.Contains(object(bucket).text("status", "error", "message"), "it holds objects") {
			err = fmt.Errorf("status %v", bucket["status"])
		}
		return err
	})
	s.annotate(archive, wipeOnDelete, "true")
	s.delete(archive, nowhere)
	s.delete(classes...)
}

// moreSamples lives with config/samples/backup and config/samples/gitops, whose
// classes are among those of the other samples.
func (s *story) moreSamples(backend string) {
	s.Helper()
	path := filepath.Join(root, "config", "samples", backend, "v1alpha2", "samples.yaml")
	classes := s.apply(slices.DeleteFunc(strings.Split(s.read(path), "\n---\n"), func(o string) bool { return !strings.Contains(o, "Class\nmetadata:") })...)
	if len(classes) != 2 {
		s.Fatalf("%s has the classes %v", path, classes)
	}
	s.backup(backend, "v1alpha2")
	if backend == cloudscale {
		s.gitops("v1alpha2")
	}
	s.delete(classes...)
}

// logged waits until the driver has logged a text.
func (s *story) logged(text string) {
	s.Helper()
	s.eventually(func() error {
		if !strings.Contains(s.Driver.Log(), text) {
			return fmt.Errorf("the driver's log lacks %q:\n%s", text, s.Driver.Tail(20))
		}
		return nil
	})
}
