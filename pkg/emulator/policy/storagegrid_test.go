package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

const (
	account  = "12345678901234567890"
	identity = "urn:sgws:identity::" + account + ":"
	admin    = identity + "group/credentials-group-000000"
	groupRW  = identity + "group/credentials-group-a1b2c3"
	groupRO  = identity + "group/credentials-group-123456"
	groupOut = identity + "group/credentials-group-ffffff"
)

// gridStatement is a document of one statement that denies the out-group
// everything, with one element replaced or, if the text is empty, left out.
func gridStatement(element, text string) string {
	elements := []struct{ name, text string }{
		{"Effect", `"Effect":"Deny"`},
		{"Principal", `"Principal":{"AWS":"` + groupOut + `"}`},
		{"Action", `"Action":"s3:*"`},
		{"Resource", `"Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"]`},
		{"Condition", ``},
	}
	var out []string
	for _, e := range elements {
		if e.name == element {
			e.text = text
		}
		if e.text != "" {
			out = append(out, e.text)
		}
	}
	return `{"Statement":[{` + strings.Join(out, ",") + `}]}`
}

// TestParseStorageGRID tells accepted documents from refused ones. The texts
// of the refusals are the emulator's own: none is documented.
func TestParseStorageGRID(t *testing.T) {
	condition := func(s string) string { return gridStatement("Condition", `"Condition":`+s) }
	tests := []struct {
		name, doc string
		ok        bool
	}{
		{"no version", gridStatement("", ""), true},
		{"version and id", `{"Version":"2012-10-17","Id":"x",` + gridStatement("", "")[1:], true},
		{"single statement", strings.NewReplacer("[{", "{", "}]}", "}}").Replace(gridStatement("Resource", `"Resource":"arn:aws:s3:::bkt"`)), true},
		{"NotPrincipal list", gridStatement("Principal", `"NotPrincipal":{"AWS":["`+admin+`","`+groupRW+`"]}`), true},
		{"anyone", gridStatement("Principal", `"Principal":"*"`), true},
		{"anyone in AWS", gridStatement("Principal", `"Principal":{"AWS":"*"}`), true},
		{"account", gridStatement("Principal", `"Principal":{"AWS":"`+account+`"}`), true},
		{"root", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`root"}`), true},
		{"ARN", gridStatement("Principal", `"Principal":{"AWS":"arn:aws:iam::`+account+`:federated-group/x"}`), true},
		{"NotAction", gridStatement("Action", `"NotAction":["s3:GetObject","s3:PutOverwriteObject"]`), true},
		{"action wildcard", gridStatement("Action", `"Action":"s3:Get*"`), true},
		{"urn resource", gridStatement("Resource", `"Resource":"urn:sgws:s3:::bkt/*"`), true},
		{"NotResource", gridStatement("Resource", `"NotResource":"arn:aws:s3:::bkt/public/*"`), true},
		{"variables", gridStatement("Resource", `"Resource":"arn:aws:s3:::bkt/${aws:username}/${*}${?}${$}"`), true},
		{"condition", condition(`{"IpAddress":{"aws:SourceIp":["10.0.0.0/8"]},"NumericLessThan":{"s3:max-keys":10},"Null":{"s3:prefix":true}}`), true},
		{"tag condition", condition(`{"StringLike":{"s3:ExistingObjectTag/class":"a*"}}`), true},

		{"empty", ``, false},
		{"not json", `{nope`, false},
		{"a list", `[]`, false},
		{"null", `null`, false},
		{"trailing text", gridStatement("", "") + "x", false},
		{"no statement", `{"Version":"2012-10-17"}`, false},
		{"null statement", `{"Statement":null}`, false},
		{"empty statements", `{"Statement":[]}`, false},
		{"unknown element", `{"Foo":1,` + gridStatement("", "")[1:], false},
		{"unknown element in a statement", gridStatement("Condition", `"Foo":"x"`), false},
		{"version is a number", `{"Version":1,` + gridStatement("", "")[1:], false},
		{"Sid is a number", gridStatement("Condition", `"Sid":1`), false},
		{"no effect", gridStatement("Effect", ``), false},
		{"odd effect", gridStatement("Effect", `"Effect":"deny"`), false},
		{"no principal", gridStatement("Principal", ``), false},
		{"both principals", gridStatement("Principal", `"Principal":"*","NotPrincipal":"*"`), false},
		{"empty principals", gridStatement("Principal", `"Principal":{"AWS":[]}`), false},
		{"null principal", gridStatement("Principal", `"Principal":{"AWS":null}`), false},
		{"string principal", gridStatement("Principal", `"Principal":"`+groupRW+`"`), false},
		{"canonical user", gridStatement("Principal", `"Principal":{"CanonicalUser":"x"}`), false},
		{"principal with wildcard", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`group/*"}`), false},
		{"principal without type", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`x"}`), false},
		{"principal without name", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`group/"}`), false},
		{"principal without account", gridStatement("Principal", `"Principal":{"AWS":"arn:aws:iam:::user/x"}`), false},
		{"no action", gridStatement("Action", ``), false},
		{"unknown action", gridStatement("Action", `"Action":"s3:HeadBucket"`), false},
		{"action of group policies", gridStatement("Action", `"Action":"s3:ListAllMyBuckets"`), false},
		{"question mark in an action", gridStatement("Action", `"Action":"s3:GetObjec?"`), false},
		{"wildcard that covers nothing", gridStatement("Action", `"Action":"iam:*"`), false},
		{"no resource", gridStatement("Resource", ``), false},
		{"bare resource", gridStatement("Resource", `"Resource":"bkt/*"`), false},
		{"resource without name", gridStatement("Resource", `"Resource":"arn:aws:s3:::"`), false},
		{"unknown variable", gridStatement("Resource", `"Resource":"arn:aws:s3:::bkt/${aws:userid}"`), false},
		{"open variable", gridStatement("Resource", `"Resource":"arn:aws:s3:::bkt/${aws:username"`), false},
		{"unknown operator", condition(`{"DateLessThan":{"aws:SourceIp":"x"}}`), false},
		{"no IfExists", condition(`{"StringEqualsIfExists":{"s3:prefix":"x"}}`), false},
		{"unknown key", condition(`{"Bool":{"aws:SecureTransport":"false"}}`), false},
		{"tag without key", condition(`{"StringLike":{"s3:ExistingObjectTag/":"a*"}}`), false},
		{"no value", condition(`{"StringLike":{"s3:prefix":[]}}`), false},
		{"null value", condition(`{"StringLike":{"s3:prefix":null}}`), false},
		{"object value", condition(`{"StringLike":{"s3:prefix":{}}}`), false},
		{"condition is a list", condition(`[]`), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := policy.Parse([]byte(tt.doc), policy.StorageGRID)
			if tt.ok {
				if err != nil {
					t.Errorf("%s\ngot %v, want it accepted", tt.doc, err)
				}
				return
			}
			pe, ok := errors.AsType[*policy.ParseError](err)
			if !ok || pe.Code != "XBucketPolicyParseException" || pe.Status != 400 || pe.Message == "" {
				t.Errorf("%s\ngot %v, want XBucketPolicyParseException", tt.doc, err)
			}
		})
	}
}

