package stackit

import (
	"regexp"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// FuzzRender: a policy that is written can be read by the endpoint, shuts out whoever
// it does not name, and lets a member do within its mode alone. A policy is the same
// as itself.
func FuzzRender(f *testing.F) {
	names := []string{"", "a", strings.Repeat("a", 32), "credentials-group-bf6281", "ü", "a/b", "*", "?", "${aws:username}", "a\nb", `a"b`, "%2f", "192.168.1.1"}
	for _, v := range names {
		for mode := range modes() {
			f.Add("bucket-1", v, uint8(mode))
			f.Add(v, "group", uint8(mode))
		}
	}
	bucketName, groupName := regexp.MustCompile(`^[a-z0-9.-]{3,63}$`), regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	f.Fuzz(func(t *testing.T, bucket, name string, mode uint8) {
		const account = "urn:sgws:identity::12345678901234567890:group/"
		m := member{urn: account + name, mode: modes()[int(mode)%len(modes())]}
		text := render(bucket, account+"admin", []member{m})
		if !samePolicy(text, text) {
			t.Errorf("it differs from itself: %s", text)
		}
		if !bucketName.MatchString(bucket) || !groupName.MatchString(name) || name == "admin" || name == "other" {
			return // no such bucket and group get here
		}
		doc, err := policy.Parse([]byte(text), policy.StorageGRID)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		denied := func(group, action string) bool {
			return doc.Evaluate(policy.Request{Principal: "urn:sgws:identity::12345678901234567890:user/x", Groups: []string{account + group}, Action: action,
				Resource: "arn:aws:s3:::" + bucket + "/key"}) == policy.Deny
		}
		for action, modes := range map[string][]provider.Mode{
			"s3:GetObject": {provider.ReadWrite, provider.ReadOnly}, "s3:PutObject": {provider.ReadWrite, provider.WriteOnly}, "s3:DeleteObject": {provider.ReadWrite},
		} {
			want := true
			for _, mode := range modes {
				want = want && mode != m.mode
			}
			if got := denied(name, action); got != want {
				t.Errorf("%s, %s: denied %t: %s", action, m.mode, got, text)
			}
			if denied("admin", action) || !denied("other", action) {
				t.Errorf("%s: the admin is shut out, or somebody else let in: %s", action, text)
			}
		}
	})
}

// FuzzSamePolicy: comparing what the cloud answers with what was written neither
// panics nor depends on the order of the two.
func FuzzSamePolicy(f *testing.F) {
	for _, v := range []string{"", "{}", "null", "[]", `{"Statement":{}}`, `{"Statement":[{"Sid":"a","Action":["b","a"]}]}`, `{"Statement":[{"Sid":"a","Action":"b"}],"Version":"x","Id":""}`, `{"a":1e999}`, "\xff"} {
		f.Add(v, `{"Statement":[{"Action":["a","b"],"Sid":" a "}]}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if samePolicy(a, b) != samePolicy(b, a) {
			t.Errorf("%q and %q", a, b)
		}
	})
}
