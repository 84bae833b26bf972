package companion

import (
	"errors"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

const newBucket = `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket", "metadata": {"name": "bucket-u1", "uid": "b1"},
"spec": {"driverName": "cosi.zuber.dev", "bucketClaim": {"namespace": "ns", "name": "photos", "uid": "u1"}}}`

const newClaim = `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "BucketClaim",
"metadata": {"namespace": "ns", "name": "photos", "uid": "u1"}, "spec": {"bucketClassName": "k"}}`

// TestClaimOf: a claim is found by its UID, and a bucket that COSI knows keeps its
// claim also when that is gone.
func TestClaimOf(t *testing.T) {
	const told = `"status": {"bucketID": "cloudscale/rma/photos/o"}, "metadata": {"name": "bucket-u1"`
	found := driver.Claim{Namespace: "ns", Name: "photos", UID: "u1"}
	made := driver.Claim{Namespace: "ns", Name: "photos", UID: "u1", BucketID: "cloudscale/rma/photos/o"}
	for name, c := range map[string]struct {
		old, with string // what differs in the Bucket and the claim
		without   string // which of the two is not there
		denied    string
		want      driver.Claim
		err       error
		says      string
	}{
		"a new claim":            {want: found},
		"of another case":        {old: `"cosi.zuber.dev"`, with: `"COSI.Zuber.dev"`, want: found},
		"its bucket is made":     {old: `"metadata": {"name": "bucket-u1"`, with: told, want: made},
		"made and without claim": {old: `"metadata": {"name": "bucket-u1"`, with: told, without: claimPath, want: made},
		"no Bucket":              {without: bucketPath, err: provider.ErrPrecondition, says: "the Bucket bucket-u1: precondition failed: there is none"},
		"no claim":               {without: claimPath, err: provider.ErrPrecondition, says: "the BucketClaim ns/photos of the Bucket bucket-u1: precondition failed: there is none"},
		"another claim's name": {old: `"name": "photos", "uid": "u1"}, "spec"`, with: `"name": "photos", "uid": "u9"}, "spec"`,
			err: provider.ErrPrecondition, says: "the one that is there is another"},
		"another driver's":     {old: `"cosi.zuber.dev"`, with: `"cosi.example.com"`, err: provider.ErrPrecondition, says: `of the driver "cosi.example.com"`},
		"no reference":         {old: `, "bucketClaim": {"namespace": "ns", "name": "photos", "uid": "u1"}`, err: provider.ErrPrecondition, says: "names no BucketClaim"},
		"no UID":               {old: `"name": "photos", "uid": "u1"}}`, with: `"name": "photos"}}`, err: provider.ErrPrecondition, says: "names no BucketClaim"},
		"Buckets not readable": {denied: "/buckets/bucket-u1", err: provider.ErrPermissionDenied, says: "apply config/companion"},
		"claims not readable":  {denied: "/bucketclaims/photos", err: provider.ErrPermissionDenied, says: "apply config/companion"},
	} {
		t.Run(name, func(t *testing.T) {
			server, config := newAPIServer(t)
			server.denied = c.denied
			companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
			if err != nil {
				t.Fatal(err)
			}
			for path, object := range map[string]string{bucketPath: newBucket, claimPath: newClaim} {
				if path != c.without {
					server.put(t, path, strings.Replace(object, c.old, c.with, 1))
				}
			}
			got, err := companion.ClaimOf(t.Context(), "bucket-u1")
			if got != c.want || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestBucketObjects lists those of the driver, whoever wrote their IDs.
func TestBucketObjects(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	server.put(t, bucketPath, newBucket)
	server.put(t, cosiPath+"/buckets/b2", deletedBucket)
	server.put(t, cosiPath+"/buckets/b3", strings.Replace(newBucket, "cosi.zuber.dev", "cosi.example.com", 1))
	server.put(t, cosiPath+"/buckets/b4", `{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket", "metadata": {"name": "static"},
"spec": {"driverName": "cosi.zuber.dev", "existingBucketID": "rma/photos"}}`)
	got, err := companion.BucketObjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claim := driver.Claim{Namespace: "ns", Name: "photos", UID: "u1"}
	gone := claim
	gone.BucketID = "cloudscale/rma/photos/owner"
	want := map[driver.BucketObject]bool{
		{Name: "bucket-u1", Claim: claim}:                                                     true,
		{Name: "bucket-u1", BucketID: gone.BucketID, Claim: gone, Deleting: true}:             true,
		{Name: "static", BucketID: "rma/photos", Claim: driver.Claim{BucketID: "rma/photos"}}: true,
	}
	for _, b := range got {
		if !want[b] {
			t.Errorf("unexpected %+v", b)
		}
		delete(want, b)
	}
	if len(want) > 0 {
		t.Errorf("missing %+v", want)
	}
}

func TestNamespaceLabels(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	server.put(t, "/api/v1/namespaces/ns", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": "x"}}}`)
	if got, err := companion.NamespaceLabels(t.Context(), "ns"); err != nil || got["team"] != "x" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := companion.NamespaceLabels(t.Context(), "other"); !errors.Is(err, provider.ErrPrecondition) {
		t.Errorf("no namespace: %v", err)
	}
}

// TestLookupWithoutAnswer: an API server that does not answer is an outage.
func TestLookupWithoutAnswer(t *testing.T) {
	_, config := newAPIServer(t)
	config.Host = "http://127.0.0.1:1"
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := companion.ClaimOf(t.Context(), "bucket-u1"); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("ClaimOf: %v", err)
	}
	if _, err := companion.BucketObjects(t.Context()); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("BucketObjects: %v", err)
	}
	if _, err := companion.NamespaceLabels(t.Context(), "ns"); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("NamespaceLabels: %v", err)
	}
}
