package objectstore

import (
	"net/http"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// The order everywhere is the gateway's: a Deny of the bucket policy ends it, an Allow grants, and only
// what the policy is silent about goes to the ACL. Nobody is exempt, the bucket's owner included, but for
// what its release leaves to the owner. Where accounts own the buckets, allowAccount decides in place of
// all that.

// evaluate asks the policy of b about an action of the caller.
func (q *request) evaluate(b *bucket, action, resource string) policy.Decision {
	p := b.enforced(q.now)
	if p == nil {
		return policy.NoMatch
	}
	r := policy.Request{Principal: q.caller.UID, Action: action, Resource: resource, Context: q.context}
	if q.caller.Group != "" {
		r.Groups = []string{q.caller.Group}
	}
	return p.document.Evaluate(r)
}

// allow authorises an action on a resource of b; acl answers for the ACL that the action falls back to.
func (q *request) allow(b *bucket, action, resource string, acl func() bool) *apiError {
	if q.store.traits.grid {
		return q.allowAccount(b, action, resource)
	}
	if q.store.traits.ownerKeepsPolicy && strings.HasSuffix(action, "BucketPolicy") && q.owns(b) {
		return nil
	}
	switch decision := q.evaluate(b, action, resource); {
	case decision == policy.Allow, decision == policy.NoMatch && acl():
		return nil
	}
	return errAccessDenied()
}

// owns tells whether the caller is the user who owns b.
func (q *request) owns(b *bucket) bool {
	return !q.caller.anonymous && q.caller.UID == b.owner.UID
}

func (b *bucket) ignorePublicACLs() bool {
	return b.pab != nil && b.pab.IgnorePublicAcls
}

// bucketACLAllows tells whether the bucket's ACL gives the caller perm.
func (q *request) bucketACLAllows(perm permission) bool {
	return q.bucket.acl.allows(q.bucket.owner, q.caller, perm, q.bucket.ignorePublicACLs())
}

// allowBucket authorises an action on the bucket itself.
func (q *request) allowBucket(action string) *apiError {
	return q.allowBucketResource(action, q.bucket.arn(""))
}

// allowBucketResource authorises an action that falls back to the bucket's ACL, on the bucket or a key of it.
func (q *request) allowBucketResource(action, resource string) *apiError {
	return q.allow(q.bucket, action, resource, func() bool { return q.bucketACLAllows(permissionFor(action)) })
}

// allowKey authorises an action on the request's key that falls back to the bucket's ACL: everything
// that writes, because the object may not exist yet or belong to somebody else.
func (q *request) allowKey(action string) *apiError {
	return q.allowBucketResource(action, q.bucket.arn(q.target.key))
}

// allowObject authorises an action on the request's key that falls back to the object's own ACL. The
// writer owns the object, so the bucket's owner does not pass here by itself.
func (q *request) allowObject(action string, owner Identity, list acl) *apiError {
	return q.allow(q.bucket, action, q.bucket.arn(q.target.key), func() bool {
		return list.allows(owner, q.caller, permissionFor(action), q.bucket.ignorePublicACLs())
	})
}

// object finds the version that the request is about, and authorises the action on it.
func (q *request) object(action string) (*version, *apiError) {
	v, err := q.find(q.bucket, q.target.key, q.query.Get("versionId"), action)
	if err != nil {
		return nil, err
	}
	q.addTagContext(v)
	return v, q.allowObject(action, v.owner, v.acl)
}

// find returns a version of b. An absent one is told as such only to those who may list the bucket. The
// gateway decides that before any permission on the object, a grid after it.
func (q *request) find(b *bucket, key, id, action string) (*version, *apiError) {
	if v := b.find(key, id); v != nil {
		return v, nil
	}
	if !q.store.traits.grid {
		return nil, q.absent(b)
	}
	if err := q.allowAccount(b, action, b.arn(key)); err != nil {
		return nil, err
	}
	err := q.absent(b)
	if latest := b.latest(key); id == "" && latest != nil && err.code == "NoSuchKey" {
		if strings.HasSuffix(action, "Tagging") {
			err = errMethodNotAllowed()
		}
		err.header = http.Header{"X-Amz-Delete-Marker": {"true"}}
	}
	return nil, err
}

// absent is the answer to reading a key that b does not hold.
func (q *request) absent(b *bucket) *apiError {
	if q.owns(b) {
		return errNoSuchKey()
	}
	mayList := func() bool { return b.acl.allows(b.owner, q.caller, permRead, b.ignorePublicACLs()) }
	if err := q.allow(b, "s3:ListBucket", b.arn(""), mayList); err != nil {
		return err
	}
	return errNoSuchKey()
}

// owner is who owns what the request makes: the caller, or the account of the bucket that is made or
// written to.
func (q *request) owner() Identity {
	switch {
	case !q.store.traits.grid:
		return q.caller.Identity
	case q.bucket != nil:
		return q.bucket.owner
	}
	return Identity{UID: q.caller.Account.ID, DisplayName: q.caller.Account.Name}
}

// versioned chooses between the action on an object and the one on a version of it.
func (q *request) versioned(plain, version string) string {
	if q.query.Get("versionId") != "" {
		return version
	}
	return plain
}

// permissionFor is the ACL permission that stands in for a policy action.
func permissionFor(action string) permission {
	switch action {
	case "s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:GetObjectVersionTagging",
		"s3:GetObjectRetention", "s3:GetObjectLegalHold", "s3:ListBucket", "s3:ListBucketVersions",
		"s3:ListBucketMultipartUploads", "s3:ListMultipartUploadParts":
		return permRead
	case "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload", "s3:DeleteBucket",
		"s3:PutObjectTagging", "s3:PutObjectVersionTagging", "s3:DeleteObjectTagging",
		"s3:DeleteObjectVersionTagging", "s3:PutObjectRetention", "s3:PutObjectLegalHold":
		return permWrite
	case "s3:GetBucketAcl", "s3:GetBucketCORS", "s3:GetEncryptionConfiguration", "s3:GetBucketLocation",
		"s3:GetBucketLogging", "s3:GetBucketNotification", "s3:GetBucketPolicy", "s3:GetBucketPolicyStatus",
		"s3:GetBucketRequestPayment", "s3:GetBucketTagging", "s3:GetBucketVersioning", "s3:GetLifecycleConfiguration",
		"s3:GetObjectAcl", "s3:GetObjectVersionAcl", "s3:GetReplicationConfiguration",
		"s3:GetBucketObjectLockConfiguration", "s3:GetBucketPublicAccessBlock", "s3:GetBucketEncryption",
		"s3:GetBucketOwnershipControls", "s3:GetAccelerateConfiguration":
		return permReadACP
	}
	return permWriteACP
}

// addACLContext adds the condition keys of the ACL that a request asks for. Only PutObject, PutObjectAcl
// and PutBucketAcl have them; a multipart upload escapes such conditions.
func (q *request) addACLContext() {
	q.context["s3:x-amz-acl"] = []string{q.http.Header.Get("X-Amz-Acl")}
	for header, key := range map[string]string{
		"X-Amz-Grant-Read":         "s3:x-amz-grant-read",
		"X-Amz-Grant-Write":        "s3:x-amz-grant-write",
		"X-Amz-Grant-Read-Acp":     "s3:x-amz-grant-read-acp",
		"X-Amz-Grant-Write-Acp":    "s3:x-amz-grant-write-acp",
		"X-Amz-Grant-Full-Control": "s3:x-amz-grant-full-control",
	} {
		if value := q.http.Header.Get(header); value != "" {
			q.context[key] = []string{value}
		}
	}
}

// addTagContext adds the condition keys for the tags that an object has.
func (q *request) addTagContext(v *version) {
	for _, t := range v.tags {
		q.context["s3:ExistingObjectTag/"+t.Key] = []string{t.Value}
	}
}
