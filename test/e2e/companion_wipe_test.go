package e2e

import (
	"testing"
	"time"
)

// TestWipeOnDelete: a claim asks for its data to be deleted. That counts only if
// the driver may, and never for a claim that does not ask.
func TestWipeOnDelete(t *testing.T) {
	s := alone(t)
	// full makes a claim with data, and its annotation if there is one.
	full := func(name, class, asks string) (claim, access object, client bucketClient) {
		t.Helper()
		claim = s.claim(name, class)
		access = s.access(name, name, s.accessClass())
		client = s.bucketInfo(access).s3()
		if err := client.put(t.Context(), "precious", "data"); err != nil {
			t.Fatal(err)
		}
		if asks != "" {
			s.annotate(claim, wipeOnDelete, asks)
		}
		return claim, access, client
	}
	class := s.class(cloudscale)
	asking, _, _ := full("asking", class, "true")
	s.deleteSoon(asking)
	s.event(asking, "WipeOnDeleteSkipped: zuber.dev/wipe-on-delete has no effect, because the driver runs without --allow-wipe-annotation")
	s.event(s.bucketOf(asking), "it holds objects, ")

	s.Driver.Extra = []string{"--allow-wipe-annotation"}
	defer func() {
		s.Driver.Extra = nil
		s.restart(s.Driver)
	}()
	s.restart(s.Driver)
	// It goes now: the sidecar asks again.
	s.gone(asking)
	for _, backend := range []string{cloudscale, stackit} {
		wiped, _, client := full(backend+"-wiped", s.class(backend), "true")
		silent, silentAccess, _ := full(backend+"-silent", s.class(backend), "")
		wrong, _, _ := full(backend+"-wrong", s.class(backend), "yes")
		s.deleteSoon(wiped, silent, wrong)
		s.gone(wiped)
		if err := client.put(t.Context(), "late", "x"); err == nil {
			t.Error("the bucket is still there")
		}
		s.event(wrong, `WipeOnDeleteSkipped: zuber.dev/wipe-on-delete is "yes": want "true"`)
		for _, kept := range []object{silent, wrong} {
			s.event(s.bucketOf(kept), "it holds objects, ")
			if s.absent(t.Context(), kept) == nil {
				t.Errorf("%s is gone, although its bucket holds data", kept)
			}
		}
		s.freed(silentAccess)
		// Asked while it waits, it goes, too.
		s.annotate(silent, wipeOnDelete, "true")
		s.annotate(wrong, wipeOnDelete, "true")
		s.within(patience+time.Minute, func() error { return s.absent(t.Context(), silent) })
		s.gone(wrong)
	}
}
