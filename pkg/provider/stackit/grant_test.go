package stackit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

func TestGrantTwiceInOneProcess(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	first := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	if again := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite); again.Credentials != first.Credentials || again.IdentityID != first.IdentityID {
		t.Error("another key")
	}
	groups := c.groups()
	if len(groups) != 1 || groups[0].ID != first.IdentityID || groups[0].Keys != 1 || groups[0].DisplayName != groupName(testAccount) {
		t.Errorf("groups %v", groups)
	}
}

// TestKeyReturnsToTheLedger: a process that has handed a key out records it again
// when another one has written over the ledger.
func TestKeyReturnsToTheLedger(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	before, _ := c.stored(t, p, "bucket-1")
	first := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	recorded, _ := c.stored(t, p, "bucket-1")
	c.admin(t, p, func(client *s3.Client) error { return client.SetTags(t.Context(), "bucket-1", before) })
	if again := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite); again.Credentials != first.Credentials {
		t.Error("another key")
	}
	if tags, _ := c.stored(t, p, "bucket-1"); !maps.Equal(tags, recorded) {
		t.Errorf("tags %v, want %v", tags, recorded)
	}
}

// TestGrantAcrossRestarts: each new process adds a key; the first and the newest
// always work, and their number is bounded.
func TestGrantAcrossRestarts(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	mustCreate(t, c.provider(t), "bucket-1")
	var granted []provider.Access
	for i := range 2 * maxKeys {
		granted = append(granted, mustGrant(t, c.provider(t), testAccount, "bucket-1", provider.ReadWrite))
		if g := c.groups(); len(g) != 1 || g[0].Keys != min(i+1, maxKeys) {
			t.Fatalf("after %d processes: %v", i+1, g)
		}
	}
	for i, a := range granted {
		_, err := c.s3As(t, a.Credentials).ListObjects(t.Context(), "bucket-1", "")
		kept := i < keepOldest || i >= len(granted)-keepNewest
		if kept != (err == nil) {
			t.Errorf("key %d of %d: %v", i+1, len(granted), err)
		}
	}
}

// TestKeysOutsideTheLedgerGoFirst: such as those of a process that died between
// making a key and recording it.
func TestKeysOutsideTheLedgerGoFirst(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	for range maxKeys {
		if _, err := p.mintKey(t.Context(), testRegion, a.IdentityID, 0); err != nil {
			t.Fatal(err)
		}
	}
	mustGrant(t, c.provider(t), testAccount, "bucket-1", provider.ReadWrite)
	if g := c.groups(); g[0].Keys != maxKeys {
		t.Errorf("%d keys", g[0].Keys)
	}
	if _, err := c.s3As(t, a.Credentials).ListObjects(t.Context(), "bucket-1", ""); err != nil {
		t.Errorf("the key that was handed out is gone: %v", err)
	}
}

func TestVanishedKeyIsReplaced(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	first := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	keys, err := p.listKeys(t.Context(), testRegion, first.IdentityID)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if err := p.deleteKey(t.Context(), testRegion, first.IdentityID, keys[0].id); err != nil {
		t.Fatal(err)
	}
	second := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	if second.Credentials == first.Credentials || second.IdentityID != first.IdentityID {
		t.Error("the dead key was returned")
	}
	// The group too.
	if err := errors.Join(p.removeKeys(t.Context(), testRegion, first.IdentityID), p.removeGroup(t.Context(), testRegion, first.IdentityID)); err != nil {
		t.Fatal(err)
	}
	third := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	if third.IdentityID == first.IdentityID {
		t.Error("the dead group was returned")
	}
}

// TestModeFollowsTheRequest, and the policy the mode.
func TestModeFollowsTheRequest(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	for _, mode := range []provider.Mode{provider.ReadOnly, provider.ReadWrite, provider.WriteOnly} {
		a := mustGrant(t, p, testAccount, "bucket-1", mode)
		client := c.s3As(t, a.Credentials)
		put := client.PutObject(t.Context(), "bucket-1", "k", []byte("x"))
		_, list := client.ListObjects(t.Context(), "bucket-1", "")
		if (put == nil) != (mode != provider.ReadOnly) || (list == nil) != (mode != provider.WriteOnly) {
			t.Errorf("%s: put %v, list %v", mode, put, list)
		}
	}
	_, err := p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", "Sideways"))
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "Sideways") {
		t.Error(err)
	}
}

