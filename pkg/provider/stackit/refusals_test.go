package stackit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// TestRefusedBodiesAreNotFinal: what the cloud has against a body that the driver
// wrote is no fault of the request, which a sidecar would give up for ever.
func TestRefusedBodiesAreNotFinal(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	mustCreate(t, c.provider(t), "bucket-1")
	mustGrant(t, c.provider(t), testAccount, "bucket-1", provider.ReadWrite)
	cases := 0
	for _, operation := range []string{
		"CreateCredentialsGroup", "CreateAccessKey", "ListCredentialsGroups", "ListAccessKeys", "CreateBucket",
		"PutBucketTagging", "PutBucketPolicy",
	} {
		for body, want := range map[string]error{
			`{"detail":[{"loc":["body","displayName"],"msg":"String should match","type":"string_pattern_mismatch"}]}`:   provider.ErrPrecondition,
			`{"detail":[{"loc":["body","expires"],"msg":"Input should be a valid datetime","type":"datetime_parsing"}]}`: provider.ErrPrecondition,
			`{"detail":[{"key":"project.limit_reached","msg":"No more of these"}]}`:                                      provider.ErrQuotaExceeded,
			`{"detail":[{"key":"k","msg":"The maximum number of access keys is reached"}]}`:                              provider.ErrQuotaExceeded,
			`<Error><Code>InvalidTag</Code><Message>x</Message></Error>`:                                                 provider.ErrPrecondition,
			`<Error><Code>InvalidArgument</Code><Message>x</Message></Error>`:                                            provider.ErrPrecondition,
			`<Error><Code>XMaxBucketPolicyLengthExceeded</Code><Message>x</Message></Error>`:                             provider.ErrQuotaExceeded,
			`<Error><Code>InvalidBucketName</Code><Message>x</Message></Error>`:                                          provider.ErrInvalidArgument,
		} {
			if dataPlane := body[0] == '<'; dataPlane != (operation[0] == 'P') {
				continue
			}
			t.Run(fmt.Sprintf("%s %.50s", operation, body), func(t *testing.T) {
				kind := "application/json"
				if body[0] == '<' {
					kind = "application/xml"
				}
				defer c.emu.Inject(emulator.Fault{
					Operation: operation, Status: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {kind}}, Body: body,
				})()
				p := c.provider(t)
				cases++
				name := fmt.Sprintf("another-%d", cases)
				_, err := p.CreateBucket(t.Context(), spec(name))
				if err == nil {
					_, err = p.GrantAccess(t.Context(), accessTo("ba-"+name, name, provider.ReadOnly))
				}
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			})
		}
	}
}

// closed is a policy that denies everybody but one group everything.
func closed(bucket, urn string) string { return render(bucket, urn, nil) }

// TestShutOutOfItsOwnBucket: a bucket whose policy was edited by hand is waited for,
// unless somebody else has a key with which it can have been closed.
func TestShutOutOfItsOwnBucket(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	gone, err := p.createGroup(t.Context(), testRegion, "typo")
	if err != nil {
		t.Fatal(err)
	}
	c.admin(t, p, func(client *s3.Client) error {
		return client.SetPolicy(t.Context(), "bucket-1", closed("bucket-1", gone.urn))
	})
	if _, err = c.provider(t).CreateBucket(t.Context(), spec("bucket-1")); !errors.Is(err, provider.ErrPrecondition) {
		t.Errorf("beside a group of somebody's: %v", err)
	}
	if err := p.deleteGroup(t.Context(), testRegion, gone.id); err != nil {
		t.Fatal(err)
	}
	_, err = c.provider(t).CreateBucket(t.Context(), spec("bucket-1"))
	if !errors.Is(err, provider.ErrPermissionDenied) || !strings.Contains(err.Error(), "set the back end's admin group") {
		t.Errorf("with nobody else in the project: %v", err)
	}
}

