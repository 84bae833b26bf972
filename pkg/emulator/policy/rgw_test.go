package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// The identities of the measurements: 64 hexadecimal digits each.
var (
	owner = strings.Repeat("a", 64)
	userB = strings.Repeat("b", 64)
	userC = strings.Repeat("c", 64)
)

func user(uid string) string { return `"arn:aws:iam:::user/` + uid + `"` }

// statement is a document with one statement in the spacing of the recorded
// ones, so that the recorded offsets hold.
func statement(body string) string {
	return `{"Version": "2012-10-17", "Statement": [{` + body + `}]}`
}

// grant is a document that allows B one action on objects.
func grant(principal, action, resource string) string {
	return statement(fmt.Sprintf(`"Effect": "Allow", "Principal": %s, "Action": %s, "Resource": %s`,
		principal, action, resource))
}

const objects = `["arn:aws:s3:::bkt/*"]`

// TestParseRGW holds the answers of a real 18.2.7 to PutBucketPolicy. An empty
// message means that the document was accepted.
func TestParseRGW(t *testing.T) {
	b := `{"AWS": ` + user(userB) + `}`
	get := `["s3:GetObject"]`
	tests := []struct{ name, doc, message string }{
		{"principal unknown user", grant(`{"AWS": [`+user("nobody")+`]}`, get, objects), ""},
		{"principal plain uid", grant(`{"AWS": ["`+userB+`"]}`, get, objects), ""},
		{"principal string not list", grant(b, get, objects), ""},
		{"principal with account part", grant(`{"AWS": "arn:aws:iam::123:user/x"}`, get, objects), ""},
		{"principal *", grant(`"*"`, get, objects), ""},
		{"principal {AWS:*}", grant(`{"AWS": "*"}`, get, objects), ""},
		{"principal CanonicalUser", grant(`{"CanonicalUser": "`+userB+`"}`, get, objects),
			"At character offset 157, RGW does not support canonical users."},
		{"no principal", statement(`"Effect": "Allow", "Action": ` + get + `, "Resource": ` + objects), ""},
		{"unknown action in a list", grant(b, `["s3:FooBar"]`, objects),
			"At character offset 191, `s3:FooBar` is not a valid action."},
		{"action case", grant(b, `["s3:getobject"]`, objects), ""},
		{"action wildcard", grant(b, `["s3:Get*"]`, objects), ""},
		{"action s3:*", grant(b, `["s3:*"]`, objects), ""},
		{"action not in this release, list", grant(b, `["s3:GetObjectAttributes"]`, objects),
			"At character offset 204, `s3:GetObjectAttributes` is not a valid action."},
		{"action not in this release", grant(b, `"s3:GetObjectAttributes"`, objects),
			"At character offset 203, `s3:GetObjectAttributes` is not a valid action."},
		{"ownership controls", grant(b, `"s3:GetBucketOwnershipControls"`, objects),
			"At character offset 210, `s3:GetBucketOwnershipControls` is not a valid action."},
		{"HeadBucket", grant(b, `"s3:HeadBucket"`, objects),
			"At character offset 194, `s3:HeadBucket` is not a valid action."},
		{"ListObjects", grant(b, `"s3:ListObjects"`, objects),
			"At character offset 195, `s3:ListObjects` is not a valid action."},
		{"ListObjectsV2", grant(b, `"s3:ListObjectsV2"`, objects),
			"At character offset 197, `s3:ListObjectsV2` is not a valid action."},
		{"encryption configuration", grant(b, `"s3:GetEncryptionConfiguration"`, objects),
			"At character offset 210, `s3:GetEncryptionConfiguration` is not a valid action."},
		{"version attributes", grant(b, `"s3:GetObjectVersionAttributes"`, objects),
			"At character offset 210, `s3:GetObjectVersionAttributes` is not a valid action."},
		{"resource of another bucket", grant(b, get, `["arn:aws:s3:::other/*"]`), ""},
		{"resource not ARN", grant(b, get, `["x/*"]`), "At character offset 215, `x/*` is not a valid ARN. " +
			"Resource ARNs should have a format like `arn:aws:s3::tenant:resource' or `arn:aws:s3:::resource`."},
		{"no version", `{"Statement": []}`, ""},
		{"version 2008-10-17", `{"Version": "2008-10-17", "Statement": []}`, ""},
		{"version junk", `{"Version": "2020-01-01", "Statement": []}`, "At character offset 24, `2020-01-01` " +
			"is not a valid version. Valid versions are `2008-10-17` and `2012-10-17`."},
		{"not json", `{nope`, "At character offset 1, Missing a name for object member."},
		{"empty string", ``, "At character offset 1, The document is empty."},
		{"one blank", ` `, "At character offset 1, The document is empty."},
		{"empty statements", `{"Version": "2012-10-17", "Statement": []}`, ""},
		{"Id and Sid", `{"Version": "2012-10-17", "Id": "cosi", "Statement": [{"Sid": "one"}]}`, ""},
		{"duplicate Sid", `{"Statement": [{"Sid": "x"}, {"Sid": "x"}]}`, ""},
		{"Sid with odd chars", statement(`"Sid": "a b/ü-_!"`), ""},
		{"unknown top-level key", `{"Version": "2012-10-17", "X": 1}`, "At character offset 29, Unknown key `X`."},
		{"unknown condition key", statement(`"Condition": {"StringEquals": {"zz:nope": "v"}}`), ""},
		{"Deny NotPrincipal", statement(`"Effect": "Deny", "NotPrincipal": {"AWS": [` + user(owner) + `]}`), ""},
		{"Allow NotPrincipal", statement(`"Effect": "Allow", "NotPrincipal": {"AWS": [` + user(userC) + `]}`), ""},
		{"NotAction", statement(`"Effect": "Deny", "NotAction": "s3:GetObject"`), ""},
		{"NotResource", statement(`"Effect": "Allow", "NotResource": "arn:aws:s3:::x/*"`), ""},
	}
	for _, action := range []string{
		"ListAllMyBuckets", "ListBucketMultipartUploads", "ListMultipartUploadParts", "AbortMultipartUpload",
		"GetBucketPolicyStatus", "GetBucketObjectLockConfiguration", "PutObjectRetention",
		"BypassGovernanceRetention", "GetObjectRetention", "PutObjectLegalHold", "GetLifecycleConfiguration",
		"GetBucketCORS", "GetBucketTagging", "GetAccelerateConfiguration", "GetReplicationConfiguration",
		"RestoreObject", "GetObjectTorrent", "PutObjectTagging", "GetObjectVersionTagging",
		"DeleteObjectVersionTagging", "PutObjectVersionTagging",
	} {
		tests = append(tests, struct{ name, doc, message string }{action, grant(b, `"s3:`+action+`"`, objects), ""})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkParse(t, policy.RGWReef, tt.doc, tt.message) })
	}
}