func TestConcurrentGrantsAndRevokes(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	const n = 24
	accesses := make([]provider.Access, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			a, err := p.GrantAccess(t.Context(), accessTo(fmt.Sprintf("ba-%d", i), "bucket-1", modes()[i%3]))
			if err != nil {
				t.Error(err)
			}
			accesses[i] = a
		})
	}
	wg.Wait()
	tags, policy := c.stored(t, p, "bucket-1")
	m, err := decodeMarks(tags, p.admins[testRegion].group.urn)
	if err != nil || len(m.entries) != n {
		t.Fatalf("%d entries, %v", len(m.entries), err)
	}
	if !samePolicy(policy, render("bucket-1", p.admins[testRegion].group.urn, m.members())) {
		t.Error("the policy is not the ledger's")
	}
	for i := range n / 2 {
		wg.Go(func() {
			ref := provider.AccountRef{Account: fmt.Sprintf("ba-%d", i), IdentityID: accesses[i].IdentityID, Buckets: []provider.BucketRef{refOf("bucket-1")}}
			if err := p.RevokeAccess(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, a := range accesses {
		_, err := c.s3As(t, a.Credentials).BucketLocation(t.Context(), "bucket-1")
		if (err == nil) != (i >= n/2) {
			t.Errorf("access %d: %v", i, err)
		}
	}
	if g := c.groups(); len(g) != n/2 {
		t.Errorf("%d groups", len(g))
	}
}

// TestGroupOfALostAnswer: the answer of its making is lost, and the list shows it
// late. The next attempt waits for it instead of making another.
func TestGroupOfALostAnswer(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{ListDelay: emulator.Delay{Min: 60 * time.Millisecond, Max: 60 * time.Millisecond}}})
	lazy := func(config *Config) { config.ListingWait = 300 * time.Millisecond }
	p := c.provider(t, lazy)
	mustCreate(t, p, "bucket-1")
	c.emu.Inject(emulator.Fault{Operation: "CreateCredentialsGroup", Times: 1, LoseAnswer: true})
	if _, err := p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", "")); !errors.Is(err, provider.ErrUnavailable) {
		t.Fatalf("a lost answer: %v", err)
	}
	made := c.groups()
	if len(made) != 1 {
		t.Fatalf("groups %v", made)
	}
	a := mustGrant(t, c.provider(t, lazy), testAccount, "bucket-1", "")
	if a.IdentityID != made[0].ID || len(c.groups()) != 1 {
		t.Errorf("groups %v", c.groups())
	}
}

// TestDuplicatesAreHealed: several groups of one name all go with the access.
func TestDuplicatesAreHealed(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	for _, end := range []string{"revoke", "delete"} {
		mustCreate(t, p, "bucket-1")
		mustGrant(t, p, testAccount, "bucket-1", "")
		for range 2 {
			g, err := p.createGroup(t.Context(), testRegion, groupName(testAccount))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.mintKey(t.Context(), testRegion, g.id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if end == "revoke" {
			if err := p.RevokeAccess(t.Context(), provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}}); err != nil {
				t.Fatal(err)
			}
		} else if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if g := c.groups(); len(g) != 0 {
			t.Errorf("%s left %v", end, g)
		}
	}
}

