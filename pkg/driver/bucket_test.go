package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestCreateBucketTwice(t *testing.T) {
	d, f := oneBackend(t)
	first, second := created(t, d, "bucket-1", nil), created(t, d, "bucket-1", nil)
	if first != "cloudscale/rma/bucket-1/owner1" || second != first {
		t.Errorf("IDs %q and %q", first, second)
	}
	if got := f.buckets["bucket-1"]; got.DeletionPolicy != provider.DeleteIfEmpty || got.VirtualHosted || got.Endpoint != "" {
		t.Errorf("defaults became %+v", got)
	}
}

func TestCreateBucketPassesParameters(t *testing.T) {
	d, f := oneBackend(t)
	created(t, d, "bucket-1", map[string]string{"backend": "cloudscale", "region": "lpg", "endpointURL": "https://o.example:8443",
		"s3PathStyle": "false", "bucketDeletionPolicy": "DeleteAll"})
	got := f.buckets["bucket-1"]
	if got.Region != "lpg" || got.Endpoint != "https://o.example:8443" || !got.VirtualHosted || got.DeletionPolicy != provider.DeleteAll {
		t.Errorf("got %+v", got)
	}
}

func TestCreateBucketReportsAllFaults(t *testing.T) {
	d, _ := oneBackend(t)
	_, err := d.CreateBucket(t.Context(), "Bucket", map[string]string{"backend": "cloudscal", "s3PathStyle": "0"})
	if !errors.Is(err, provider.ErrInvalidArgument) {
		t.Fatal(err)
	}
	for _, w := range []string{"capital letter", `backend = "cloudscal"`, `did you mean "cloudscale"?`, "region is missing", "s3PathStyle"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
}

func TestDotInVirtualHostedName(t *testing.T) {
	d, _ := oneBackend(t)
	_, err := d.CreateBucket(t.Context(), "a.b.c", map[string]string{"region": "rma", "s3PathStyle": "false"})
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), `s3PathStyle = "true"`) {
		t.Error(err)
	}
}

func TestBackendParameter(t *testing.T) {
	other := newFake()
	d, f := oneBackend(t, func(c *Config) { c.Backends = append(c.Backends, Backend{Name: "second", Provider: other}) })
	_, err := d.CreateBucket(t.Context(), "bucket-1", map[string]string{"region": "rma"})
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "want one of cloudscale, second") {
		t.Errorf("no back end named: %v", err)
	}
	id := created(t, d, "bucket-1", map[string]string{"backend": "second", "region": "rma"})
	if !strings.HasPrefix(id, "second/") || len(other.buckets) != 1 || len(f.buckets) != 0 {
		t.Errorf("ID %q, buckets %d and %d", id, len(f.buckets), len(other.buckets))
	}
}

func TestDeleteBucketTwice(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", nil)
	for range 2 {
		if err := d.DeleteBucket(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.buckets) != 0 {
		t.Error("the bucket is still there")
	}
}

// TestDeletionPolicies: where the policy stands, what the gate says, and what
// becomes of the data.
func TestDeletionPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		recorded, asked string
		gate            bool
		want            error
		remedy          string
		purged          bool
	}{
		"default":                  {want: provider.ErrNotEmpty, remedy: "bucketDeletionPolicy", gate: true},
		"recorded, gate on":        {recorded: "DeleteAll", gate: true, purged: true},
		"recorded, gate off":       {recorded: "DeleteAll", want: provider.ErrPrecondition, remedy: "--allow-delete-all"},
		"asked, gate on":           {asked: "DeleteAll", gate: true, purged: true},
		"asked, gate off":          {asked: "DeleteAll", want: provider.ErrPrecondition, remedy: "--allow-delete-all"},
		"asked less than recorded": {recorded: "DeleteAll", asked: "DeleteIfEmpty", gate: true, want: provider.ErrNotEmpty, remedy: "DeleteAll"},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := oneBackend(t, func(cfg *Config) { cfg.AllowDeleteAll = c.gate })
			params := map[string]string{"region": "rma"}
			if c.recorded != "" {
				params["bucketDeletionPolicy"] = c.recorded
			}
			id := created(t, d, "bucket-1", params)
			f.full["bucket-1"] = true
			ask := map[string]string{}
			if c.asked != "" {
				ask["bucketDeletionPolicy"] = c.asked
			}
			err := d.DeleteBucket(t.Context(), id, ask)
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.remedy) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.remedy)
			}
			if purged := slices.Contains(f.purged, "bucket-1"); purged != c.purged || f.full["bucket-1"] == c.purged {
				t.Errorf("purged %v, data left %v", purged, f.full["bucket-1"])
			}
		})
	}
}

