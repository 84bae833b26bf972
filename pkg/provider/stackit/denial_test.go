package stackit

import (
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const testAccessURN = testStem + "a1b2c3"

// TestForeignDenials: which statements of others shut an access out.
func TestForeignDenials(t *testing.T) {
	const (
		root = "urn:sgws:identity::12345678901234567890:root"
		all  = `"Resource":["arn:aws:s3:::b-1","arn:aws:s3:::b-1/*"]`
	)
	for name, c := range map[string]struct {
		statement string
		refused   []provider.Mode // none: let in by all
		remedy    string
	}{
		"outsiders":            {`{"Sid":"iso","Effect":"Deny","NotPrincipal":{"AWS":"` + testAdminURN + `"},"Action":"s3:*",` + all + `}`, modes(), "NotPrincipal"},
		"named insider":        {`{"Effect":"Deny","NotPrincipal":{"AWS":["` + testAdminURN + `","` + testAccessURN + `"]},"Action":"s3:*",` + all + `}`, nil, ""},
		"insider as a user":    {`{"Effect":"Deny","NotPrincipal":{"AWS":"` + strings.Replace(testAccessURN, "group/", "user/", 1) + `"},"Action":"s3:*",` + all + `}`, nil, ""},
		"insider as an ARN":    {`{"Effect":"Deny","NotPrincipal":{"AWS":"arn:aws:iam::12345678901234567890:group/credentials-group-a1b2c3"},"Action":"s3:*",` + all + `}`, nil, ""},
		"the account exempt":   {`{"Effect":"Deny","NotPrincipal":{"AWS":"` + root + `"},"Action":"s3:*",` + all + `}`, nil, ""},
		"the number exempt":    {`{"Effect":"Deny","NotPrincipal":{"AWS":"12345678901234567890"},"Action":"s3:*",` + all + `}`, nil, ""},
		"another account":      {`{"Effect":"Deny","NotPrincipal":{"AWS":"urn:sgws:identity::1:group/credentials-group-a1b2c3"},"Action":"s3:*",` + all + `}`, modes(), "NotPrincipal"},
		"everybody":            {`{"Effect":"Deny","Principal":"*","Action":["s3:Get*"],"Resource":"*"}`, modes(), "Principal"},
		"somebody else":        {`{"Effect":"Deny","Principal":{"AWS":"` + testAdminURN + `x"},"Action":"s3:*",` + all + `}`, nil, ""},
		"writers":              {`{"Sid":"ro","Effect":"Deny","Principal":{"AWS":"*"},"NotAction":["s3:Get*","s3:List*"],` + all + `}`, []provider.Mode{provider.ReadWrite, provider.WriteOnly}, "Principal"},
		"deletion":             {`{"Effect":"Deny","Principal":"*","Action":"s3:DeleteObject*","Resource":"arn:aws:s3:::b-1/*"}`, nil, ""},
		"a prefix":             {`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::b-1/secret/*"}`, nil, ""},
		"another bucket":       {`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"urn:sgws:s3:::b-2*"}`, nil, ""},
		"all but a prefix":     {`{"Effect":"Deny","Principal":"*","Action":"s3:GetObject","NotResource":"arn:aws:s3:::b-1/public/*"}`, []provider.Mode{provider.ReadWrite, provider.ReadOnly}, "Principal"},
		"with a condition":     {`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.1"}}}`, nil, ""},
		"an Allow":             {`{"Effect":"Allow","NotPrincipal":{"AWS":"` + testAdminURN + `"},"Action":"s3:*",` + all + `}`, nil, ""},
		"one letter of a name": {`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::b-?/*"}`, modes(), "Principal"},
	} {
		b := &bucket{BucketRef: provider.BucketRef{Name: "b-1"}, adminURN: testAdminURN, others: `{"Statement":[` + c.statement + `]}`}
		for _, mode := range modes() {
			err := b.admits(entry{urn: testAccessURN}, mode)
			refused := false
			for _, m := range c.refused {
				refused = refused || m == mode
			}
			if refused != errors.Is(err, provider.ErrPrecondition) || refused != (err != nil) {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
			if !refused {
				continue
			}
			sid := `statement 1 (without a Sid)`
			if _, after, ok := strings.Cut(c.statement, `"Sid":`); ok {
				sid = "statement " + strings.SplitN(after, ",", 2)[0]
			}
			for _, part := range []string{sid, c.remedy, testAccessURN} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s, %s: %v does not say %s", name, mode, err, part)
				}
			}
		}
	}
}

func TestManageable(t *testing.T) {
	for statement, want := range map[string]error{
		`{"Effect":"Deny","NotPrincipal":{"AWS":"` + testAdminURN + `"},"Action":"s3:*","Resource":"*"}`:                      nil,
		`{"Sid":"x","Effect":"Deny","NotPrincipal":{"AWS":"` + testAccessURN + `"},"Action":"s3:*","Resource":"*"}`:           provider.ErrPermissionDenied,
		`{"Sid":"x","Effect":"Deny","Principal":"*","Action":"s3:PutBucketPolicy","Resource":"arn:aws:s3:::b-1"}`:             provider.ErrPermissionDenied,
		`{"Sid":"x","Effect":"Deny","Principal":"*","Action":"s3:DeleteBucketPolicy","Resource":"arn:aws:s3:::b-1"}`:          provider.ErrPermissionDenied,
		`{"Sid":"x","Effect":"Deny","Principal":"*","Action":"s3:PutBucketPolicy","Resource":"arn:aws:s3:::b-1/*"}`:           nil,
		`{"Sid":"x","Effect":"Deny","Principal":"*","Action":["s3:DeleteBucket","s3:PutBucketTagging"],"Resource":"*"}`:       nil,
		`{"Sid":"x","Effect":"Deny","Principal":"*","NotAction":["s3:*Policy","s3:GetObject"],"Resource":"arn:aws:s3:::b-1"}`: nil,
	} {
		b := &bucket{BucketRef: provider.BucketRef{Name: "b-1"}, adminURN: testAdminURN, others: `{"Statement":` + statement + `}`}
		err := b.manageable()
		if !errors.Is(err, want) || want != nil && (!strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), testAdminURN)) {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
