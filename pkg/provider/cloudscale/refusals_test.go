package cloudscale

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// What the cloud has against a body that the driver wrote is no fault of the
// request, which a sidecar would give up for ever.
func TestRefusedBodiesAreNotFinal(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	create := func(ctx context.Context) error {
		_, err := c.CreateBucket(ctx, provider.BucketSpec{Name: "other", Region: "rma"})
		return err
	}
	grant := func(ctx context.Context) error {
		_, err := c.GrantAccess(ctx, accessTo(b.BucketRef))
		return err
	}
	remove := func(ctx context.Context) error { return c.DeleteBucket(ctx, b.BucketRef, purge) }
	for _, call := range []struct {
		operation string
		do        func(context.Context) error
	}{
		{"CreateObjectsUser", create}, {"CreateObjectsUser", grant}, {"ListObjectsUsers", create}, {"UpdateObjectsUser", grant},
		{"PutBucketPolicy", grant}, {"PutPublicAccessBlock", grant}, {"DeleteObjectsUser", remove},
	} {
		for body, want := range map[string]error{
			`{"tags":"Ensure this value has at most 64 entries."}`:             provider.ErrPrecondition,
			`{"detail":"You have reached the limit of 100 objects users."}`:    provider.ErrQuotaExceeded,
			`<Error><Code>InvalidRange</Code><Message></Message></Error>`:      provider.ErrQuotaExceeded,
			`<Error><Code>MalformedPolicy</Code><Message></Message></Error>`:   provider.ErrPrecondition,
			`<Error><Code>TooManyBuckets</Code><Message></Message></Error>`:    provider.ErrQuotaExceeded,
			`<Error><Code>InvalidArgument</Code><Message>x</Message></Error>`:  provider.ErrPrecondition,
			`<Error><Code>InvalidBucketName</Code><Message/></Error>`:          provider.ErrInvalidArgument,
			`{"non_field_errors":"Invalid data. Expected a dictionary, x."}`:   provider.ErrPrecondition,
			`{"detail":"JSON parse error - Expecting value: line 1 column 1"}`: provider.ErrPrecondition,
		} {
			if dataPlane := body[0] == '<'; dataPlane != (call.operation[0] == 'P') {
				continue
			}
			if call.operation == "DeleteObjectsUser" {
				// A refusal means that the user owns a bucket still.
				want = provider.ErrUnavailable
			}
			t.Run(fmt.Sprintf("%s %.24s", call.operation, body), func(t *testing.T) {
				defer c.Inject(emulator.Fault{Operation: call.operation, Status: http.StatusBadRequest, Body: body})()
				c.want(call.do(t.Context()), want)
			})
		}
	}
}

// An answer that somebody in front of the API gave must not pass for a deletion.
func TestAlienSuccessIsNotBelieved(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	c.trust(c.Provider)
	b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
	a, err := c.GrantAccess(t.Context(), accessTo(b.BucketRef))
	c.must(err)
	ref := provider.AccountRef{Account: "ba-1", IdentityID: a.IdentityID, Buckets: []provider.BucketRef{b.BucketRef}}
	aliens := []emulator.Fault{
		{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Welcome</html>"},
		{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: "{}"},
		{Status: 200}, {Status: 202},
	}
	for _, operation := range []string{"UpdateObjectsUser", "DeleteObjectsUser"} {
		for _, f := range aliens {
			f.Operation = operation
			remove := c.Inject(f)
			c.want(c.RevokeAccess(t.Context(), ref), provider.ErrUnavailable, "check the API URL")
			remove()
		}
	}
	c.must(c.RevokeAccess(t.Context(), ref))
	c.wantAccesses()
	for _, operation := range []string{"DeleteBucket", "DeleteObjectsUser"} {
		remove := c.Inject(emulator.Fault{Operation: operation, Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Welcome</html>"})
		c.want(c.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable)
		remove()
	}
	c.must(c.DeleteBucket(t.Context(), b.BucketRef, purge))
	c.wantLeft()
}

// TestAnswersInFrontOfTheCloud: what something between the driver and the cloud says
// is no fault of the request.
func TestAnswersInFrontOfTheCloud(t *testing.T) {
	for _, fault := range []emulator.Fault{
		{Operation: "ListBuckets", Status: http.StatusMovedPermanently},
		{Operation: "ListBuckets", Status: http.StatusTemporaryRedirect},
		{Operation: "GetBucketLocation", Status: http.StatusTemporaryRedirect},
		{Operation: "ListRegions", Status: http.StatusOK, Body: "[]"},
	} {
		t.Run(fmt.Sprintf("%s %d", fault.Operation, fault.Status), func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			b, _ := c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
			p := c.provider()
			defer c.Inject(fault)()
			if fault.Operation != "ListBuckets" { // which a creation does not ask for
				_, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "other", Region: "rma"})
				c.want(err, provider.ErrUnavailable)
			}
			if fault.Operation != "ListRegions" {
				c.want(p.DeleteBucket(t.Context(), b.BucketRef, purge), provider.ErrUnavailable)
			}
		})
	}
}

// What an endpoint does not implement it may learn: the call is repeated, so that
// nobody has to make a claim anew after the cloud's next release.
func TestNotImplementedIsNotFinal(t *testing.T) {
	for _, code := range []string{"NotImplemented", "MethodNotAllowed"} {
		c := newCloud(t, emulator.Options{})
		remove := c.Inject(emulator.Fault{Operation: "CreateBucket", Status: http.StatusNotImplemented, Body: "<Error><Code>" + code + "</Code></Error>"})
		_, err := c.CreateBucket(t.Context(), provider.BucketSpec{Name: "bucket", Region: "rma"})
		c.want(err, provider.ErrPrecondition, code)
		remove()
		c.make(provider.BucketSpec{Name: "bucket", Region: "rma"})
	}
}

// An endpoint of another region is the fault of whoever named it: the class, which
// stays wrong, or the back end's configuration.
func TestEndpointOfAnotherRegionIsWhose(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	swapped := c.provider(func(config *Config) {
		config.Endpoints = map[string]string{"rma": c.cs.Endpoints["lpg"], "lpg": c.cs.Endpoints["rma"]}
	})
	_, err := swapped.CreateBucket(t.Context(), provider.BucketSpec{Name: "bucket", Region: "rma"})
	c.want(err, provider.ErrPrecondition, "use an endpoint of region")
	_, err = c.CreateBucket(t.Context(), provider.BucketSpec{Name: "bucket", Region: "rma", Endpoint: c.cs.Endpoints["lpg"]})
	c.want(err, provider.ErrInvalidArgument, "use an endpoint of region")
	c.wantLeft()
}