// TestGateOffDeletesEmptyBucket: DeleteAll without the gate is DeleteIfEmpty.
func TestGateOffDeletesEmptyBucket(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", map[string]string{"region": "rma", "bucketDeletionPolicy": "DeleteAll"})
	if err := d.DeleteBucket(t.Context(), id, nil); err != nil || len(f.buckets) != 0 {
		t.Errorf("%v, %d buckets are left", err, len(f.buckets))
	}
}

func TestDeleteBucketContradicted(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", nil)
	for _, params := range []map[string]string{{"region": "lpg"}, {"backend": "other"}, {"bucketDeletionPolicy": "deleteAll"}, {"unknown": "x"}} {
		if err := d.DeleteBucket(t.Context(), id, params); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%v: %v", params, err)
		}
	}
	if len(f.buckets) != 1 {
		t.Error("the bucket was deleted")
	}
	if err := d.DeleteBucket(t.Context(), id, map[string]string{"region": "rma", "backend": "cloudscale"}); err != nil {
		t.Error(err)
	}
}

// TestDeleteBucketWhileAccessesLive: a short grace, counted from the first
// request, in which revocations find their bucket.
func TestDeleteBucketWhileAccessesLive(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	clock := func(c *Config) { c.Now = func() time.Time { return now } }
	ctx := t.Context()

	t.Run("revoked in time", func(t *testing.T) {
		d, f := oneBackend(t, clock)
		id := created(t, d, "bucket-1", nil)
		account := granted(t, d, id, "ba-1")
		before := f.callCount()
		err := d.DeleteBucket(ctx, id, nil)
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), "ba-1") || f.callCount() != before {
			t.Fatalf("with a live access: %v after %d calls", err, f.callCount()-before)
		}
		if err := d.RevokeAccess(ctx, RevokeRequest{AccountID: account, BucketIDs: []string{id}}); err != nil {
			t.Fatal(err)
		}
		if err := d.DeleteBucket(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("never revoked", func(t *testing.T) {
		d, f := oneBackend(t, clock)
		id := created(t, d, "bucket-1", nil)
		account := granted(t, d, id, "ba-1")
		for _, step := range []time.Duration{0, 4 * time.Second, 5 * time.Second} {
			now = now.Add(step)
			if err := d.DeleteBucket(ctx, id, nil); !errors.Is(err, provider.ErrPrecondition) {
				t.Fatalf("within the grace: %v", err)
			}
		}
		now = now.Add(2 * time.Second)
		if err := d.DeleteBucket(ctx, id, nil); err != nil || len(f.buckets) != 0 {
			t.Fatalf("after the grace: %v", err)
		}
		if err := d.RevokeAccess(ctx, RevokeRequest{AccountID: account, BucketIDs: []string{id}}); err != nil {
			t.Errorf("revoke after the bucket: %v", err)
		}
		if len(d.live.buckets) != 0 {
			t.Error("the record of accesses is left behind")
		}
	})
	t.Run("no grace", func(t *testing.T) {
		d, _ := oneBackend(t, clock, func(c *Config) { c.RevokeGrace = -1 })
		id := created(t, d, "bucket-1", nil)
		granted(t, d, id, "ba-1")
		if err := d.DeleteBucket(ctx, id, nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("many accesses", func(t *testing.T) {
		d, _ := oneBackend(t, clock)
		id := created(t, d, "bucket-1", nil)
		for _, a := range []string{"ba-1", "ba-2", "ba-3", "ba-4", "ba-5", "ba-6", "ba-7"} {
			granted(t, d, id, a)
		}
		if err := d.DeleteBucket(ctx, id, nil); err == nil || !strings.Contains(err.Error(), "ba-5 and 2 more") {
			t.Error(err)
		}
	})
	t.Run("failed grant does not count", func(t *testing.T) {
		d, f := oneBackend(t, clock)
		id := created(t, d, "bucket-1", nil)
		f.fail = provider.ErrUnavailable
		if _, err := d.GrantAccess(ctx, GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: id}}}); err == nil {
			t.Fatal("granted")
		}
		f.fail = nil
		if err := d.DeleteBucket(ctx, id, nil); err != nil {
			t.Error(err)
		}
	})
}
