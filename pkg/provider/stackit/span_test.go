package stackit

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// spanCloud is a cloud with three buckets, the last of them somebody else's.
func spanCloud(t *testing.T) (*cloud, *Provider) {
	t.Helper()
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	prepare(t, c, p, "b-a", "b-b", "b-theirs")
	return c, p
}

func mustSpan(t *testing.T, p *Provider, buckets ...string) provider.Access {
	t.Helper()
	a, err := p.GrantAccess(t.Context(), spanning(testAccount, buckets...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustRevoke(t *testing.T, p *Provider, buckets ...string) {
	t.Helper()
	if err := p.RevokeAccess(t.Context(), revocation(testAccount, buckets...)); err != nil {
		t.Fatal(err)
	}
}

var everyBucket = []string{"b-a", "b-b", "b-theirs"}

// TestSpanGrows: whichever buckets a repetition names, there is one identity, and in
// one process one key, and every ledger knows of every bucket.
func TestSpanGrows(t *testing.T) {
	for name, sets := range map[string][][]string{
		"one more":          {{"b-a"}, {"b-a", "b-b", "b-theirs"}},
		"one by one":        {{"b-a"}, {"b-b"}, {"b-theirs"}},
		"theirs first":      {{"b-theirs"}, {"b-b"}, {"b-a"}},
		"overlapping":       {{"b-a", "b-b"}, {"b-theirs", "b-b"}},
		"in another order":  {{"b-a", "b-b", "b-theirs"}, {"b-theirs", "b-b", "b-a"}},
		"a part of the set": {{"b-a", "b-b", "b-theirs"}, {"b-b"}},
	} {
		for _, restarts := range []bool{false, true} {
			c, p := spanCloud(t)
			first := mustSpan(t, p, sets[0]...)
			last := first
			for _, set := range sets[1:] {
				if restarts {
					p = c.provider(t)
				}
				last = mustSpan(t, p, set...)
				if last.IdentityID != first.IdentityID || !restarts && last.Credentials != first.Credentials || len(last.Buckets) != len(set) || last.Buckets[0].Name != set[0] {
					t.Errorf("%s: another identity or key, or buckets in another order", name)
				}
			}
			c.has(t, p, testAccount, everyBucket, everyBucket)
			for _, a := range []provider.Access{first, last} {
				client := c.s3As(t, a.Credentials)
				for _, b := range everyBucket {
					if _, err := client.ListObjects(t.Context(), b, ""); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if err := client.PutObject(t.Context(), b, "k", nil); (err == nil) != (spanMode(b) == provider.ReadWrite) {
						t.Errorf("%s: write to %s: %v", name, b, err)
					}
				}
			}
			mustRevoke(t, c.provider(t), sets[len(sets)-1]...)
			mustRevoke(t, c.provider(t), everyBucket...)
			c.has(t, p, testAccount, nil, everyBucket)
		}
	}
}

// TestSpanKeysAreBounded although the repetitions name parts of the buckets: no key
// that was handed out and is to be kept is taken for one that was not.
func TestSpanKeysAreBounded(t *testing.T) {
	c, p := spanCloud(t)
	granted := []provider.Access{mustSpan(t, p, everyBucket...)}
	for i := range 2 * maxKeys {
		granted = append(granted, mustSpan(t, c.provider(t), everyBucket[i%3]))
		if g := c.groups(); len(g) != 1 || g[0].Keys > maxKeys {
			t.Fatalf("groups %v", g)
		}
	}
	for i, a := range granted {
		_, err := c.s3As(t, a.Credentials).ListObjects(t.Context(), "b-b", "")
		if kept := i < keepOldest || i >= len(granted)-keepNewest; kept != (err == nil) {
			t.Errorf("key %d of %d: %v", i+1, len(granted), err)
		}
	}
}

// TestSpanEndsByBucket: what is not named goes on, also where the named one is gone
// and says nothing of the others.
func TestSpanEndsByBucket(t *testing.T) {
	c, p := spanCloud(t)
	a := mustSpan(t, p, everyBucket...)
	client := c.s3As(t, a.Credentials)
	if err := p.deleteBucket(t.Context(), refOf("b-a")); err != nil {
		t.Fatal(err)
	}
	mustRevoke(t, c.provider(t), "b-a")
	c.has(t, p, testAccount, everyBucket[1:], everyBucket[1:])
	for range 2 {
		mustRevoke(t, c.provider(t), "b-theirs")
		c.has(t, p, testAccount, everyBucket[1:2], everyBucket[1:])
	}
	// Without a policy of ours the key would open it.
	if _, err := client.ListObjects(t.Context(), "b-theirs", ""); s3.Code(err) != "AccessDenied" {
		t.Errorf("after its revocation: %v", err)
	}
	if _, err := client.ListObjects(t.Context(), "b-b", ""); err != nil {
		t.Errorf("after the revocation for others: %v", err)
	}
	// It may be given again.
	mustSpan(t, c.provider(t), "b-theirs")
	c.has(t, p, testAccount, everyBucket[1:], everyBucket[1:])
	mustRevoke(t, c.provider(t), "b-theirs")
	if err := c.provider(t).DeleteBucket(t.Context(), refIn("b-theirs"), provider.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	c.has(t, p, testAccount, everyBucket[1:2], everyBucket[1:])
	if err := c.provider(t).DeleteBucket(t.Context(), refOf("b-b"), provider.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	c.has(t, p, testAccount, nil, everyBucket[2:])
}

// TestSpanWhileTheListLags: the other bucket is too young to be listed, and its
// access goes on all the same.
func TestSpanWhileTheListLags(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{ListDelay: emulator.Delay{Min: time.Hour, Max: time.Hour}}})
	p := c.provider(t)
	prepare(t, c, p, "b-a", "b-b", "b-theirs")
	a := mustSpan(t, p, everyBucket...)
	ref := revocation(testAccount, "b-a")
	ref.IdentityID = a.IdentityID
	if err := p.RevokeAccess(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteBucket(t.Context(), refOf("b-b"), provider.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.s3As(t, a.Credentials).ListObjects(t.Context(), "b-theirs", ""); err != nil {
		t.Error(err)
	}
	c.has(t, p, testAccount, everyBucket[2:], everyBucket[2:])
}

// TestSpanEndsWithoutItsBuckets: an account ID is enough to end it everywhere.
func TestSpanEndsWithoutItsBuckets(t *testing.T) {
	c, p := spanCloud(t)
	mustSpan(t, p, everyBucket...)
	mustRevoke(t, c.provider(t))
	c.has(t, p, testAccount, nil, everyBucket)
}

// TestSpanIsMended: somebody has deleted its group. A repetition that names one
// bucket takes the dead group out of all policies.
func TestSpanIsMended(t *testing.T) {
	c, p := spanCloud(t)
	a := mustSpan(t, p, everyBucket...)
	if err := errors.Join(p.removeKeys(t.Context(), testRegion, a.IdentityID), p.removeGroup(t.Context(), testRegion, a.IdentityID)); err != nil {
		t.Fatal(err)
	}
	again := mustSpan(t, c.provider(t), "b-b")
	if again.IdentityID == a.IdentityID {
		t.Error("the dead group was returned")
	}
	c.has(t, p, testAccount, everyBucket, everyBucket)
}

// TestSpanOfTwoGroups: two processes have made one each at the same moment. Neither
// key may go without being asked, so a person has to.
func TestSpanOfTwoGroups(t *testing.T) {
	c, p := spanCloud(t)
	mustSpan(t, p, "b-a")
	g, err := p.createGroup(t.Context(), testRegion, groupName(testAccount))
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.open(t.Context(), refOf("b-b"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.change(t.Context(), b, func(m *marks) { m.put(entry{name: g.name, id: g.id, urn: g.urn, mode: provider.ReadWrite}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]string{{"b-a", "b-b"}, {"b-b", "b-a"}} {
		_, err := c.provider(t).GrantAccess(t.Context(), spanning(testAccount, set...))
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), g.id) || !strings.Contains(err.Error(), "revoke it") {
			t.Error(err)
		}
	}
	mustRevoke(t, p, "b-a", "b-b")
	mustSpan(t, p, "b-a", "b-b")
	c.has(t, p, testAccount, everyBucket[:2], everyBucket)
}

// TestSpanAtOnce: grants of parts of the buckets, then deletions of all of them, in
// one process at the same time.
func TestSpanAtOnce(t *testing.T) {
	c, p := spanCloud(t)
	var wg sync.WaitGroup
	for _, set := range [][]string{{"b-a", "b-b"}, {"b-theirs", "b-b"}, {"b-a"}, {"b-b"}, {"b-theirs", "b-a"}, {"b-b", "b-theirs", "b-a"}} {
		wg.Go(func() {
			if _, err := p.GrantAccess(t.Context(), spanning(testAccount, set...)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.has(t, p, testAccount, everyBucket, everyBucket)
	for _, b := range everyBucket {
		wg.Go(func() {
			if err := p.DeleteBucket(t.Context(), refIn(b), provider.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.has(t, p, testAccount, nil, everyBucket[2:])
}

// TestRevokeDuringGrant: in whatever order they come, nothing half-made is left
// after another revocation.
func TestRevokeDuringGrant(t *testing.T) {
	c, p := spanCloud(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if i%2 == 0 {
				if _, err := p.GrantAccess(t.Context(), spanning(testAccount, everyBucket...)); err != nil {
					t.Error(err)
				}
			} else if err := p.RevokeAccess(t.Context(), revocation(testAccount, everyBucket...)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	mustRevoke(t, c.provider(t), everyBucket...)
	c.has(t, p, testAccount, nil, everyBucket)
}

// TestPrintsThatCollide are told apart by nothing, and refused.
func TestPrintsThatCollide(t *testing.T) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("bucket-%d", i)
		mark := printOf(name)
		other, ok := seen[mark]
		if seen[mark] = name; !ok {
			continue
		}
		p := newCloud(t, emulator.Options{}).provider(t)
		mustCreate(t, p, name)
		mustCreate(t, p, other)
		_, err := p.GrantAccess(t.Context(), spanning(testAccount, name, other))
		if !errors.Is(err, provider.ErrUnsupported) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), other) {
			t.Error(err)
		}
		return
	}
}