// TestParseRGWGrammar covers the gateway's grammar beyond the recorded rows.
func TestParseRGWGrammar(t *testing.T) {
	tests := []struct{ name, doc, message string }{
		{"comments", "{ // one\n \"Version\" /* two */ : \"2012-10-17\"}", ""},
		{"text after a NUL", "{}\x00}", ""},
		{"single statement object", `{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}}`, ""},
		{"number in a condition", statement(`"Condition": {"NumericLessThan": {"s3:max-keys": 10}}`), ""},
		{"IfExists", statement(`"Condition": {"StringLikeIfExists": {"s3:prefix": ["a*", "b*"]}}`), ""},
		{"escapes", `{"Id": "\u00e9\ud83d\ude00\n\"\\\/"}`, ""},
		{"second value", `{} {}`, "At character offset 3, The document root must not be followed by other values."},
		{"root is a string", `"x"`, "At character offset 3, String not allowed at top level."},
		{"root is a number", ` 12`, "At character offset 1, Number not allowed at top level."},
		{"root is a list", `[]`, "At character offset 1, Array not allowed at top level."},
		{"literal", `{"Id": true}`, "At character offset 11, No error?"},
		{"broken literal", `{"Id": nul`, "At character offset 10, Invalid value."},
		{"no colon", `{"Id" "x"}`, "At character offset 6, Missing a colon after a name of object member."},
		{"no comma", `{"Id": "x" "Version"`, "At character offset 11, Missing a comma or } after an object member."},
		{"no comma in list", `{"Statement": [{} {}`, "At character offset 18, Missing a comma or ] after an array element."},
		{"open string", `{"Id": "x`, "At character offset 9, Missing a closing quotation mark in string."},
		{"control character", "{\"Id\": \"\x01", "At character offset 8, Invalid encoding in string."},
		{"bad escape", `{"Id": "a\x"}`, "At character offset 9, Invalid escape character in string."},
		{"bad hex", `{"Id": "\u12g4"}`, `At character offset 8, Incorrect hex digit after \u escape in string.`},
		{"lone surrogate", `{"Id": "\ud800"}`, "At character offset 8, The surrogate pair in string is invalid."},
		{"open comment", `{/* `, "At character offset 4, Unspecific syntax error."},
		{"slash", `/`, "At character offset 1, Unspecific syntax error."},
		{"not a value", `{"Id": ?}`, "At character offset 7, Invalid value."},
		{"fraction", `{"Id": 1.}`, "At character offset 9, Miss fraction part in number."},
		{"exponent", `{"Id": 1e}`, "At character offset 9, Miss exponent in number."},
		{"number as Id", `{"Id": 17}`, "At character offset 7, Numbers are not allowed outside condition arguments."},
		{"Id twice", `{"Id": "a", "Id": "b"}`, "At character offset 16, Token `Id` is not allowed in the context of `<Top>`."},
		{"Sid at top", `{"Sid": "a"}`, "At character offset 6, Token `Sid` is not allowed in the context of `<Top>`."},
		{"statement is a string", `{"Statement": "a"}`, "At character offset 17, `a` is not valid in the context of `Statement`."},
		{"list in a list", `{"Statement": [[`, "At character offset 16, `Statement` does not take array."},
		{"effect", statement(`"Effect": "Maybe"`), "At character offset 58, `Maybe` is not a valid effect."},
		{"principal list", statement(`"Principal": ["*"]`), "At character offset 55, `Principal` does not take array."},
		{"principal string", statement(`"Principal": "x"`), "At character offset 57, `x` is not valid in the context of `Principal`."},
		{"principal type", statement(`"Principal": {"Foo": "x"}`), "At character offset 60, Unknown key `Foo`."},
		{"service", statement(`"Principal": {"Service": "x"}`), "At character offset 69, RGW does not support principals of type `Service`."},
		{"AWS on both sides", statement(`"Principal": {"AWS": "*"}, "NotPrincipal": {"AWS": "*"}`),
			"At character offset 90, Token `AWS` is not allowed in the context of `NotPrincipal`."},
		{"object as action", statement(`"Action": {`), "At character offset 52, The Action keyword cannot introduce an object."},
		{"unknown operator", statement(`"Condition": {"NopeIfExists": {}}`), "At character offset 69, Unknown key `Nope`."},
		{"word as operator", statement(`"Condition": {"Action": {}}`), "At character offset 63, Token `Action` is not allowed in the context of `Condition`."},
		{"word as condition key", statement(`"Condition": {"Bool": {"Sid": 1}}`), "At character offset 69, Token `Sid` is not allowed in the context of `Bool`."},
		{"interpolation", statement(`"Condition": {"StringEquals": {"k": "${x"}}`), "At character offset 82, Invalid interpolation `${x`."},
		{"resource of a tenant", statement(`"Resource": "arn:aws:s3::t:b"`), "At character offset 70, " +
			"Policy owned by tenant `` cannot grant access to resource owned by tenant `t`."},
		{"resource of odd partition", statement(`"Resource": "arn:foo:s3:::b"`), "At character offset 69, `arn:foo:s3:::b` is not a valid ARN. " +
			"Resource ARNs should have a format like `arn:aws:s3::tenant:resource' or `arn:aws:s3:::resource`."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range gateways() {
				checkParse(t, d, tt.doc, tt.message)
			}
		})
	}
	t.Run("unsupported ARN", func(t *testing.T) {
		_, err := policy.Parse([]byte(statement(`"Principal": {"AWS": "arn:aws:iam:::group/x"}`)), policy.RGWReef)
		if err == nil || !strings.Contains(err.Error(), "`arn:aws:iam:::group/x` is not a supported AWS or Federated ARN.") {
			t.Errorf("got %v", err)
		}
	})
}