// TestRevokeProvesWhoseGroupItIs before it touches one.
func TestRevokeProvesWhoseGroupItIs(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	a := mustGrant(t, p, testAccount, "bucket-1", "")
	adm := p.admins[testRegion].group
	stranger, err := p.createGroup(t.Context(), testRegion, "of-a-person")
	if err != nil {
		t.Fatal(err)
	}
	before := c.Groups()
	buckets := []provider.BucketRef{refOf("bucket-1")}
	for name, r := range map[string]struct {
		ref  provider.AccountRef
		want error
	}{
		"the admin":         {provider.AccountRef{Account: testAccount + "x", IdentityID: adm.id, Buckets: buckets}, provider.ErrPermissionDenied},
		"the admin, bare":   {provider.AccountRef{IdentityID: adm.id, Buckets: buckets}, provider.ErrPermissionDenied},
		"a person's":        {provider.AccountRef{Account: "ba-x", IdentityID: stranger.id, Buckets: buckets}, provider.ErrPermissionDenied},
		"another account's": {provider.AccountRef{Account: "ba-x", IdentityID: a.IdentityID, Buckets: buckets}, provider.ErrPermissionDenied},
		"no ID":             {provider.AccountRef{Account: "ba-x", IdentityID: "../x", Buckets: buckets}, provider.ErrInvalidArgument},
		"nothing":           {provider.AccountRef{Buckets: buckets}, provider.ErrInvalidArgument},
		"one that is gone":  {provider.AccountRef{Account: "ba-x", IdentityID: testGroup, Buckets: buckets}, nil},
	} {
		if err := p.RevokeAccess(t.Context(), r.ref); !errors.Is(err, r.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after := c.Groups(); !slices.Equal(before, after) {
			t.Fatalf("%s: groups %v", name, after)
		}
	}
	// The ID alone proves itself by the ledger.
	if err := p.RevokeAccess(t.Context(), provider.AccountRef{IdentityID: strings.ToUpper(a.IdentityID), Buckets: buckets}); err != nil {
		t.Error(err)
	}
	if n := len(c.Groups()); n != len(before)-1 {
		t.Errorf("%d groups of %d are left", n, len(before))
	}
}

// TestRevokeAfterTheBucket, by the ID in the account ID, and without any bucket.
func TestRevokeAfterTheBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	for _, buckets := range [][]provider.BucketRef{{refOf("bucket-1")}, nil} {
		mustCreate(t, p, "bucket-1")
		a := mustGrant(t, p, testAccount, "bucket-1", "")
		if err := p.deleteBucket(t.Context(), refOf("bucket-1")); err != nil {
			t.Fatal(err)
		}
		ref := provider.AccountRef{Account: testAccount, IdentityID: a.IdentityID, Buckets: buckets}
		for range 2 {
			if err := p.RevokeAccess(t.Context(), ref); err != nil {
				t.Error(err)
			}
		}
		if g := c.groups(); len(g) != 0 {
			t.Errorf("left over: %v", g)
		}
	}
}

// TestAccessToSeveralBuckets: one key, a mode for each bucket, and the end of one
// bucket does not end the other.
func TestAccessToSeveralBuckets(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustCreate(t, p, "bucket-2")
	spec := accessTo(testAccount, "bucket-1", provider.ReadWrite)
	spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: refOf("bucket-2"), Mode: provider.ReadOnly})
	a, err := p.GrantAccess(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	client := c.s3As(t, a.Credentials)
	if err := client.PutObject(t.Context(), "bucket-1", "k", nil); err != nil {
		t.Error(err)
	}
	if err := client.PutObject(t.Context(), "bucket-2", "k", nil); s3.Code(err) != "AccessDenied" {
		t.Errorf("write to the one to read: %v", err)
	}
	if err := p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListObjects(t.Context(), "bucket-2", ""); err != nil {
		t.Errorf("the end of the other bucket took it along: %v", err)
	}
	ref := provider.AccountRef{Account: testAccount, IdentityID: a.IdentityID, Buckets: []provider.BucketRef{refOf("bucket-1"), refOf("bucket-2")}}
	if err := p.RevokeAccess(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if g := c.groups(); len(g) != 0 {
		t.Errorf("left over: %v", g)
	}
	twice := provider.AccessSpec{Account: testAccount, Buckets: append(spec.Buckets, spec.Buckets[0])}
	if _, err := p.GrantAccess(t.Context(), twice); !errors.Is(err, provider.ErrInvalidArgument) {
		t.Errorf("a bucket twice: %v", err)
	}
	spec.Buckets[0].Region = "eu02"
	_, err = p.GrantAccess(t.Context(), spec)
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), `bucket "bucket-1" is in "eu02", bucket "bucket-2" in "eu01"`) {
		t.Errorf("two regions: %v", err)
	}
}

