package cloudscale

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// usages collects what is yielded.
func usages(ctx context.Context, p *Provider, now time.Time) ([]provider.Usage, error) {
	var all []provider.Usage
	for u, err := range p.usageBefore(ctx, now, nil) {
		if err != nil {
			return all, err
		}
		all = append(all, u)
	}
	return all, nil
}

// TestUsage: the figures are those of the driver's own buckets on the last whole day in
// Zurich.
func TestUsage(t *testing.T) {
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	made := time.Now().In(zurich)
	midnight := time.Date(made.Year(), made.Month(), made.Day()+1, 0, 0, 0, 0, zurich)
	c := newCloud(t, emulator.Options{Now: func() time.Time { return made }})
	b, client := c.make(provider.BucketSpec{Name: "photos", Region: "rma"})
	c.must(client.PutObject(t.Context(), b.Name, "cat", make([]byte, 1234)))
	c.make(provider.BucketSpec{Name: "empty", Region: "lpg"})
	gone, _ := c.make(provider.BucketSpec{Name: "gone", Region: "lpg"})
	c.must(c.DeleteBucket(t.Context(), gone.BucketRef, provider.DeleteOptions{}))
	person, remove := c.person("theirs", "rma")
	c.must(person.PutObject(t.Context(), "theirs", "k", []byte("x")))
	defer func() { c.must(remove(context.WithoutCancel(t.Context()))) }()

	// The day that they were made on is not over.
	for _, now := range []time.Time{made, midnight.Add(-time.Second).UTC()} {
		if got, err := usages(t.Context(), c.Provider, now); err != nil || len(got) != 0 {
			t.Errorf("at %s there are %v, %v", now, got, err)
		}
	}
	got, err := usages(t.Context(), c.Provider, midnight.Add(time.Second).UTC())
	c.must(err)
	slices.SortFunc(got, func(a, b provider.Usage) int { return int(b.Bytes - a.Bytes) })
	if len(got) != 2 || got[0].Name != "photos" || got[0].Region != "rma" || got[0].Bytes != 1234 || got[0].Objects != 1 ||
		got[1].Name != "empty" || got[1].Bytes != 0 {
		t.Fatalf("%+v", got)
	}
	for u, err := range c.usageBefore(t.Context(), midnight.Add(time.Second), func(ref provider.BucketRef) bool { return ref == provider.BucketRef{Name: "empty", Region: "lpg"} }) {
		if err != nil || u.Name != "empty" {
			t.Errorf("of one bucket: %+v, %v", u, err)
		}
	}
	if !got[0].At.Equal(midnight) {
		t.Errorf("the figure is of %s, want %s", got[0].At, midnight)
	}
	defer c.Inject(emulator.Fault{Plane: emulator.PlaneControl, Status: 403, Body: `{"detail": "no"}`})()
	if _, err := usages(t.Context(), c.Provider, made); !errors.Is(c.keep(err), provider.ErrPermissionDenied) {
		t.Errorf("refused: %v", err)
	}
}

// TestTellsOfKeysAndPurges: the end of a wait for a key is told, and what a purge has
// deleted.
func TestTellsOfKeysAndPurges(t *testing.T) {
	delay := map[string]emulator.Delay{"lpg": {Min: 150 * time.Millisecond, Max: 150 * time.Millisecond}}
	now := newClock()
	var objects, bytes int64
	ends := map[string][]bool{}
	tell := func(config *Config) {
		config.KeyWait = time.Hour
		config.OnKeyWait = func(string, time.Duration) { now.move(50 * time.Millisecond) }
		config.OnKeyWaited = func(region string, waited time.Duration, works bool) {
			if waited <= 0 {
				t.Errorf("waited %s", waited)
			}
			ends[region] = append(ends[region], works)
		}
		config.OnPurge = func(o, b int64) { objects, bytes = objects+o, bytes+b }
	}
	c := newCloud(t, emulator.Options{KeyDelay: delay, Now: now.Now}, tell)
	b, client := c.make(provider.BucketSpec{Name: "photos", Region: "lpg"})
	c.make(provider.BucketSpec{Name: "prompt", Region: "rma"})
	if len(ends) != 1 || !slices.Equal(ends["lpg"], []bool{true}) {
		t.Errorf("the waits ended so: %v", ends)
	}
	c.must(client.PutObject(t.Context(), "photos", "cat", make([]byte, 1000)))
	c.must(client.PutObject(t.Context(), "photos", "dog", make([]byte, 234)))
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{Purge: true}))
	if objects != 2 || bytes != 1234 {
		t.Errorf("%d objects with %d bytes were purged, want 2 and 1234", objects, bytes)
	}
	clear(ends)
	never := newCloud(t, emulator.Options{KeyDelay: map[string]emulator.Delay{"lpg": {Min: time.Hour, Max: time.Hour}}}, tell,
		func(config *Config) { config.KeyWait = 10 * time.Millisecond })
	_, err := never.CreateBucket(t.Context(), provider.BucketSpec{Name: "never", Region: "lpg"})
	if !errors.Is(never.keep(err), provider.ErrUnavailable) || !slices.Equal(ends["lpg"], []bool{false}) {
		t.Errorf("%v; the waits ended so: %v", err, ends)
	}
}
