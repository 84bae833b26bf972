package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// infoNaming waits until BucketInfo names the bucket as it is called at the cloud.
func (s *story) infoNaming(access object, bucket string) (info bucketInfo) {
	s.Helper()
	s.eventually(func() error {
		if info = s.bucketInfo(access); info.Spec.BucketName != bucket {
			return fmt.Errorf("BucketInfo names the bucket %s, want %s", info.Spec.BucketName, bucket)
		}
		return nil
	})
	return info
}

// fromClaim are the parameters of names like <prefix>-<namespace>-<claim>.
func fromClaim(prefix string) []string {
	return []string{"bucketNamePrefix", prefix, "bucketNameIncludeNamespace", "true", "bucketNameFrom", "claim"}
}

// wantBucket waits until a claim has a bucket, which is called so.
func (s *story) wantBucket(claim object, name string) {
	s.Helper()
	if id := strings.Split(s.ready(s.bucketOf(claim)).text("status", "bucketID"), "/"); len(id) < 3 || id[2] != name {
		s.Errorf("the bucket of %s has the ID %q, want the name %s", claim, id, name)
	}
}

// TestBucketNames: buckets are called what their classes say, and so say the Secrets.
func TestBucketNames(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			accessClass := s.accessClass("envSecretSuffix", "-env")
			photos := s.claim("photos", s.class(backend, fromClaim("acme")...))
			prefixed := s.claim("prefixed", s.class(backend, "bucketNamePrefix", s.ns))
			whole, uid := s.access("photos", "photos", accessClass), s.access("prefixed", "prefixed", accessClass)
			for access, want := range map[*object]string{&whole: "acme-" + s.ns + "-photos", &uid: s.ns + "-bucket-" + prefixed.text("metadata", "uid")} {
				info := s.infoNaming(*access, want)
				s.wantUsable(info.s3())
				s.wantVariables(access.name()+"-env", variablesOf(t, info, want))
			}
			s.event(photos, "Provisioned: Bucket acme-"+s.ns+"-photos is ready")
		})
	}
}

// TestNamesRefused: what cannot be called so, or is somebody else's by then, is told to
// the claim. A class that has changed is for new buckets.
func TestNamesRefused(t *testing.T) {
	s := together(t)
	changed := s.class(stackit, "bucketNamePrefix", s.ns+"-a", "bucketNameFrom", "claim")
	first := s.claim("b", changed)
	spaced := s.claim("spaced", s.class(cloudscale, "bucketNameIncludeNamespace", "true"))
	long := s.claim("long-name", s.class(cloudscale, "bucketNamePrefix", strings.Repeat("p", 60), "bucketNameFrom", "claim"))
	s.told(long, "has … characters")
	s.event(long, "nothing is cut off")
	s.wantBucket(spaced, s.ns+"-bucket-"+spaced.text("metadata", "uid"))
	s.wantBucket(first, s.ns+"-a-b")
	second := s.claim("a-b", s.class(stackit, "bucketNamePrefix", s.ns, "bucketNameFrom", "claim"))
	s.told(second, "it is that of the Bucket …, for …")
	s.event(second, "BucketClaim "+s.ns+"/b")

	s.kubectl("delete", "bucketclass", changed)
	s.apply(manifest("BucketClass", changed, map[string]any{"driverName": driverName, "deletionPolicy": "Delete", "parameters": map[string]string{
		"backend": stackit, "region": regionOf(stackit), "bucketNamePrefix": s.ns + "-other", "bucketNameFrom": "claim"}}))
	s.wantBucket(s.claim("films", changed), s.ns+"-other-films")
	s.wantBucket(first, s.ns+"-a-b")
	// Once the first one is gone it could get the bucket, while it is deleted itself.
	s.delete(second)
}

