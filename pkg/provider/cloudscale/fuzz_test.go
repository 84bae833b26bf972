package cloudscale

import (
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// FuzzRender: a policy that is written can be read by the endpoint of each release,
// opens the bucket to nobody it does not name, and to a member within its mode alone.
func FuzzRender(f *testing.F) {
	for _, v := range []string{"", "a", strings.Repeat("a", 63), strings.Repeat("a", 129), "tenant$name", "a$b$c", "ü", "a/b", "*", "a*", "?", "${aws:username}", "a\nb", `a"b`, "a%2f", ":root", "192.168.1.1"} {
		for mode := range modesOf() {
			f.Add("bucket-1", "owner1", v, uint8(mode), false)
			f.Add("bucket-1", v, "u1", uint8(mode), true)
			f.Add(v, "owner1", "u1", uint8(mode), false)
		}
	}
	f.Fuzz(func(t *testing.T, bucket, owner, uid string, mode uint8, revoked bool) {
		m := member{id: "0f7a", uid: uid, mode: modesOf()[int(mode)%len(modesOf())], revoked: revoked}
		text, err := render(bucket, owner, []member{m})
		if err != nil || strings.Trim(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || bucket == "" {
			return // no such bucket gets here
		}
		if named, ok := namedIn(text); !ok || len(named) != 1 || named[0] != m {
			t.Errorf("read back as %+v, want %+v", named, m)
		}
		for _, d := range []policy.Dialect{policy.RGWReef, policy.RGWTentacle} {
			doc, err := policy.Parse([]byte(text), d)
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			may := func(who, action, in string) bool {
				return doc.Evaluate(policy.Request{Principal: who, Action: action, Resource: "arn:aws:s3:::" + in}) == policy.Allow
			}
			if !may(owner, "s3:GetObject", bucket+"/key") || may("", "s3:GetObject", bucket+"/key") {
				t.Errorf("the owner is shut out, or everybody let in: %s", text)
			}
			for action, modes := range map[string][]provider.Mode{
				"s3:GetObject": {provider.ReadWrite, provider.ReadOnly}, "s3:PutObject": {provider.ReadWrite, provider.WriteOnly},
				"s3:DeleteObject": {provider.ReadWrite}, "s3:PutObjectAcl": nil, "s3:PutBucketPolicy": nil,
			} {
				want := false
				for _, mode := range modes {
					want = want || mode == m.mode && !revoked
				}
				if got := may(uid, action, bucket+"/key"); got != want {
					t.Errorf("%s, %s: %t: %s", action, m.mode, got, text)
				}
				if stranger := "stranger"; stranger != uid && stranger != owner && may(stranger, action, bucket+"/key") {
					t.Errorf("%s: a stranger may: %s", action, text)
				}
				if may(uid, action, bucket+"x/key") || may(owner, action, bucket+"x/key") {
					t.Errorf("%s: it reaches another bucket: %s", action, text)
				}
			}
		}
	})
}
