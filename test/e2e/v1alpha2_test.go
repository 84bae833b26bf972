package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
	"github.com/zuber-storage/zuber/test/e2e/v1alpha2"
)

// TestSamplesOfV1alpha2 applies the files of config/samples for COSI v1alpha2 to
// an API server with its kinds, and uses what they make, across a restart of the
// sidecar's stand-in. The bucket that the samples bring in exists before.
func TestSamplesOfV1alpha2(t *testing.T) {
	s := withoutCOSI(t)
	c := s.Cluster
	if err := v1alpha2.Install(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	dryRun(t, c, s.ns, ofV1alpha2)
	peer, err := v1alpha2.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()

	s.foreignBucket("archive-2026")
	s.retainedBucket("archive-2026")
	for _, backend := range []string{cloudscale, stackit} {
		made := s.record(s.kubectl("apply", "-o", "json", "-f", filepath.Join(root, "config", "samples", backend, "v1alpha2", "samples.yaml")))
		access := made[len(made)-1]
		s.settled(access)
		photos, archive := s.cosiSecret("photos-credentials").s3(), s.cosiSecret("archive-credentials").s3()
		if archive.bucket != "archive-2026" {
			t.Errorf("%s: the existing bucket is %q in its Secret", backend, archive.bucket)
		}
		s.wantUsable(photos)
		if err := photos.put(t.Context(), "kept", "data"); err != nil {
			t.Fatal(err)
		}
		if err := archive.put(t.Context(), "x", "x"); !refused(err) {
			t.Errorf("%s: ReadOnly may write: %v", backend, err)
		}

		// A new sidecar calls the driver for all that exists.
		if err := peer.Close(); err != nil {
			t.Fatal(err)
		}
		s.change(access, map[string]any{"readyToUse": false})
		if peer, err = v1alpha2.Start(t.Context(), c); err != nil { //nolint:fatcontext // the loop outlives the test's step
			t.Fatal(err)
		}
		s.settled(access)
		again := s.cosiSecret("photos-credentials").s3()
		for what, client := range map[string]bucketClient{"the first key": photos, "the key after a restart": again} {
			if content, err := client.read(t.Context(), "kept"); err != nil || content != "data" {
				t.Errorf("%s: %s reads %q, %v", backend, what, content, err)
			}
		}
		if err := again.remove(t.Context(), "kept"); err != nil {
			t.Fatal(err)
		}

		// A class that cannot work: the Bucket says why.
		wrong := s.apply(
			manifest2("BucketClass", "wrong", map[string]any{
				"driverName": driverName, "deletionPolicy": "Delete", "parameters": map[string]string{"backend": backend, "region": "nowhere"},
			}),
			manifest2("BucketClaim", "wrong", map[string]any{"bucketClassName": "wrong", "protocols": []string{"S3"}}))
		s.eventually(func() error {
			bucket, err := s.Get(t.Context(), "/apis/objectstorage.k8s.io/v1alpha2/buckets/bc-"+wrong[1].text("metadata", "uid"))
			if err == nil && !strings.Contains(object(bucket).text("status", "error", "message"), `"nowhere"`) {
				err = fmt.Errorf("status %v", bucket["status"])
			}
			return err
		})

		s.delete(access)
		for _, client := range []bucketClient{photos, archive, again} {
			if err := client.put(t.Context(), "late", "x"); !refused(err) {
				t.Errorf("%s: a revoked key in %s: %v", backend, client.bucket, err)
			}
		}
		for _, o := range append(made[:len(made)-1], wrong...) {
			if o.text("kind") == "BucketClaim" {
				s.delete(o)
			}
		}
		s.delete(append(made[:len(made)-1], wrong...)...)
	}
	if left := leftInClouds(c.Emulator, ""); len(left) != 3 { // both buckets and the owner of one
		t.Errorf("left in the clouds: %q", left)
	}
}

// withoutCOSI begins a story in a cluster of its own, which has neither COSI's kinds
// nor its programs.
func withoutCOSI(t *testing.T) *story {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	o := options()
	o.NoCOSI, o.ClusterID = true, "" // stories say it with the flag
	c, err := cluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.Contains(c.Driver.Log(), "WARNING: DATA RACE") {
			t.Error("the driver raced")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &story{T: t, Cluster: c, ns: "default"}
}

// manifest2 is manifest for v1alpha2, with a spec.
func manifest2(kind, name string, spec map[string]any) string {
	return strings.Replace(manifest(kind, name, map[string]any{"spec": spec}), "v1alpha1", "v1alpha2", 1)
}

// settled waits until an access of v1alpha2 has its Secrets.
func (s *story) settled(access object) {
	s.Helper()
	s.eventually(func() error {
		got, err := s.Get(s.Context(), access.path())
		if err == nil && object(got).at("status", "readyToUse") != true {
			err = fmt.Errorf("%s: status %v", access, got["status"])
		}
		return err
	})
}

// change merges into the status of an object.
func (s *story) change(o object, status map[string]any) {
	s.Helper()
	if _, err := s.Send(s.Context(), http.MethodPatch, o.path()+"/status", map[string]any{"status": status}); err != nil {
		s.Fatal(err)
	}
}

// cosiSecret reads a Secret of v1alpha2 in the form of v1alpha1's document.
func (s *story) cosiSecret(name string) bucketInfo {
	s.Helper()
	got, err := s.Get(s.Context(), "/api/v1/namespaces/"+s.ns+"/secrets/"+name)
	if err != nil {
		s.Fatal(err)
	}
	value := func(key string) string {
		text, err := base64.StdEncoding.DecodeString(object(got).text("data", key))
		if err != nil || len(text) == 0 {
			s.Fatalf("Secret %s: %s is empty or not base64", name, key)
		}
		return string(text)
	}
	info := bucketInfo{}
	info.Spec.BucketName = value("COSI_S3_BUCKET_ID")
	info.Spec.SecretS3 = &secretS3{
		Endpoint: value("COSI_S3_ENDPOINT"), Region: value("COSI_S3_REGION"),
		AccessKeyID: value("COSI_S3_ACCESS_KEY_ID"), AccessSecretKey: value("COSI_S3_ACCESS_SECRET_KEY"),
	}
	return info
}

// foreignBucket makes a bucket on cloudscale without the driver.
func (s *story) foreignBucket(name string) {
	s.Helper()
	cloud := s.Emulator.Cloudscale()
	body, _ := json.Marshal(map[string]any{"display_name": "by-hand"})
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, cloud.APIURL+"v1/objects-users", bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+cloud.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var user struct {
		Keys []struct {
			AccessKey string `json:"access_key"`
			SecretKey string `json:"secret_key"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&user); err != nil || resp.StatusCode != http.StatusCreated || len(user.Keys) != 1 {
		s.Fatalf("an objects user: %s, %v", resp.Status, err)
	}
	info := bucketInfo{}
	info.Spec.BucketName = name
	info.Spec.SecretS3 = &secretS3{Endpoint: cloud.Endpoints["rma"], Region: "us-east-1", AccessKeyID: user.Keys[0].AccessKey, AccessSecretKey: user.Keys[0].SecretKey}
	if _, err := info.s3().CreateBucket(s.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		s.Fatal(err)
	}
}

// retainedBucket makes a bucket on STACKIT that stays when its Bucket goes.
func (s *story) retainedBucket(name string) {
	s.Helper()
	bucket := s.apply(fmt.Sprintf(`{apiVersion: objectstorage.k8s.io/v1alpha2, kind: Bucket, metadata: {name: %s}, spec: {
		driverName: %s, deletionPolicy: Retain, protocols: [S3], parameters: {backend: stackit, region: eu01},
		bucketClaimRef: {name: before, namespace: default}}}`, name, driverName))[0]
	s.settled(bucket)
	s.delete(bucket)
}
