package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// fuzzParse holds for any document: Parse never panics and fails only with a
// ParseError a client understands, and what it accepts can be evaluated.
func fuzzParse(f *testing.F, d policy.Dialect, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s), "s3:GetObject", "bkt/key", "value")
	}
	f.Fuzz(func(t *testing.T, text []byte, action, resource, value string) {
		doc, err := policy.Parse(text, d)
		if err != nil {
			pe, ok := errors.AsType[*policy.ParseError](err)
			if !ok || pe.Code == "" || pe.Status < 400 || doc != nil {
				t.Fatalf("got %v, %#v", doc, err)
			}
			return
		}
		again, err := policy.Parse(text, d)
		if err != nil {
			t.Fatalf("the second reading fails: %v", err)
		}
		doc.Public()
		env := map[string][]string{}
		for _, k := range []string{
			"aws:SourceIp", "aws:username", "aws:CurrentTime", "aws:SecureTransport",
			"s3:prefix", "s3:max-keys", "s3:x-amz-acl", "k",
		} {
			env[k] = []string{value, "10.0.0.1"}
		}
		for _, who := range []string{"", userB, "t$" + userB, groupRW, value} {
			for _, action := range []string{action, "s3:GetObject"} {
				r := policy.Request{
					Principal: who, Groups: []string{groupRO}, Action: action,
					Resource: "arn:aws:s3:::" + resource, Context: env,
				}
				got := doc.Evaluate(r)
				if got < policy.NoMatch || got > policy.Deny || got != again.Evaluate(r) {
					t.Fatalf("Evaluate is not stable: %v", got)
				}
			}
		}
	})
}

func FuzzParseRGW(f *testing.F) { fuzzRGW(f, policy.RGWReef) }

func FuzzParseRGWTentacle(f *testing.F) { fuzzRGW(f, policy.RGWTentacle) }

func fuzzRGW(f *testing.F, d policy.Dialect) {
	fuzzParse(f, d,
		``, `{}`, `{nope`, `{"Statement": []}`, "{/* */ \"Id\": \"\\ud83d\\ude00\" // x\n}",
		accessModes(userB, userC, userB),
		grant(`"*"`, `"s3:Get*"`, objects),
		statement(`"Effect": "Deny", "NotPrincipal": {"AWS": "arn:aws:iam:::root"}, "NotAction": "*", "NotResource": "arn:aws:s3:::x?*"`),
		statement(`"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*", "Condition": {
			"StringNotLikeIfExists": {"k": ["a*", "${aws:username}"]}, "NumericLessThan": {"s3:max-keys": -1.5e3},
			"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}, "Bool": {"aws:SecureTransport": "true"},
			"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "NotIpAddress": {"aws:SourceIp": "fd00::/8"},
			"Null": {"k": "true"}, "ForAllValues:StringEquals": {"k": []}}`),
	)
}

func FuzzParseStorageGRID(f *testing.F) {
	fuzzParse(f, policy.StorageGRID,
		``, `{}`, `null`, gridStatement("", ""), strings.Repeat("[", 100),
		gridStatement("Principal", `"NotPrincipal":{"AWS":["`+admin+`","`+account+`"]}`),
		gridStatement("Resource", `"NotResource":"urn:sgws:s3:::b*/${aws:username}/${*}"`),
		gridStatement("Condition", `"Condition":{"StringNotLike":{"s3:prefix":["a*","${aws:username}"]},
			"NumericLessThan":{"s3:max-keys":10},"IpAddress":{"aws:SourceIp":"10.0.0.0/8"},
			"Bool":{"s3:ExistingObjectTag/x":true},"Null":{"s3:delimiter":"false"}}`),
	)
}
