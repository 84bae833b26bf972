package objectstore

import (
	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// The order everywhere is the gateway's: a Deny of the bucket policy ends it, an Allow grants, and only
// what the policy is silent about goes to the ACL. Nobody is exempt, the bucket's owner included.

// evaluate asks the policy of b about an action of the caller.
func (q *request) evaluate(b *bucket, action, resource string) policy.Decision {
	if b.policy == nil {
		return policy.NoMatch
	}
	return b.policy.document.Evaluate(policy.Request{
		Principal: q.caller.UID, Action: action, Resource: resource, Context: q.context,
	})
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
	switch q.evaluate(q.bucket, action, resource) {
	case policy.Allow:
		return nil
	case policy.Deny:
		return errAccessDenied()
	}
	if q.bucketACLAllows(permissionFor(action)) {
		return nil
	}
	return errAccessDenied()
}

// allowKey authorises an action on the request's key that falls back to the bucket's ACL: everything
// that writes, because the object may not exist yet or belong to somebody else.
func (q *request) allowKey(action string) *apiError {
	return q.allowBucketResource(action, q.bucket.arn(q.target.key))
}

// allowObject authorises an action on the request's key that falls back to the object's own ACL. The
// writer owns the object, so the bucket's owner does not pass here by itself.
func (q *request) allowObject(action string, owner Identity, list acl) *apiError {
	switch q.evaluate(q.bucket, action, q.bucket.arn(q.target.key)) {
	case policy.Allow:
		return nil
	case policy.Deny:
		return errAccessDenied()
	}
	if list.allows(owner, q.caller, permissionFor(action), q.bucket.ignorePublicACLs()) {
		return nil
	}
	return errAccessDenied()
}

// object finds the version that the request reads. An absent one is told as such only to those who may
// list the bucket, and that is decided before any permission on the object.
func (q *request) object() (*version, *apiError) {
	v := q.bucket.find(q.target.key, q.query.Get("versionId"))
	if v == nil {
		return nil, q.absent(q.bucket)
	}
	q.addTagContext(v)
	return v, nil
}

// absent is the answer to reading a key that b does not hold.
func (q *request) absent(b *bucket) *apiError {
	if !q.caller.anonymous && q.caller.UID == b.owner.UID {
		return errNoSuchKey()
	}
	switch q.evaluate(b, "s3:ListBucket", b.arn("")) {
	case policy.Allow:
		return errNoSuchKey()
	case policy.Deny:
		return errAccessDenied()
	}
	if b.acl.allows(b.owner, q.caller, permRead, b.ignorePublicACLs()) {
		return errNoSuchKey()
	}
	return errAccessDenied()
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
