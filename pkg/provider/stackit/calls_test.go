package stackit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestCallsDoNotGrow: with 1 and with 1,000 buckets and groups in the project,
// each RPC makes the same calls.
func TestCallsDoNotGrow(t *testing.T) {
	few, many := rpcCalls(t, 1), rpcCalls(t, 1000)
	for _, rpc := range slices.Sorted(maps.Keys(few)) {
		if few[rpc] != many[rpc] {
			t.Errorf("%s:\n  few  %s\n  many %s", rpc, few[rpc], many[rpc])
		}
		t.Logf("%-22s %2d calls: %s", rpc, len(strings.Fields(few[rpc])), few[rpc])
	}
}

// rpcCalls returns the operations that each RPC calls in a project with n other
// buckets and groups.
func rpcCalls(t *testing.T, n int) map[string]string {
	t.Helper()
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "warm")
	for i := range n {
		if err := p.createBucket(t.Context(), refOf(fmt.Sprintf("other-%d", i))); err != nil {
			t.Fatal(err)
		}
		if _, err := p.createGroup(t.Context(), testRegion, fmt.Sprintf("other-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	calls := map[string]string{}
	count := func(rpc string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", rpc, err)
		}
		var seen []string
		for _, call := range c.emu.Calls() {
			seen = append(seen, call.Operation)
		}
		calls[rpc] = strings.Join(seen, " ")
		c.emu.ResetCalls()
	}
	c.emu.ResetCalls()
	_, err := p.CreateBucket(t.Context(), spec("bucket-1"))
	count("create", err)
	_, err = p.CreateBucket(t.Context(), spec("bucket-1"))
	count("create again", err)
	_, err = p.GetBucket(t.Context(), refOf("bucket-1"))
	count("get", err)
	a, err := p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	count("grant", err)
	_, err = p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	count("grant again", err)
	ref := provider.AccountRef{Account: testAccount, IdentityID: a.IdentityID, Buckets: []provider.BucketRef{refOf("bucket-1")}}
	_, err = p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
	count("rotate", err)
	_, err = p.CreateBucket(t.Context(), spec("bucket-2"))
	count("create another", err)
	span := spanning(testAccount, "bucket-1", "bucket-2")
	_, err = p.GrantAccess(t.Context(), span)
	count("add a bucket", err)
	_, err = p.GrantAccess(t.Context(), span)
	count("grant two again", err)
	_, err = p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	count("grant one of two again", err)
	count("revoke one of two", p.RevokeAccess(t.Context(), revocation(testAccount, "bucket-1")))
	_, err = p.GrantAccess(t.Context(), span)
	count("add it again", err)
	count("revoke two", p.RevokeAccess(t.Context(), revocation(testAccount, "bucket-1", "bucket-2")))
	_, err = p.GrantAccess(t.Context(), span)
	count("grant two", err)
	count("delete one of two", p.DeleteBucket(t.Context(), refOf("bucket-2"), provider.DeleteOptions{}))
	existing := accessTo("ba-2", "other-0", "")
	existing.Buckets[0].AccessOnly = true
	_, err = p.GrantAccess(t.Context(), existing)
	count("grant theirs", err)
	_, err = p.GrantAccess(t.Context(), existing)
	count("grant theirs again", err)
	count("revoke theirs", p.RevokeAccess(t.Context(), revocation("ba-2", "other-0")))
	count("revoke", p.RevokeAccess(t.Context(), ref))
	count("revoke again", p.RevokeAccess(t.Context(), ref))
	count("delete", p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{}))
	count("delete again", p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{}))
	_, err = p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	if !errors.Is(err, provider.ErrNotFound) {
		t.Fatal(err)
	}
	count("grant missing", nil)
	return calls
}

func TestRotate(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	ref := provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}
	if _, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{}); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("no access yet: %v", err)
	}
	works := func(key provider.Credentials) bool {
		_, err := c.s3As(t, key).ListObjects(t.Context(), "bucket-1", "")
		return err == nil
	}
	first := mustGrant(t, p, testAccount, "bucket-1", "").Credentials
	second, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{KeepAccessKeyID: first.AccessKeyID})
	if err != nil || second == first || !works(first) || !works(second) {
		t.Errorf("rotate and keep: %v, first works %t, second works %t", err, works(first), works(second))
	}
	if again := mustGrant(t, p, testAccount, "bucket-1", "").Credentials; again != second {
		t.Error("a grant after the rotation returns another key")
	}
	third, err := p.RotateAccess(t.Context(), ref, provider.RotateOptions{})
	if err != nil || works(first) || works(second) || !works(third) {
		t.Errorf("rotate: %v", err)
	}
	tags, _ := c.stored(t, p, "bucket-1")
	m, err := decodeMarks(tags, p.admins[testRegion].group.urn)
	if err != nil || len(m.entries) != 1 || len(m.entries[0].keys) != 1 {
		t.Errorf("ledger %+v, %v", m.entries, err)
	}
}

// inventoryOf returns what the provider finds.
func inventoryOf(t *testing.T, p *Provider) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for r, err := range p.Inventory(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%s %s %s %s", r.Kind, r.Region, r.Bucket, r.Account)] = true
	}
	return found
}

func TestInventory(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	if got := inventoryOf(t, p); len(got) != 0 || len(c.Groups()) != 0 {
		t.Errorf("an empty project: %v, groups %v", got, c.Groups())
	}
	other := c.provider(t, func(config *Config) { config.DriverName = "other" })
	mustCreate(t, other, "bucket-0")
	mustCreate(t, p, "bucket-1")
	mustGrant(t, p, testAccount, "bucket-1", "")
	if err := p.createBucket(t.Context(), refOf("bare")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.announce(t.Context(), refOf("bucket-2")); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"admin eu01  ": true, "bucket eu01 bucket-1 ": true, "access eu01 bucket-1 " + testAccount: true, "owner eu01  ": true,
	}
	if got := inventoryOf(t, p); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, err := range p.Inventory(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break // must not go on
	}
}
