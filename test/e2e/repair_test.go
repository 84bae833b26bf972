package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// claimFinalizer is what makes a claim wait for the deletion of its bucket.
const claimFinalizer = "cosi.objectstorage.k8s.io/bucketclaim-protection"

// grace is how long upstream's controller may take for what it has to write
// after the bucket is there.
const grace = 5 * time.Second

// repair does for a claim what docs/upstream.md tells a user to do where
// upstream's controller and sidecar have overwritten each other.
type repair struct {
	story *story
	since time.Time
}

// claim is nil if nothing is wrong with a claim.
func (r *repair) claim(claim object) error {
	s := r.story
	class, uid := claim.text("spec", "bucketClassName"), claim.text("metadata", "uid")
	if class == "" || claim.at("metadata", "deletionTimestamp") != nil {
		return nil
	}
	bucket, err := s.Get(s.Context(), cosiPath("buckets", "")+"/bucket-"+uid)
	if missing(err) {
		return errors.New("there is no Bucket yet")
	}
	if err != nil {
		return err
	}
	name, finalizers := claim.text("status", "bucketName"), claim.texts("metadata", "finalizers")
	whole := name != "" && claim.at("status", "bucketReady") == true && slices.Contains(finalizers, claimFinalizer)
	if object(bucket).at("status", "bucketReady") != true {
		if whole {
			// The sidecar writes the claim before the Bucket. Who deletes the claim in
			// between leaves a Bucket without an ID: see docs/upstream.md.
			return fmt.Errorf("%s is ready before its Bucket", claim)
		}
		return nil
	}
	if whole {
		return nil
	}
	wrong := fmt.Errorf("%s has the status %v and the finalizers %q although its Bucket is ready", claim, claim["status"], finalizers)
	if r.since.IsZero() {
		r.since = time.Now()
	}
	if time.Since(r.since) < grace {
		return wrong
	}
	s.Logf("upstream's controller has lost a race: %v", wrong)
	status := map[string]any{"status": map[string]any{"bucketReady": true, "bucketName": object(bucket).name()}}
	if _, err := s.Send(s.Context(), http.MethodPatch, claim.path()+"/status", status); err != nil {
		return err
	}
	metadata := map[string]any{"metadata": map[string]any{"finalizers": append(finalizers, claimFinalizer)}}
	if _, err := s.Send(s.Context(), http.MethodPatch, claim.path(), metadata); err != nil {
		return err
	}
	return wrong
}
