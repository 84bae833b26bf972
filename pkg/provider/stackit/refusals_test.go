package stackit

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
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
