package policy_test

import (
	"fmt"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

const (
	bkt  = "arn:aws:s3:::bkt"
	key  = "arn:aws:s3:::bkt/dir/key"
	anon = ""
)

func mustParse(t *testing.T, d policy.Dialect, doc string) *policy.Document {
	t.Helper()
	parsed, err := policy.Parse([]byte(doc), d)
	if err != nil {
		t.Fatalf("%s\n%v", doc, err)
	}
	return parsed
}

// gateways are the releases of the gateway; they evaluate what they take alike.
func gateways() []policy.Dialect { return []policy.Dialect{policy.RGWReef, policy.RGWTentacle} }

// TestEvaluateRGW holds what a real 18.2.7 enforced, and a real 20.2.4 as far as
// it was asked. Rows of the measurements that need object ownership or ACLs,
// such as the owner's 403 on an object of another writer, belong to the object
// store.
func TestEvaluateRGW(t *testing.T) {
	get, all := `["s3:GetObject"]`, `["arn:aws:s3:::bkt", "arn:aws:s3:::bkt/*"]`
	type row struct {
		who, action, resource string
		want                  policy.Decision
	}
	tests := []struct {
		name, doc string
		rows      []row
	}{
		{"list of principals", grant(`{"AWS": [`+user(userB)+`, `+user(userC)+`]}`, get, objects), []row{
			{userB, "s3:GetObject", key, policy.Allow},
			{userC, "s3:GetObject", key, policy.Allow},
			{owner, "s3:GetObject", key, policy.NoMatch},
			{anon, "s3:GetObject", key, policy.NoMatch},
			{userB, "s3:PutObject", key, policy.NoMatch},
			{userB, "s3:GetObject", bkt, policy.NoMatch},
			{userB, "s3:GetObject", "arn:aws:s3:::bkt2/key", policy.NoMatch},
			{userB, "s3:GetObject", "arn:aws:sns:::bkt/key", policy.NoMatch},
		}},
		{"string principal", grant(`{"AWS": `+user(userB)+`}`, get, objects), []row{{userB, "s3:GetObject", key, policy.Allow}}},
		{"plain uid", grant(`{"AWS": ["`+userB+`"]}`, get, objects), []row{{userB, "s3:GetObject", key, policy.NoMatch}}},
		{"account part is a tenant", grant(`{"AWS": "arn:aws:iam::123:user/`+userB+`"}`, get, objects), []row{
			{userB, "s3:GetObject", key, policy.NoMatch},
			{"123$" + userB, "s3:GetObject", key, policy.Allow},
		}},
		{"root is every untenanted user", grant(`{"AWS": "arn:aws:iam:::root"}`, get, objects), []row{
			{userB, "s3:GetObject", key, policy.Allow},
			{userC, "s3:GetObject", key, policy.Allow},
			{"ten1$u1", "s3:GetObject", key, policy.NoMatch},
		}},
		{"role", grant(`{"AWS": "arn:aws:iam:::role/`+userB+`"}`, get, objects), []row{{userB, "s3:GetObject", key, policy.NoMatch}}},
		{"anyone", grant(`"*"`, get, objects), []row{
			{anon, "s3:GetObject", key, policy.Allow}, {userB, "s3:GetObject", key, policy.Allow},
		}},
		{"anyone in AWS", grant(`{"AWS": "*"}`, get, objects), []row{{anon, "s3:GetObject", key, policy.Allow}}},
		{"no principal", statement(`"Effect": "Allow", "Action": "s3:*", "Resource": "*"`), []row{
			{userB, "s3:GetObject", key, policy.NoMatch}, {anon, "s3:GetObject", key, policy.NoMatch},
		}},
		{"no resource", statement(`"Effect": "Allow", "Principal": "*", "Action": "s3:*"`), []row{
			{userB, "s3:GetObject", key, policy.NoMatch},
		}},
		{"no effect denies", statement(`"Principal": "*", "Action": "s3:*", "Resource": "*"`), []row{
			{userB, "s3:GetObject", key, policy.Deny},
		}},
		{"action case", grant(`"*"`, `"s3:getobject"`, objects), []row{{userB, "s3:GetObject", key, policy.Allow}}},
		{"action wildcard", grant(`"*"`, `"s3:Get*"`, objects), []row{
			{userB, "s3:GetObject", key, policy.Allow}, {userB, "s3:PutObject", key, policy.NoMatch},
		}},
		{"s3:*", grant(`"*"`, `"s3:*"`, all), []row{
			{userB, "s3:GetBucketPolicy", bkt, policy.Allow}, {userB, "s3:PutBucketPolicy", bkt, policy.Allow},
			{userB, "s3:DeleteBucket", bkt, policy.Allow}, {userB, "s3:PutBucketAcl", bkt, policy.Allow},
			{userB, "s3:HeadBucket", bkt, policy.NoMatch},
		}},
		{"*", grant(`"*"`, `"*"`, `"*"`), []row{{userB, "s3:GetObject", key, policy.Allow}}},
		{"resource case and wildcards", grant(`"*"`, get, `["arn:aws:s3:::bkt/D?r/*"]`), []row{
			{userB, "s3:GetObject", "arn:aws:s3:::bkt/Dir/a/b:c", policy.Allow},
			{userB, "s3:GetObject", key, policy.NoMatch},
		}},
		{"foreign service", grant(`"*"`, get, `["arn:aws:sns:::*"]`), []row{{userB, "s3:GetObject", key, policy.NoMatch}}},
		{"Deny NotPrincipal", `{"Statement": [
			{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"},
			{"Effect": "Deny", "NotPrincipal": {"AWS": [` + user(owner) + `, ` + user(userB) + `]}, "Action": "s3:*", "Resource": ` + all + `}]}`, []row{
			{owner, "s3:GetObject", key, policy.Allow},
			{userB, "s3:GetObject", key, policy.Allow},
			{userC, "s3:GetObject", key, policy.Deny},
			{anon, "s3:GetObject", key, policy.Deny},
		}},
		{"Deny NotAction has no effect", `{"Statement": [
			{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"},
			{"Effect": "Deny", "Principal": {"AWS": ` + user(userC) + `}, "NotAction": "s3:GetObject", "Resource": ` + all + `}]}`, []row{
			{userC, "s3:GetObject", key, policy.Allow},
			{userC, "s3:ListBucket", bkt, policy.Allow},
		}},
		{"Allow NotAction has no effect", statement(`"Effect": "Allow", "Principal": "*", "NotAction": "s3:PutObject", "Resource": "*"`), []row{
			{userC, "s3:GetObject", key, policy.NoMatch},
		}},
		{"Allow NotResource", statement(`"Effect": "Allow", "Principal": {"AWS": ` + user(userC) + `}, "Action": "s3:GetObject", "NotResource": "arn:aws:s3:::bkt/secret/*"`), []row{
			{userC, "s3:GetObject", key, policy.Allow},
			{userC, "s3:GetObject", "arn:aws:s3:::bkt/secret/a", policy.NoMatch},
		}},
		{"Deny hits the owner", statement(`"Effect": "Deny", "Principal": {"AWS": ` + user(owner) + `}, "Action": "s3:*", "Resource": ` + all), []row{
			{owner, "s3:GetObject", key, policy.Deny},
			{owner, "s3:ListBucket", bkt, policy.Deny},
			{owner, "s3:GetBucketPolicy", bkt, policy.Deny},
			{owner, "s3:PutBucketPolicy", bkt, policy.Deny},
			{owner, "s3:DeleteBucketPolicy", bkt, policy.Deny},
			{owner, "s3:DeleteBucket", bkt, policy.Deny},
		}},
		{"Deny before Allow", `{"Statement": [
			{"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": "*"},
			{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}]}`, []row{
			{userB, "s3:PutObject", key, policy.Deny},
		}},
		{"empty", `{"Statement": []}`, []row{{userB, "s3:GetObject", key, policy.NoMatch}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range gateways() {
				doc := mustParse(t, d, tt.doc)
				for _, r := range tt.rows {
					got := doc.Evaluate(policy.Request{Principal: r.who, Action: r.action, Resource: r.resource})
					if got != r.want {
						t.Errorf("%s: %.4s %s %s: got %v, want %v", d, r.who, r.action, r.resource, got, r.want)
					}
				}
			}
		})
	}
}

// accessModes is a document with an owner, a ReadWrite, a ReadOnly and a
// WriteOnly user, as measured.
func accessModes(rw, ro, wo string) string {
	const both = `"Resource": ["arn:aws:s3:::bkt", "arn:aws:s3:::bkt/*"]`
	return `{"Version": "2012-10-17", "Id": "cosi", "Statement": [
 {"Sid": "owner", "Effect": "Allow", "Principal": {"AWS": [` + user(owner) + `]}, "Action": ["s3:*"], ` + both + `},
 {"Sid": "rw-b", "Effect": "Allow", "Principal": {"AWS": [` + user(rw) + `]}, "Resource": ["arn:aws:s3:::bkt"],
  "Action": ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketLocation", "s3:GetBucketVersioning"]},
 {"Sid": "rw-o", "Effect": "Allow", "Principal": {"AWS": [` + user(rw) + `]}, ` + both + `,
  "Action": ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]},
 {"Sid": "ro-b", "Effect": "Allow", "Principal": {"AWS": [` + user(ro) + `]}, "Resource": ["arn:aws:s3:::bkt"],
  "Action": ["s3:ListBucket", "s3:ListBucketVersions", "s3:GetBucketLocation", "s3:GetBucketVersioning"]},
 {"Sid": "ro-o", "Effect": "Allow", "Principal": {"AWS": [` + user(ro) + `]}, "Resource": ["arn:aws:s3:::bkt/*"],
  "Action": ["s3:GetObject", "s3:GetObjectVersion"]},
 {"Sid": "wo-b", "Effect": "Allow", "Principal": {"AWS": [` + user(wo) + `]}, "Resource": ["arn:aws:s3:::bkt"],
  "Action": ["s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]},
 {"Sid": "wo-o", "Effect": "Allow", "Principal": {"AWS": [` + user(wo) + `]}, "Resource": ["arn:aws:s3:::bkt/*"],
  "Action": ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]},
 {"Sid": "wo-d", "Effect": "Deny", "Principal": {"AWS": [` + user(wo) + `]}, "Resource": ["arn:aws:s3:::bkt/*"],
  "Action": ["s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectAcl", "s3:GetObjectVersionAcl", "s3:PutObjectAcl", "s3:PutObjectVersionAcl"]}]}`
}

// TestEvaluateRGWModes holds the recorded matrix of the three access modes.
func TestEvaluateRGWModes(t *testing.T) {
	for _, d := range gateways() {
		t.Run(string(d), func(t *testing.T) { checkModes(t, d) })
	}
}

func checkModes(t *testing.T, d policy.Dialect) {
	t.Helper()
	rw, ro, wo := userB, userC, fmt.Sprintf("%064d", 3)
	doc := mustParse(t, d, accessModes(rw, ro, wo))
	const a, n, no = policy.Allow, policy.NoMatch, policy.Deny
	tests := []struct {
		action, resource string
		rw, ro, wo       policy.Decision
	}{
		{"s3:ListBucket", bkt, a, a, n},
		{"s3:GetBucketLocation", bkt, a, a, a},
		{"s3:ListBucketVersions", bkt, a, a, n},
		{"s3:ListBucketMultipartUploads", bkt, a, n, a},
		{"s3:GetBucketVersioning", bkt, a, a, n},
		{"s3:GetBucketPolicy", bkt, n, n, n},
		{"s3:GetBucketAcl", bkt, n, n, n},
		{"s3:GetObject", key, a, a, no},
		{"s3:PutObject", key, a, n, a},
		{"s3:PutObjectAcl", key, n, n, no},
		{"s3:AbortMultipartUpload", key, a, n, a},
		{"s3:ListMultipartUploadParts", key, a, n, a},
		{"s3:DeleteObject", key, a, n, n},
		{"s3:DeleteObject", bkt, a, n, n}, // multi-delete asks for it on the bucket
		{"s3:PutBucketPolicy", bkt, n, n, n},
		{"s3:DeleteBucketPolicy", bkt, n, n, n},
		{"s3:PutBucketAcl", bkt, n, n, n},
		{"s3:PutBucketVersioning", bkt, n, n, n},
		{"s3:PutLifecycleConfiguration", bkt, n, n, n},
		{"s3:DeleteBucket", bkt, n, n, n},
	}
	for _, tt := range tests {
		for who, want := range map[string]policy.Decision{owner: a, rw: tt.rw, ro: tt.ro, wo: tt.wo, anon: n} {
			if got := doc.Evaluate(policy.Request{Principal: who, Action: tt.action, Resource: tt.resource}); got != want {
				t.Errorf("%.4s %s %s: got %v, want %v", who, tt.action, tt.resource, got, want)
			}
		}
	}
}

// TestEvaluateAllowNotPrincipal: where the gateway takes such a statement, it is
// for the whole world.
func TestEvaluateAllowNotPrincipal(t *testing.T) {
	doc := mustParse(t, policy.RGWReef,
		statement(`"Effect": "Allow", "NotPrincipal": {"AWS": `+user(userC)+`}, "Action": "s3:GetObject", "Resource": "*"`))
	for who, want := range map[string]policy.Decision{userB: policy.Allow, anon: policy.Allow, userC: policy.NoMatch} {
		if got := doc.Evaluate(policy.Request{Principal: who, Action: "s3:GetObject", Resource: key}); got != want {
			t.Errorf("%.4s: got %v, want %v", who, got, want)
		}
	}
}

func TestPublic(t *testing.T) {
	tests := []struct {
		name, doc string
		want      bool
	}{
		{"no statement", `{"Statement": []}`, false},
		{"Allow for one user counts as public", grant(`{"AWS": `+user(userB)+`}`, `"s3:GetObject"`, objects), true},
		{"anyone", grant(`"*"`, `"s3:GetObject"`, objects), true},
		{"anyone from elsewhere", statement(`"Effect": "Allow", "Principal": "*", "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}`), false},
		{"anyone from there", statement(`"Effect": "Allow", "Principal": "*", "Condition": {"IpAddress": {"aws:SourceIp": "1.1.0.0/16"}}`), true},
		{"all but anyone", statement(`"Effect": "Allow", "NotPrincipal": "*"`), false},
		{"Deny", statement(`"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"`), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustParse(t, policy.RGWReef, tt.doc).Public(); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestEvaluateNil: no document decides nothing.
func TestEvaluateNil(t *testing.T) {
	var doc *policy.Document
	if got := doc.Evaluate(policy.Request{Action: "s3:GetObject", Resource: key}); got != policy.NoMatch || doc.Public() {
		t.Errorf("got %v", got)
	}
	for d, want := range map[policy.Decision]string{
		policy.NoMatch: "NoMatch", policy.Allow: "Allow", policy.Deny: "Deny", 7: "Decision(7)",
	} {
		if d.String() != want {
			t.Errorf("got %q, want %q", d.String(), want)
		}
	}
}