// TestRevokeBesideAMalformedRecord: the key goes first, and the record is told of.
func TestRevokeBesideAMalformedRecord(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	buckets := []string{"bucket-1", "bucket-2"}
	for _, name := range buckets {
		mustCreate(t, p, name)
	}
	a, err := p.GrantAccess(t.Context(), spanning(testAccount, buckets...))
	if err != nil {
		t.Fatal(err)
	}
	tags, _ := c.stored(t, p, "bucket-1")
	whole := tags[tagAccess+"00"]
	tags[tagAccess+"00"] = "RW" + whole
	set := func() {
		c.admin(t, p, func(client *s3.Client) error { return client.SetTags(t.Context(), "bucket-1", tags) })
	}
	set()
	for range 2 {
		err := c.provider(t).RevokeAccess(t.Context(), revocation(testAccount, buckets...))
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), `"bucket-1"`) || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("got %v, want the malformed record", err)
		}
		if _, err := p.getGroup(t.Context(), testRegion, a.IdentityID); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("the group: %v", err)
		}
		if err := c.s3As(t, a.Credentials).PutObject(t.Context(), "bucket-2", "k", nil); err == nil {
			t.Error("the key works")
		}
	}
	if left, _ := c.stored(t, p, "bucket-1"); left[tagAccess+"00"] != tags[tagAccess+"00"] {
		t.Errorf("the malformed record was written over: %v", left)
	}
	tags[tagAccess+"00"] = whole
	set()
	if err := c.provider(t).RevokeAccess(t.Context(), revocation(testAccount, buckets...)); err != nil {
		t.Error(err)
	}
	for _, name := range buckets {
		if tags, policy := c.stored(t, p, name); tags[tagAccess+"00"] != "" || policy != render(name, p.admins[testRegion].group.urn, nil) {
			t.Errorf("%s is left with %v, %s", name, tags, policy)
		}
	}
}

// TestMalformedRecordOfOthersHoldsUpNothing: a revocation that looks at all buckets
// of the project passes one whose record cannot be its own.
func TestMalformedRecordOfOthersHoldsUpNothing(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	mustCreate(t, p, "bucket-2")
	a := mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
	tags, _ := c.stored(t, p, "bucket-2")
	tags[tagAccess+"00"] = "nonsense"
	c.admin(t, p, func(client *s3.Client) error { return client.SetTags(t.Context(), "bucket-2", tags) })
	ref := provider.AccountRef{Account: testAccount, IdentityID: a.IdentityID}
	if err := c.provider(t).RevokeAccess(t.Context(), ref); err != nil {
		t.Error(err)
	}
	if len(c.groups()) != 0 {
		t.Errorf("left are %v", c.groups())
	}
}

// TestRevokeLeavesAccessesOfAnotherDriver: IDs do not name the driver, so one with a
// back end of the same name must not revoke the access, nor say that it is gone.
func TestRevokeLeavesAccessesOfAnotherDriver(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	other := c.provider(t, func(config *Config) { config.DriverName = "other.zuber.dev" })
	mustCreate(t, other, "bucket-1")
	a := mustGrant(t, other, testAccount, "bucket-1", provider.ReadWrite)
	p := c.provider(t)
	mustCreate(t, p, "of-ours")
	ref := revocation(testAccount, "bucket-1")
	ref.IdentityID = a.IdentityID
	refused := func(when string) {
		t.Helper()
		err := p.RevokeAccess(t.Context(), ref)
		if !errors.Is(err, provider.ErrPermissionDenied) || !strings.Contains(err.Error(), "different names") {
			t.Errorf("%s: %v", when, err)
		}
		if err := c.s3As(t, a.Credentials).PutObject(t.Context(), "bucket-1", "k", nil); err != nil {
			t.Errorf("%s: the key: %v", when, err)
		}
	}
	refused("shut out")
	c.admin(t, other, func(client *s3.Client) error {
		return client.SetPolicy(t.Context(), "bucket-1", render("bucket-1", p.admins[testRegion].group.urn, []member{
			{other.admins[testRegion].group.urn, provider.ReadWrite}, {entryURN(t, other), provider.ReadWrite},
		}))
	})
	refused("with the other's mark in sight")
}

// entryURN returns the URN of the access to bucket-1.
func entryURN(t *testing.T, p *Provider) string {
	t.Helper()
	b, err := p.open(t.Context(), refOf("bucket-1"))
	if err != nil {
		t.Fatal(err)
	}
	e, _ := b.find(groupName(testAccount))
	return e.urn
}
