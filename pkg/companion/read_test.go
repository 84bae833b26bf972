package companion

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestBothVersionsReadAlike: what stands for the same is the same, wherever a
// version has it.
func TestBothVersionsReadAlike(t *testing.T) {
	const metadata = `metadata: {name: n, namespace: ns, uid: u, deletionTimestamp: "2026-01-01T00:00:00Z", annotations: {a: b}}
`
	const header = "apiVersion: objectstorage.k8s.io/"
	for kind, specs := range map[string][2]string{
		kindClaim: {"status: {bucketReady: true, bucketName: b}", "status: {readyToUse: true, boundBucketName: b}"},
		kindBucket: {
			`spec: {driverName: d, parameters: {p: q}, bucketClaim: {name: c, namespace: ns, uid: cu}}
status: {bucketReady: true, bucketID: cloudscale/rma/at-cloud}`,
			`spec: {driverName: d, parameters: {p: q}, bucketClaimRef: {name: c, namespace: ns, uid: cu}}
status: {readyToUse: true, bucketID: cloudscale/rma/at-cloud}`,
		},
		kindAccess: {
			`spec: {bucketClaimName: c, bucketAccessClassName: k, credentialsSecretName: s}
status: {accessGranted: true, accountID: a}`,
			`spec: {bucketClaims: [{bucketClaimName: c, accessSecretName: s}], bucketAccessClassName: k}
status: {readyToUse: true, accountID: a}`,
		},
	} {
		read := map[string]func(*unstructured.Unstructured) any{
			kindClaim:  func(u *unstructured.Unstructured) any { c := readClaim(u); c.version = ""; return c },
			kindBucket: func(u *unstructured.Unstructured) any { b := readBucket(u); b.version = ""; return b },
			kindAccess: func(u *unstructured.Unstructured) any { a := readAccess(u); a.version = ""; return a },
		}[kind]
		old := read(parse(t, header+"v1alpha1\nkind: "+kind+"\n"+metadata+specs[0]))
		later := read(parse(t, header+"v1alpha2\nkind: "+kind+"\n"+metadata+specs[1]))
		if !reflect.DeepEqual(old, later) {
			t.Errorf("%s: v1alpha1 %+v, v1alpha2 %+v", kind, old, later)
		}
		none := read(parse(t, header+"v1alpha1\nkind: "+kind+"\n"))
		if reflect.DeepEqual(old, none) {
			t.Errorf("%s: nothing is read", kind)
		}
	}
	for _, text := range []string{"driverName: d\nparameters: {p: q}", "spec: {driverName: d}\nparameters: {p: q}"} {
		if got := readAccessClass(parse(t, text)); got.driver != "d" || got.parameters["p"] != "q" {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestForeignBucket: another driver's bucket ID is none of ours, and no fault.
func TestForeignBucket(t *testing.T) {
	for id, want := range map[string]string{"": "", "arn:aws:s3:::x": "", "rma/photos": "photos", "cloudscale/rma/photos/owner": "photos", "cloudscale/rma/photos/accessOnly": "photos"} {
		got := readBucket(parse(t, "apiVersion: objectstorage.k8s.io/v1alpha1\nkind: Bucket\nstatus: {bucketID: '"+id+"'}"))
		if got.atCloud != want || got.id != id {
			t.Errorf("%q: %q at the cloud, ID %q", id, got.atCloud, got.id)
		}
	}
}

func TestSecondBucketOfAnAccess(t *testing.T) {
	a := readAccess(parse(t, `{apiVersion: objectstorage.k8s.io/v1alpha2, kind: BucketAccess,
spec: {bucketClaims: [{bucketClaimName: one, accessSecretName: s1}, {bucketClaimName: two, accessSecretName: s2}]},
status: {driverName: d, parameters: {p: q}, readyToUse: true}}`))
	if want := []target{{claim: "one", secret: "s1"}, {claim: "two", secret: "s2"}}; !reflect.DeepEqual(a.targets, want) || a.granted || a.driver != "d" || a.parameters["p"] != "q" {
		t.Errorf("%+v", a)
	}
}
