package policy_test

import (
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// TestConditionsRGW covers the operators of the gateway, with its own ideas of
// absent keys and of negation.
func TestConditionsRGW(t *testing.T) {
	type env = map[string][]string
	tests := []struct {
		name, condition string
		env             env
		holds           bool
	}{
		{"equals", `{"StringEquals": {"s3:x-amz-acl": "private"}}`, env{"s3:x-amz-acl": {"private"}}, true},
		{"equals, other case", `{"StringEquals": {"s3:x-amz-acl": "Private"}}`, env{"s3:x-amz-acl": {"private"}}, false},
		{"equals, one of two", `{"StringEquals": {"k": ["a", "b"]}}`, env{"k": {"b"}}, true},
		{"equals, absent", `{"StringEquals": {"k": "a"}}`, env{}, false},
		{"equals if exists, absent", `{"StringEqualsIfExists": {"k": "a"}}`, env{}, true},
		{"equals if exists, other", `{"StringEqualsIfExists": {"k": "a"}}`, env{"k": {"b"}}, false},
		{"not equals", `{"StringNotEquals": {"k": "a"}}`, env{"k": {"b"}}, true},
		{"not equals, absent", `{"StringNotEquals": {"k": "a"}}`, env{}, false},
		{"not equals, two values", `{"StringNotEquals": {"k": ["a", "b"]}}`, env{"k": {"a"}}, true},
		{"ignore case", `{"StringEqualsIgnoreCase": {"k": "A"}}`, env{"k": {"a"}}, true},
		{"not, ignore case", `{"StringNotEqualsIgnoreCase": {"k": "A"}}`, env{"k": {"a"}}, false},
		{"like", `{"StringLike": {"s3:x-amz-acl": "public-*"}}`, env{"s3:x-amz-acl": {"public-read"}}, true},
		{"not like", `{"StringNotLike": {"k": "a?c"}}`, env{"k": {"abc"}}, false},
		{"runtime value", `{"StringEquals": {"s3:prefix": "${aws:username}"}}`, env{"s3:prefix": {"u"}, "aws:username": {"u"}}, true},
		{"runtime value absent", `{"StringEquals": {"s3:prefix": "${aws:username}"}}`, env{"s3:prefix": {"u"}}, false},
		{"any value", `{"ForAnyValue:StringEquals": {"k": ["a"]}}`, env{"k": {"b", "a"}}, true},
		{"all values", `{"ForAllValues:StringLike": {"k": ["a*"]}}`, env{"k": {"ab", "ac"}}, true},
		{"all values, one out", `{"ForAllValues:StringLike": {"k": ["a*"]}}`, env{"k": {"ab", "bc"}}, false},
		{"all values, absent", `{"ForAllValues:StringEquals": {"k": "a"}}`, env{}, true},
		{"number", `{"NumericLessThanEquals": {"s3:max-keys": 10}}`, env{"s3:max-keys": {"10"}}, true},
		{"number text", `{"NumericGreaterThan": {"s3:max-keys": "10"}}`, env{"s3:max-keys": {"9"}}, false},
		{"number, other", `{"NumericNotEquals": {"k": 1}}`, env{"k": {"2"}}, true},
		{"number, less", `{"NumericLessThan": {"k": 1.5}}`, env{"k": {"1"}}, true},
		{"number, at least", `{"NumericGreaterThanEquals": {"k": 2}}`, env{"k": {"2"}}, true},
		{"number, same", `{"NumericEquals": {"k": 1e2}}`, env{"k": {"100"}}, true},
		{"not a number", `{"NumericNotEquals": {"k": 1}}`, env{"k": {"x"}}, false},
		{"date", `{"DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}`, env{"aws:CurrentTime": {"2026-11-29T16:00:00.5Z"}}, true},
		{"date, epoch", `{"DateGreaterThan": {"aws:EpochTime": "2020-01-01"}}`, env{"aws:EpochTime": {"1600000000"}}, true},
		{"date, same", `{"DateEquals": {"k": "1970-01-01T00:00:01Z"}}`, env{"k": {"1"}}, true},
		{"date, other", `{"DateNotEquals": {"k": "1970-01-01T00:00:01Z"}}`, env{"k": {"2"}}, true},
		{"date, not later", `{"DateLessThanEquals": {"k": "1"}}`, env{"k": {"1"}}, true},
		{"date, not earlier", `{"DateGreaterThanEquals": {"k": "2"}}`, env{"k": {"1"}}, false},
		{"not a date", `{"DateNotEquals": {"k": "yesterday"}}`, env{"k": {"1"}}, false},
		{"bool", `{"Bool": {"aws:SecureTransport": "false"}}`, env{"aws:SecureTransport": {"false"}}, true},
		{"bool, number", `{"Bool": {"aws:SecureTransport": 1}}`, env{"aws:SecureTransport": {"true"}}, true},
		{"bool, other", `{"Bool": {"aws:SecureTransport": "true"}}`, env{"aws:SecureTransport": {"false"}}, false},
		{"address", `{"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "192.168.1.1"]}}`, env{"aws:SourceIp": {"192.168.1.1"}}, true},
		{"address v6", `{"IpAddress": {"aws:SourceIp": "fd00::/8"}}`, env{"aws:SourceIp": {"fd00::1"}}, true},
		{"address outside", `{"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}`, env{"aws:SourceIp": {"11.0.0.1"}}, false},
		{"not address", `{"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "junk"]}}`, env{"aws:SourceIp": {"11.0.0.1"}}, true},
		{"not address inside", `{"NotIpAddress": {"aws:SourceIp": ["11.0.0.0/8", "10.0.0.0/8"]}}`, env{"aws:SourceIp": {"10.0.0.1"}}, false},
		{"no address", `{"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}`, env{"aws:SourceIp": {"x"}}, false},
		{"null, absent", `{"Null": {"k": "true"}}`, env{}, true},
		{"null, present", `{"Null": {"k": "true"}}`, env{"k": {"v"}}, false},
		{"null does not read its value", `{"Null": {"k": "false"}}`, env{}, true},
		{"ARN operators never hold", `{"ArnLike": {"k": "arn:aws:s3:::*"}}`, env{"k": {"arn:aws:s3:::b"}}, false},
		{"binary never holds", `{"BinaryEquals": {"k": "YQ=="}}`, env{"k": {"YQ=="}}, false},
		{"unknown key", `{"StringEquals": {"zz:nope": "v"}}`, env{"k": {"v"}}, false},
		{"all must hold", `{"StringEquals": {"a": "1", "b": "2"}}`, env{"a": {"1"}, "b": {"3"}}, false},
		{"both hold", `{"StringEquals": {"a": "1"}, "Bool": {"b": "true"}}`, env{"a": {"1"}, "b": {"true"}}, true},
		{"no value", `{"StringEquals": {"k": []}}`, env{"k": {"a"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkCondition(t, policy.RGWReef, tt.condition, tt.env, tt.holds)
		})
	}
}

// checkCondition puts the condition on an Allow for everybody.
func checkCondition(t *testing.T, d policy.Dialect, condition string, env map[string][]string, holds bool) {
	t.Helper()
	doc := mustParse(t, d, `{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
		"Resource": "arn:aws:s3:::bkt/*", "Condition": `+condition+`}]}`)
	want := policy.NoMatch
	if holds {
		want = policy.Allow
	}
	if got := doc.Evaluate(policy.Request{Action: "s3:GetObject", Resource: key, Context: env}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
