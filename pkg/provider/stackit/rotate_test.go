package stackit

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// TestRotationCutShort: while the new key cannot be confirmed the delivered one
// stays, in force and in the ledger, and repetitions do not pile up keys, be it in
// one process or in ever new ones.
func TestRotationCutShort(t *testing.T) {
	for name, renew := range map[string]bool{"one process": false, "ever new processes": true} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			p := c.provider(t, func(config *Config) { config.PropagationWait = 50 * time.Millisecond })
			mustCreate(t, p, "bucket-1")
			a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
			delivered, err := p.listKeys(t.Context(), testRegion, a.IdentityID)
			if err != nil || len(delivered) != 1 {
				t.Fatal(delivered, err)
			}
			ref := provider.AccountRef{Account: testAccount, IdentityID: a.IdentityID, Buckets: []provider.BucketRef{refOf("bucket-1")}}
			remove := c.emu.Inject(emulator.Fault{Operation: "GetBucketLocation", Status: http.StatusBadRequest, Body: "<Error><Code>InvalidRequest</Code></Error>"})
			most := 2
			for range 3 * maxKeys {
				if renew {
					p, most = c.provider(t), maxKeys
				}
				if _, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{}); !errors.Is(err, provider.ErrPrecondition) {
					t.Fatal(err)
				}
				keys, err := p.listKeys(t.Context(), testRegion, a.IdentityID)
				if err != nil || len(keys) > most || !slices.Contains(keys, delivered[0]) {
					t.Fatalf("%d keys, %v; want at most %d, with the one delivered", len(keys), err, most)
				}
				b, err := p.open(t.Context(), refOf("bucket-1"))
				if err != nil {
					t.Fatal(err)
				}
				e, _ := b.find(groupName(testAccount))
				for _, k := range keys {
					if !slices.Contains(e.keys, fingerprint(k.id)) {
						t.Fatalf("the ledger has %v and lacks a live key", e.keys)
					}
				}
			}
			if err := c.s3As(t, a.Credentials).PutObject(t.Context(), "bucket-1", "k", []byte("x")); err != nil {
				t.Errorf("the delivered key: %v", err)
			}
			remove()
			key, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if key == a.Credentials {
				t.Error("the rotation returned the old key")
			}
			keys, err := p.listKeys(t.Context(), testRegion, a.IdentityID)
			if err != nil || len(keys) != 1 || !maskedAs(keys[0], key.AccessKeyID) {
				t.Errorf("left are %v (%v), want the new key alone", keys, err)
			}
			// What was handed out is not rotated into itself.
			next, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{KeepAccessKeyID: key.AccessKeyID})
			if err != nil || next == key {
				t.Errorf("the next rotation: %v, the same key: %t", err, next == key)
			}
		})
	}
}

// TestGrantedKeyIsRotated although a rotation that was cut short has made it.
func TestGrantedKeyIsRotated(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	ref := provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}
	remove := c.emu.Inject(emulator.Fault{Operation: "GetBucketLocation", Status: http.StatusBadRequest, Body: "<Error><Code>InvalidRequest</Code></Error>"})
	if _, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Fatal(err)
	}
	remove()
	granted := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite).Credentials
	if key, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{}); err != nil || key == granted {
		t.Errorf("%v, the same key: %t", err, key == granted)
	}
}

// TestRotationThatEndsNoKey: while the replaced key cannot be deleted, repetitions go
// on with the new one.
func TestRotationThatEndsNoKey(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	ref := provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}
	remove := c.emu.Inject(emulator.Fault{Operation: "DeleteAccessKey", Status: http.StatusInternalServerError})
	for range 3 {
		if _, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{}); !errors.Is(err, provider.ErrUnavailable) {
			t.Fatal(err)
		}
		if keys, err := p.listKeys(t.Context(), testRegion, a.IdentityID); err != nil || len(keys) != 2 {
			t.Fatalf("%d keys, %v; want the old and the new one", len(keys), err)
		}
	}
	remove()
	key, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
	if err != nil || key == a.Credentials {
		t.Fatalf("%v, the same key: %t", err, key == a.Credentials)
	}
	if keys, err := p.listKeys(t.Context(), testRegion, a.IdentityID); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v; want the new one", len(keys), err)
	}
}

// TestRefusedRetirement changes nothing: a later grant returns the key that it has
// returned before.
func TestRefusedRetirement(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	ref := provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}
	for _, p := range []*Provider{p, c.provider(t)} {
		for _, keep := range []string{"NOSUCHKEYATALL000000", ""} {
			if err := p.RetireKeys(t.Context(), ref, keep); !errors.Is(err, provider.ErrNotFound) {
				t.Errorf("keeping %q: %v", keep, err)
			}
		}
		again := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
		if err := c.s3As(t, again.Credentials).PutObject(t.Context(), "bucket-1", "k", []byte("x")); err != nil {
			t.Error(err)
		}
		if again.IdentityID != a.IdentityID {
			t.Errorf("the identity is %s, want %s", again.IdentityID, a.IdentityID)
		}
	}
	if again := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite); again.Credentials != a.Credentials {
		t.Error("the key is another one")
	}
}

// TestRetirementCutShort: what did not come to the end of a key is repeated, and a later
// grant returns the key that stayed.
func TestRetirementCutShort(t *testing.T) {
	for _, operation := range []string{"GetBucketTagging", "ListAccessKeys", "DeleteAccessKey", "PutBucketTagging"} {
		t.Run(operation, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			mustCreate(t, c.provider(t), "bucket-1")
			lost := mustGrant(t, c.provider(t), testAccount, "bucket-1", provider.ReadWrite)
			p := c.provider(t)
			kept := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite).Credentials
			ref := provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}
			remove := c.emu.Inject(emulator.Fault{Operation: operation, Status: http.StatusInternalServerError})
			if err := p.RetireKeys(t.Context(), ref, kept.AccessKeyID); !errors.Is(err, provider.ErrUnavailable) {
				t.Fatal(err)
			}
			remove()
			if err := p.RetireKeys(t.Context(), ref, kept.AccessKeyID); err != nil {
				t.Fatal(err)
			}
			if again := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite).Credentials; again != kept {
				t.Errorf("a grant returns key %s, want %s, the one that stayed", again.AccessKeyID, kept.AccessKeyID)
			}
			if _, err := c.s3As(t, lost.Credentials).ListObjects(t.Context(), "bucket-1", ""); s3.Code(err) != codeUnknownKey {
				t.Errorf("the key that was ended: %v", err)
			}
		})
	}
}
