package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/v1alpha2"
)

// TestNamesOfV1alpha2 names buckets after claims, loses the cluster, and goes on in a
// new one: with another cluster ID in vain, with the same one where it was.
func TestNamesOfV1alpha2(t *testing.T) {
	s := withoutCOSI(t)
	c := s.Cluster
	if err := v1alpha2.Install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	peer, err := v1alpha2.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()
	// again is what a new sidecar, and before it a driver with these flags, do.
	again := func(between func(), flags ...string) {
		t.Helper()
		if err := peer.Close(); err != nil {
			t.Fatal(err)
		}
		between()
		c.Driver.Extra = flags
		s.restart(c.Driver)
		if peer, err = v1alpha2.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	// Without a cluster ID nobody knows whose claims these are.
	classes := s.apply(
		namedClass(cloudscale, fromClaim("acme")...), namedClass(stackit, fromClaim("acme")...),
		manifest2("BucketAccessClass", "key", map[string]any{"driverName": driverName, "authenticationType": "Key"}))
	first := s.apply(namedClaim(cloudscale, cloudscale), namedAccess(cloudscale))
	s.refusedWith(first[0], "--cluster-id")
	again(func() {}, "--cluster-id=blue")
	s.apply(namedClaim(stackit, stackit), namedAccess(stackit))
	before := map[string]bucketInfo{}
	ids := map[string]string{}
	for _, backend := range []string{cloudscale, stackit} {
		s.settled(namedObject("BucketAccess", backend))
		info := s.cosiSecret(backend + "-cosi")
		before[backend] = info
		if want := "acme-default-" + backend; info.Spec.BucketName != want {
			t.Errorf("the bucket is %q in its Secret, want %q", info.Spec.BucketName, want)
		}
		if err := info.s3().put(t.Context(), "precious", "data"); err != nil {
			t.Fatal(err)
		}
		ids[backend] = s.bucket2(backend).text("status", "bucketID")
	}

	// A class that has changed changes no bucket, also when the driver is called again.
	s.delete(classes[0])
	s.apply(namedClass(cloudscale, fromClaim("other")...))
	again(func() {
		for _, backend := range []string{cloudscale, stackit} {
			s.change(s.bucket2(backend), map[string]any{"readyToUse": false})
		}
	}, "--cluster-id=blue")
	for _, backend := range []string{cloudscale, stackit} {
		s.settled(s.bucket2(backend))
		if got := s.bucket2(backend).text("status", "bucketID"); got != ids[backend] {
			t.Errorf("the bucket ID became %s, and was %s", got, ids[backend])
		}
	}
	taken := s.apply(namedClass("taken", "bucketNamePrefix", "acme", "bucketNameFrom", "claim"), namedClaim("default-cloudscale", "taken"),
		namedClass("long", "bucketNamePrefix", strings.Repeat("p", 60), "bucketNameFrom", "claim"), namedClaim("long", "long"))
	s.refusedWith(taken[1], "BucketClaim default/cloudscale")
	s.refusedWith(taken[3], "nothing is cut off")
	s.delete(taken...)

	// The cluster is lost. Another one with the same manifests is refused.
	manifests := []string{namedClass(cloudscale, fromClaim("acme")...), namedClass(stackit, fromClaim("acme")...)}
	for _, backend := range []string{cloudscale, stackit} {
		manifests = append(manifests, namedClaim(backend, backend), namedAccess(backend))
	}
	again(s.loseAll, "--cluster-id=green")
	s.apply(manifests...)
	for _, backend := range []string{cloudscale, stackit} {
		s.refusedWith(namedObject("BucketClaim", backend), `belongs to cluster "blue"`)
	}
	again(s.loseAll, "--cluster-id=blue")
	made := s.apply(manifests...)
	for _, backend := range []string{cloudscale, stackit} {
		s.settled(namedObject("BucketAccess", backend))
		info := s.cosiSecret(backend + "-cosi")
		if content, err := info.s3().read(t.Context(), "precious"); err != nil || content != "data" {
			t.Errorf("%s: the data: %q, %v", backend, content, err)
		}
		if info.Spec.SecretS3.AccessKeyID == before[backend].Spec.SecretS3.AccessKeyID {
			t.Errorf("%s: the key is that of the lost cluster", backend)
		}
		if err := info.s3().remove(t.Context(), "precious"); err != nil {
			t.Fatal(err)
		}
	}
	for i := len(made) - 1; i >= 0; i-- {
		s.delete(made[i])
	}
	if left := leftInClouds(c.Emulator, ""); len(left) != 0 {
		t.Errorf("left in the clouds: %q", left)
	}
}

func namedClass(name string, parameters ...string) string {
	backend := name
	if regionOf(name) == "" {
		backend = cloudscale
	}
	return manifest2("BucketClass", name, map[string]any{"driverName": driverName, "deletionPolicy": "Delete",
		"parameters": pairs(append([]string{"backend", backend, "region", regionOf(backend)}, parameters...))})
}

func namedClaim(name, class string) string {
	return manifest2("BucketClaim", name, map[string]any{"bucketClassName": class, "protocols": []string{"S3"}})
}

// namedAccess is an access to the bucket of the claim of that name.
func namedAccess(claim string) string {
	return manifest2("BucketAccess", claim, map[string]any{"bucketAccessClassName": "key", "protocol": "S3", "bucketClaims": []map[string]string{
		{"bucketClaimName": claim, "accessMode": "ReadWrite", "accessSecretName": claim + "-cosi"},
	}})
}

func namedObject(kind, name string) object {
	return object{"apiVersion": "objectstorage.k8s.io/v1alpha2", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}}
}

// bucket2 is the Bucket of v1alpha2 of the claim of that name.
func (s *story) bucket2(claim string) object {
	s.Helper()
	got, err := s.Get(s.Context(), namedObject("BucketClaim", claim).path())
	if err == nil {
		got, err = s.Get(s.Context(), "/apis/objectstorage.k8s.io/v1alpha2/buckets/bc-"+object(got).text("metadata", "uid"))
	}
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// refusedWith waits until the Bucket of a claim of v1alpha2 says so.
func (s *story) refusedWith(claim object, text string) {
	s.Helper()
	s.eventually(func() error {
		got, err := s.Get(s.Context(), claim.path())
		if err == nil {
			got, err = s.Get(s.Context(), "/apis/objectstorage.k8s.io/v1alpha2/buckets/bc-"+object(got).text("metadata", "uid"))
		}
		if err == nil && !strings.Contains(object(got).text("status", "error", "message"), text) {
			err = fmt.Errorf("%s: status %v, want an error with %q", claim, got["status"], text)
		}
		return err
	})
}

// loseAll removes everything of COSI and the Secrets as if they had never been.
// Nobody who would tidy up may run.
func (s *story) loseAll() {
	s.Helper()
	for _, path := range []string{
		"/api/v1/namespaces/default/secrets", "/apis/objectstorage.k8s.io/v1alpha2/namespaces/default/bucketaccesses",
		"/apis/objectstorage.k8s.io/v1alpha2/namespaces/default/bucketclaims", "/apis/objectstorage.k8s.io/v1alpha2/buckets",
		"/apis/objectstorage.k8s.io/v1alpha2/bucketclasses",
	} {
		list, err := s.Get(s.Context(), path)
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range object(list).list("items") {
			s.erase(path + "/" + o.name())
		}
	}
}
