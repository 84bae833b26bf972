package companion

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withSecrets is an API server with Secrets, and an access beside them.
func withSecrets(t *testing.T) (*apiServer, *secrets, access) {
	t.Helper()
	server, config := newAPIServer(t)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	a := access{meta: meta{kind: kindAccess, version: v1alpha1, namespace: "ns", name: "photos", uid: "uid-1"}, targets: []target{{claim: "photos", secret: "photos-cosi"}}}
	return server, &secrets{client: c, live: c}, a
}

// secretOf is a Secret that belongs to the access with that UID.
func secretOf(name, uid, more string) string {
	return `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "` + name + `", "uid": "u-` + name + `",
"labels": {"app.kubernetes.io/managed-by": "zuber"}, "ownerReferences": [{"apiVersion": "objectstorage.k8s.io/v1alpha1",
"kind": "BucketAccess", "name": "photos", "uid": "` + uid + `", "controller": true}]` + more + `}`
}

func wantRefused(t *testing.T, err error, about string) {
	t.Helper()
	var p *problemError
	if !errors.As(err, &p) || p.forbidden || !strings.Contains(p.message, about) {
		t.Errorf("got %v, want a refusal about %q", err, about)
	}
}

// TestImmutableSecretIsMadeAnew: once, also where somebody's finalizer keeps the
// old one.
func TestImmutableSecretIsMadeAnew(t *testing.T) {
	const path = secretsPath + "/env"
	data := map[string][]byte{"S3_BUCKET": []byte("b1")}
	server, s, a := withSecrets(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	server.put(t, path, secretOf("env", a.uid, `}, "immutable": true`))
	if made, err := s.write(ctx, a, "env", data); err != nil || !made || !strings.Contains(server.get(path), "S3_BUCKET") {
		t.Errorf("made %v, %v: %s", made, err, server.get(path))
	}
	server.put(t, path, secretOf("env", a.uid, `, "finalizers": ["example.com/mine"]}, "immutable": true`))
	before := server.count("DELETE " + path)
	made, err := s.write(ctx, a, "env", data)
	if made {
		t.Error("made, although the old one is there")
	}
	wantRefused(t, err, "finalizers")
	if n := server.count("DELETE "+path) - before; n != 1 {
		t.Errorf("deleted %d times", n)
	}
}

// TestRemoveLeavesOtherSecrets: former env Secrets go, and nothing else.
func TestRemoveLeavesOtherSecrets(t *testing.T) {
	server, s, a := withSecrets(t)
	for name, uid := range map[string]string{"kept": a.uid, "former": a.uid, "photos-cosi": a.uid, "anothers": "uid-2"} {
		server.put(t, secretsPath+"/"+name, secretOf(name, uid, `}`))
	}
	if err := s.remove(t.Context(), a, "kept"); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"kept": true, "former": false, "photos-cosi": true, "anothers": true} {
		if is := server.get(secretsPath+"/"+name) != ""; is != there {
			t.Errorf("%s is there: %v", name, is)
		}
	}
}

// TestSecretThatNoServerTakes: the user hears of it, whether it is there already
// or not, and it is not tried for ever.
func TestSecretThatNoServerTakes(t *testing.T) {
	server, s, a := withSecrets(t)
	data := map[string][]byte{}
	for i := range mostKeys + 1 {
		data["KEY_"+string(rune('A'+i))] = nil
	}
	_, err := s.write(t.Context(), a, "env", data)
	wantRefused(t, err, "does not take")
	server.put(t, secretsPath+"/env", secretOf("env", a.uid, `}`))
	_, err = s.write(t.Context(), a, "env", data)
	wantRefused(t, err, "does not take")
}
