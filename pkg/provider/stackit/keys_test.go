package stackit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSurplus: what may be in a Secret is never deleted, and the number of keys
// is bounded.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var live []accessKey
		var recorded []string
		for i := range rapid.IntRange(1, 30).Draw(t, "recorded") {
			k := accessKey{id: fmt.Sprintf("recorded-%d", i)}
			if slices.Contains(recorded, fingerprint(k.id)) {
				continue
			}
			recorded = append(recorded, fingerprint(k.id))
			if rapid.IntRange(0, 9).Draw(t, "expired") > 0 {
				live = append(live, k)
			}
		}
		ordered := slices.Clone(live)
		for i := range rapid.IntRange(0, 20).Draw(t, "unrecorded") {
			k := accessKey{id: fmt.Sprintf("unrecorded-%d", i)}
			if !slices.Contains(recorded, fingerprint(k.id)) {
				live = append(live, k)
			}
		}
		live = rapid.Permutation(live).Draw(t, "order")
		remove, left := surplus(recorded, live, "")
		if n := len(live) - len(remove); n > maxKeys || (len(live) > maxKeys && n < maxKeys) {
			t.Fatalf("%d keys are left of %d", n, len(live))
		}
		for i, k := range ordered {
			precious := i < keepOldest || i >= len(ordered)-keepNewest
			if precious && (slices.Contains(remove, k) || !slices.Contains(left, fingerprint(k.id))) {
				t.Fatalf("recorded key %d of %d goes", i, len(ordered))
			}
		}
		for _, f := range left {
			if !slices.ContainsFunc(live, func(k accessKey) bool { return fingerprint(k.id) == f && !slices.Contains(remove, k) }) {
				t.Fatalf("the ledger keeps %s, which is gone", f)
			}
		}
	})
}

// TestSurplusSparesTheKeyToKeep, wherever in the ledger it stands.
func TestSurplusSparesTheKeyToKeep(t *testing.T) {
	for kept := range 12 {
		var recorded []string
		var live []accessKey
		for i := range 12 {
			k := accessKey{id: fmt.Sprintf("key-%d", i), masked: fmt.Sprintf("****************K%03d", i)}
			live = append(live, k)
			if i < 10 {
				recorded = append(recorded, fingerprint(k.id))
			}
		}
		remove, left := surplus(recorded, live, fmt.Sprintf("AF17TKP7BTQX4HSLK%03d", kept))
		if slices.Contains(remove, live[kept]) || kept < 10 && !slices.Contains(left, recorded[kept]) {
			t.Errorf("key %d goes", kept)
		}
		if n := len(live) - len(remove); n < maxKeys || n > maxKeys+1 {
			t.Errorf("keeping key %d: %d keys are left", kept, n)
		}
	}
}

func TestMasked(t *testing.T) {
	for masked, want := range map[string]bool{"****************TGVP": true, "****************XXXX": false, "": true, "****": true, "AF17…TGVP": true, "AF17TKP7BTQX4HSLTGVP": true} {
		if got := maskedAs(accessKey{masked: masked}, "AF17TKP7BTQX4HSLTGVP"); got != want {
			t.Errorf("%q: %v", masked, got)
		}
	}
}
