package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var adopting = map[string]string{"adoptExisting": "accessOnly"}

// withForeign is a driver whose cloud holds bucket-1, which it made, and theirs,
// which somebody else made.
func withForeign(t *testing.T) (d *Driver, f *fake, own string) {
	t.Helper()
	d, f = oneBackend(t)
	own = created(t, d, "bucket-1", nil)
	f.buckets["theirs"] = provider.Bucket{BucketRef: provider.BucketRef{Name: "theirs", Region: "rma", OwnerID: "them"}, Endpoint: "https://o.example"}
	f.foreign["theirs"] = true
	return d, f, own
}

func TestGetExistingBucket(t *testing.T) {
	d, _, own := withForeign(t)
	const theirs = "cloudscale/rma/theirs/them/accessOnly"
	for _, c := range []struct {
		id     string
		params map[string]string
		want   string
	}{
		{own, nil, own},
		{"cloudscale/rma/bucket-1", nil, own},
		{"rma/bucket-1", nil, own},
		{"rma/bucket-1", adopting, own}, // it stays the driver's
		{"rma/theirs", adopting, theirs},
		{"cloudscale/rma/theirs", adopting, theirs},
		{theirs, nil, theirs}, // as this call has returned it
	} {
		b, err := d.GetExistingBucket(t.Context(), c.id, c.params)
		if err != nil || b.ID != c.want {
			t.Errorf("%s with %v: %q, %v; want %q", c.id, c.params, b.ID, err, c.want)
		}
	}
}

func TestGetExistingBucketRefuses(t *testing.T) {
	d, f, own := withForeign(t)
	before := len(f.buckets)
	for _, c := range []struct {
		id     string
		params map[string]string
		want   error
		text   string
	}{
		{"rma/theirs", nil, provider.ErrPermissionDenied, "theirs"},
		{"rma/theirs", map[string]string{"adoptExisting": "never"}, provider.ErrPermissionDenied, "theirs"},
		{"rma/theirs", map[string]string{"adoptExisting": "all"}, provider.ErrInvalidArgument, "never or accessOnly"},
		{"rma/missing", adopting, provider.ErrNotFound, "missing"},
		{"moon/theirs", adopting, provider.ErrInvalidArgument, "have a region \"moon\""},
		{"theirs", adopting, provider.ErrInvalidArgument, "not this driver's"},
		{"", adopting, provider.ErrInvalidArgument, "not this driver's"},
		{"other/rma/theirs", adopting, provider.ErrInvalidArgument, "no back end named \"other\""},
		{own, map[string]string{"region": "lpg"}, provider.ErrInvalidArgument, "another place"},
		{own, map[string]string{"bucketDeletionPolicy": "DeleteAll"}, provider.ErrAlreadyExists, "it was made with \"DeleteIfEmpty\""},
		{own, map[string]string{"s3PathStyle": "false"}, provider.ErrAlreadyExists, "s3PathStyle"},
		{"rma/theirs", map[string]string{"adoptExisting": "accessOnly", "endpointURL": "https://p.example"}, provider.ErrAlreadyExists, "https://o.example"},
	} {
		_, err := d.GetExistingBucket(t.Context(), c.id, c.params)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q with %v: %v; want %v and %q", c.id, c.params, err, c.want, c.text)
		}
	}
	if len(f.buckets) != before {
		t.Error("a lookup changed something")
	}
}

func TestShortIDsOfSeveralBackends(t *testing.T) {
	d, _ := oneBackend(t, func(c *Config) {
		c.Backends = append(c.Backends, Backend{Name: "second", Kind: "cloudscale", Provider: newFake()})
	})
	_, err := d.GetExistingBucket(t.Context(), "rma/bucket-1", nil)
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "want <backend>/<region>/<bucket>") {
		t.Error(err)
	}
}

// TestGrantToExistingBucket: the permission comes with the ID that a lookup returned,
// or, where COSI looks nothing up, with the class of the access.
func TestGrantToExistingBucket(t *testing.T) {
	d, f, own := withForeign(t)
	for _, c := range []struct {
		id     string
		params map[string]string
		want   bool
	}{
		{"cloudscale/rma/theirs/them/accessOnly", nil, true},
		{"rma/theirs", adopting, true},
		{"rma/theirs", nil, false},
		{own, nil, false},
	} {
		f.granted = nil
		_, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: c.id}}, Parameters: c.params})
		if err != nil || f.granted[0].Buckets[0].AccessOnly != c.want {
			t.Errorf("%s with %v: %+v, %v", c.id, c.params, f.granted, err)
		}
	}
}

// TestExistingBucketsOutliveTheirClaims: whatever the class and the gate allow.
func TestExistingBucketsOutliveTheirClaims(t *testing.T) {
	d, f, own := withForeign(t)
	d.allowDeleteAll = true
	deleteAll := map[string]string{"adoptExisting": "accessOnly", "bucketDeletionPolicy": "DeleteAll"}
	for _, id := range []string{"cloudscale/rma/theirs/them/accessOnly", "cloudscale/rma/theirs/accessOnly", "rma/theirs", "cloudscale/rma/theirs"} {
		if err := d.DeleteBucket(t.Context(), id, deleteAll); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
	if !slices.Equal(f.left, []string{"theirs", "theirs", "theirs", "theirs"}) || len(f.purged) != 0 {
		t.Errorf("left alone %v, purged %v", f.left, f.purged)
	}
	if err := d.DeleteBucket(t.Context(), own, deleteAll); err != nil || len(f.buckets) != 1 {
		t.Errorf("the driver's own bucket: %v; buckets %v", err, f.buckets)
	}
	if err := d.DeleteBucket(t.Context(), own, deleteAll); err != nil {
		t.Errorf("a bucket that is gone: %v", err)
	}
}

// TestRevokeWithoutAccountOfAForeignBucket: the v1alpha1 sidecar sends every driver
// the revocations of all drivers, and success would cost another driver its objects.
func TestRevokeWithoutAccountOfAForeignBucket(t *testing.T) {
	d, _, own := withForeign(t)
	for id, want := range map[string]error{own: nil, "rma/bucket-1": nil, "rma/theirs": nil, "rma/missing": provider.ErrPrecondition} {
		if err := d.RevokeAccess(t.Context(), RevokeRequest{BucketIDs: []string{id}}); !errors.Is(err, want) || (want == nil && err != nil) {
			t.Errorf("%s: %v; want %v", id, err, want)
		}
	}
}
