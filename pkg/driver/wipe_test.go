package driver

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestWipeOnDelete: whoever claimed the bucket is asked when there is data, and
// about nothing else.
func TestWipeOnDelete(t *testing.T) {
	for name, c := range map[string]struct {
		full, answer, gate, deleteAll bool
		asked                         bool
		purged                        bool
	}{
		"empty":                     {answer: true},
		"data, asked for":           {full: true, answer: true, asked: true, purged: true},
		"data, not asked for":       {full: true, asked: true},
		"DeleteAll with its gate":   {full: true, answer: false, gate: true, deleteAll: true, purged: true},
		"DeleteAll, gate off, ask":  {full: true, answer: true, deleteAll: true, asked: true, purged: true},
		"DeleteAll, gate off, kept": {full: true, deleteAll: true, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			d, f := oneBackend(t, func(cfg *Config) {
				cfg.AllowDeleteAll = c.gate
				cfg.WipeOnDelete = func(_ context.Context, id string) bool {
					asked = append(asked, id)
					return c.answer
				}
			})
			params := map[string]string{"region": "rma"}
			if c.deleteAll {
				params["bucketDeletionPolicy"] = "DeleteAll"
			}
			id := created(t, d, "bucket-1", params)
			f.full["bucket-1"] = c.full
			err := d.DeleteBucket(t.Context(), id, nil)
			if kept := c.full && !c.purged; kept != (err != nil) || kept != (len(f.buckets) == 1) {
				t.Errorf("%v, buckets %v", err, f.buckets)
			}
			if purged := slices.Contains(f.purged, "bucket-1"); purged != c.purged {
				t.Errorf("purged %v", purged)
			}
			if want := []string{id}; c.asked != slices.Equal(asked, want) || !c.asked && len(asked) > 0 {
				t.Errorf("asked about %q", asked)
			}
		})
	}
}

// TestWipeOnDeleteOfForeignBucket: what the driver did not make is never emptied,
// whoever asks for it.
func TestWipeOnDeleteOfForeignBucket(t *testing.T) {
	d, f, _ := withForeign(t)
	f.full["theirs"] = true
	d.wipeOnDelete = func(context.Context, string) bool { return true }
	if err := d.DeleteBucket(t.Context(), "cloudscale/rma/theirs/accessOnly", nil); err != nil || len(f.purged) > 0 || !f.full["theirs"] {
		t.Errorf("%v, purged %v", err, f.purged)
	}
	f.fail = provider.ErrNotEmpty
	d.wipeOnDelete = func(context.Context, string) bool {
		t.Error("asked")
		return true
	}
	if err := d.DeleteBucket(t.Context(), "cloudscale/rma/theirs/accessOnly", nil); !errors.Is(err, provider.ErrNotEmpty) {
		t.Error(err)
	}
}

// TestWipeAnswersInOtherFaults: nobody is asked because of another failure.
func TestWipeAnswersInOtherFaults(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", map[string]string{"region": "rma"})
	d.wipeOnDelete = func(context.Context, string) bool {
		t.Error("asked")
		return true
	}
	f.fail = provider.ErrUnavailable
	if err := d.DeleteBucket(t.Context(), id, map[string]string{"bucketDeletionPolicy": "DeleteIfEmpty"}); !errors.Is(err, provider.ErrUnavailable) {
		t.Error(err)
	}
}
