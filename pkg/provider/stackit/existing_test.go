package stackit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const theirs = "bucket-theirs"

// stranger is somebody else in the project, with a credentials group and a key.
type stranger struct {
	group
	*s3.Client
}

func (c *cloud) stranger(t *testing.T, p *Provider) stranger {
	t.Helper()
	g, err := p.createGroup(t.Context(), testRegion, "somebody-else")
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.mintKey(t.Context(), testRegion, g.id, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.before = map[string]bool{g.id: true}
	return stranger{g, c.s3As(t, key.credentials)}
}

// existing is a cloud with a bucket of somebody else and its policy.
func existing(t *testing.T, policy string) (*cloud, *Provider, stranger) {
	t.Helper()
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	owner := c.stranger(t, p)
	if err := p.createBucket(t.Context(), refOf(theirs)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(owner.PutObject(t.Context(), theirs, "k", []byte("x")), owner.SetPolicy(t.Context(), theirs, policy)); err != nil {
		t.Fatal(err)
	}
	return c, p, owner
}

func theirAccess(account string, mode provider.Mode) provider.AccessSpec {
	spec := accessTo(account, theirs, mode)
	spec.Buckets[0].AccessOnly = true
	return spec
}

// untouched checks that the bucket is as its owner left it, and no group of ours
// is left.
func (c *cloud) untouched(t *testing.T, owner stranger, policy string) {
	t.Helper()
	got, err := owner.Policy(t.Context(), theirs)
	if err != nil || got != policy {
		t.Errorf("policy %s (%v), want %s", got, err, policy)
	}
	if data, err := owner.GetObject(t.Context(), theirs, "k"); err != nil || string(data) != "x" {
		t.Errorf("the data is %q, %v", data, err)
	}
	if tags, err := owner.Tags(t.Context(), theirs); err != nil || len(tags) != 0 {
		t.Errorf("tags %v, %v", tags, err)
	}
	if g := c.groups(); len(g) != 0 {
		t.Errorf("groups %v", g)
	}
}

// TestExistingBucket: accesses are held to their mode, everybody else goes on as
// before, keys are bounded over restarts and never revoked too early, and in the
// end the policy is what it was.
func TestExistingBucket(t *testing.T) {
	for _, policy := range []string{"", theirPolicy(theirs)} {
		c, p, owner := existing(t, policy)
		if b, err := p.GetBucket(t.Context(), theirAccess("", "").Buckets[0].BucketRef); err != nil || !b.AccessOnly || b.VirtualHosted || b.Endpoint != c.Endpoints[testRegion] {
			t.Fatalf("%+v, %v", b, err)
		}
		var granted []provider.Access
		for range 2 * maxKeys {
			a, err := c.provider(t).GrantAccess(t.Context(), theirAccess(testAccount, provider.ReadOnly))
			if err != nil || !a.Buckets[0].AccessOnly {
				t.Fatalf("%+v, %v", a.Buckets, err)
			}
			granted = append(granted, a)
		}
		if g := c.groups(); len(g) != 1 || g[0].Keys != maxKeys {
			t.Errorf("groups %v", g)
		}
		for i, a := range granted {
			client := c.s3As(t, a.Credentials)
			_, err := client.ListObjects(t.Context(), theirs, "")
			if kept := i < keepOldest || i >= len(granted)-keepNewest; kept != (err == nil) {
				t.Errorf("key %d of %d: %v", i+1, len(granted), err)
			}
			for name, err := range map[string]error{
				"write": client.PutObject(t.Context(), theirs, "k", nil), "tag": client.SetTags(t.Context(), theirs, map[string]string{"a": "b"}),
				"policy": client.SetPolicy(t.Context(), theirs, ""),
			} {
				if code := s3.Code(err); code != "AccessDenied" && code != codeUnknownKey {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if _, err := p.GrantAccess(t.Context(), theirAccess("ba-two", provider.WriteOnly)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(owner.PutObject(t.Context(), theirs, "new", nil), owner.DeleteObject(t.Context(), theirs, "new")); err != nil {
			t.Errorf("its owner is shut out: %v", err)
		}
		want := map[string]bool{"admin eu01  ": true, "access eu01 bucket-theirs " + testAccount: true, "access eu01 bucket-theirs ": true}
		if got := inventoryOf(t, p); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("inventory %v", got)
		}
		for _, account := range []string{testAccount, "ba-two", "ba-two"} {
			if err := c.provider(t).RevokeAccess(t.Context(), revocation(account, theirs)); err != nil {
				t.Error(err)
			}
		}
		c.untouched(t, owner, policy)
	}
}

// TestExistingRotation by an ID that does not say whose the bucket is.
func TestExistingRotation(t *testing.T) {
	c, p, _ := existing(t, "")
	first, err := p.GrantAccess(t.Context(), theirAccess(testAccount, provider.ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.provider(t).RotateAccess(t.Context(), revocation(testAccount, theirs), provider.RotateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.s3As(t, first.Credentials).ListObjects(t.Context(), theirs, ""); s3.Code(err) != codeUnknownKey {
		t.Errorf("the old key: %v", err)
	}
	client := c.s3As(t, second)
	if _, err := client.ListObjects(t.Context(), theirs, ""); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if err := client.PutObject(t.Context(), theirs, "k", nil); s3.Code(err) != "AccessDenied" {
		t.Errorf("the new key writes: %v", err)
	}
}

// TestExistingThatShutsOut: a Deny of others cannot be allowed away. Once they have
// exempted the group that the error names, the access is granted.
func TestExistingThatShutsOut(t *testing.T) {
	c, p, owner := existing(t, "")
	adm, err := p.adminGroup(t.Context(), testRegion, true)
	if err != nil {
		t.Fatal(err)
	}
	isolated := strings.ReplaceAll(strings.Replace(render(theirs, adm.urn, []member{{owner.urn, ""}}), "deny-outsiders", "only-us", 1), `,"`, `, "`)
	if err := owner.SetPolicy(t.Context(), theirs, isolated); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.provider(t).GrantAccess(t.Context(), theirAccess(testAccount, ""))
		g := c.groups()
		if len(g) != 1 || g[0].Keys != 0 || !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), `"only-us"`) || !strings.Contains(err.Error(), g[0].URN) {
			t.Fatalf("groups %v, %v", g, err)
		}
	}
	current, err := owner.Policy(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	exempt := func(doc string) string {
		return strings.Replace(doc, `"NotPrincipal":{"AWS":[`, `"NotPrincipal":{"AWS":["`+c.groups()[0].URN+`",`, 1)
	}
	theirsNow := exempt(isolated)
	if err := owner.SetPolicy(t.Context(), theirs, exempt(current)); err != nil {
		t.Fatal(err)
	}
	a, err := c.provider(t).GrantAccess(t.Context(), theirAccess(testAccount, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.s3As(t, a.Credentials).PutObject(t.Context(), theirs, "new", nil); err != nil {
		t.Error(err)
	}
	if err := p.RevokeAccess(t.Context(), revocation(testAccount, theirs)); err != nil {
		t.Fatal(err)
	}
	c.untouched(t, owner, theirsNow)
}

// TestExistingThatCannotBeManaged: the admin may not read or write the policy, or
// it cannot be added to, or another driver has the bucket. Nothing is made.
func TestExistingThatCannotBeManaged(t *testing.T) {
	statement := func(urn, action string) string {
		return `{"Statement":[{"Sid":"theirs","Effect":"Deny","NotPrincipal":{"AWS":"` + urn + `"},"Action":"` + action + `","Resource":["arn:aws:s3:::` + theirs + `","arn:aws:s3:::` + theirs + `/*"]}]}`
	}
	const one = `{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + theirs + `/x"}`
	const twoLists = `{"Statement":[` + one + `],"Statement":` + one + `}`
	for name, c := range map[string]struct {
		policy func(urn string) string
		tags   map[string]string
		want   error
		says   string
	}{
		"all is denied":          {func(urn string) string { return statement(urn, "s3:*") }, nil, provider.ErrPermissionDenied, "let its owner give that group s3:*"},
		"the policy is denied":   {func(urn string) string { return statement(urn, "s3:*Policy") }, nil, provider.ErrPermissionDenied, "s3:PutBucketPolicy"},
		"its writing is denied":  {func(urn string) string { return statement(urn, "s3:Put*") }, nil, provider.ErrPermissionDenied, `"theirs"`},
		"two lists":              {func(string) string { return twoLists }, nil, provider.ErrPrecondition, "two elements Statement"},
		"it is another driver's": {func(string) string { return "" }, map[string]string{tagManagedBy: "other", tagBucket: theirs}, provider.ErrPermissionDenied, `driver "other"`},
	} {
		cl, p, owner := existing(t, "")
		policy := c.policy(owner.urn)
		if err := errors.Join(owner.SetTags(t.Context(), theirs, c.tags), owner.SetPolicy(t.Context(), theirs, policy)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, grant := p.GrantAccess(t.Context(), theirAccess(testAccount, ""))
		_, get := p.GetBucket(t.Context(), theirAccess("", "").Buckets[0].BucketRef)
		for rpc, err := range map[string]error{"grant": grant, "get": get} {
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), theirs) {
				t.Errorf("%s, %s: %v", name, rpc, err)
			}
		}
		if err := owner.SetTags(t.Context(), theirs, nil); err != nil {
			t.Fatal(err)
		}
		cl.untouched(t, owner, policy)
	}
}

// TestExistingAtItsLimit: what the others wrote leaves no room, which is told before
// anything is made; and the limit counts the keys that accesses may come to have.
func TestExistingAtItsLimit(t *testing.T) {
	filler := func(n int) string {
		return strings.Replace(theirPolicy(theirs), `"theirs"`, `"`+strings.Repeat("x", n)+`"`, 1)
	}
	c, p, owner := existing(t, filler(policyLimit-len(filler(0))))
	_, err := p.GrantAccess(t.Context(), theirAccess(testAccount, ""))
	if !errors.Is(err, provider.ErrQuotaExceeded) || !strings.Contains(err.Error(), "20480") || !strings.Contains(err.Error(), "shorten its other statements") {
		t.Error(err)
	}
	c.untouched(t, owner, filler(policyLimit-len(filler(0))))

	policy := filler(policyLimit - len(filler(0)) - 3000)
	if err := owner.SetPolicy(t.Context(), theirs, policy); err != nil {
		t.Fatal(err)
	}
	fits := 0
	for ; ; fits++ {
		if _, err = p.GrantAccess(t.Context(), theirAccess(fmt.Sprint("ba-", fits), modes()[fits%3])); err != nil {
			break
		}
	}
	if !errors.Is(err, provider.ErrQuotaExceeded) || fits < 2 || len(c.groups()) != fits {
		t.Errorf("%d accesses fit, %d groups, one more: %v", fits, len(c.groups()), err)
	}
	for range maxKeys {
		for i := range fits {
			if _, err := c.provider(t).GrantAccess(t.Context(), theirAccess(fmt.Sprint("ba-", i), modes()[i%3])); err != nil {
				t.Fatalf("access %d again: %v", i, err)
			}
		}
	}
	for i := range fits {
		if err := p.RevokeAccess(t.Context(), revocation(fmt.Sprint("ba-", i), theirs)); err != nil {
			t.Error(err)
		}
	}
	c.untouched(t, owner, policy)
}

// TestRoomForKeys: an access that fits only while each has but one key is refused, or
// a restart of the driver would find no room for the next key of any.
func TestRoomForKeys(t *testing.T) {
	p := newCloud(t, emulator.Options{}).provider(t)
	b := &bucket{BucketRef: refIn(theirs), adminURN: testAdminURN}
	m := marks{entries: []entry{testEntry(1, 1), testEntry(2, 1)}}
	filled := func(n int) string {
		b.others = strings.Replace(theirPolicy(theirs), `"theirs"`, `"`+strings.Repeat("x", n)+`"`, 1)
		doc, err := p.documentOf(b, m.entries)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	spare := policyLimit - len(filled(0))
	if doc := filled(spare); len(doc) != policyLimit || checkExistingSize(doc, b.others) != nil {
		t.Fatalf("%d bytes", len(doc))
	}
	if err := p.roomExisting(b, m); !errors.Is(err, provider.ErrQuotaExceeded) {
		t.Errorf("with one key each it fills the policy: %v", err)
	}
	filled(spare - 200)
	if err := p.roomExisting(b, m); err != nil {
		t.Errorf("with room for their keys: %v", err)
	}
}

// TestExistingHoldsManyAccesses: as many as docs/existing-buckets.md promises, at the longest
// name.
func TestExistingHoldsManyAccesses(t *testing.T) {
	bucket := strings.Repeat("b", 63)
	var entries []entry
	for i := range 40 {
		entries = append(entries, testEntry(i*5+1, maxKeys))
	}
	statements, err := ownStatements("cosi.zuber.dev", bucket, testAdminURN, entries)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := spliced("", statements); err != nil || len(doc) > policyLimit {
		t.Errorf("%d bytes, %v", len(doc), err)
	}
}

// TestExistingIsNotDeleted, nor claimed as one that we have made, although it is
// empty, without tags and without a policy.
func TestExistingIsNotDeleted(t *testing.T) {
	only := refIn(theirs)
	for _, ref := range []provider.BucketRef{only, refOf(theirs)} {
		c, p, owner := existing(t, "")
		if err := owner.DeleteObject(t.Context(), theirs, "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.GrantAccess(t.Context(), theirAccess(testAccount, "")); err != nil {
			t.Fatal(err)
		}
		if err := c.provider(t).DeleteBucket(t.Context(), ref, provider.DeleteOptions{Purge: true}); err != nil {
			t.Error(err)
		}
		again := c.provider(t)
		if err := again.DeleteBucket(t.Context(), only, provider.DeleteOptions{Purge: true}); err != nil {
			t.Error(err)
		}
		bare := again.DeleteBucket(t.Context(), refOf(theirs), provider.DeleteOptions{Purge: true})
		_, get := again.GetBucket(t.Context(), refOf(theirs))
		_, grant := again.GrantAccess(t.Context(), accessTo(testAccount, theirs, ""))
		for rpc, err := range map[string]error{"delete": bare, "get": get, "grant": grant} {
			if !errors.Is(err, provider.ErrPermissionDenied) || !strings.Contains(err.Error(), "adoptExisting to accessOnly") {
				t.Errorf("%s: %v", rpc, err)
			}
		}
		if _, err := again.CreateBucket(t.Context(), spec(theirs)); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Error(err)
		}
		if err := owner.PutObject(t.Context(), theirs, "k", []byte("x")); err != nil {
			t.Fatal(err)
		}
		c.untouched(t, owner, "")
	}
}

// TestExistingIsGone: its owner deletes it, and the access ends all the same.
func TestExistingIsGone(t *testing.T) {
	c, p, owner := existing(t, "")
	a, err := p.GrantAccess(t.Context(), theirAccess(testAccount, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(owner.DeleteObject(t.Context(), theirs, "k"), p.deleteBucket(t.Context(), refOf(theirs))); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteBucket(t.Context(), refIn(theirs), provider.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := p.GetBucket(t.Context(), refIn(theirs)); !errors.Is(err, provider.ErrNotFound) {
		t.Error(err)
	}
	ref := revocation(testAccount, theirs)
	ref.IdentityID = a.IdentityID
	for range 2 {
		if err := c.provider(t).RevokeAccess(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	if g := c.groups(); len(g) != 0 {
		t.Errorf("groups %v", g)
	}
}

// TestExistingKeysGoFirst: without a statement the key of an access could do more in
// somebody else's bucket than with it, so it is gone before its statement is.
func TestExistingKeysGoFirst(t *testing.T) {
	c, p, _ := existing(t, theirPolicy(theirs))
	if _, err := p.GrantAccess(t.Context(), theirAccess(testAccount, provider.ReadOnly)); err != nil {
		t.Fatal(err)
	}
	c.emu.ResetCalls()
	if err := p.RevokeAccess(t.Context(), revocation(testAccount, theirs)); err != nil {
		t.Fatal(err)
	}
	c.wantKeysFirst(t)
}
