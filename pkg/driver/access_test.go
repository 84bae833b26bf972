package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestGrantTwice(t *testing.T) {
	d, f := oneBackend(t)
	id := created(t, d, "bucket-1", nil)
	first, second := granted(t, d, id, "ba-1"), granted(t, d, id, "ba-1")
	if first != "cloudscale/ba-1/id-ba-1" || second != first {
		t.Errorf("account IDs %q and %q", first, second)
	}
	if m := f.granted[0].Buckets[0].Mode; m != provider.ReadWrite {
		t.Errorf("no mode became %q", m)
	}
}

func TestGrantWithShortBucketID(t *testing.T) {
	d, f := oneBackend(t)
	created(t, d, "bucket-1", nil)
	g, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "cloudscale/rma/bucket-1", Mode: provider.ReadOnly}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.granted[0].Buckets[0]; got.OwnerID != "" || got.Mode != provider.ReadOnly {
		t.Errorf("the provider was asked for %+v", got)
	}
	if g.Buckets[0].ID != "cloudscale/rma/bucket-1" {
		t.Errorf("the bucket came back as %q", g.Buckets[0].ID)
	}
}

func TestGrantModes(t *testing.T) {
	for _, c := range []struct {
		class map[string]string
		asked provider.Mode
		want  provider.Mode
	}{
		{nil, "", provider.ReadWrite},
		{map[string]string{"accessMode": "ReadOnly"}, "", provider.ReadOnly},
		{map[string]string{"accessMode": "WriteOnly"}, "", provider.WriteOnly},
		{nil, provider.ReadOnly, provider.ReadOnly},
		{map[string]string{"accessMode": "ReadWrite"}, provider.WriteOnly, provider.WriteOnly},
	} {
		d, f := oneBackend(t)
		id := created(t, d, "bucket-1", nil)
		_, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: id, Mode: c.asked}}, Parameters: c.class})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.granted[0].Buckets[0].Mode; got != c.want {
			t.Errorf("class %v and request %q became %q, want %q", c.class, c.asked, got, c.want)
		}
	}
}

func TestGrantSeveralBuckets(t *testing.T) {
	d, _ := oneBackend(t)
	ids := []string{created(t, d, "bucket-2", nil), created(t, d, "bucket-1", nil)}
	req := GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: ids[0]}, {ID: ids[1]}}}
	g, err := d.GrantAccess(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if g.Buckets[i].ID != id || !strings.Contains(id, "/"+g.Buckets[i].Bucket.Name+"/") {
			t.Errorf("bucket %d: %+v, asked for %q", i, g.Buckets[i], id)
		}
		if err := d.DeleteBucket(t.Context(), id, nil); !errors.Is(err, provider.ErrPrecondition) {
			t.Errorf("delete %s with a live access: %v", id, err)
		}
	}
	if err := d.RevokeAccess(t.Context(), RevokeRequest{AccountID: g.AccountID, BucketIDs: ids}); err != nil {
		t.Fatal(err)
	}
	if len(d.live.buckets) != 0 {
		t.Error("the record of accesses is left behind")
	}
}

func TestBadGrants(t *testing.T) {
	second := newFake()
	d, f := oneBackend(t, func(c *Config) { c.Backends = append(c.Backends, Backend{Name: "second", Provider: second}) })
	for name, c := range map[string]struct {
		req  GrantRequest
		want []string
	}{
		"empty":     {GrantRequest{}, []string{"account name", "no bucket is named"}},
		"account":   {GrantRequest{Account: "a/b", Buckets: []GrantBucket{{ID: "x"}}}, []string{`"a/b"`, "not this driver's"}},
		"dots":      {GrantRequest{Account: "..", Buckets: []GrantBucket{{ID: "cloudscale/rma/b"}}}, []string{"account name"}},
		"long":      {GrantRequest{Account: strings.Repeat("a", 254), Buckets: []GrantBucket{{ID: "cloudscale/rma/b"}}}, []string{"account name"}},
		"foreign":   {GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "minio/rma/b"}}}, []string{"not this driver's", `"minio"`, "cloudscale, second"}},
		"mode":      {GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "cloudscale/rma/b", Mode: "readonly"}}}, []string{`did you mean "ReadOnly"?`}},
		"parameter": {GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "cloudscale/rma/b"}}, Parameters: map[string]string{"region": "rma"}}, []string{"BucketClass"}},
		"twice":     {GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "cloudscale/rma/b"}, {ID: "cloudscale/rma/b/o"}}}, []string{"named twice"}},
		"two ends":  {GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: "cloudscale/rma/b"}, {ID: "second/rma/b"}}}, []string{"two back ends"}},
	} {
		_, err := d.GrantAccess(t.Context(), c.req)
		if !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", name, err, w)
			}
		}
	}
	if f.callCount()+second.callCount() != 0 {
		t.Error("bad requests cost calls")
	}
}

