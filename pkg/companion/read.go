package companion

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// What a field is called depends on the version; where they differ, both are
// read, as an object has one of them.

func readMeta(u *unstructured.Unstructured) meta {
	m := meta{
		kind:        u.GetKind(),
		version:     u.GroupVersionKind().Version,
		namespace:   u.GetNamespace(),
		name:        u.GetName(),
		uid:         string(u.GetUID()),
		annotations: u.GetAnnotations(),
		created:     u.GetCreationTimestamp().Time,
	}
	if at := u.GetDeletionTimestamp(); at != nil {
		m.deleting, m.deletingSince = true, at.Time
	}
	return m
}

func readClaim(u *unstructured.Unstructured) claim {
	return claim{
		meta:     readMeta(u),
		class:    text(u, "spec", "bucketClassName"),
		ready:    flag(u, "status", "bucketReady") || flag(u, "status", "readyToUse"),
		bucket:   first(text(u, "status", "bucketName"), text(u, "status", "boundBucketName")),
		existing: text(u, "spec", "existingBucketName"),
	}
}

func readBucket(u *unstructured.Unstructured) bucket {
	ref := "bucketClaim"
	if u.GroupVersionKind().Version == v1alpha2 {
		ref = "bucketClaimRef"
	}
	id := first(text(u, "status", "bucketID"), text(u, "spec", "existingBucketID"))
	atCloud, _ := driver.BucketName(id) // another driver may call its buckets what it likes
	return bucket{
		meta:       readMeta(u),
		class:      text(u, "spec", "bucketClassName"),
		driver:     text(u, "spec", "driverName"),
		id:         id,
		atCloud:    atCloud,
		parameters: texts(u, "spec", "parameters"),
		claim:      claimRef{text(u, "spec", ref, "namespace"), text(u, "spec", ref, "name"), text(u, "spec", ref, "uid")},
		policy:     text(u, "spec", "deletionPolicy"),
		ready:      flag(u, "status", "bucketReady") || flag(u, "status", "readyToUse"),
		failure:    text(u, "status", "error", "message"),
	}
}

func readAccess(u *unstructured.Unstructured) access {
	a := access{
		meta:       readMeta(u),
		class:      text(u, "spec", "bucketAccessClassName"),
		account:    text(u, "status", "accountID"),
		granted:    text(u, "status", "accountID") != "" && (flag(u, "status", "accessGranted") || flag(u, "status", "readyToUse")),
		failure:    text(u, "status", "error", "message"),
		driver:     text(u, "status", "driverName"),
		parameters: texts(u, "status", "parameters"),
	}
	if a.version == v1alpha1 {
		a.targets = []target{{claim: text(u, "spec", "bucketClaimName"), secret: text(u, "spec", "credentialsSecretName")}}
		return a
	}
	claims, _, _ := unstructured.NestedSlice(u.Object, "spec", "bucketClaims")
	for _, c := range claims {
		m, _ := c.(map[string]any)
		one := &unstructured.Unstructured{Object: m}
		a.targets = append(a.targets, target{claim: text(one, "bucketClaimName"), secret: text(one, "accessSecretName"), mode: text(one, "accessMode")})
	}
	return a
}

func readAccessClass(u *unstructured.Unstructured) accessClass {
	return accessClass{
		driver:     first(text(u, "driverName"), text(u, "spec", "driverName")),
		parameters: texts(u, "parameters"),
	}
}

// A field of another type than COSI's counts as absent: the API server has
// checked it against the definition.

func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

func texts(u *unstructured.Unstructured, path ...string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(u.Object, path...)
	return m
}

func flag(u *unstructured.Unstructured, path ...string) bool {
	b, _, _ := unstructured.NestedBool(u.Object, path...)
	return b
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
