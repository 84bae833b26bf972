package objectstore

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestSettings: what S3 has stored is read and written back byte for byte, and what
// is written counts for the next request.
func TestSettings(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "a"}}})
	if err := s.CreateBucketAs("a", "bucket", Identity{UID: "owner"}, false); err != nil {
		t.Fatal(err)
	}
	openBucket(t, s, "bucket")
	if all, err := s.Settings("bucket"); err != nil || all != (Settings{}) {
		t.Fatalf("a new bucket has %+v, %v", all, err)
	}
	const shut = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:GetBucketLocation","Resource":"arn:aws:s3:::bucket"}]}`
	want := Settings{
		Policy:            shut,
		Tagging:           `<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>`,
		PublicAccessBlock: `<PublicAccessBlockConfiguration><BlockPublicAcls>false</BlockPublicAcls><IgnorePublicAcls>false</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>false</RestrictPublicBuckets></PublicAccessBlockConfiguration>`,
	}
	location := func() int { return anonymousRequest(t, s, http.MethodGet, "/bucket?location", "", nil).Code }
	if got := location(); got != http.StatusOK {
		t.Fatalf("before: %d", got)
	}
	if err := s.SetSettings("bucket", want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Settings("bucket"); err != nil || got != want {
		t.Errorf("read back %+v, %v", got, err)
	}
	if got := location(); got != http.StatusForbidden {
		t.Errorf("under the policy: %d", got)
	}
	if w := anonymousRequest(t, s, http.MethodGet, "/bucket?tagging", "", nil); !strings.Contains(w.Body.String(), "<Key>k</Key>") {
		t.Errorf("tags over S3: %s", w.Body)
	}
	for _, bad := range []Settings{{Policy: "{"}, {Tagging: "<Tagging"}, {PublicAccessBlock: "<"}} {
		if err := s.SetSettings("bucket", bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if err := s.SetSettings("bucket", Settings{}); err != nil {
		t.Fatal(err)
	}
	if got := location(); got != http.StatusOK {
		t.Errorf("without settings: %d", got)
	}
	if _, err := s.Settings("none"); !errors.Is(err, ErrNoSuchBucket) {
		t.Errorf("of a missing bucket: %v", err)
	}
	if err := s.SetSettings("none", want); !errors.Is(err, ErrNoSuchBucket) {
		t.Errorf("to a missing bucket: %v", err)
	}
}
