package e2e

import (
	"path/filepath"
	"testing"
)

// TestSamples applies the files of config/samples as they are, and uses what
// they make.
func TestSamples(t *testing.T) {
	s := together(t)
	for _, backend := range []string{cloudscale, stackit} {
		var accesses, others []object
		accessClasses := map[string]object{}
		for _, file := range []string{"classes.yaml", "claim.yaml", "pod.yaml"} {
			path := filepath.Join(root, "config", "samples", backend, "v1alpha1", file)
			for _, o := range s.record(s.kubectl("apply", "-o", "json", "-f", path)) {
				switch o.text("kind") {
				case "BucketAccess":
					accesses = append(accesses, o)
				case "BucketAccessClass":
					accessClasses[o.name()] = o
				default:
					others = append(others, o)
				}
			}
		}
		if len(accesses) == 0 || len(others) != 3 {
			t.Fatalf("%s: %v, %v", backend, accesses, others)
		}
		for _, access := range accesses {
			client := s.bucketInfo(access).s3()
			class := accessClasses[access.text("spec", "bucketAccessClassName")]
			if class.text("parameters", "accessMode") != "ReadOnly" {
				s.wantUsable(client)
				continue
			}
			if err := client.put(t.Context(), "x", "x"); !refused(err) {
				t.Errorf("%s may write: %v", access, err)
			}
		}
		if backend == cloudscale {
			s.gitops("v1alpha1")
		}
		s.delete(accesses...)
		s.delete(others...)
	}
}
