package objectstore

import (
	"reflect"
	"testing"
)

// switchCase is a call whose answer a switch of releaseTraits decides.
type switchCase struct {
	name string // of the switch
	log  string
	// ask makes the call in the bucket r-bkt of A and tells what of the answer matters.
	ask            func(*testing.T, *lab) string
	reef, tentacle string
}

// status asks with one call and tells the status, the code and the text.
func status(user, method, path, body string, header ...string) func(*testing.T, *lab) string {
	return func(t *testing.T, l *lab) string {
		t.Helper()
		a := l.user(user).call(t, method, path, body, header...)
		if a.message != "" {
			return a.String() + " | " + a.message
		}
		return a.String()
	}
}

// under asks while the bucket has a policy.
func under(policy string, ask func(*testing.T, *lab) string) func(*testing.T, *lab) string {
	return func(t *testing.T, l *lab) string {
		t.Helper()
		l.user("A").must(t, "PUT", "/r-bkt?policy", policy)
		return ask(t, l)
	}
}

// headerOf asks in the other region and tells a header of the answer.
func headerOf(name string) func(*testing.T, *lab) string {
	return func(t *testing.T, l *lab) string {
		t.Helper()
		return l.user("A").inLPG(l).call(t, "GET", "/r-bkt", "").header.Get(name)
	}
}

// switchCases has the answer of either release to a case of every switch.
func switchCases() []switchCase {
	denyOwner := policyOf(statement("Deny", "uid-a", "*", "r-bkt r-bkt/*", ""))
	onKeys := policyOf(statement("Allow", "uid-b", "DeleteObject", "r-bkt/*", ""))
	ofB := policyOf(statement("Allow", "uid-b", "PutObject", "r-bkt/*", ""))
	copied := []string{"X-Amz-Copy-Source", "r-bkt/of-b", "X-Amz-Metadata-Directive", "REPLACE"}
	return []switchCase{
		{"dialect", "policy with GetObjectAttributes", status("A", "PUT", "/r-bkt?policy",
			policyOf(statement("Allow", "uid-b", "GetObjectAttributes", "r-bkt/*", ""))),
			"400 InvalidArgument | At character offset 138, `s3:GetObjectAttributes` is not a valid action.", "204"},
		{"server", "anything", headerOf("Server"), "", "Ceph Object Gateway (tentacle)"},
		{"bareRedirects", "bucket of the other region", headerOf("Accept-Ranges"), "bytes", ""},
		{"keepsRegion", "rma create LC=lpg", status("A", "PUT", "/r-lc", constraint("lpg")), "200",
			"400 IllegalLocationConstraintException | The lpg location constraint is incompatible for the region specific endpoint this request was sent to."},
		{"keepsRegion", "lpg create LC=lpg", func(t *testing.T, l *lab) string {
			return l.user("A").inLPG(l).call(t, "PUT", "/r-lc", constraint("lpg")).String()
		}, "503 ServiceUnavailable", "200"},
		{"explains", "foreign object", status("C", "GET", "/r-bkt/k", ""), "403 AccessDenied", missingGet},
		{"explains", "foreign object, version", status("C", "GET", "/r-bkt/k?versionId=null", ""), "403 AccessDenied", "403 AccessDenied"},
		{"explains", "foreign bucket", status("C", "GET", "/r-bkt", ""), "403 AccessDenied", "403 AccessDenied"},
		{"explains", "create a taken name", status("B", "PUT", "/r-bkt", ""),
			"409 BucketAlreadyExists", "409 BucketAlreadyExists | Cannot modify existing access control policy"},
		{"explains", "unknown region", status("A", "PUT", "/r-lc", constraint("x")),
			"400 InvalidLocationConstraint | The specified location-constraint is not valid",
			"400 InvalidLocationConstraint | The x location constraint is not valid."},
		{"explains", "unknown placement", status("A", "PUT", "/r-lc", constraint("rma:x")),
			"400 InvalidLocationConstraint | The specified location-constraint is not valid",
			"400 InvalidLocationConstraint | The specified location-constraint is not valid"},
		{"explains", "ACL for an unknown user", status("A", "PUT", "/r-bkt?acl", "", "X-Amz-Grant-Read", `id="nobody"`),
			"400 InvalidArgument | Invalid id", "400 InvalidArgument | Invalid CanonicalUser id"},
		{"deletesByKey", "DeleteObject on the keys", under(onKeys, status("B", "POST", "/r-bkt?delete", deleteKeys(false, "k"))),
			"403 AccessDenied", "200"},
		{"deletesByKey", "no permission", status("C", "POST", "/r-bkt?delete", deleteKeys(false, "k")), "403 AccessDenied", "200"},
		{"wantsKeys", "DeleteObjects with no key", status("A", "POST", "/r-bkt?delete", deleteKeys(false)), "200", "400"},
		{"ownerKeepsPolicy", "get the policy", under(denyOwner, status("A", "GET", "/r-bkt?policy", "")), "403 AccessDenied", "200"},
		{"ownerKeepsPolicy", "put a policy", under(denyOwner, status("A", "PUT", "/r-bkt?policy", policyOf())), "403 AccessDenied", "204"},
		{"ownerKeepsPolicy", "delete the policy", under(denyOwner, status("A", "DELETE", "/r-bkt?policy", "")), "403 AccessDenied", "204"},
		{"ownerKeepsPolicy", "list the bucket", under(denyOwner, status("A", "GET", "/r-bkt", "")), "403 AccessDenied", "403 AccessDenied"},
		{"ownerKeepsPolicy", "get the policy, not the owner", under(
			policyOf(statement("Allow", "uid-b", "*", "r-bkt", ""), statement("Deny", "uid-b", "GetBucketPolicy", "r-bkt", "")),
			status("B", "GET", "/r-bkt?policy", "")), "403 AccessDenied", "403 AccessDenied"},
		{"ownerCopies", "copy an object of B onto itself", under(ofB, status("A", "PUT", "/r-bkt/of-b", "", copied...)), "403 AccessDenied", "200"},
		{"ownerCopies", "not the owner", under(policyOf(statement("Allow", "uid-c", "PutObject", "r-bkt/*", "")),
			status("C", "PUT", "/r-bkt/of-b", "", copied...)), "403 AccessDenied", "403 AccessDenied"},
		{"ownerCopies", "under a Deny", under(policyOf(statement("Deny", "uid-a", "GetObject", "r-bkt/*", "")),
			status("A", "PUT", "/r-bkt/of-b", "", copied...)), "403 AccessDenied", "403 AccessDenied"},
		{"tellsPublicACLs", "put a private object", blocked(), "403 AccessDenied", "200"},
		{"tellsPublicACLs", "put a public object", blocked("X-Amz-Acl", "public-read"), "403 AccessDenied", "403 AccessDenied"},
		{"longPage", "list with max-keys 5000", func(t *testing.T, l *lab) string {
			return parse[struct{ MaxKeys string }](t, l.user("A").must(t, "GET", "/r-bkt?list-type=2&max-keys=5000", "")).MaxKeys
		}, "1000", "5000"},
	}
}

