package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// explained expects a row of the table in docs/troubleshooting.md for a message.
func (s *story) explained(message string) {
	s.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		s.Fatal(err)
	}
	if !strings.Contains(string(page), "\n| `"+message) && !strings.Contains(string(page), " or `"+message) {
		s.Errorf("docs/troubleshooting.md has no row that begins with `%s`", message)
	}
}

// told waits for an event whose text is that page's, with anything where it
// has an ellipsis.
func (s *story) told(o object, message string) {
	s.Helper()
	s.explained(message)
	s.eventually(func() error {
		all := s.events(o)
		for _, text := range all {
			if fits(text, strings.Split(message, "…")) {
				return nil
			}
		}
		return fmt.Errorf("%s has no event %q; it has: %q", o, message, all)
	})
}

// fits reports whether a text has the parts, in their order.
func fits(text string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// TestBucketMistakes: what is wrong with a BucketClass is said by the Bucket's
// events. With the class corrected, a new claim of the same name works.
func TestBucketMistakes(t *testing.T) {
	const unknown, value = `"…" = "…" is unknown: known are …`, `… = "…": want …`
	for _, mistake := range [][3]string{
		{`region "…" does not exist; allowed are …`, "region", "nowhere"},
		{value, "backend", "elsewhere"},
		{value, "bucketDeletionPolicy", "Delete"},
		{unknown, "bucketDeletionpolicy", "DeleteAll"},
	} {
		t.Run(mistake[1], func(t *testing.T) {
			s := together(t)
			claim := s.claim("photos", s.class(cloudscale, mistake[1], mistake[2]))
			s.told(s.bucketOf(claim), mistake[0])
			s.bound(claim)
			s.delete(claim)
			s.ready(s.claim("photos", s.class(cloudscale)))
		})
	}
}

// bound waits until the controller has written all of a claim that has no bucket
// yet. One that is deleted before that loses its Bucket: see docs/upstream.md.
func (s *story) bound(claim object) {
	s.Helper()
	s.eventually(func() error {
		got, err := s.Get(s.Context(), claim.path())
		if err != nil {
			return err
		}
		if finalizers := object(got).texts("metadata", "finalizers"); !slices.Contains(finalizers, claimFinalizer) {
			return fmt.Errorf("%s has the finalizers %q", claim, finalizers)
		}
		return nil
	})
}

// TestMissingClasses: the controller says in an event of the claim that its class
// is missing, the sidecar in one of the access. Once the classes are there, both
// go on by themselves.
func TestMissingClasses(t *testing.T) {
	s := together(t)
	bucketClass, accessClass := s.className("late"), s.className("late-key")
	claim, access := s.claim("photos", bucketClass), s.access("photos", "photos", accessClass)
	const bucketMessage, accessMessage = `bucketclasses.objectstorage.k8s.io "…" not found`, `bucketaccessclasses.objectstorage.k8s.io "…" not found`
	s.told(claim, bucketMessage)
	s.told(access, accessMessage)
	s.apply(
		manifest("BucketClass", bucketClass, map[string]any{
			"driverName": driverName, "deletionPolicy": "Delete", "parameters": pairs([]string{"backend", cloudscale, "region", "rma"}),
		}),
		manifest("BucketAccessClass", accessClass, map[string]any{"driverName": driverName, "authenticationType": "Key"}),
	)
	s.wantUsable(s.bucketInfo(access).s3())
}

// TestAccessMistakes: what is wrong with a BucketAccessClass is said by the events
// of the BucketAccess. With the class corrected, a new access works.
func TestAccessMistakes(t *testing.T) {
	s := together(t)
	s.ready(s.claim("photos", s.class(cloudscale)))
	s.ready(s.claim("guarded", s.class(cloudscale, "sharedCredentials", "forbidden")))
	for name, mistake := range map[string]struct {
		message, claim, authentication string
		parameters                     []string
	}{
		"loud":    {`authenticationType arrived as 0`, "photos", "KEY", nil},
		"iam":     {`authenticationType IAM: this driver hands out access keys`, "photos", "IAM", nil},
		"limited": {`cannot be enforced with the owner's key`, "photos", "Key", []string{"credentials", "shared", "accessMode", "ReadOnly"}},
		"shared":  {`its class forbids shared credentials`, "guarded", "Key", []string{"credentials", "shared"}},
	} {
		class := s.className(name)
		s.apply(manifest("BucketAccessClass", class, map[string]any{
			"driverName": driverName, "authenticationType": mistake.authentication, "parameters": pairs(mistake.parameters),
		}))
		spec := map[string]any{
			"bucketClaimName": mistake.claim, "bucketAccessClassName": class, "protocol": "S3", "credentialsSecretName": name + "-credentials",
		}
		if mistake.authentication == "IAM" {
			spec["serviceAccountName"] = "default" // else the sidecar itself refuses it
		}
		access := s.apply(manifest("BucketAccess", name, map[string]any{"spec": spec}))[0]
		s.told(access, mistake.message)
		s.delete(access)
	}
	s.wantUsable(s.bucketInfo(s.access("loud", "photos", s.accessClass())).s3())
}