func TestParseStorageGRIDSize(t *testing.T) {
	fill := func(n int) []byte {
		base := gridStatement("Condition", `"Sid":""`)
		return []byte(strings.Replace(base, `"Sid":""`, `"Sid":"`+strings.Repeat("x", n-len(base))+`"`, 1))
	}
	if _, err := policy.Parse(fill(20480), policy.StorageGRID); err != nil {
		t.Errorf("20480 bytes: %v", err)
	}
	_, err := policy.Parse(fill(20481), policy.StorageGRID)
	if pe, ok := errors.AsType[*policy.ParseError](err); !ok || pe.Code != "XMaxBucketPolicyLengthExceeded" || pe.Status != 400 {
		t.Errorf("20481 bytes: got %v", err)
	}
}

// TestEvaluateStorageGRID holds the isolation document: all but the named
// groups denied everything, each mode denied all but its own actions.
func TestEvaluateStorageGRID(t *testing.T) {
	const resources = `"Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"]`
	doc := mustParse(t, policy.StorageGRID, `{"Statement":[
 {"Sid":"deny-outsiders","Effect":"Deny","NotPrincipal":{"AWS":["`+admin+`","`+groupRW+`","`+groupRO+`"]},"Action":"s3:*",`+resources+`},
 {"Sid":"rw","Effect":"Deny","Principal":{"AWS":["`+groupRW+`"]},"NotAction":["s3:GetObject","s3:PutObject","s3:PutOverwriteObject","s3:DeleteObject","s3:ListBucket"],`+resources+`},
 {"Sid":"ro","Effect":"Deny","Principal":{"AWS":"`+groupRO+`"},"NotAction":["s3:GetObject","s3:ListBucket"],`+resources+`}]}`)
	const n, d = policy.NoMatch, policy.Deny
	tests := []struct {
		action, resource   string
		admin, rw, ro, out policy.Decision
	}{
		{"s3:ListBucket", bkt, n, n, n, d},
		{"s3:GetObject", key, n, n, n, d},
		{"s3:PutObject", key, n, n, d, d},
		{"s3:PutOverwriteObject", key, n, n, d, d},
		{"s3:DeleteObject", key, n, n, d, d},
		{"s3:DeleteObjectVersion", key, n, d, d, d},
		{"s3:GetBucketPolicy", bkt, n, d, d, d},
		{"s3:PutBucketPolicy", bkt, n, d, d, d},
		{"s3:DeleteBucket", bkt, n, d, d, d},
		{"s3:GetObject", "arn:aws:s3:::other/key", n, n, n, n},
	}
	for _, tt := range tests {
		for group, want := range map[string]policy.Decision{admin: tt.admin, groupRW: tt.rw, groupRO: tt.ro, groupOut: tt.out} {
			r := policy.Request{
				Principal: strings.Replace(group, ":group/", ":user/", 1), Groups: []string{group},
				Action: tt.action, Resource: tt.resource,
			}
			if got := doc.Evaluate(r); got != want {
				t.Errorf("%s %s %s: got %v, want %v", group, tt.action, tt.resource, got, want)
			}
		}
		// An anonymous request is an outsider.
		if got := doc.Evaluate(policy.Request{Action: tt.action, Resource: tt.resource}); got != tt.out {
			t.Errorf("anonymous %s %s: got %v, want %v", tt.action, tt.resource, got, tt.out)
		}
	}
	if doc.Public() {
		t.Error("public")
	}
}

