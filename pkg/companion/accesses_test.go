package companion

import (
	"encoding/base64"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestClassThatIsGone: its accesses keep the env Secrets that it asked for, until
// there is a class that does not.
func TestClassThatIsGone(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	const path, classPath = secretsPath + "/photos-env", cosiPath + "/bucketaccessclasses/key"
	a := access{meta: meta{kind: kindAccess, version: v1alpha1, namespace: "ns", name: "photos", uid: "uid-1"}, class: "key"}
	server.put(t, path, secretOf("photos-env", a.uid, `}`))
	r := &accesses{view: view{v1alpha1, companion.client}, driver: "cosi.zuber.dev", secrets: &secrets{client: companion.client, live: companion.client}}
	served := func() {
		t.Helper()
		parameters, ours, err := r.class(t.Context(), a)
		if err != nil || !ours {
			t.Fatal(ours, err)
		}
		if settled, err := r.serve(t.Context(), a, parameters, nil); err != nil || !settled {
			t.Fatal(settled, err)
		}
	}
	served()
	if server.get(path) == "" {
		t.Error("the Secret went with the class")
	}
	server.put(t, classPath, `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "BucketAccessClass", "metadata": {"name": "key"}, "driverName": "cosi.zuber.dev"}`)
	served()
	if server.get(path) != "" {
		t.Error("the Secret stays, although the class asks for none")
	}
}

// TestImmutableBucketInfo: that its bucket cannot be corrected keeps nobody from
// the env Secret, and is told.
func TestImmutableBucketInfo(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	c := companion.client
	a := access{
		meta:    meta{kind: kindAccess, version: v1alpha1, namespace: "ns", name: "photos", uid: "uid-1", annotations: map[string]string{AnnotationEnvSecret: "photos-env"}},
		targets: []target{{claim: "photos", secret: "photos-cosi"}},
	}
	server.put(t, secretsPath+"/photos-cosi", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "photos-cosi"},
"immutable": true, "data": {"BucketInfo": "`+base64.StdEncoding.EncodeToString([]byte(document))+`"}}`)
	r := &accesses{
		view: view{v1alpha1, c}, secrets: &secrets{client: c, live: c},
		record: &recorder{client: c, now: time.Now, told: map[string]time.Time{}},
	}
	if settled, err := r.serve(t.Context(), a, nil, []bucket{{meta: meta{name: "named-in-kubernetes"}, atCloud: "at-the-cloud"}}); err != nil || settled {
		t.Error(settled, err)
	}
	if server.get(secretsPath+"/photos-env") == "" {
		t.Error("there is no env Secret")
	}
	if n := server.count("POST /api/v1/namespaces/ns/events"); n != 2 {
		t.Errorf("%d events, want that of the env Secret and that of the other", n)
	}
}

// TestFaultParks: what a user has to put right is told once and looked at again
// after minutes, however often something makes the companion look.
func TestFaultParks(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	c := companion.client
	put := func(path, fields string) {
		server.put(t, cosiPath+path, `{"apiVersion": "objectstorage.k8s.io/v1alpha1", `+fields+`}`)
	}
	put("/namespaces/ns/bucketclaims/photos", `"kind": "BucketClaim", "metadata": {"namespace": "ns", "name": "photos", "uid": "uid-c"}, "status": {"bucketReady": true, "bucketName": "bucket-uid-c"}`)
	put("/buckets/bucket-uid-c", `"kind": "Bucket", "metadata": {"name": "bucket-uid-c"}, "spec": {"driverName": "cosi.zuber.dev"}, "status": {"bucketReady": true, "bucketID": "cloudscale/rma/bucket-uid-c"}`)
	put("/bucketaccessclasses/key", `"kind": "BucketAccessClass", "metadata": {"name": "key"}, "driverName": "cosi.zuber.dev"`)
	put("/namespaces/ns/bucketaccesses/photos", `"kind": "BucketAccess",
"metadata": {"namespace": "ns", "name": "photos", "uid": "uid-a", "annotations": {"zuber.dev/env-secret": "Not_A_Name"}},
"spec": {"bucketClaimName": "photos", "bucketAccessClassName": "key", "credentialsSecretName": "photos-cosi"}, "status": {"accessGranted": true, "accountID": "cloudscale/ba-uid-a"}`)
	r := &accesses{
		view: view{v1alpha1, c}, driver: "cosi.zuber.dev", news: newNews(time.Now),
		secrets: &secrets{client: c, live: c, watched: true},
		record:  &recorder{client: c, now: time.Now, told: map[string]time.Time{}},
	}
	for range 3 {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "photos"}})
		if err != nil || result.RequeueAfter != resync {
			t.Errorf("looked at again after %s, %v; want %s", result.RequeueAfter, err, resync)
		}
	}
	if n := server.count("POST /api/v1/namespaces/ns/events"); n != 1 {
		t.Errorf("%d events, want one", n)
	}
	if n := server.count("POST " + secretsPath); n != 0 {
		t.Errorf("%d Secrets made", n)
	}
}
