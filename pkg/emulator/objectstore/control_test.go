package objectstore

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// anonymousRequest sends an unsigned request to a bucket that is open to all.
func anonymousRequest(t *testing.T, s *Store, method, path, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	s.Handler("a").ServeHTTP(w, r)
	return w
}

// openBucket lets everybody do everything, so that the test needs no signatures.
func openBucket(t *testing.T, s *Store, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil {
		t.Fatalf("no bucket %s", name)
	}
	b.acl.grants = append(b.acl.grants, grant{group: groupAll, perm: permFull})
}

func TestControlPlaneBuckets(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "a"}, {Name: "b"}}})
	owner := Identity{UID: "account", DisplayName: "Account"}
	for _, step := range []struct {
		what string
		do   func() error
		want error
	}{
		{"create", func() error { return s.CreateBucketAs("a", "one", owner, false) }, nil},
		{"create again", func() error { return s.CreateBucketAs("a", "one", owner, false) }, ErrBucketExists},
		{"create in the other region", func() error { return s.CreateBucketAs("b", "one", owner, false) }, ErrBucketExists},
		{"create by another owner", func() error { return s.CreateBucketAs("a", "one", Identity{UID: "x"}, false) }, ErrBucketExists},
		{"create with a bad name", func() error { return s.CreateBucketAs("a", "One", owner, false) }, ErrInvalidBucketName},
		{"delete by another owner", func() error { return s.DeleteBucketAs("one", "x") }, ErrNoSuchBucket},
		{"delete a missing one", func() error { return s.DeleteBucketAs("two", "account") }, ErrNoSuchBucket},
		{"retention without object lock", func() error {
			return s.SetDefaultRetention("one", "account", DefaultRetention{Mode: "GOVERNANCE", Days: 1})
		}, ErrNoObjectLock},
		{"delete", func() error { return s.DeleteBucketAs("one", "account") }, nil},
		{"delete again", func() error { return s.DeleteBucketAs("one", "account") }, ErrNoSuchBucket},
	} {
		if err := step.do(); !errors.Is(err, step.want) || (step.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
	if err := s.CreateBucketAs("c", "one", owner, false); err == nil {
		t.Error("create in a region that does not exist: no error")
	}
	if left := s.Buckets(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestControlPlaneDeletesOnlyEmptyBuckets(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "a"}}})
	if err := s.CreateBucketAs("a", "one", Identity{UID: "account"}, true); err != nil {
		t.Fatal(err)
	}
	openBucket(t, s, "one")
	if w := anonymousRequest(t, s, http.MethodPut, "/one/key", "x", nil); w.Code != http.StatusOK {
		t.Fatalf("put: %d %s", w.Code, w.Body)
	}
	if err := s.DeleteBucketAs("one", "account"); !errors.Is(err, ErrBucketNotEmpty) {
		t.Errorf("with an object: %v", err)
	}
	// Object lock has switched versioning on, so that this leaves the version and a marker.
	if w := anonymousRequest(t, s, http.MethodDelete, "/one/key", "", nil); w.Code != http.StatusNoContent {
		t.Fatalf("delete: %d %s", w.Code, w.Body)
	}
	if err := s.DeleteBucketAs("one", "account"); !errors.Is(err, ErrBucketNotEmpty) {
		t.Errorf("with a version and a delete marker: %v", err)
	}
	if got := s.OwnedBuckets("account"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("owned: %v", got)
	}
}

func TestControlPlaneDefaultRetention(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "a"}}})
	for name, locked := range map[string]bool{"plain": false, "locked": true} {
		if err := s.CreateBucketAs("a", name, Identity{UID: "account"}, locked); err != nil {
			t.Fatal(err)
		}
	}
	lock := func(name string) ObjectLock {
		t.Helper()
		l, err := s.BucketLock(name, "account")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if got := lock("plain"); got != (ObjectLock{}) {
		t.Errorf("without object lock: %+v", got)
	}
	if got := lock("locked"); got != (ObjectLock{Enabled: true}) {
		t.Errorf("with object lock: %+v", got)
	}
	if _, err := s.BucketLock("locked", "x"); !errors.Is(err, ErrNoSuchBucket) {
		t.Errorf("of another owner: %v", err)
	}
	want := DefaultRetention{Mode: "COMPLIANCE", Days: 3}
	if err := s.SetDefaultRetention("locked", "account", want); err != nil {
		t.Fatal(err)
	}
	if got := lock("locked").DefaultRetention; got != want {
		t.Errorf("retention is %+v, want %+v", got, want)
	}
	openBucket(t, s, "locked")
	if w := anonymousRequest(t, s, http.MethodPut, "/locked/key", "x", http.Header{"X-Amz-Acl": {"public-read"}}); w.Code != http.StatusOK {
		t.Fatalf("put: %d %s", w.Code, w.Body)
	}
	w := anonymousRequest(t, s, http.MethodHead, "/locked/key", "", nil)
	if got := w.Header().Get("X-Amz-Object-Lock-Mode"); got != "COMPLIANCE" {
		t.Errorf("a new object has the lock mode %q", got)
	}
	for _, bad := range []DefaultRetention{{Mode: "COMPLIANCE"}, {Mode: "OTHER", Days: 1}, {Days: 1}, {Mode: "GOVERNANCE", Days: 1, Years: 1}, {Mode: "GOVERNANCE", Days: -1}} {
		if err := s.SetDefaultRetention("locked", "account", bad); err == nil {
			t.Errorf("retention %+v is taken", bad)
		}
	}
	if err := s.SetDefaultRetention("locked", "account", DefaultRetention{}); err != nil {
		t.Fatal(err)
	}
	if got := lock("locked"); got != (ObjectLock{Enabled: true}) {
		t.Errorf("after the removal: %+v", got)
	}
}