// blocked puts an object under BlockPublicAcls.
func blocked(header ...string) func(*testing.T, *lab) string {
	return func(t *testing.T, l *lab) string {
		t.Helper()
		l.user("A").must(t, "PUT", "/r-bkt?publicAccessBlock", pab("BlockPublicAcls"))
		return status("A", "PUT", "/r-bkt/new", "x", header...)(t, l)
	}
}

func TestReleaseSwitches(t *testing.T) {
	shown := map[string]bool{}
	for _, c := range switchCases() {
		shown[c.name] = shown[c.name] || c.reef != c.tentacle
		t.Run(c.name+"/"+c.log, func(t *testing.T) {
			for release, want := range map[Release]string{Reef: c.reef, Tentacle: c.tentacle} {
				l := newLabOf(t, release)
				a := l.user("A")
				a.must(t, "PUT", "/r-bkt", "")
				a.must(t, "PUT", "/r-bkt/k", "x")
				a.must(t, "PUT", "/r-bkt?policy", policyOf(statement("Allow", "uid-b", "PutObject", "r-bkt/*", "")))
				l.user("B").must(t, "PUT", "/r-bkt/of-b", "x")
				a.must(t, "DELETE", "/r-bkt?policy", "")
				if got := c.ask(t, l); got != want {
					t.Errorf("%s: got %q, want %q", release, got, want)
				}
			}
		})
	}
	fields := reflect.TypeFor[releaseTraits]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; !shown[name] {
			t.Errorf("no case shows what the switch %s changes", name)
		}
	}
}

func TestUnknownRelease(t *testing.T) {
	s := New(Options{Release: "quincy", Regions: []Region{{Name: "r"}}})
	if a := (&client{url: serve(t, s.Handler("r")), clock: &clock{}}).call(t, "HEAD", "/", ""); a.status != 500 {
		t.Errorf("%v", a)
	}
}
