package objectstore

import (
	"net/http"
	"slices"
	"testing"
)

// TestInspectShowsEveryChange changes one thing after another and wants each to
// show.
func TestInspectShowsEveryChange(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "a"}}})
	if err := s.CreateBucketAs("a", "one", Identity{UID: "owner"}, false); err != nil {
		t.Fatal(err)
	}
	openBucket(t, s, "one")
	inspect := func() BucketState {
		t.Helper()
		states := s.Inspect()
		if len(states) != 1 || states[0].Name != "one" || states[0].OwnerUID != "owner" || states[0].Region != "a" {
			t.Fatalf("got %+v", states)
		}
		return states[0]
	}
	send := func(method, path, body string, status int) {
		t.Helper()
		if w := anonymousRequest(t, s, method, path, body, http.Header{}); w.Code != status {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	if got := inspect(); got.Versions != nil || got.Uploads != nil || len(got.ACL) != 2 || got.Versioning != "" {
		t.Errorf("a new bucket: %+v", got)
	}
	send("PUT", "/one/k", "data", http.StatusOK)
	if got := inspect(); !slices.Equal(got.Versions, []string{`"k" deleteMarker=false bytes=4 owner=`}) {
		t.Errorf("with an object: %q", got.Versions)
	}
	send("POST", "/one/big?uploads", "", http.StatusOK)
	if got := inspect(); !slices.Equal(got.Uploads, []string{"big"}) {
		t.Errorf("with an upload: %q", got.Uploads)
	}
	change := func(f func(*bucket)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f(s.buckets["one"])
	}
	change(func(b *bucket) { b.versioning = versioningEnabled })
	send("DELETE", "/one/k", "", http.StatusNoContent)
	change(func(b *bucket) {
		b.policy = &bucketPolicy{text: []byte("{}")}
		b.pab = &publicAccessBlock{IgnorePublicAcls: true}
		b.config["tagging"] = []byte("<Tagging/>")
	})
	got := inspect()
	if got.Versioning != versioningEnabled || got.Policy != "{}" || got.Config["tagging"] != "<Tagging/>" || len(got.Versions) != 2 ||
		got.PublicAccessBlock != "blockPublicAcls=false ignorePublicAcls=true blockPublicPolicy=false restrictPublicBuckets=false" {
		t.Errorf("with everything: %+v", got)
	}
}
