package policy

import (
	"slices"
	"strings"
)

// rgwActions lists every action RGW 18.2.7 knows, and 20.2.4 as far as it was
// asked. Anything else, names of AWS included, is "not a valid action".
var rgwActions = [...]string{
	"s3:AbortMultipartUpload",
	"s3:BypassGovernanceRetention",
	"s3:CreateBucket",
	"s3:DeleteBucket",
	"s3:DeleteBucketPolicy",
	"s3:DeleteBucketPublicAccessBlock",
	"s3:DeleteBucketWebsite",
	"s3:DeleteObject",
	"s3:DeleteObjectTagging",
	"s3:DeleteObjectVersion",
	"s3:DeleteObjectVersionTagging",
	"s3:DeletePublicAccessBlock",
	"s3:DeleteReplicationConfiguration",
	"s3:GetAccelerateConfiguration",
	"s3:GetBucketAcl",
	"s3:GetBucketCORS",
	"s3:GetBucketEncryption",
	"s3:GetBucketLocation",
	"s3:GetBucketLogging",
	"s3:GetBucketNotification",
	"s3:GetBucketObjectLockConfiguration",
	"s3:GetBucketPolicy",
	"s3:GetBucketPolicyStatus",
	"s3:GetBucketPublicAccessBlock",
	"s3:GetBucketRequestPayment",
	"s3:GetBucketTagging",
	"s3:GetBucketVersioning",
	"s3:GetBucketWebsite",
	"s3:GetLifecycleConfiguration",
	"s3:GetObject",
	"s3:GetObjectAcl",
	"s3:GetObjectLegalHold",
	"s3:GetObjectRetention",
	"s3:GetObjectTagging",
	"s3:GetObjectTorrent",
	"s3:GetObjectVersion",
	"s3:GetObjectVersionAcl",
	"s3:GetObjectVersionTagging",
	"s3:GetObjectVersionTorrent",
	"s3:GetPublicAccessBlock",
	"s3:GetReplicationConfiguration",
	"s3:ListAllMyBuckets",
	"s3:ListBucket",
	"s3:ListBucketMultipartUploads",
	"s3:ListBucketVersions",
	"s3:ListMultipartUploadParts",
	"s3:PutAccelerateConfiguration",
	"s3:PutBucketAcl",
	"s3:PutBucketCORS",
	"s3:PutBucketEncryption",
	"s3:PutBucketLogging",
	"s3:PutBucketNotification",
	"s3:PutBucketObjectLockConfiguration",
	"s3:PutBucketPolicy",
	"s3:PutBucketPublicAccessBlock",
	"s3:PutBucketRequestPayment",
	"s3:PutBucketTagging",
	"s3:PutBucketVersioning",
	"s3:PutBucketWebsite",
	"s3:PutLifecycleConfiguration",
	"s3:PutObject",
	"s3:PutObjectAcl",
	"s3:PutObjectLegalHold",
	"s3:PutObjectRetention",
	"s3:PutObjectTagging",
	"s3:PutObjectVersionAcl",
	"s3:PutObjectVersionTagging",
	"s3:PutPublicAccessBlock",
	"s3:PutReplicationConfiguration",
	"s3:RestoreObject",
	"iam:CreateOIDCProvider",
	"iam:CreateRole",
	"iam:DeleteOIDCProvider",
	"iam:DeleteRole",
	"iam:DeleteRolePolicy",
	"iam:DeleteUserPolicy",
	"iam:GetOIDCProvider",
	"iam:GetRole",
	"iam:GetRolePolicy",
	"iam:GetUserPolicy",
	"iam:ListOIDCProviders",
	"iam:ListRolePolicies",
	"iam:ListRoleTags",
	"iam:ListRoles",
	"iam:ListUserPolicies",
	"iam:ModifyRoleTrustPolicy",
	"iam:PutRolePolicy",
	"iam:PutUserPolicy",
	"iam:TagRole",
	"iam:UntagRole",
	"iam:UpdateRole",
	"sts:AssumeRole",
	"sts:AssumeRoleWithWebIdentity",
	"sts:GetSessionToken",
	"sts:TagSession",
}

// knowsAction reports whether the gateway has that very action.
func (r rgwRelease) knowsAction(name string) bool {
	return slices.Contains(rgwActions[:], name) || slices.Contains(r.actions, name)
}

// validAction reports whether the pattern of a policy covers an action. One
// that begins with a star covers all.
func (r rgwRelease) validAction(pattern string) bool {
	covered := func(name string) bool { return matchWords(pattern, name) }
	return strings.HasPrefix(pattern, "*") || slices.ContainsFunc(rgwActions[:], covered) || slices.ContainsFunc(r.actions, covered)
}

func rgwMatchesAction(patterns []string, action string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return strings.HasPrefix(p, "*") || matchWords(p, action)
	})
}