// TestBucketComesBack: a claim of the same name finds the bucket that was kept, with
// its data, under a new key.
func TestBucketComesBack(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			class, accessClass := s.classWith("Retain", backend, fromClaim("kept")...), s.accessClass()
			name := "kept-" + s.ns + "-archive"
			claim := s.claim("archive", class)
			access := s.access("archive", "archive", accessClass)
			before := s.infoNaming(access, name)
			if err := before.s3().put(t.Context(), "precious", "data"); err != nil {
				t.Fatal(err)
			}
			bucket := s.bucket(claim)
			s.delete(access, claim)
			s.gone(bucket)

			claim = s.claim("archive", class)
			after := s.infoNaming(s.access("archive", "archive", accessClass), name)
			if content, err := after.s3().read(t.Context(), "precious"); err != nil || content != "data" {
				t.Errorf("the data: %q, %v", content, err)
			}
			if _, err := before.s3().read(t.Context(), "precious"); !refused(err) {
				t.Errorf("the key from before: %v", err)
			}
			if err := after.s3().remove(t.Context(), "precious"); err != nil {
				t.Fatal(err)
			}
			// So that nothing is left of the story.
			if _, err := s.Send(t.Context(), http.MethodPatch, s.ready(s.bucket(claim)).path(), map[string]any{"spec": map[string]any{"deletionPolicy": "Delete"}}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLaterClaimWaits: upstream can lose a claim whose Bucket is still being deleted.
// A claim that is made anew gets the bucket neither before that is over nor with the
// data, which nobody has asked it to keep.
func TestLaterClaimWaits(t *testing.T) {
	s := together(t)
	class, accessClass := s.class(cloudscale, fromClaim("once")...), s.accessClass()
	name := "once-" + s.ns + "-photos"
	first := s.claim("photos", class)
	access := s.access("photos", "photos", accessClass)
	info := s.infoNaming(access, name)
	if err := info.s3().put(t.Context(), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	bucket := s.bucket(first)
	s.deleteSoon(first)
	s.told(bucket, "it holds objects, versions or delete markers")
	s.freed(access)
	if _, err := s.Send(t.Context(), http.MethodPatch, first.path(), map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil && !missing(err) {
		t.Fatal(err)
	}
	s.gone(first)

	second := s.claim("photos", class)
	s.told(second, "wait until that Bucket is gone")
	owner, err := s.owner(name)
	if err != nil {
		t.Fatal(err)
	}
	info.Spec.SecretS3.AccessKeyID, info.Spec.SecretS3.AccessSecretKey = owner.AccessKey, owner.SecretKey
	if content, err := info.s3().read(t.Context(), "precious"); err != nil || content != "data" {
		t.Fatalf("the data: %q, %v", content, err)
	}
	if err := info.s3().remove(t.Context(), "precious"); err != nil {
		t.Fatal(err)
	}
	s.gone(bucket)
	s.wantUsable(s.infoNaming(s.access("again", "photos", accessClass), name).s3())
}

// TestLostCluster: the objects of COSI are gone as with the cluster, and the same
// manifests find the buckets again, with their data, under new keys.
func TestLostCluster(t *testing.T) {
	s := alone(t)
	type part struct {
		backend, name string
		before        bucketInfo
		manifests     []string
		access        object
	}
	var parts []*part
	accessClass := s.accessClass()
	for _, backend := range []string{cloudscale, stackit} {
		class := s.class(backend, fromClaim("lost")...)
		claim := "photos-" + backend
		p := &part{backend: backend, name: "lost-" + s.ns + "-" + claim, manifests: []string{claimManifest(claim, class), accessManifest(claim, claim, accessClass)}}
		parts = append(parts, p)
		p.before = s.infoNaming(s.apply(p.manifests...)[1], p.name)
		if err := p.before.s3().put(t.Context(), "precious", "data"); err != nil {
			t.Fatal(err)
		}
	}
	// Nobody who would tidy up is left when a cluster is lost.
	for _, p := range []interface{ Stop() error }{s.Sidecar, s.Controller} {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	s.lose("bucketaccesses", "bucketclaims")
	s.start(s.Controller)
	s.start(s.Sidecar)

	for _, p := range parts {
		made := s.apply(p.manifests...)
		p.access = made[1]
		after := s.infoNaming(p.access, p.name)
		if content, err := after.s3().read(t.Context(), "precious"); err != nil || content != "data" {
			t.Errorf("%s: the data: %q, %v", p.backend, content, err)
		}
		// The lost cluster's keys end with zuber gc, and only they.
		if _, err := p.before.s3().read(t.Context(), "precious"); err != nil {
			t.Errorf("%s: the lost cluster's key: %v", p.backend, err)
		}
	}
	s.kubectl("apply", "-k", root+"/config/samples/gc")
	defer s.kubectl("delete", "-k", root+"/config/samples/gc")
	for _, p := range parts {
		s.collect("--delete", "--yes", "--only", p.name)
		if _, err := p.before.s3().read(t.Context(), "precious"); !refused(err) {
			t.Errorf("%s: the lost cluster's key after zuber gc: %v", p.backend, err)
		}
		if err := s.bucketInfo(p.access).s3().remove(t.Context(), "precious"); err != nil {
			t.Errorf("%s: the new key after zuber gc: %v", p.backend, err)
		}
	}
}

// lose removes the story's objects of these kinds, their Buckets and the Secrets as
// if they had never been.
func (s *story) lose(resources ...string) {
	s.Helper()
	paths := []string{"/api/v1/namespaces/" + s.ns + "/secrets", cosiPath("buckets", "")}
	for _, resource := range resources {
		paths = append(paths, cosiPath(resource, s.ns))
	}
	for _, path := range paths {
		list, err := s.Get(s.Context(), path)
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range object(list).list("items") {
			if o.text("metadata", "namespace") != s.ns && o.text("spec", "bucketClaim", "namespace") != s.ns {
				continue
			}
			s.erase(path + "/" + o.name())
		}
	}
}

// erase removes an object, whoever wants to do something before.
func (s *story) erase(path string) {
	s.Helper()
	_, err := s.Send(s.Context(), http.MethodPatch, path, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err == nil {
		_, err = s.Send(s.Context(), http.MethodDelete, path, nil)
	}
	if err != nil && !missing(err) {
		s.Fatal(err)
	}
}
