package main

import (
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestSamplesOfV1alpha2 runs the sample classes through the driver, and holds the
// objects to the fields of that version.
func TestSamplesOfV1alpha2(t *testing.T) {
	cloud, specs, err := startEmulator(backendSettings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cloud.Close() }()
	backends, err := openAll(specs, wiring{DriverName: defaultDriverName})
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.New(driver.Config{Name: defaultDriverName, Backends: backends})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cosi.NewClient(cosi.Options{Driver: d})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	client := c.Speaking(cosi.V1alpha2)

	for _, kind := range []string{providerCloudscale, providerStackit} {
		byKind := map[string][]object{}
		for _, o := range manifests(t)["samples/"+kind+"/v1alpha2/samples.yaml"] {
			if o.at("apiVersion") != "objectstorage.k8s.io/v1alpha2" {
				t.Errorf("%s: %s is of %v", kind, o.kind(), o.at("apiVersion"))
			}
			byKind[o.kind()] = append(byKind[o.kind()], o)
		}
		class, accessClass, bucket, access := byKind["BucketClass"][0], byKind["BucketAccessClass"][0], byKind["Bucket"][0], byKind["BucketAccess"][0]
		for _, o := range []object{class, accessClass, bucket} {
			if o.at("spec", "driverName") != defaultDriverName {
				t.Errorf("%s: %s names the driver %v", kind, o.kind(), o.at("spec", "driverName"))
			}
		}
		if accessClass.at("spec", "authenticationType") != "Key" || accessClass.at("spec", "multiBucketAccess") != "MultipleBuckets" {
			t.Errorf("%s: %v", kind, accessClass)
		}
		claims := byKind["BucketClaim"]
		for what, pair := range map[string][2]any{
			"class of the claim":   {claims[0].at("spec", "bucketClassName"), class.at("metadata", "name")},
			"bucket of the claim":  {claims[1].at("spec", "existingBucketName"), bucket.at("metadata", "name")},
			"claim of the bucket":  {bucket.at("spec", "bucketClaimRef", "name"), claims[1].at("metadata", "name")},
			"class of the access":  {access.at("spec", "bucketAccessClassName"), accessClass.at("metadata", "name")},
			"claims of the access": {access.at("spec", "bucketClaims", 0, "bucketClaimName"), claims[0].at("metadata", "name")},
			"and the second":       {access.at("spec", "bucketClaims", 1, "bucketClaimName"), claims[1].at("metadata", "name")},
		} {
			if pair[0] != pair[1] || pair[0] == nil {
				t.Errorf("%s: %s: %v and %v", kind, what, pair[0], pair[1])
			}
		}
		if access.at("spec", "bucketClaims", 0, "accessSecretName") == access.at("spec", "bucketClaims", 1, "accessSecretName") {
			t.Errorf("%s: one Secret for two buckets", kind)
		}
		id, err := client.CreateBucket(t.Context(), "bucket-sample", parametersOf(class.at("spec").(map[string]any)))
		if err != nil {
			t.Fatal(err)
		}
		mode := provider.Mode(access.at("spec", "bucketClaims", 0, "accessMode").(string))
		if _, err := client.GrantBuckets(t.Context(), "ba-sample", []driver.GrantBucket{{ID: id, Mode: mode}}, parametersOf(accessClass.at("spec").(map[string]any))); err != nil {
			t.Error(err)
		}
		// The bucket of the example is not there, which is all that is wrong with it.
		existing := bucket.at("spec", "existingBucketID").(string)
		_, err = client.ExistingBucket(t.Context(), existing, parametersOf(bucket.at("spec").(map[string]any)))
		if err == nil || !strings.Contains(err.Error(), "NotFound") {
			t.Errorf("%s: %s: %v", kind, existing, err)
		}
	}
}