// TestEvaluateStorageGRIDElements covers principals, resources and variables.
func TestEvaluateStorageGRIDElements(t *testing.T) {
	member := policy.Request{
		Principal: identity + "user/alice", Groups: []string{groupRO}, Action: "s3:GetObject", Resource: key,
		Context: map[string][]string{"aws:username": {"dir"}},
	}
	tests := []struct {
		name, doc string
		want      policy.Decision
	}{
		{"user", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`user/alice"}`), policy.Deny},
		{"user as ARN", gridStatement("Principal", `"Principal":{"AWS":"arn:aws:iam::`+account+`:user/alice"}`), policy.Deny},
		{"other user", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`user/bob"}`), policy.NoMatch},
		{"same name elsewhere", gridStatement("Principal", `"Principal":{"AWS":"urn:sgws:identity::9:user/alice"}`), policy.NoMatch},
		{"group", gridStatement("Principal", `"Principal":{"AWS":["`+groupRW+`","`+groupRO+`"]}`), policy.Deny},
		{"account", gridStatement("Principal", `"Principal":{"AWS":"`+account+`"}`), policy.Deny},
		{"other account", gridStatement("Principal", `"Principal":{"AWS":"9"}`), policy.NoMatch},
		{"root", gridStatement("Principal", `"Principal":{"AWS":"`+identity+`root"}`), policy.Deny},
		{"anyone", gridStatement("Principal", `"Principal":"*"`), policy.Deny},
		{"exact action", gridStatement("Principal", `"Principal":"*"`), policy.Deny},
		{"Allow", strings.Replace(gridStatement("Principal", `"Principal":"*"`), "Deny", "Allow", 1), policy.Allow},
		{"variable", strings.Replace(gridStatement("Principal", `"Principal":"*"`), `"arn:aws:s3:::bkt/*"`, `"arn:aws:s3:::bkt/${aws:username}/*"`, 1), policy.Deny},
		{"variable absent", strings.Replace(gridStatement("Principal", `"Principal":"*"`), `"arn:aws:s3:::bkt/*"`, `"arn:aws:s3:::bkt/${s3:prefix}/*"`, 1), policy.NoMatch},
		{"literal star", strings.Replace(gridStatement("Principal", `"Principal":"*"`), `"arn:aws:s3:::bkt/*"`, `"arn:aws:s3:::bkt/${*}"`, 1), policy.NoMatch},
		{"urn resource", strings.Replace(gridStatement("Principal", `"Principal":"*"`), `"arn:aws:s3:::bkt/*"`, `"urn:sgws:s3:::bkt/d?r/*"`, 1), policy.Deny},
		{"every resource", strings.Replace(gridStatement("Principal", `"Principal":"*"`), `"arn:aws:s3:::bkt/*"`, `"*"`, 1), policy.Deny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustParse(t, policy.StorageGRID, tt.doc).Evaluate(member); got != tt.want {
				t.Errorf("%s\ngot %v, want %v", tt.doc, got, tt.want)
			}
		})
	}
}

