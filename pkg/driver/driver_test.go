package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestNewReportsAllFaults(t *testing.T) {
	_, err := New(Config{Name: "Bad_Name", Backends: []Backend{
		{Name: "one", Provider: newFake()}, {Name: "one", Provider: newFake()}, {Name: "a/b", Provider: newFake()}, {Name: "nil"},
	}})
	if !errors.Is(err, provider.ErrInvalidArgument) {
		t.Fatal(err)
	}
	for _, w := range []string{"Bad_Name", `"one" is used twice`, `"a/b"`, `"nil"`} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"cosi.zuber.dev": true, "zuber": true, "": false, "1a": false, "a..b": false, "a.": false, "A": false, "a-": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if err := checkDriverName(name); (err == nil) != ok {
			t.Errorf("driver name %q: %v", name, err)
		}
	}
	for name, ok := range map[string]bool{
		"cloudscale": true, "c": true, "c-1_x.y": true, "": false, "-c": false, "c-": false, "..": false, "C": false, "a/b": false,
		strings.Repeat("a", 64): false,
	} {
		_, err := New(Config{Name: "n", Backends: []Backend{{Name: name, Provider: newFake()}}})
		if (err == nil) != ok {
			t.Errorf("back end name %q: %v", name, err)
		}
	}
}

func TestBucketNames(t *testing.T) {
	for _, good := range []string{"abc", "bucket-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10", "a.b.c", "1-2", strings.Repeat("a", 63)} {
		if err := checkBucketName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, why := range map[string]string{
		"": "0 characters", "ab": "2 characters", strings.Repeat("a", 64): "64 characters", "Abc": "capital letter 'A'",
		"a_b": "'_'", "a/b": "'/'", "-ab": "starts", "ab-": "ends", "ab.": "ends", "a..b": "two dots", "a.-b": "dot beside",
		"192.168.1.1": "IP address", "bücket": "'ü'", "a\nb": `'\n'`, "../..": "'/'",
	} {
		err := checkBucketName(bad)
		if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", bad, err, why)
		}
	}
}

// TestUnconfigured: every call says what to do, and the name is known.
func TestUnconfigured(t *testing.T) {
	d, err := New(Config{Name: "cosi.zuber.dev"})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Unconfigured() || d.Name() != "cosi.zuber.dev" || len(d.Backends()) != 0 {
		t.Error("an unconfigured driver does not say so")
	}
	ctx := t.Context()
	_, create := d.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"})
	_, grant := d.GrantAccess(ctx, GrantRequest{})
	for call, err := range map[string]error{
		"create": create, "grant": grant,
		"delete": d.DeleteBucket(ctx, "a/b/c", nil), "revoke": d.RevokeAccess(ctx, RevokeRequest{}),
	} {
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), "CLOUDSCALE_API_TOKEN") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestEndedContextCostsNoCall(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", nil)
	before := f.callCount()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, create := d.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"})
	_, grant := d.GrantAccess(ctx, GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: id}}})
	for call, err := range map[string]error{
		"create": create, "grant": grant,
		"delete": d.DeleteBucket(ctx, id, nil),
		"revoke": d.RevokeAccess(ctx, RevokeRequest{AccountID: "cloudscale/ba-1", BucketIDs: []string{id}}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if n := f.callCount(); n != before {
		t.Errorf("%d calls were made", n-before)
	}
}

// TestRefusalsAreCheap: a sidecar repeats a hopeless request for ever.
func TestRefusalsAreCheap(t *testing.T) {
	d, f := oneBackend(t)
	ctx := t.Context()
	for range 50 {
		_, create := d.CreateBucket(ctx, "Bucket", map[string]string{"zone": "x"})
		_, grant := d.GrantAccess(ctx, GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "other/rma/b"}}})
		for _, err := range []error{create, grant, d.DeleteBucket(ctx, "other/rma/b", nil),
			d.RevokeAccess(ctx, RevokeRequest{AccountID: "other/ba-1", BucketIDs: []string{"other/rma/b"}})} {
			if !errors.Is(err, provider.ErrInvalidArgument) {
				t.Fatal(err)
			}
		}
	}
	if n := f.callCount(); n != 0 {
		t.Errorf("refused requests cost %d calls", n)
	}
	if d.locks.size() != 0 || len(d.live.buckets) != 0 {
		t.Error("refused requests leave something behind")
	}
}

// TestProviderErrorsKeepTheirSentinel: the face below needs it for the code.
func TestProviderErrorsKeepTheirSentinel(t *testing.T) {
	for _, sentinel := range provider.Sentinels() {
		d, f := oneBackend(t)
		id := created(t, d, "bucket-1", nil)
		f.fail = sentinel
		ctx := t.Context()
		_, create := d.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"})
		_, grant := d.GrantAccess(ctx, GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: id}}})
		for call, err := range map[string]error{"create": create, "grant": grant} {
			if !errors.Is(err, sentinel) || !strings.Contains(err.Error(), "cloudscale") {
				t.Errorf("%s, %v: %v", call, sentinel, err)
			}
		}
		del := d.DeleteBucket(ctx, id, nil)
		rev := d.RevokeAccess(ctx, RevokeRequest{AccountID: "cloudscale/ba-1", BucketIDs: []string{id}})
		want := sentinel
		missing := errors.Is(sentinel, provider.ErrNotFound)
		if missing {
			want = provider.ErrUnavailable // the sidecar would take NotFound for success
		}
		for call, err := range map[string]error{"delete": del, "revoke": rev} {
			if !errors.Is(err, want) || missing && errors.Is(err, sentinel) {
				t.Errorf("%s, %v: %v", call, sentinel, err)
			}
		}
	}
}
