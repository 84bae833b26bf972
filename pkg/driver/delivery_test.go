package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// keyring is a fake whose accesses have keys that end.
type keyring struct {
	*fake
	handsOut string
}

func (k *keyring) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	a, err := k.fake.GrantAccess(ctx, spec)
	a.Credentials.AccessKeyID = k.handsOut
	return a, err
}

func (k *keyring) RotateAccess(context.Context, provider.AccountRef, provider.RotateOptions) (provider.Credentials, error) {
	return provider.Credentials{AccessKeyID: "rotated"}, k.called("RotateAccess")
}

func (k *keyring) RetireKeys(context.Context, provider.AccountRef, string) error {
	return k.called("RetireKeys")
}

// A key that a grant has just returned does not end before it can be in the Secrets,
// unless it is seen there or nothing is to be kept.
func TestKeyOnItsWay(t *testing.T) {
	now := time.Now()
	k := &keyring{newFake(), "granted"}
	d, err := New(Config{
		Name: "cosi.zuber.dev", Now: func() time.Time { return now },
		Backends: []Backend{{Name: "cloudscale", Kind: "cloudscale", Provider: k}},
	})
	if err != nil {
		t.Fatal(err)
	}
	bucket := created(t, d, "photos", nil)
	account := ""
	request := func(keep string) RotateRequest {
		return RotateRequest{AccountID: account, BucketIDs: []string{bucket}, KeepAccessKeyID: keep}
	}
	rotate := func(keep string) error {
		_, err := d.RotateAccess(t.Context(), request(keep))
		return err
	}
	retire := func(keep string) error { return d.RetireKeys(t.Context(), request(keep)) }
	for _, end := range []func(string) error{rotate, retire} {
		account = granted(t, d, bucket, "ba-1")
		before := k.callCount()
		if err := end("another"); !errors.Is(err, provider.ErrConflict) || k.callCount() != before {
			t.Fatalf("a key on its way: %v", err)
		}
		if err := errors.Join(end("granted"), end("another")); err != nil {
			t.Errorf("a key that has arrived: %v", err)
		}
		granted(t, d, bucket, "ba-1")
		now = now.Add(deliveryTime)
		if err := end("another"); err != nil {
			t.Errorf("a key that must have arrived: %v", err)
		}
		granted(t, d, bucket, "ba-1")
		if err := errors.Join(rotate(""), end("another")); err != nil {
			t.Errorf("a key that is not kept: %v", err)
		}
	}
}
