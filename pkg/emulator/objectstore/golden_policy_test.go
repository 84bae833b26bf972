package objectstore

import (
	"strings"
	"testing"
)

// Sections "multi-delete", "write-only strictness" and "public access block" of t_f.
func TestGoldenStrictness(t *testing.T) { onReleases(t, goldenStrictness) }

func goldenStrictness(t *testing.T, l *lab) {
	t.Helper()
	a, b, anonymous := l.user("A"), l.user("B"), l.anonymous()
	a.must(t, "PUT", "/f-bkt", "")
	a.must(t, "PUT", "/f-bkt/x1", "x")
	x1 := deleteKeys(false, "x1")
	public := []string{"X-Amz-Acl", "public-read"}
	wo := statement("Allow", "uid-b", "PutObject", "f-bkt/*", "")
	denies := statement("Deny", "uid-b", "GetObject GetObjectVersion PutObjectAcl PutObjectVersionAcl", "f-bkt/*", "")
	denyPublic := statement("Deny", "uid-b", "PutObject", "f-bkt/*", `,"Condition":{"StringLike":{"s3:x-amz-acl":"public-*"}}`)
	l.golden(t, []row{
		{log: "RW, DeleteObject on bucket+/*", by: a, call: "PUT /f-bkt?policy",
			body: policyOf(statement("Allow", "uid-b", "DeleteObject", "f-bkt f-bkt/*", "")), want: "204"},
		{log: "B DeleteObjects A's x1", by: b, call: "POST /f-bkt?delete", body: x1, want: "200", then: deleted(true, "x1")},
		{log: "RW, DeleteObject on bucket ARN only", by: a, call: "PUT /f-bkt?policy",
			body: policyOf(statement("Allow", "uid-b", "DeleteObject", "f-bkt", "")), want: "204"},
		{log: "B DeleteObjects A's x1", by: b, call: "POST /f-bkt?delete", body: x1, want: "200", then: deleted(false, "x1")},
		{log: "B DeleteObject A's x1", by: b, call: "DELETE /f-bkt/x1", want: "403 AccessDenied"},
		{log: "DeleteObject on keys only", by: a, call: "PUT /f-bkt?policy",
			body: policyOf(statement("Allow", "uid-b", "DeleteObject", "f-bkt/*", "")), want: "204"},
		{log: "B DeleteObjects", by: b, call: "POST /f-bkt?delete", body: x1, want: "403 AccessDenied",
			tentacle: "200", thenTentacle: deleted(true, "x1")},

		{log: "WO plain", by: a, call: "PUT /f-bkt?policy", body: policyOf(wo), want: "204"},
		{log: "B put", by: b, call: "PUT /f-bkt/bo", body: "x", want: "200"},
		{log: "B get own", by: b, call: "GET /f-bkt/bo", want: "200"},
		{log: "B put_object_acl public-read on own", by: b, call: "PUT /f-bkt/bo?acl", header: public, want: "200"},
		{log: "anon GET bo", by: anonymous, call: "GET /f-bkt/bo", want: "200"},
		{log: "B put with ACL public-read", by: b, call: "PUT /f-bkt/bo2", body: "x", header: public, want: "200"},
		{log: "anon GET bo2", by: anonymous, call: "GET /f-bkt/bo2", want: "200"},
		{log: "WO + Deny Get/PutAcl", by: a, call: "PUT /f-bkt?policy", body: policyOf(wo, denies), want: "204"},
		{log: "B put", by: b, call: "PUT /f-bkt/bo3", body: "x", want: "200"},
		{log: "B get own bo3", by: b, call: "GET /f-bkt/bo3", want: "403 AccessDenied | ", tentacle: missingGet},
		{log: "B head own bo3", by: b, call: "HEAD /f-bkt/bo3", want: "403"},
		{log: "B put_object_acl public-read own bo3", by: b, call: "PUT /f-bkt/bo3?acl", header: public, want: "403 AccessDenied"},
		{log: "B put with ACL public-read", by: b, call: "PUT /f-bkt/bo4", body: "x", header: public, want: "200"},
		{log: "anon GET bo4", by: anonymous, call: "GET /f-bkt/bo4", want: "200"},
		{log: "WO + Deny PutObject when x-amz-acl public", by: a, call: "PUT /f-bkt?policy", body: policyOf(wo, denyPublic), want: "204"},
		{log: "B put with ACL public-read", by: b, call: "PUT /f-bkt/bo5", body: "x", header: public, want: "403 AccessDenied"},
		{log: "B put no ACL", by: b, call: "PUT /f-bkt/bo5", body: "x", want: "200"},

		{log: "PAB IgnorePublicAcls only", by: a, call: "PUT /f-bkt?publicAccessBlock", body: pab("IgnorePublicAcls"), want: "200"},
		{log: "anon GET bo2 w/ IgnorePublicAcls", by: anonymous, call: "GET /f-bkt/bo2", want: "403 AccessDenied"},
		{log: "PAB BlockPublicPolicy", by: a, call: "PUT /f-bkt?publicAccessBlock", body: pab("BlockPublicPolicy"), want: "200"},
		{log: "PUT non-public Allow policy under BlockPublicPolicy", by: a, call: "PUT /f-bkt?policy", body: policyOf(wo),
			want: "403 AccessDenied", tentacle: "204"},
		{log: "  and a public one", by: a, call: "PUT /f-bkt?policy",
			body: policyOf(`{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::f-bkt/*"}`), want: "403 AccessDenied"},
		{log: "PAB BlockPublicAcls", by: a, call: "PUT /f-bkt?publicAccessBlock", body: pab("BlockPublicAcls"), want: "200"},
		{log: "A put under BlockPublicAcls", by: a, call: "PUT /f-bkt/x9", body: "x", want: "403 AccessDenied", tentacle: "200"},
		{log: "  with a public ACL", by: a, call: "PUT /f-bkt/x9", body: "x", header: public, want: "403 AccessDenied"},
		{log: "  with a public grant", by: a, call: "PUT /f-bkt/x9", body: "x",
			header: []string{"X-Amz-Grant-Read", `uri="` + groupAll + `"`}, want: "403 AccessDenied"},
		{log: "delete PAB", by: a, call: "DELETE /f-bkt?publicAccessBlock", want: "204"},
		{log: "get_bucket_policy_status", by: a, call: "GET /f-bkt?policyStatus", want: "200", then: isPublic(true), thenTentacle: isPublic(false)},
	})
}

