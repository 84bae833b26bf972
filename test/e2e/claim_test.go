package e2e

import (
	"slices"
	"testing"
)

// TestClaimToSecret is the plain life of a bucket: a claim, an access, the
// Secret in every field, its use, and a deletion that leaves nothing.
func TestClaimToSecret(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			claim := s.claim("photos", s.class(backend))
			access := s.access("photos", "photos", s.accessClass())
			info := s.bucketInfo(access)

			uid := claim.text("metadata", "uid")
			endpoint := s.Emulator.Cloudscale().Endpoints["rma"]
			if backend == stackit {
				endpoint = s.Emulator.Stackit().Endpoints["eu01"]
			}
			for field, pair := range map[string][2]string{
				"metadata.name":           {info.Metadata.Name, "bc-" + access.text("metadata", "uid")},
				"spec.bucketName":         {info.Spec.BucketName, "bucket-" + uid},
				"spec.authenticationType": {info.Spec.AuthenticationType, "Key"},
				"spec.secretS3.endpoint":  {info.Spec.SecretS3.Endpoint, endpoint},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, want %q", field, pair[0], pair[1])
				}
			}
			if info.Metadata.CreationTimestamp != nil || info.Spec.SecretAzure != nil || !slices.Equal(info.Spec.Protocols, []string{"S3"}) {
				t.Errorf("creationTimestamp %v, secretAzure %v, protocols %v", info.Metadata.CreationTimestamp, info.Spec.SecretAzure, info.Spec.Protocols)
			}
			if info.Spec.SecretS3.Region == "" || info.Spec.SecretS3.AccessKeyID == "" || info.Spec.SecretS3.AccessSecretKey == "" {
				t.Error("a field of spec.secretS3 is empty")
			}
			secret := s.secret(access)
			if secret.text("type") != "Opaque" {
				t.Errorf("the Secret's type is %q", secret.text("type"))
			}

			client := info.s3()
			s.wantUsable(client)
			s.delete(access)
			s.gone(secret)
			if err := client.put(t.Context(), "late", "x"); !refused(err) {
				t.Errorf("the key of a deleted access may still write: %v", err)
			}
			bucket := s.bucket(claim)
			s.delete(claim)
			s.gone(bucket)
		})
	}
}
