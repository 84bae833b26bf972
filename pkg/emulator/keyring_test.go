package emulator

import (
	"net/http"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

func works(k *keyring, region string) bool {
	_, ok := k.Lookup(region, "AK")
	return ok
}

func TestKeyDelay(t *testing.T) {
	now := newClock()
	k := newKeyring(1, now.Now, []string{"rma", "lpg"})
	k.setDelays(map[string]Delay{"lpg": {Min: 20 * time.Second, Max: 20 * time.Second}})
	key := objectstore.Key{Secret: "s", Identity: objectstore.Identity{UID: "u", DisplayName: "d"}}

	check := func(when string, rma, lpg bool) {
		t.Helper()
		if works(k, "rma") != rma || works(k, "lpg") != lpg {
			t.Errorf("%s: works in rma %v, in lpg %v; want %v, %v", when, works(k, "rma"), works(k, "lpg"), rma, lpg)
		}
	}
	check("unknown", false, false)
	k.add("AK", key)
	check("new", true, false)
	now.Advance(20*time.Second - 1)
	check("just before", true, false)
	now.Advance(1)
	check("after the delay", true, true)
	if got, _ := k.Lookup("lpg", "AK"); got != key {
		t.Errorf("key is %v, want %v", got, key)
	}
	if works(k, "elsewhere") {
		t.Error("the key works in a region that does not exist")
	}

	k.remove("AK")
	check("removed", false, true)
	now.Advance(10 * time.Second)
	k.remove("AK") // again, which must not prolong it
	now.Advance(10*time.Second - 1)
	check("removed, just before", false, true)
	now.Advance(1)
	check("removed, after the delay", false, false)
	k.remove("AK")
	if len(k.entries) != 0 {
		t.Errorf("%d dead keys are kept", len(k.entries))
	}
}

func TestKeyRemovedBeforeItWasKnown(t *testing.T) {
	now := newClock()
	k := newKeyring(1, now.Now, []string{"rma", "lpg"})
	k.setDelays(map[string]Delay{"lpg": {Min: 20 * time.Second, Max: 20 * time.Second}})
	k.add("AK", objectstore.Key{})
	now.Advance(5 * time.Second)
	k.remove("AK")
	for range 30 {
		now.Advance(time.Second)
		if works(k, "rma") {
			t.Fatal("a removed key works at the master")
		}
	}
}

func TestRealisticKeyDelay(t *testing.T) {
	d := RealisticKeyDelay()
	if len(d) != 2 {
		t.Fatalf("%d regions, want 2", len(d))
	}
	draw := func(seed uint64) (master, other []time.Duration) {
		k := newKeyring(seed, time.Now, []string{"rma", "lpg"})
		for range 400 {
			master = append(master, d["rma"].draw(k.rng))
			other = append(other, d["lpg"].draw(k.rng))
		}
		return master, other
	}
	master, other := draw(7)
	quick := 0
	for i := range master {
		if master[i] < 10*time.Millisecond || master[i] > 110*time.Millisecond {
			t.Errorf("master: %s", master[i])
		}
		switch {
		case other[i] == 150*time.Millisecond:
			quick++
		case other[i] < 11*time.Second || other[i] > 20*time.Second:
			t.Errorf("other region: %s", other[i])
		}
	}
	if quick < 50 || quick > 150 {
		t.Errorf("%d of 400 keys were quick, want about 100", quick)
	}
	again, _ := draw(7)
	different, _ := draw(8)
	same := 0
	for i := range master {
		if again[i] != master[i] {
			t.Fatal("one seed makes two sequences")
		}
		if different[i] == master[i] {
			same++
		}
	}
	if same > 4 {
		t.Errorf("two seeds agree in %d of 400 delays", same)
	}
}

func TestKeyDelayAtTheEndpoints(t *testing.T) {
	// minio-go signs with the real time; the skew of this test stays within bounds.
	now := newClock()
	now.Set(time.Now())
	e := start(t, Options{Now: now.Now, KeyDelay: map[string]Delay{"lpg": {Min: 20 * time.Second, Max: 20 * time.Second}}})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"x"}`)
	list := func(region string) string {
		t.Helper()
		_, err := s3(t, e, region, u).ListBuckets(t.Context())
		if err == nil {
			return ""
		}
		return minio.ToErrorResponse(err).Code
	}
	if got := list("rma"); got != "" {
		t.Errorf("master, new key: %s", got)
	}
	if got := list("lpg"); got != "InvalidAccessKeyId" {
		t.Errorf("other region, new key: %q", got)
	}
	now.Advance(20 * time.Second)
	if got := list("lpg"); got != "" {
		t.Errorf("other region, after the delay: %s", got)
	}
	resp, _ := call(t, request{method: http.MethodDelete, url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token})
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("delete: %s", resp.Status)
	}
	if got := list("rma"); got != "InvalidAccessKeyId" {
		t.Errorf("master, removed key: %q", got)
	}
	if got := list("lpg"); got != "" {
		t.Errorf("other region, removed key: %s", got)
	}
	now.Advance(20 * time.Second)
	if got := list("lpg"); got != "InvalidAccessKeyId" {
		t.Errorf("other region, removed key after the delay: %q", got)
	}

	if err := e.SetKeyDelay(nil); err != nil {
		t.Fatal(err)
	}
	u = createUser(t, e, cs.Token, `{"display_name":"z"}`)
	if got := list("lpg"); got != "" {
		t.Errorf("without a delay: %s", got)
	}
}

func TestKeyDelayValidation(t *testing.T) {
	for name, delays := range map[string]map[string]Delay{
		"unknown region": {"zrh": {}},
		"negative":       {"rma": {Min: -1}},
		"max below min":  {"rma": {Min: 2, Max: 1}},
		"share":          {"rma": {QuickShare: 1.5}},
	} {
		if e, err := Start(Options{KeyDelay: delays}); err == nil {
			t.Errorf("%s: Start took it", name)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	e := start(t, Options{KeyDelay: RealisticKeyDelay()})
	if err := e.SetKeyDelay(map[string]Delay{"lpg": {}, "zrh": {}}); err == nil {
		t.Error("SetKeyDelay took an unknown region")
	}
	if got := e.keyDelay()["lpg"]; got != RealisticKeyDelay()["lpg"] {
		t.Errorf("a refused SetKeyDelay changed lpg to %+v", got)
	}
}

func TestRenameShowsAtTheKey(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"before"}`)
	call(t, request{method: http.MethodPatch, url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token, body: `{"display_name":"after"}`})
	key, ok := cs.ring.Lookup("rma", u.Keys[0].AccessKey)
	if !ok || key.Identity != (objectstore.Identity{UID: u.ID, DisplayName: "after"}) {
		t.Errorf("identity is %+v, %v", key.Identity, ok)
	}
}