func TestConditionsStorageGRID(t *testing.T) {
	type env = map[string][]string
	tests := []struct {
		name, condition string
		env             env
		holds           bool
	}{
		{"equals", `{"StringEquals": {"s3:prefix": ["a", "b"]}}`, env{"s3:prefix": {"b"}}, true},
		{"equals, absent", `{"StringEquals": {"s3:prefix": "a"}}`, env{}, false},
		{"not equals, none of two", `{"StringNotEquals": {"s3:prefix": ["a", "b"]}}`, env{"s3:prefix": {"b"}}, false},
		{"not equals, absent", `{"StringNotEquals": {"s3:prefix": "a"}}`, env{}, true},
		{"ignore case", `{"StringEqualsIgnoreCase": {"s3:prefix": "A"}}`, env{"s3:prefix": {"a"}}, true},
		{"not, ignore case", `{"StringNotEqualsIgnoreCase": {"s3:prefix": "A"}}`, env{"s3:prefix": {"a"}}, false},
		{"like", `{"StringLike": {"s3:prefix": "home/*"}}`, env{"s3:prefix": {"home/x"}}, true},
		{"not like", `{"StringNotLike": {"s3:prefix": "home/*"}}`, env{"s3:prefix": {"home/x"}}, false},
		{"like a variable", `{"StringLike": {"s3:prefix": "home/${aws:username}/*"}}`, env{"s3:prefix": {"home/u/x"}, "aws:username": {"u"}}, true},
		{"a variable is text", `{"StringLike": {"s3:prefix": "${aws:username}"}}`, env{"s3:prefix": {"abc"}, "aws:username": {"a*"}}, false},
		{"equals a variable", `{"StringEquals": {"s3:prefix": "${aws:username}*"}}`, env{"s3:prefix": {"u*"}, "aws:username": {"u"}}, true},
		{"variable absent", `{"StringEquals": {"s3:prefix": "${aws:username}"}}`, env{"s3:prefix": {"u"}}, false},
		{"tag", `{"StringEquals": {"s3:ExistingObjectTag/class": "x"}}`, env{"s3:ExistingObjectTag/class": {"x"}}, true},
		{"number", `{"NumericLessThanEquals": {"s3:max-keys": 10}}`, env{"s3:max-keys": {"10"}}, true},
		{"number, not", `{"NumericNotEquals": {"s3:max-keys": "10"}}`, env{"s3:max-keys": {"10"}}, false},
		{"bool", `{"Bool": {"s3:RequestObjectTag/x": true}}`, env{"s3:RequestObjectTag/x": {"true"}}, true},
		{"address", `{"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}`, env{"aws:SourceIp": {"10.2.3.4"}}, true},
		{"not address", `{"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "192.168.0.0/16"]}}`, env{"aws:SourceIp": {"192.168.2.3"}}, false},
		{"null", `{"Null": {"s3:prefix": "true"}}`, env{}, true},
		{"null, present", `{"Null": {"s3:prefix": "true"}}`, env{"s3:prefix": {"a"}}, false},
		{"not null", `{"Null": {"s3:prefix": false}}`, env{"s3:prefix": {"a"}}, true},
		{"not null, absent", `{"Null": {"s3:prefix": false}}`, env{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkCondition(t, policy.StorageGRID, tt.condition, tt.env, tt.holds)
		})
	}
}
