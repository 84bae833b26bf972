package policy_test

import (
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// TestParseByRelease holds the documents that the releases answer differently,
// and neighbours of theirs. An empty message means that it was accepted.
func TestParseByRelease(t *testing.T) {
	const notAllowed = "Allow with NotPrincipal is not allowed."
	b := `{"AWS": ` + user(userB) + `}`
	attributes := func(action string) string { return grant(b, `["s3:`+action+`"]`, objects) }
	tests := []struct{ name, doc, reef, tentacle string }{
		{"GetObjectAttributes", attributes("GetObjectAttributes"),
			"At character offset 204, `s3:GetObjectAttributes` is not a valid action.", ""},
		{"GetObjectVersionAttributes", attributes("GetObjectVersionAttributes"),
			"At character offset 211, `s3:GetObjectVersionAttributes` is not a valid action.",
			"At character offset 211, `s3:GetObjectVersionAttributes` is not a valid action."},
		{"pattern over GetObjectAttributes alone", attributes("GetObjectAttr*"),
			"At character offset 199, `s3:GetObjectAttr*` is not a valid action.", ""},
		{"unknown action", attributes("FooBar"),
			"At character offset 191, `s3:FooBar` is not a valid action.", "At character offset 191, `s3:FooBar` is not a valid action."},
		{"Allow NotPrincipal", statement(`"Effect": "Allow", "NotPrincipal": {"AWS": [` + user(userC) + `]}, "Action": "s3:GetObject"`),
			"", "At character offset 170, " + notAllowed},
		{"NotPrincipal before Allow", statement(`"NotPrincipal": {"AWS": [` + user(userC) + `]}, "Effect": "Allow"`),
			"", "At character offset 172, " + notAllowed},
		{"Allow for all but everybody", statement(`"Effect": "Allow", "NotPrincipal": "*"`), "", "At character offset 79, " + notAllowed},
		{"Deny NotPrincipal", statement(`"Effect": "Deny", "NotPrincipal": {"AWS": [` + user(userC) + `]}`), "", ""},
		{"Allow beside a Deny NotPrincipal", `{"Statement": [{"Effect": "Deny", "NotPrincipal": ` + b + `}, {"Effect": "Allow", "Principal": ` + b + `}]}`, "", ""},
		{"CanonicalUser", grant(`{"CanonicalUser": "`+userB+`"}`, `["s3:GetObject"]`, objects),
			"At character offset 157, RGW does not support canonical users.", "At character offset 157, RGW does not support canonical users."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkParse(t, policy.RGWReef, tt.doc, tt.reef)
			checkParse(t, policy.RGWTentacle, tt.doc, tt.tentacle)
		})
	}
}

func TestPublicByRelease(t *testing.T) {
	anyone := func(rest string) string { return statement(`"Effect": "Allow", "Principal": "*"` + rest) }
	tests := []struct {
		name, doc      string
		reef, tentacle bool
	}{
		{"Allow for one user", grant(`{"AWS": `+user(userB)+`}`, `"s3:GetObject"`, objects), true, false},
		{"the access modes", accessModes(userB, userC, owner), true, false},
		{"no principal", statement(`"Effect": "Allow"`), true, false},
		{"anyone", anyone(""), true, true},
		{"anyone beside one user", `{"Statement": [{"Effect": "Allow", "Principal": {"AWS": ` + user(userB) + `}}, {"Effect": "Allow", "Principal": "*"}]}`, true, true},
		{"anyone from elsewhere", anyone(`, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}`), false, false},
		{"anyone from there", anyone(`, "Condition": {"IpAddress": {"aws:SourceIp": "1.1.0.0/16"}}`), true, true},
		{"Deny", statement(`"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"`), false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for d, want := range map[policy.Dialect]bool{policy.RGWReef: tt.reef, policy.RGWTentacle: tt.tentacle} {
				if got := mustParse(t, d, tt.doc).Public(); got != want {
					t.Errorf("%s: got %v, want %v", d, got, want)
				}
			}
		})
	}
}