// TestParseRGWSize holds the recorded size limit.
func TestParseRGWSize(t *testing.T) {
	sized := func(n int) []byte {
		const frame = `{"Id": "", "Statement": []}`
		return []byte(strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1))
	}
	for _, n := range []int{20479, 20480, 20481, 262144, 1048575, 1048576} {
		if _, err := policy.Parse(sized(n), policy.RGWReef); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	_, err := policy.Parse(sized(1048577), policy.RGWReef)
	if pe, ok := errors.AsType[*policy.ParseError](err); !ok || pe.Code != "InvalidRange" || pe.Status != 416 || pe.Message != "" {
		t.Errorf("1048577 bytes: got %#v", err)
	}
}

func TestParseUnknownDialect(t *testing.T) {
	_, err := policy.Parse([]byte(`{}`), "other")
	if pe, ok := errors.AsType[*policy.ParseError](err); !ok || pe.Code != "NotImplemented" || pe.Status != 501 {
		t.Errorf("got %#v", err)
	}
}

// checkParse compares the answer to a document; an empty message means that it
// is accepted.
func checkParse(t *testing.T, d policy.Dialect, doc, message string) {
	t.Helper()
	const code = "InvalidArgument"
	parsed, err := policy.Parse([]byte(doc), d)
	if message == "" {
		if err != nil || parsed == nil {
			t.Fatalf("%s\ngot %v, want it accepted", doc, err)
		}
		return
	}
	pe, ok := errors.AsType[*policy.ParseError](err)
	if !ok {
		t.Fatalf("%s\ngot %v, want a ParseError", doc, err)
	}
	if pe.Code != code || pe.Status != 400 || pe.Message != message {
		t.Errorf("%s\ngot  %d %s %q\nwant 400 %s %q", doc, pe.Status, pe.Code, pe.Message, code, message)
	}
	if pe.Error() != code+": "+message {
		t.Errorf("Error() = %q", pe.Error())
	}
}
