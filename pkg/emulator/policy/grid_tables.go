package policy

import (
	"slices"
	"strings"
)

// gridActions lists the actions a bucket policy of StorageGRID 11.9 may name.
var gridActions = [...]string{
	// of buckets
	"s3:DeleteBucket",
	"s3:DeleteBucketMetadataNotification",
	"s3:DeleteBucketPolicy",
	"s3:DeleteReplicationConfiguration",
	"s3:GetBucketAcl",
	"s3:GetBucketCORS",
	"s3:GetBucketCompliance",
	"s3:GetBucketConsistency",
	"s3:GetBucketLastAccessTime",
	"s3:GetBucketLocation",
	"s3:GetBucketMetadataNotification",
	"s3:GetBucketNotification",
	"s3:GetBucketObjectLockConfiguration",
	"s3:GetBucketPolicy",
	"s3:GetBucketTagging",
	"s3:GetBucketVersioning",
	"s3:GetEncryptionConfiguration",
	"s3:GetLifecycleConfiguration",
	"s3:GetReplicationConfiguration",
	"s3:ListBucket",
	"s3:ListBucketMultipartUploads",
	"s3:ListBucketVersions",
	"s3:PutBucketCORS",
	"s3:PutBucketCompliance",
	"s3:PutBucketConsistency",
	"s3:PutBucketLastAccessTime",
	"s3:PutBucketMetadataNotification",
	"s3:PutBucketNotification",
	"s3:PutBucketObjectLockConfiguration",
	"s3:PutBucketPolicy",
	"s3:PutBucketTagging",
	"s3:PutBucketVersioning",
	"s3:PutEncryptionConfiguration",
	"s3:PutLifecycleConfiguration",
	"s3:PutReplicationConfiguration",
	// of objects
	"s3:AbortMultipartUpload",
	"s3:BypassGovernanceRetention",
	"s3:DeleteObject",
	"s3:DeleteObjectTagging",
	"s3:DeleteObjectVersion",
	"s3:DeleteObjectVersionTagging",
	"s3:GetObject",
	"s3:GetObjectAcl",
	"s3:GetObjectLegalHold",
	"s3:GetObjectRetention",
	"s3:GetObjectTagging",
	"s3:GetObjectVersion",
	"s3:GetObjectVersionTagging",
	"s3:ListMultipartUploadParts",
	"s3:PutObject",
	"s3:PutObjectLegalHold",
	"s3:PutObjectRetention",
	"s3:PutObjectTagging",
	"s3:PutObjectVersionTagging",
	"s3:PutOverwriteObject",
	"s3:RestoreObject",
}

// gridOperators are the condition operators of StorageGRID 11.9. It has no
// IfExists forms.
var gridOperators = [...]string{
	"StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase",
	"StringLike", "StringNotLike",
	"NumericEquals", "NumericNotEquals", "NumericGreaterThan", "NumericGreaterThanEquals",
	"NumericLessThan", "NumericLessThanEquals",
	"Bool", "IpAddress", "NotIpAddress", "Null",
}

// gridKeys are its condition keys; those that end in a slash take a tag's key.
var gridKeys = [...]string{
	"aws:SourceIp", "aws:username",
	"s3:delimiter", "s3:prefix", "s3:max-keys",
	"s3:object-lock-remaining-retention-days",
	"s3:ExistingObjectTag/", "s3:RequestObjectTag/",
}

// gridVariables may stand as ${name} in resources and condition values.
var gridVariables = [...]string{"aws:username", "aws:SourceIp", "s3:prefix", "s3:max-keys"}

// gridValidAction reports whether the name, in which a star is a wildcard,
// covers an action. The exact names that only group policies take, such as
// s3:ListAllMyBuckets, do not.
func gridValidAction(pattern string) bool {
	return slices.ContainsFunc(gridActions[:], func(name string) bool {
		return gridMatchesAction([]string{pattern}, name)
	})
}

func gridMatchesAction(patterns []string, action string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return !strings.Contains(p, "?") && compileGlob(p).match(action)
	})
}

func gridKnowsKey(key string) bool {
	return slices.ContainsFunc(gridKeys[:], func(k string) bool {
		if strings.HasSuffix(k, "/") {
			return strings.HasPrefix(key, k) && len(key) > len(k)
		}
		return key == k
	})
}
