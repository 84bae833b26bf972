package cosi

import (
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestRotateByIDs: the driver rotates by what COSI has in status, and the account
// ID stays what it was, since COSI writes it once.
func TestRotateByIDs(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		d := s.driver(s.adapter())
		b, err := d.CreateBucket(t.Context(), "bucket-1", s.params())
		if err != nil {
			t.Fatal(err)
		}
		request := driver.GrantRequest{Account: "ba-5f0e6f2c-0000-4000-8000-000000000001", Buckets: []driver.GrantBucket{{ID: b.ID}}}
		g, err := d.GrantAccess(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		ids := driver.RotateRequest{AccountID: g.AccountID, BucketIDs: []string{b.ID}, KeepAccessKeyID: g.Credentials.AccessKeyID}
		key, err := d.RotateAccess(t.Context(), ids)
		if err != nil || key.AccessKeyID == g.Credentials.AccessKeyID {
			t.Fatalf("a key %s after %s, %v", key.AccessKeyID, g.Credentials.AccessKeyID, err)
		}
		again, err := s.driver(s.adapter()).GrantAccess(t.Context(), request)
		if err != nil || again.AccountID != g.AccountID {
			t.Errorf("account ID %q after %q, %v", again.AccountID, g.AccountID, err)
		}
		ids.KeepAccessKeyID = key.AccessKeyID
		if err := d.RetireKeys(t.Context(), ids); err != nil {
			t.Error(err)
		}
		for what, wrong := range map[string]driver.RotateRequest{
			"another driver's account": {AccountID: "other/ba-1/x", BucketIDs: ids.BucketIDs},
			"another driver's bucket":  {AccountID: g.AccountID, BucketIDs: []string{"other/rma/bucket-1"}},
			"no bucket":                {AccountID: g.AccountID},
			"no account":               {BucketIDs: ids.BucketIDs},
		} {
			if _, err := d.RotateAccess(t.Context(), wrong); !errors.Is(err, provider.ErrInvalidArgument) {
				t.Errorf("%s: %v", what, err)
			}
			if err := d.RetireKeys(t.Context(), wrong); !errors.Is(err, provider.ErrInvalidArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := d.RevokeAccess(t.Context(), driver.RevokeRequest{AccountID: g.AccountID, BucketIDs: ids.BucketIDs}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.RotateAccess(t.Context(), ids); !errors.Is(err, provider.ErrNotFound) || strings.Contains(err.Error(), key.SecretAccessKey.Reveal()) {
			t.Errorf("after the revocation: %v", err)
		}
		if err := d.DeleteBucket(t.Context(), b.ID, s.params()); err != nil {
			t.Fatal(err)
		}
		s.empty()
	})
}