// isPublic checks a GetBucketPolicyStatus.
func isPublic(want bool) func(*testing.T, answer) {
	return func(t *testing.T, got answer) {
		t.Helper()
		if parse[policyStatusXML](t, got).IsPublic != want {
			t.Errorf("IsPublic is not %t", want)
		}
	}
}

// Section "policy syntax" of t_f, as the endpoint answers it. The parser has its own, longer table.
func TestGoldenPolicySyntax(t *testing.T) { onReleases(t, goldenPolicySyntax) }

func goldenPolicySyntax(t *testing.T, l *lab) {
	t.Helper()
	a, b, c, anonymous := l.user("A"), l.user("B"), l.user("C"), l.anonymous()
	a.must(t, "PUT", "/s-bkt", "")
	a.must(t, "PUT", "/s-bkt/own", "x")
	put := func(log, body, want string) row {
		return row{log: log, by: a, call: "PUT /s-bkt?policy", body: body, want: want}
	}
	get := func(log string, by *client) row {
		return row{log: log, by: by, call: "GET /s-bkt/own", want: "200"}
	}
	refused := func(log string, by *client) row {
		return row{log: log, by: by, call: "GET /s-bkt/own", want: "403 AccessDenied | ", tentacle: missingGet}
	}
	with := func(principal, actions, resource string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` + principal + `"Action":["` + actions +
			`"],"Resource":["` + resource + `"]}]}`
	}
	const toB, keys = `"Principal":{"AWS":["arn:aws:iam:::user/uid-b"]},`, "arn:aws:s3:::s-bkt/*"
	deny := func(rest string) string {
		return policyOf(statement("Allow", "uid-c", "*", "s-bkt s-bkt/*", ""),
			`{"Effect":"Deny",`+rest+`,"Resource":["arn:aws:s3:::s-bkt","arn:aws:s3:::s-bkt/*"]}`)
	}
	l.golden(t, []row{
		put("principal unknown user", with(`"Principal":{"AWS":["arn:aws:iam:::user/nobody"]},`, "s3:GetObject", keys), "204"),
		put("principal plain uid", with(`"Principal":{"AWS":["uid-b"]},`, "s3:GetObject", keys), "204"),
		refused("  B GetObject under plain-uid principal", b),
		put("principal string not list", with(`"Principal":{"AWS":"arn:aws:iam:::user/uid-b"},`, "s3:GetObject", keys), "204"),
		get("  B GetObject", b),
		put("principal arn w/ account part", with(`"Principal":{"AWS":["arn:aws:iam::123:user/uid-b"]},`, "s3:GetObject", keys), "204"),
		refused("  B GetObject (tenant mismatch)", b),
		put("principal *", with(`"Principal":"*",`, "s3:GetObject", keys), "204"),
		get("  anon get", anonymous),
		put("principal CanonicalUser", with(`"Principal":{"CanonicalUser":["uid-b"]},`, "s3:GetObject", keys), "400 InvalidArgument"),
		put("no principal", with("", "s3:GetObject", keys), "204"),
		put("unknown action s3:Foo", with(toB, "s3:FooBar", keys), "400 InvalidArgument"),
		{log: "AWS action not in RGW: s3:GetObjectAttributes", by: a, call: "PUT /s-bkt?policy",
			body: with(toB, "s3:GetObjectAttributes", keys), want: "400 InvalidArgument", tentacle: "204"},
		put("action case s3:getobject", with(toB, "s3:getobject", keys), "204"),
		get("  B GetObject", b),
		put("action wildcard s3:Get*", with(toB, "s3:Get*", keys), "204"),
		get("  B GetObject", b),
		put("resource not arn", with(toB, "s3:GetObject", "x/*"), "400 InvalidArgument"),
		put("version junk", strings.Replace(with(toB, "s3:GetObject", keys), "2012-10-17", "2020-01-01", 1), "400 InvalidArgument"),
		put("not json", "{nope", "400 InvalidArgument | At character offset 1, Missing a name for object member."),
		put("empty string", "", "400 InvalidArgument | At character offset 1, The document is empty."),
		put("unknown top-level key", `{"Version": "2012-10-17", "X": 1}`, "400 InvalidArgument"),
		put("empty statements", `{"Version":"2012-10-17","Statement":[]}`, "204"),

		put("Deny NotPrincipal [A,B] s3:*",
			deny(`"NotPrincipal":{"AWS":["arn:aws:iam:::user/uid-a","arn:aws:iam:::user/uid-b"]},"Action":["s3:*"]`), "204"),
		get("  A get", a),
		refused("  C get (should be denied)", c),
		{log: "nothing for the world", by: a, call: "PUT /s-bkt?policy", body: with(toB, "s3:GetObject", keys), want: "204"},
		{log: "Allow NotPrincipal", by: a, call: "PUT /s-bkt?policy",
			body: with(`"NotPrincipal":{"AWS":["arn:aws:iam:::user/uid-c"]},`, "s3:GetObject", keys), want: "204",
			tentacle: "400 InvalidArgument | At character offset 104, Allow with NotPrincipal is not allowed."},
		get("  B get under Allow NotPrincipal C", b),
		{log: "  anon get", by: anonymous, call: "GET /s-bkt/own", want: "200", tentacle: "403 AccessDenied"},
		put("Deny NotAction for C", deny(`"Principal":{"AWS":["arn:aws:iam:::user/uid-c"]},"NotAction":["s3:GetObject"]`), "204"),
		get("  C get", c),
		{log: "  C list (should be denied by NotAction)", by: c, call: "GET /s-bkt", want: "200"},

		put("action s3:*", policyOf(statement("Allow", "uid-b", "*", "s-bkt s-bkt/*", "")), "204"),
		{log: "  B GetBucketPolicy under s3:*", by: b, call: "GET /s-bkt?policy", want: "200"},
		{log: "  B DeleteBucket(non-empty) under s3:*", by: b, call: "DELETE /s-bkt", want: "409 BucketNotEmpty"},
		{log: "  B PutBucketPolicy under s3:*", by: b, call: "PUT /s-bkt?policy",
			body: policyOf(statement("Allow", "uid-b", "*", "s-bkt s-bkt/*", "")), want: "204"},
		{log: "  B PutBucketAcl under s3:*", by: b, call: "PUT /s-bkt?acl", header: []string{"X-Amz-Acl", "private"}, want: "200"},
	})

	l.golden(t, []row{
		put("Deny owner s3:* on all", policyOf(statement("Deny", "uid-a", "*", "s-bkt s-bkt/*", "")), "204"),
		refused("  A get obj", a),
		{log: "  A list", by: a, call: "GET /s-bkt", want: "403 AccessDenied"},
		{log: "  A get policy", by: a, call: "GET /s-bkt?policy", want: "403 AccessDenied", tentacle: "200"},
		{log: "  A put policy", by: a, call: "PUT /s-bkt?policy", body: policyOf(), want: "403 AccessDenied", tentacle: "204"},
		{log: "  A delete policy", by: a, call: "DELETE /s-bkt?policy", want: "403 AccessDenied", tentacle: "204"},
		{log: "  A delete bucket", by: a, call: "DELETE /s-bkt", want: "403 AccessDenied", tentacle: "409 BucketNotEmpty"},
		{log: "  A get policy again", by: a, call: "GET /s-bkt?policy", want: "403 AccessDenied",
			tentacle: "404 NoSuchBucketPolicy | The bucket policy does not exist"},
	})
}

// Section "size limit" of t_f and t_m.
func TestGoldenPolicySize(t *testing.T) { onReleases(t, goldenPolicySize) }

func goldenPolicySize(t *testing.T, l *lab) {
	t.Helper()
	a := l.user("A")
	a.must(t, "PUT", "/m-bkt", "")
	sized := func(n int) string {
		text := policyOf(statement("Allow", "uid-b", "GetObject", "m-bkt/*", ""))
		return text[:1] + strings.Repeat(" ", n-len(text)) + text[1:]
	}
	l.golden(t, []row{
		{log: "policy size 20481", by: a, call: "PUT /m-bkt?policy", body: sized(20481), want: "204"},
		{log: "policy size 1048575", by: a, call: "PUT /m-bkt?policy", body: sized(1048575), want: "204"},
		{log: "policy size 1048576", by: a, call: "PUT /m-bkt?policy", body: sized(1048576), want: "204"},
		{log: "policy size 1048577", by: a, call: "PUT /m-bkt?policy", body: sized(1048577), want: "416 InvalidRange"},
		{log: "policy size 2000000", by: a, call: "PUT /m-bkt?policy", body: sized(2000000), want: "416 InvalidRange"},
		{log: "stored byte for byte", by: a, call: "GET /m-bkt?policy", want: "200", then: func(t *testing.T, got answer) {
			if string(got.body) != sized(1048576) {
				t.Errorf("%d bytes came back", len(got.body))
			}
		}},
	})
}
