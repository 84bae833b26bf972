package companion

import (
	"strings"
	"testing"
)

const (
	wipedID    = "cloudscale/rma/photos/owner"
	bucketPath = cosiPath + "/buckets/bucket-u1"
	claimPath  = cosiPath + "/namespaces/ns/bucketclaims/photos"
)

const deletedBucket = `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket",
"metadata": {"name": "bucket-u1", "uid": "b1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
"spec": {"driverName": "cosi.zuber.dev", "deletionPolicy": "Delete", "bucketClaim": {"namespace": "ns", "name": "photos", "uid": "u1"}},
"status": {"bucketReady": true, "bucketID": "cloudscale/rma/photos/owner"}}`

const deletedClaim = `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "BucketClaim",
"metadata": {"namespace": "ns", "name": "photos", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z",
"annotations": {"zuber.dev/wipe-on-delete": "true"}}, "spec": {"bucketClassName": "k"}, "status": {"bucketReady": true, "bucketName": "bucket-u1"}}`

// TestWipeOnDelete: only the claim that alone has the bucket, and is being deleted
// with it, has its data deleted. Every other case is a doubt.
func TestWipeOnDelete(t *testing.T) {
	const elsewhere = cosiPath + "/namespaces/other/bucketclaims/c"
	foreign := func(spec, status string) string {
		return `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "BucketClaim", "metadata": {"namespace": "other", "name": "c", "uid": "u2"},
"spec": ` + spec + `, "status": ` + status + `}`
	}
	for name, c := range map[string]struct {
		old, with string            // what differs in the Bucket and the claim
		more      map[string]string // what there is besides
		denied    bool              // by the operator
		want      bool
	}{
		"asked for":               {want: true},
		"not allowed":             {denied: true},
		"not asked for":           {old: `"true"`, with: `"false"`},
		"asked for otherwise":     {old: `"true"`, with: `"True"`},
		"another claim's name":    {old: `"name": "photos", "uid": "u1", "deletionTimestamp"`, with: `"name": "photos", "uid": "u9", "deletionTimestamp"`},
		"a Bucket without a UID":  {old: `"name": "photos", "uid": "u1"}`, with: `"name": "photos"}`},
		"a Bucket without claim":  {old: `, "bucketClaim": {"namespace": "ns", "name": "photos", "uid": "u1"}`, with: ``},
		"Bucket not deleted":      {old: `"uid": "b1", "deletionTimestamp": "2026-01-01T00:00:00Z"`, with: `"uid": "b1"`},
		"claim not deleted":       {old: `"uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z"`, with: `"uid": "u1"`},
		"another driver's":        {old: `"cosi.zuber.dev"`, with: `"cosi.example.com"`},
		"retained":                {old: `"deletionPolicy": "Delete"`, with: `"deletionPolicy": "Retain"`},
		"another bucket ID":       {old: `cloudscale/rma/photos/owner`, with: `cloudscale/lpg/photos/owner`},
		"another claim has it":    {more: map[string]string{elsewhere: foreign(`{"existingBucketName": "bucket-u1"}`, `{"bucketReady": true, "bucketName": "bucket-u1"}`)}},
		"another claim wants it":  {more: map[string]string{elsewhere: foreign(`{"existingBucketName": "bucket-u1"}`, `{}`)}},
		"another claim elsewhere": {more: map[string]string{elsewhere: foreign(`{"bucketClassName": "k"}`, `{"bucketName": "bucket-u2"}`)}, want: true},
		"another back end's": {want: true, more: map[string]string{cosiPath + "/buckets/other": `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket",
"metadata": {"name": "other", "uid": "b2"}, "spec": {"driverName": "cosi.zuber.dev"}, "status": {"bucketReady": true, "bucketID": "stackit/eu01/photos"}}`}},
		"another region's": {more: map[string]string{cosiPath + "/buckets/other": `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket",
"metadata": {"name": "other", "uid": "b2"}, "spec": {"driverName": "cosi.zuber.dev"}, "status": {"bucketReady": true, "bucketID": "cloudscale/lpg/photos/owner"}}`}},
		"another Bucket for it": {more: map[string]string{cosiPath + "/buckets/static": `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket",
"metadata": {"name": "static", "uid": "b2"}, "spec": {"driverName": "cosi.zuber.dev", "existingBucketID": "rma/photos"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			server, config := newAPIServer(t)
			companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config, AllowWipe: !c.denied})
			if err != nil {
				t.Fatal(err)
			}
			bucket, claim := strings.Replace(deletedBucket, c.old, c.with, 1), strings.Replace(deletedClaim, c.old, c.with, 1)
			if c.old != "" && bucket == deletedBucket && claim == deletedClaim {
				t.Fatal("nothing differs")
			}
			server.put(t, bucketPath, bucket)
			server.put(t, claimPath, claim)
			for path, object := range c.more {
				server.put(t, path, object)
			}
			if got := companion.WipeOnDelete(t.Context(), wipedID); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestWipeWithoutAnswer: nothing is wiped while the API server does not answer, or
// the claim is gone.
func TestWipeWithoutAnswer(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config, AllowWipe: true})
	if err != nil {
		t.Fatal(err)
	}
	server.put(t, bucketPath, deletedBucket)
	if companion.WipeOnDelete(t.Context(), wipedID) {
		t.Error("wiped without a claim")
	}
	config.Host = "http://127.0.0.1:1"
	if companion, err = New(Config{Driver: "cosi.zuber.dev", REST: config, AllowWipe: true}); err != nil {
		t.Fatal(err)
	}
	if companion.WipeOnDelete(t.Context(), wipedID) {
		t.Error("wiped without an API server")
	}
}
