package companion

import "testing"

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
		if err := r.serve(t.Context(), a, parameters, nil); err != nil {
			t.Fatal(err)
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
