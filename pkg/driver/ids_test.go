package driver

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestParseBucketID(t *testing.T) {
	for in, want := range map[string]BucketID{
		"cloudscale/rma/bucket-1":                  {Backend: "cloudscale", Region: "rma", Bucket: "bucket-1"},
		"cloudscale/rma/bucket-1/abc.D":            {Backend: "cloudscale", Region: "rma", Bucket: "bucket-1", OwnerID: "abc.D"},
		"cloudscale/rma/bucket-1/accessOnly":       {Backend: "cloudscale", Region: "rma", Bucket: "bucket-1", AccessOnly: true},
		"cloudscale/rma/bucket-1/abc.D/accessOnly": {Backend: "cloudscale", Region: "rma", Bucket: "bucket-1", OwnerID: "abc.D", AccessOnly: true},
	} {
		got, err := ParseBucketID(in)
		if err != nil || got != want {
			t.Errorf("ParseBucketID(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestBucketName(t *testing.T) {
	for in, want := range map[string]string{
		"rma/bucket-1": "bucket-1", "cloudscale/rma/bucket-1": "bucket-1", "cloudscale/rma/bucket-1/abc.D/accessOnly": "bucket-1",
	} {
		if got, err := BucketName(in); err != nil || got != want {
			t.Errorf("BucketName(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "bucket-1", "/bucket-1", "rma/", "../bucket-1", "rma/..", "a//b", "arn:aws:s3:::bucket"} {
		if got, err := BucketName(in); got != "" || !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("BucketName(%q) = %q, %v", in, got, err)
		}
	}
}

func TestParseAccountID(t *testing.T) {
	for in, want := range map[string]AccountID{
		"cloudscale/ba-1":     {Backend: "cloudscale", Account: "ba-1"},
		"cloudscale/ba-1/u-9": {Backend: "cloudscale", Account: "ba-1", IdentityID: "u-9"},
	} {
		got, err := ParseAccountID(in)
		if err != nil || got != want {
			t.Errorf("ParseAccountID(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestMalformedIDsAreNotOurs(t *testing.T) {
	long := "b/" + strings.Repeat("r", maxID) + "/x"
	both := []string{
		"", "/", "//", "a//b", "/a/b", "a/b/", "../a/b", "a/../b", "a/b/..", "./a/b", "a/b/c/d/e", "a/b/c/accessOnly/accessOnly", "a/b/c/accessOnly/e", "a/b/c/d/e/accessOnly", "a/b:c/d", "a/b c/d",
		"a/ü/c", "a/b\x00/c", "a/b\n/c", "a=b/c/d", "a+b/c/d", "arn:aws:s3:::bucket", `{"bucket":"x"}`, long,
	}
	for _, in := range append(both, "bucket-1", "rma/bucket-1") {
		if _, err := ParseBucketID(in); !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "not this driver's") {
			t.Errorf("ParseBucketID(%.40q): %v", in, err)
		}
	}
	for _, in := range append(both, "ba-1", "a/b/c/d") {
		if _, err := ParseAccountID(in); !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "not this driver's") {
			t.Errorf("ParseAccountID(%.40q): %v", in, err)
		}
	}
}

func TestFormatIsStrict(t *testing.T) {
	for _, id := range []BucketID{
		{Region: "rma", Bucket: "b"}, {Backend: "c", Bucket: "b"}, {Backend: "c", Region: "rma"},
		{Backend: "c", Region: "..", Bucket: "b"}, {Backend: "c", Region: "a/b", Bucket: "b"},
		{Backend: "c", Region: "rma", Bucket: "b", OwnerID: "o:1"},
		{Backend: "c", Region: "rma", Bucket: "b", OwnerID: "accessOnly"},
		{Backend: "c", Region: "rma", Bucket: "b", OwnerID: strings.Repeat("o", maxID)},
	} {
		if s, err := id.Format(); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%.60v.Format() = %.40q, %v", id, s, err)
		}
	}
	for _, id := range []AccountID{{Account: "a"}, {Backend: "c"}, {Backend: "c", Account: "a", IdentityID: "x y"}} {
		if s, err := id.Format(); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%v.Format() = %q, %v", id, s, err)
		}
	}
}

// TestIDsRoundTrip also holds the IDs to the v1alpha2 rule for them.
func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-zA-Z0-9._-]{1,80}`).Filter(goodPart)
		maybe := rapid.OneOf(rapid.Just(""), part)
		bucket := BucketID{part.Draw(t, "backend"), part.Draw(t, "region"), part.Draw(t, "bucket"), maybe.Draw(t, "owner"), rapid.Bool().Draw(t, "accessOnly")}
		s, err := bucket.Format()
		if err != nil {
			t.Fatal(err)
		}
		if len(s) > 2048 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") != "" {
			t.Fatalf("v1alpha2 refuses %q", s)
		}
		if back, err := ParseBucketID(s); err != nil || back != bucket {
			t.Fatalf("%+v became %q became %+v, %v", bucket, s, back, err)
		}
		account := AccountID{bucket.Backend, bucket.Bucket, bucket.OwnerID}
		if s, err = account.Format(); err != nil {
			t.Fatal(err)
		}
		if back, err := ParseAccountID(s); err != nil || back != account {
			t.Fatalf("%+v became %q became %+v, %v", account, s, back, err)
		}
	})
}

func FuzzParseIDs(f *testing.F) {
	for _, s := range []string{"", "a/b/c", "a/b/c/d", "a/b/c/d/accessOnly", "a/b/c/accessOnly", "cloudscale/ba-1", "../x/y", "a//b", "a/b/\xff"} {
		f.Add(s)
	}
	for _, v := range hostile() {
		f.Add(v)
		f.Add("cloudscale/rma/" + v)
		f.Add("cloudscale/" + v + "/bucket-1/" + v)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseBucketID(s); err == nil {
			if back, err := id.Format(); err != nil || back != s {
				t.Errorf("bucket ID %q was read as %+v, which is %q, %v", s, id, back, err)
			}
		} else if !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("bucket ID %q: %v", s, err)
		}
		if id, err := ParseAccountID(s); err == nil {
			if back, err := id.Format(); err != nil || back != s {
				t.Errorf("account ID %q was read as %+v, which is %q, %v", s, id, back, err)
			}
		} else if !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("account ID %q: %v", s, err)
		}
	})
}
