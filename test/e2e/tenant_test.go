package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// ownersOf returns the objects users of a tenant.
func (s *story) ownersOf(tenant string) []emulator.User {
	return slices.DeleteFunc(s.Emulator.Cloudscale().Users(), func(u emulator.User) bool { return u.Tags["zuber_tenant"] != tenant })
}

// wantOwner fails the test unless one objects user owns exactly these buckets as the
// tenant's.
func (s *story) wantOwner(tenant string, buckets ...string) {
	s.Helper()
	owners := s.ownersOf(tenant)
	if len(owners) != 1 {
		s.Fatalf("tenant %s has %d objects users, want 1", tenant, len(owners))
	}
	var owned []string
	for _, b := range s.Emulator.Cloudscale().Buckets() {
		if b.OwnerUID == owners[0].ID {
			owned = append(owned, b.Name)
		}
	}
	slices.Sort(owned)
	slices.Sort(buckets)
	if !slices.Equal(owned, buckets) || owners[0].DisplayName != "zuber-tenant-"+tenant {
		s.Errorf("the objects user %s of tenant %s owns %q, want %q", owners[0].DisplayName, tenant, owned, buckets)
	}
}

// wantApart fails the test if one of two accesses opens the bucket of the other.
func (s *story) wantApart(one, two bucketClient) {
	s.Helper()
	s.wantUsable(one)
	s.wantUsable(two)
	for _, pair := range [][2]bucketClient{{one, two}, {two, one}} {
		stranger := pair[0]
		stranger.bucket = pair[1].bucket
		if err := stranger.put(s.Context(), "foreign", "x"); !refused(err) {
			s.Errorf("the access to %s may write to %s of the same tenant: %v", pair[0].bucket, pair[1].bucket, err)
		}
	}
}

// TestTenant: the buckets of a tenant have one objects user, whose buckets stay apart,
// and which goes with the last.
func TestTenant(t *testing.T) {
	s := together(t)
	tenant := s.className("fixed")
	class := s.class(cloudscale, "objectsUser", "tenant", "tenant", tenant)
	photos, films := s.claim("photos", class), s.claim("films", class)
	one := s.access("photos", "photos", s.accessClass())
	two := s.access("films", "films", s.accessClass())
	s.wantApart(s.bucketInfo(one).s3(), s.bucketInfo(two).s3())
	bucket := func(claim object) string { return s.bucket(claim).name() }
	s.wantOwner(tenant, bucket(photos), bucket(films))

	// The key of the tenant's user would open both.
	shared := s.access("shared", "photos", s.accessClass("credentials", "shared"))
	s.event(shared, "which the key would open, too")
	s.delete(shared)

	s.delete(one)
	s.delete(photos)
	s.wantOwner(tenant, bucket(films))
	s.wantUsable(s.bucketInfo(two).s3())
	s.delete(two)
	s.delete(films)
	if left := s.ownersOf(tenant); len(left) > 0 {
		t.Errorf("left of the tenant are %d objects users", len(left))
	}
}

// TestTenantOfANamespace: the label of the claim's namespace names the tenant when the
// bucket is made. A claim waits for it, and keeps its bucket whatever becomes of it.
func TestTenantOfANamespace(t *testing.T) {
	s := together(t)
	const key = "example.com/team"
	first, second := s.className("first"), s.className("second")
	label := func(value any) {
		t.Helper()
		s.patch(s.applied[0], map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	}
	class := s.class(cloudscale, "objectsUser", "tenant", "tenantFromNamespaceLabel", key)
	photos := s.claim("photos", class)
	s.event(s.bucketOf(photos), fmt.Sprintf("namespace %s has no value for the label %s", s.ns, key))
	label("No_Tenant")
	s.event(s.bucketOf(photos), `is "No_Tenant", which is no name of a tenant`)
	label(first)
	bucket := s.bucket(photos).name()
	s.wantOwner(first, bucket)

	label(second)
	films := s.claim("films", class)
	s.wantOwner(second, s.bucket(films).name())
	label(nil)
	s.wantUsable(s.bucketInfo(s.access("photos", "photos", s.accessClass())).s3())
	s.wantOwner(first, bucket)
}

// tenantsOfV1alpha2 is the same for a cluster with v1alpha2, whose sidecar makes
// every bucket over and over.
func (s *story) tenantsOfV1alpha2() {
	s.Helper()
	const key = "example.com/team"
	namespace := object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.ns}}
	label := func(value any) {
		s.Helper()
		s.patch(namespace, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	}
	class := func(name string, parameters ...string) string {
		return manifest2("BucketClass", name, map[string]any{"driverName": driverName, "deletionPolicy": "Delete",
			"parameters": pairs(append([]string{"backend", cloudscale, "region", "rma", "objectsUser", "tenant"}, parameters...))})
	}
	claim := func(name, class string) string {
		return manifest2("BucketClaim", name, map[string]any{"bucketClassName": class, "protocols": []string{"S3"}})
	}
	access := func(name string) string {
		return manifest2("BucketAccess", name, map[string]any{"bucketAccessClassName": "tenants", "protocol": "S3", "bucketClaims": []map[string]string{
			{"bucketClaimName": name, "accessMode": "ReadWrite", "accessSecretName": name + "-cosi"}}})
	}
	made := s.apply(class("by-name", "tenant", "second-team"), class("by-label", "tenantFromNamespaceLabel", key),
		manifest2("BucketAccessClass", "tenants", map[string]any{"driverName": driverName, "authenticationType": "Key"}), claim("labelled", "by-label"))
	bucketPath := "/apis/objectstorage.k8s.io/v1alpha2/buckets/bc-" + made[3].text("metadata", "uid")
	s.eventually(func() error {
		bucket, err := s.Get(s.Context(), bucketPath)
		if want := "no value for the label " + key; err == nil && !strings.Contains(object(bucket).text("status", "error", "message"), want) {
			err = fmt.Errorf("status %v", bucket["status"])
		}
		return err
	})
	label("first-team")
	accesses := s.apply(claim("named", "by-name"), claim("named-too", "by-name"), access("labelled"), access("named"), access("named-too"))
	for _, a := range accesses[2:] {
		s.settled(a)
	}
	labelled, named, too := s.cosiSecret("labelled-cosi"), s.cosiSecret("named-cosi"), s.cosiSecret("named-too-cosi")
	s.wantOwner("first-team", labelled.Spec.BucketName)
	s.wantOwner("second-team", named.Spec.BucketName, too.Spec.BucketName)
	s.wantApart(named.s3(), too.s3())

	// The bucket is made once more under another label, and without one.
	for _, value := range []any{"second-team", nil} {
		label(value)
		bucket, err := s.Get(s.Context(), bucketPath)
		if err != nil {
			s.Fatal(err)
		}
		s.change(bucket, map[string]any{"readyToUse": false})
		s.settled(bucket)
		s.wantOwner("first-team", labelled.Spec.BucketName)
	}
	s.wantUsable(labelled.s3())
	s.delete(accesses[2:]...)
	s.delete(made[3], accesses[0], accesses[1])
	for _, tenant := range []string{"first-team", "second-team"} {
		if left := s.ownersOf(tenant); len(left) > 0 {
			s.Errorf("left of tenant %s are %d objects users", tenant, len(left))
		}
	}
	s.delete(made[:3]...)
}
