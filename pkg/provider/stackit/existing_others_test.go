package stackit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// TestExistingEditedMeanwhile: others add a statement just after each write of
// ours, and it stays.
func TestExistingEditedMeanwhile(t *testing.T) {
	c, _, owner := existing(t, theirPolicy(theirs))
	added := 0
	racing := c.provider(t, func(config *Config) {
		config.Transport = afterPolicy(func() {
			if added++; added > 4 {
				return
			}
			doc, err := owner.Policy(context.Background(), theirs)
			if err == nil {
				l, layoutErr := readLayout(doc)
				err = layoutErr
				doc = l.with([]string{fmt.Sprintf(`{"Sid":"late-%d","Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/p%d/*"}`, added, theirs, added)})
			}
			if err = errors.Join(err, owner.SetPolicy(context.Background(), theirs, doc)); err != nil {
				t.Error(err)
			}
		})
	})
	if _, err := racing.GrantAccess(t.Context(), theirAccess(testAccount, "")); err != nil {
		t.Fatal(err)
	}
	if err := racing.RevokeAccess(t.Context(), revocation(testAccount, theirs)); err != nil {
		t.Fatal(err)
	}
	doc, err := owner.Policy(t.Context(), theirs)
	if err != nil || strings.Count(doc, "late-") != 4 || strings.Contains(doc, sidPrefix) {
		t.Errorf("policy %s, %v", doc, err)
	}
}

// afterPolicy runs a function after each write of a policy.
type afterPolicy func()

func (f afterPolicy) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if req.Method == http.MethodPut && strings.HasPrefix(req.URL.RawQuery, "policy") {
		f()
	}
	return resp, err
}

// TestExistingWrittenOver: others replace the policy just after each write of ours.
func TestExistingWrittenOver(t *testing.T) {
	c, _, owner := existing(t, theirPolicy(theirs))
	racing := c.provider(t, func(config *Config) {
		config.Transport = afterPolicy(func() {
			if err := owner.SetPolicy(context.Background(), theirs, theirPolicy(theirs)); err != nil {
				t.Error(err)
			}
		})
	})
	_, err := racing.GrantAccess(t.Context(), theirAccess(testAccount, ""))
	if !errors.Is(err, provider.ErrConflict) || !strings.Contains(err.Error(), "another program replaces its policy") {
		t.Error(err)
	}
	c.untouched(t, owner, theirPolicy(theirs))
}

// TestExistingMended: statements of ours that somebody has edited or removed, and a
// group that somebody has deleted.
func TestExistingMended(t *testing.T) {
	c, p, owner := existing(t, theirPolicy(theirs))
	grant := func() provider.Access {
		t.Helper()
		a, err := c.provider(t).GrantAccess(t.Context(), theirAccess(testAccount, provider.ReadOnly))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.s3As(t, a.Credentials).PutObject(t.Context(), theirs, "k", nil); s3.Code(err) != "AccessDenied" {
			t.Errorf("a ReadOnly key writes: %v", err)
		}
		return a
	}
	edit := func(f func(doc string) string) {
		t.Helper()
		doc, err := owner.Policy(t.Context(), theirs)
		if err != nil {
			t.Fatal(err)
		}
		edited := f(doc)
		if edited == doc {
			t.Fatalf("nothing to edit in %s", doc)
		}
		if err := owner.SetPolicy(t.Context(), theirs, edited); err != nil {
			t.Fatal(err)
		}
	}
	first := grant()
	edit(func(doc string) string {
		return strings.Replace(doc, `"s3:GetObject",`, `"s3:GetObject","s3:PutObject",`, 1)
	})
	grant()
	edit(func(string) string { return theirPolicy(theirs) })
	if a := grant(); a.IdentityID != first.IdentityID || len(c.groups()) != 1 {
		t.Errorf("groups %v", c.groups())
	}
	if _, err := c.s3As(t, first.Credentials).ListObjects(t.Context(), theirs, ""); err != nil {
		t.Errorf("the first key: %v", err)
	}
	if err := errors.Join(p.removeKeys(t.Context(), testRegion, first.IdentityID), p.removeGroup(t.Context(), testRegion, first.IdentityID)); err != nil {
		t.Fatal(err)
	}
	if a := grant(); a.IdentityID == first.IdentityID {
		t.Error("the dead group was returned")
	}
	prefix := sidsOf(c.driver) + sidAccess
	edit(func(doc string) string { return strings.Replace(doc, prefix, prefix+"X", 1) })
	_, err := c.provider(t).GrantAccess(t.Context(), theirAccess(testAccount, provider.ReadOnly))
	if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), prefix+"X") {
		t.Error(err)
	}
	edit(func(doc string) string { return strings.Replace(doc, prefix+"X", prefix, 1) })
	if err := p.RevokeAccess(t.Context(), revocation(testAccount, theirs)); err != nil {
		t.Fatal(err)
	}
	c.untouched(t, owner, theirPolicy(theirs))
}

