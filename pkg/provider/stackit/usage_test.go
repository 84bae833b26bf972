package stackit

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestUsage lists the driver's own buckets.
func TestUsage(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	at := time.Now()
	p := c.provider(t, func(config *Config) { config.Now = func() time.Time { return at } })
	other := c.fresh("other").provider(t)
	mustCreate(t, other, "theirs")
	mustCreate(t, p, "empty")
	mustCreate(t, p, "photos")
	client := c.s3As(t, mustGrant(t, p, testAccount, "photos", "").Credentials)
	for _, key := range []string{"cat", "dog"} {
		if err := client.PutObject(t.Context(), "photos", key, make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
	}
	var got []provider.Usage
	for u, err := range p.Usage(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u)
	}
	want := []provider.Usage{{BucketRef: refOf("empty"), At: at}, {BucketRef: refOf("photos"), Bytes: 1000, Objects: 2, At: at}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	c.emu.Inject(emulator.Fault{Operation: "ListObjectVersions", Status: 403, Body: "<Error><Code>AccessDenied</Code></Error>"})
	for u, err := range p.Usage(t.Context(), func(ref provider.BucketRef) bool { return ref == refOf("none") }) {
		t.Errorf("what nobody wants is listed: %+v, %v", u, err)
	}
	var err error
	for _, e := range p.Usage(t.Context(), nil) {
		err = e
	}
	if !errors.Is(err, provider.ErrPermissionDenied) {
		t.Errorf("refused: %v", err)
	}
}

// TestTellsOfKeysAndPurges: the end of a wait for a key is told once, and what a purge
// has deleted.
func TestTellsOfKeysAndPurges(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{KeyDelay: emulator.Delay{Min: 30 * time.Millisecond, Max: 40 * time.Millisecond}}})
	var ends []bool
	var objects, bytes int64
	tell := func(config *Config) {
		config.OnKeyWaited = func(_ string, waited time.Duration, works bool) {
			if waited <= 0 {
				t.Errorf("waited %s", waited)
			}
			ends = append(ends, works)
		}
		config.OnPurge = func(o, b int64) { objects, bytes = objects+o, bytes+b }
	}
	p := c.provider(t, tell)
	mustCreate(t, p, "photos")
	access := mustGrant(t, p, testAccount, "photos", "")
	if len(ends) == 0 || len(ends) > 2 || slices.Contains(ends, false) {
		t.Errorf("the waits for the admin's key, and maybe for that of the access, ended so: %v", ends)
	}
	if err := c.s3As(t, access.Credentials).PutObject(t.Context(), "photos", "cat", make([]byte, 1234)); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteBucket(t.Context(), refOf("photos"), provider.DeleteOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	if objects != 1 || bytes != 1234 {
		t.Errorf("%d objects with %d bytes were purged, want 1 and 1234", objects, bytes)
	}
	mustCreate(t, p, "other")
	ends = nil
	impatient := c.provider(t, tell, func(config *Config) { config.PropagationWait = time.Millisecond })
	if _, err := impatient.GetBucket(t.Context(), refOf("other")); !errors.Is(err, provider.ErrUnavailable) || !slices.Equal(ends, []bool{false}) {
		t.Errorf("%v; the waits ended so: %v", err, ends)
	}
}