func TestRevoke(t *testing.T) {
	d, f := oneBackend(t, func(c *Config) { c.Backends = append(c.Backends, Backend{Name: "second", Provider: newFake()}) })
	id := created(t, d, "bucket-1", map[string]string{"region": "rma", "backend": "cloudscale"})
	account := granted(t, d, id, "ba-1")
	ctx := t.Context()
	for range 2 {
		if err := d.RevokeAccess(ctx, RevokeRequest{AccountID: account, BucketIDs: []string{id}}); err != nil {
			t.Fatal(err)
		}
	}
	want := provider.AccountRef{Account: "ba-1", IdentityID: "id-ba-1", Buckets: []provider.BucketRef{{Name: "bucket-1", Region: "rma", OwnerID: "owner1"}}}
	if got := f.revoked[0]; got.Account != want.Account || got.IdentityID != want.IdentityID || got.Buckets[0] != want.Buckets[0] {
		t.Errorf("the provider was asked for %+v", got)
	}

	before := f.callCount()
	if err := d.RevokeAccess(ctx, RevokeRequest{BucketIDs: []string{id}}); err != nil {
		t.Errorf("no account ID, our bucket: %v", err)
	}
	for name, req := range map[string]RevokeRequest{
		"nothing":                         {},
		"no account, foreign bucket":      {BucketIDs: []string{"minio/rma/b"}},
		"no account, garbage":             {BucketIDs: []string{"?"}},
		"no account, empty bucket":        {BucketIDs: []string{""}},
		"foreign account":                 {AccountID: "minio/ba-1", BucketIDs: []string{id}},
		"garbage account":                 {AccountID: "ba-1", BucketIDs: []string{id}},
		"our account, foreign bucket":     {AccountID: account, BucketIDs: []string{"minio/rma/b"}},
		"account of another of our backs": {AccountID: "second/ba-1", BucketIDs: []string{id}},
	} {
		if err := d.RevokeAccess(ctx, req); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.callCount() != before {
		t.Error("these must not reach the cloud")
	}
}

// TestParallelGrantsOnOneBucket: one writer per bucket, any number of buckets.
func TestParallelGrantsOnOneBucket(t *testing.T) {
	d, f := oneBackend(t)
	ids := []string{created(t, d, "bucket-1", nil), created(t, d, "bucket-2", nil)}
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			account, bucket := fmt.Sprintf("ba-%d", i), GrantBucket{ID: ids[i%2]}
			if _, err := d.GrantAccess(t.Context(), GrantRequest{Account: account, Buckets: []GrantBucket{bucket}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f.overlaps != 0 || len(f.granted) != 80 {
		t.Errorf("%d grants of 80, %d at the same time on one bucket", len(f.granted), f.overlaps)
	}
	if d.locks.size() != 0 {
		t.Error("locks are left behind")
	}
}

// TestBusyBucketBlocksNoOther: a call that hangs holds its own bucket only, and
// whoever waits for that bucket obeys its context.
func TestBusyBucketBlocksNoOther(t *testing.T) {
	d, f := oneBackend(t)
	one, two := created(t, d, "bucket-1", nil), created(t, d, "bucket-2", nil)
	f.enter, f.leave = make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: one}}})
		done <- err
	}()
	<-f.enter
	if err := d.DeleteBucket(t.Context(), two, nil); err != nil {
		t.Errorf("the other bucket: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := make(chan error, 1)
	go func() { waiting <- d.DeleteBucket(ctx, one, nil) }()
	cancel(nil)
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the busy bucket: %v", err)
	}
	close(f.leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What a class says of keys and of a workload's own buckets reaches the provider,
// and so does the process-wide gate.
func TestClassReachesTheProvider(t *testing.T) {
	for _, c := range []struct {
		params map[string]string
		keys   provider.CredentialMode
		own    provider.OwnBuckets
		gate   bool
	}{
		{nil, provider.CredentialsPerAccess, provider.OwnBucketsRefuse, false},
		{map[string]string{"credentials": "shared", "ownBuckets": "purge"}, provider.CredentialsShared, provider.OwnBucketsPurge, true},
	} {
		f := newFake()
		d, err := New(Config{Name: "cosi.test", Backends: []Backend{{Name: "cs", Kind: "fake", Provider: f}}, AllowDeleteAll: c.gate})
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.CreateBucket(t.Context(), "bucket", map[string]string{"region": "rma"})
		if err != nil {
			t.Fatal(err)
		}
		g, err := d.GrantAccess(t.Context(), GrantRequest{Account: "ba-1", Buckets: []GrantBucket{{ID: b.ID}}, Parameters: c.params})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.RevokeAccess(t.Context(), RevokeRequest{AccountID: g.AccountID, BucketIDs: []string{b.ID}}); err != nil {
			t.Fatal(err)
		}
		if s := f.granted[0]; s.Credentials != c.keys || s.OwnBuckets != c.own || f.revoked[0].PurgeOwn != c.gate {
			t.Errorf("%v: granted %+v, revoked %+v", c.params, s, f.revoked[0])
		}
	}
}