// TestQuotaIsMetBeforeAnythingIsMade.
func TestQuotaIsMetBeforeAnythingIsMade(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	b, err := p.open(t.Context(), refOf("bucket-1"))
	if err != nil {
		t.Fatal(err)
	}
	fits := 0
	for ; ; fits++ {
		m := b.marks
		m.put(entry{name: groupName(fmt.Sprint("ba-", fits)), id: fmt.Sprintf("%08x-0000-4000-8000-000000000000", fits),
			urn: fmt.Sprintf("%s%06x", stem(b.adminURN), fits), mode: modes()[fits%3]})
		if checkPolicySize(render("bucket-1", b.adminURN, m.members()), fits+1) != nil {
			break
		}
		b.marks = m
	}
	full := b.entries
	if err := p.change(t.Context(), b, func(m *marks) { m.entries = full }); err != nil {
		t.Fatal(err)
	}
	if err := p.enforce(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	_, err = p.GrantAccess(t.Context(), accessTo(testAccount, "bucket-1", ""))
	if !errors.Is(err, provider.ErrQuotaExceeded) || !strings.Contains(err.Error(), "20480") || !strings.Contains(err.Error(), "bucket-1") {
		t.Errorf("%d accesses fit, one more: %v", fits, err)
	}
	if g := c.groups(); len(g) != 0 {
		t.Errorf("made for nothing: %v", g)
	}
}

// TestGrantWaitsForThePolicy: a new bucket is open to the whole project until its
// policy is in force, and an access is told of its key only after that.
func TestGrantWaitsForThePolicy(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{PolicyDelay: emulator.Delay{Min: 150 * time.Millisecond, Max: 200 * time.Millisecond}}})
	p := c.provider(t)
	for i := range 3 {
		name := fmt.Sprintf("bucket-%d", i)
		mustCreate(t, p, name)
		a := mustGrant(t, p, testAccount+name, name, provider.ReadOnly)
		client := c.s3As(t, a.Credentials)
		if err := client.PutObject(t.Context(), name, "k", nil); s3.Code(err) != "AccessDenied" {
			t.Errorf("a ReadOnly key writes: %v", err)
		}
		if _, err := client.ListObjects(t.Context(), name, ""); err != nil {
			t.Errorf("a ReadOnly key does not list: %v", err)
		}
	}
}

// TestKeyAndPolicyDelays: nothing but the two named delays is waited for.
func TestKeyAndPolicyDelays(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{KeyDelay: emulator.Delay{Min: 30 * time.Millisecond, Max: 90 * time.Millisecond}}})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	a := mustGrant(t, p, testAccount, "bucket-1", "")
	if _, err := c.s3As(t, a.Credentials).ListObjects(t.Context(), "bucket-1", ""); err != nil {
		t.Errorf("the key does not work yet: %v", err)
	}
	c.emu.Inject(emulator.Fault{Operation: "GetBucketLocation", Times: 1, Status: http.StatusServiceUnavailable, After: 0})
	began := time.Now()
	c.emu.Inject(emulator.Fault{Operation: "GetBucketLocation", Status: http.StatusInternalServerError})
	if _, err := p.GrantAccess(t.Context(), accessTo("ba-2", "bucket-1", "")); !errors.Is(err, provider.ErrUnavailable) {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("waited %s for what is no delay", took)
	}
	impatient := c.provider(t, func(config *Config) { config.PropagationWait = time.Millisecond })
	_, err := impatient.GrantAccess(t.Context(), accessTo("ba-3", "bucket-1", ""))
	if !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "repeat the call") {
		t.Error(err)
	}
}

func TestGrantRefusesSharedCredentials(t *testing.T) {
	cl := newCloud(t, emulator.Options{})
	p := cl.provider(t)
	for credentials, want := range map[provider.CredentialMode]error{
		provider.CredentialsShared: provider.ErrUnsupported, "mine": provider.ErrInvalidArgument,
	} {
		_, err := p.GrantAccess(t.Context(), provider.AccessSpec{
			Account: "ba-1", Credentials: credentials,
			Buckets: []provider.BucketAccess{{BucketRef: provider.BucketRef{Name: "bucket", Region: testRegion}}},
		})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "perAccess") {
			t.Errorf("credentials %s: %v, want %v with the remedy", credentials, err, want)
		}
	}
}