// TestExistingAtOnce: many grants and revocations of one process, and then two
// processes, each with one account of its own, one after the other at every write.
func TestExistingAtOnce(t *testing.T) {
	c, p, owner := existing(t, theirPolicy(theirs))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			account := fmt.Sprintf("ba-%d", i)
			if _, err := p.GrantAccess(t.Context(), theirAccess(account, modes()[i%3])); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := p.RevokeAccess(t.Context(), revocation(account, theirs)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if g := c.groups(); len(g) != 5 {
		t.Errorf("%d groups", len(g))
	}
	other := c.provider(t)
	turns := 0
	racing := c.provider(t, func(config *Config) {
		config.Transport = afterPolicy(func() {
			if turns++; turns > 3 {
				return
			}
			if _, err := other.GrantAccess(context.Background(), theirAccess(fmt.Sprintf("ba-other-%d", turns), "")); err != nil {
				t.Error(err)
			}
		})
	})
	if _, err := racing.GrantAccess(t.Context(), theirAccess(testAccount, "")); err != nil {
		t.Fatal(err)
	}
	b, err := p.openRecorded(t.Context(), refOf(theirs))
	if err != nil || len(b.entries) != 9 || len(c.groups()) != 9 {
		t.Errorf("%d accesses, %d groups, %v", len(b.entries), len(c.groups()), err)
	}
	if err := p.DeleteBucket(t.Context(), refIn(theirs), provider.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.untouched(t, owner, theirPolicy(theirs))
}

// TestForgedLedger: whoever may write the policy of a bucket of their own writes
// another account's group into our record. No key of it is handed out or deleted.
func TestForgedLedger(t *testing.T) {
	for _, forge := range []func(mine, victim entry) entry{
		func(mine, victim entry) entry { mine.id, mine.urn = victim.id, victim.urn; return mine },
		func(mine, victim entry) entry { mine.id = victim.id; return mine },
		func(_, victim entry) entry { return victim },
	} {
		c, p, owner := existing(t, theirPolicy(theirs))
		mustCreate(t, p, "bucket-1")
		victim := mustGrant(t, p, "ba-victim", "bucket-1", "")
		mine, err := p.GrantAccess(t.Context(), theirAccess(testAccount, ""))
		if err != nil {
			t.Fatal(err)
		}
		ours, err := p.open(t.Context(), refOf("bucket-1"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.openRecorded(t.Context(), refOf(theirs))
		if err != nil {
			t.Fatal(err)
		}
		forged := forge(b.entries[0], ours.entries[0])
		statements, err := ownStatements(c.driver, theirs, b.adminURN, []entry{forged})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := spliced(theirPolicy(theirs), statements)
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.SetPolicy(t.Context(), theirs, doc); err != nil {
			t.Fatal(err)
		}
		for _, process := range []*Provider{p, c.provider(t)} {
			a, err := process.GrantAccess(t.Context(), theirAccess(testAccount, ""))
			if err == nil && a.IdentityID != mine.IdentityID || err != nil && !strings.Contains(err.Error(), "somebody else has written that") {
				t.Errorf("granted %s, mine is %s, %v", a.IdentityID, mine.IdentityID, err)
			}
			if _, err := process.RotateAccess(t.Context(), revocation(testAccount, theirs), provider.RotateOptions{}); forged.name == groupName(testAccount) && !errors.Is(err, provider.ErrPrecondition) {
				t.Errorf("rotated: %v", err)
			}
		}
		if err := p.RevokeAccess(t.Context(), revocation(testAccount, theirs)); err != nil {
			t.Error(err)
		}
		if err := p.DeleteBucket(t.Context(), refIn(theirs), provider.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := c.s3As(t, victim.Credentials).ListObjects(t.Context(), "bucket-1", ""); err != nil {
			t.Errorf("another account's key: %v", err)
		}
		if g := c.groups(); len(g) != 1 || g[0].ID != victim.IdentityID || g[0].Keys != 1 {
			t.Errorf("groups %v", g)
		}
	}
}

// TestExistingEditedBefore: others add a statement between the look of a call at the
// policy and its first write of that.
func TestExistingEditedBefore(t *testing.T) {
	c, _, owner := existing(t, theirPolicy(theirs))
	const later = `{"Version":"2012-10-17","Statement":[{"Sid":"late","Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::b/p/*"}]}`
	var h holding
	p := c.provider(t, func(config *Config) { config.Transport = &h })
	c.admin(t, p, func(*s3.Client) error { return nil })
	read := false
	reached, release := h.arm(func(req *http.Request) bool {
		defer func() { read = read || strings.HasPrefix(req.URL.RawQuery, "policy") }()
		return read && strings.HasSuffix(req.URL.Path, "/credentials-groups")
	})
	go func() {
		<-reached
		defer close(release)
		if err := owner.SetPolicy(context.Background(), theirs, strings.ReplaceAll(later, ":::b", ":::"+theirs)); err != nil {
			t.Error(err)
		}
	}()
	if _, err := p.GrantAccess(t.Context(), theirAccess(testAccount, "")); err != nil {
		t.Fatal(err)
	}
	doc, err := owner.Policy(t.Context(), theirs)
	if err != nil || !strings.Contains(doc, `"late"`) || strings.Contains(doc, `"theirs"`) || !strings.Contains(doc, sidPrefix) {
		t.Errorf("policy %s, %v", doc, err)
	}
}
