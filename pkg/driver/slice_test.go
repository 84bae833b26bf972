package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// slow is a provider whose deletions and revocations last until their context ends.
type slow struct {
	fake
	deadlines []time.Duration // what was left of each, when it began
	answer    func(ctx context.Context) error
}

func (s *slow) last(ctx context.Context) error {
	left := time.Duration(0)
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	s.deadlines = append(s.deadlines, left)
	return s.answer(ctx)
}

func (s *slow) DeleteBucket(ctx context.Context, _ provider.BucketRef, _ provider.DeleteOptions) error {
	return s.last(ctx)
}

func (s *slow) RevokeAccess(ctx context.Context, _ provider.AccountRef) error { return s.last(ctx) }

func slowDriver(t *testing.T, cfg Config, answer func(context.Context) error) (*Driver, *slow) {
	t.Helper()
	s := &slow{fake: *newFake(), answer: answer}
	cfg.Name, cfg.Backends = "cosi.zuber.dev", []Backend{{Name: "cloudscale", Kind: "cloudscale", Provider: s}}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func deleteAll(t *testing.T, d *Driver) error {
	t.Helper()
	return d.DeleteBucket(t.Context(), "cloudscale/rma/bucket-1", map[string]string{"bucketDeletionPolicy": "DeleteAll"})
}

// TestDeletionIsSliced: what may delete much data has 20 s, whatever the caller allows.
func TestDeletionIsSliced(t *testing.T) {
	d, s := slowDriver(t, Config{AllowDeleteAll: true}, func(context.Context) error { return nil })
	if err := deleteAll(t, d); err != nil {
		t.Fatal(err)
	}
	if err := d.RevokeAccess(t.Context(), RevokeRequest{AccountID: "cloudscale/ba-1"}); err != nil {
		t.Fatal(err)
	}
	if len(s.deadlines) != 2 {
		t.Fatalf("%d calls", len(s.deadlines))
	}
	for _, left := range s.deadlines {
		if left <= 0 || left > 20*time.Second {
			t.Errorf("a call may last %s", left)
		}
	}
	// A driver that may not delete data has nothing that lasts so long.
	d, s = slowDriver(t, Config{}, func(context.Context) error { return nil })
	if err := deleteAll(t, d); err != nil {
		t.Fatal(err)
	}
	if s.deadlines[0] != 0 {
		t.Errorf("a deletion without data is cut off after %s", s.deadlines[0])
	}
}

// TestEndOfSlice: the provider's progress is told, and what it cannot tell as a sentinel
// is ErrUnavailable; neither looks like the end of the call itself.
func TestEndOfSlice(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) error{
		"the provider tells": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("bucket-1: %w: 1000 versions are deleted", provider.ErrUnavailable)
		},
		"the provider tells both": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("bucket-1: %w: 1000 versions are deleted: %w", provider.ErrUnavailable, ctx.Err())
		},
		"the provider was cut off": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("bucket-1: 1000 versions are deleted: %w", ctx.Err())
		},
	} {
		d, _ := slowDriver(t, Config{AllowDeleteAll: true, DeleteSlice: time.Millisecond}, answer)
		err := deleteAll(t, d)
		if !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "1000 versions are deleted") || !strings.Contains(err.Error(), "bucket-1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The caller's own end stays what it is.
	d, _ := slowDriver(t, Config{AllowDeleteAll: true}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := d.RevokeAccess(ctx, RevokeRequest{AccountID: "cloudscale/ba-1"}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("the caller's time ended with %v", err)
	}
	// A fault while time is left is told as it is.
	d, _ = slowDriver(t, Config{AllowDeleteAll: true}, func(context.Context) error { return fmt.Errorf("one HTTP call: %w", context.DeadlineExceeded) })
	if err := deleteAll(t, d); errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{Name: "cosi.zuber.dev", DeleteSlice: -1}); !errors.Is(err, provider.ErrInvalidArgument) {
		t.Errorf("a negative slice: %v", err)
	}
}

// TestModesStayWithinTheClass: a user does not get more than the administrator wrote.
func TestModesStayWithinTheClass(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", nil)
	for _, class := range modes() {
		for _, asked := range modes() {
			_, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Parameters: map[string]string{"accessMode": class},
				Buckets: []GrantBucket{{ID: id, Mode: provider.Mode(asked)}}})
			within := class == asked || class == string(provider.ReadWrite)
			if within && err != nil || !within && (!errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), class)) {
				t.Errorf("class %s, request %s: %v", class, asked, err)
			}
			if within && f.granted[len(f.granted)-1].Buckets[0].Mode != provider.Mode(asked) {
				t.Errorf("class %s, request %s: granted %+v", class, asked, f.granted[len(f.granted)-1])
			}
		}
	}
}
