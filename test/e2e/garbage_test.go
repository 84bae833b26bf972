package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// garbage is what zuber gc says of a resource.
type garbage struct{ Kind, ID, Bucket, Verdict, Outcome, Error string }

// collect runs zuber gc as the ServiceAccount of config/samples/gc.
func (s *story) collect(args ...string) []garbage {
	s.Helper()
	out, err := s.Zuber(s.Context(), "zuber-system", "zuber-gc", append([]string{"gc", "--output", "json", "--min-age", "0s"}, args...)...)
	if err != nil {
		s.Fatal(err)
	}
	var report struct{ Items []garbage }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return report.Items
}

// TestGarbage: a bucket whose object was deleted by hand is listed and deleted by
// zuber gc, with the rights of its sample; one that is in use stays.
func TestGarbage(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			s.kubectl("apply", "-k", root+"/config/samples/gc")
			used := s.claim("used", s.class(backend))
			access := s.access("used", "used", s.accessClass())
			client := s.bucketInfo(access).s3()
			// With Retain nobody deletes the bucket in the cloud.
			lost := s.claim("lost", s.classWith("Retain", backend))
			s.ready(lost)
			orphan, live := s.bucket(lost), s.bucket(used)
			s.delete(lost)
			s.gone(orphan)

			verdicts := func(items []garbage) (ofOrphan, ofLive string) {
				for _, i := range items {
					switch {
					case i.Bucket == orphan.name() && i.Kind == "bucket":
						ofOrphan = i.Verdict + i.Outcome
					case i.Bucket == live.name():
						ofLive += i.Kind + i.Verdict + i.Outcome + " "
					}
				}
				return ofOrphan, ofLive
			}
			o, l := verdicts(s.collect())
			if o != "orphan" || !strings.Contains(l, "bucketkept") || !strings.Contains(l, "accesskept") || strings.Contains(l, "orphan") {
				t.Fatalf("the bucket without an object is %q, the other one %q", o, l)
			}
			// Of what other stories keep nothing may go.
			items := s.collect("--delete", "--yes", "--only", orphan.name(), "--only", live.name())
			if o, l := verdicts(items); o != "orphandeleted" || strings.Contains(l, "deleted") {
				t.Errorf("after the deletion %+v", items)
			}
			if left := leftInClouds(s.Emulator, lost.text("metadata", "uid")); len(left) > 0 {
				t.Errorf("left in the clouds: %q", left)
			}
			s.wantUsable(client)
			for _, what := range []string{"list secrets", "delete buckets.objectstorage.k8s.io", "watch bucketaccesses.objectstorage.k8s.io"} {
				args := append([]string{"auth", "can-i", "--as=system:serviceaccount:zuber-system:zuber-gc", "-A"}, strings.Fields(what)...)
				if out, err := s.Kubectl(t.Context(), "", args...); err == nil || !strings.HasPrefix(out, "no") {
					t.Errorf("zuber-gc may %s: %s", what, out)
				}
			}
		})
	}
}
