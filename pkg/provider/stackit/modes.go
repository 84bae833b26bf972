package stackit

import "github.com/zuber-storage/zuber/pkg/provider"

// modeActions is the one table of what an access may do. The policy denies each
// access everything that is not in its row, so an action the table does not know
// is denied. Left out for every mode, and why:
//
//   - policy reads and writes: whoever writes the policy is the bucket's master;
//   - PutBucketTagging: the tags are the driver's mark and ledger;
//   - DeleteBucket, versioning, lifecycle, CORS, encryption, replication,
//     notification: the bucket's shape is its class's business, and several of
//     these send data elsewhere or remove it;
//   - DeleteObjectVersion: old versions are the safety net under a leaked key;
//     the driver's purge alone removes them;
//   - retention, legal holds, BypassGovernanceRetention: they outlive the access;
//   - CreateBucket, ListAllMyBuckets: no bucket policy governs them.
var modeActions = []struct {
	action     string
	rw, ro, wo bool
}{
	// GET and HEAD of objects. Write-only must not read back.
	{"s3:GetObject", true, true, false},
	// Reads by version, for clients that pin what they read.
	{"s3:GetObjectVersion", true, true, false},
	// Tag reads: copy tools carry tags along.
	{"s3:GetObjectTagging", true, true, false},
	{"s3:GetObjectVersionTagging", true, true, false},
	// Put, copy target, and every step of a multipart upload but its abort.
	{"s3:PutObject", true, false, true},
	// StorageGRID's own gate on overwriting. Backup tools rewrite their index
	// files, and a Deny that does not know it forbids that.
	{"s3:PutOverwriteObject", true, false, true},
	{"s3:DeleteObject", true, false, false},
	// Listing and HEAD of the bucket. It shows key names, so write-only has
	// neither; its clients must not probe the bucket.
	{"s3:ListBucket", true, true, false},
	{"s3:ListBucketVersions", true, true, false},
	// Signature region discovery, the first call of many clients. It is also
	// how the driver sees that a new key works.
	{"s3:GetBucketLocation", true, true, true},
	// Registries list the uploads of each blob. For readers it would show what
	// the writers are about to do.
	{"s3:ListBucketMultipartUploads", true, false, false},
	// Resuming and cleaning up a multipart upload.
	{"s3:ListMultipartUploadParts", true, false, true},
	{"s3:AbortMultipartUpload", true, false, true},
	// Uploads that set tags in a second call.
	{"s3:PutObjectTagging", true, false, true},
	{"s3:DeleteObjectTagging", true, false, false},
	// Probes of the SDKs before they upload or delete.
	{"s3:GetBucketVersioning", true, true, true},
	{"s3:GetBucketObjectLockConfiguration", true, true, true},
}

// actionsOf returns the actions of a mode in the order of the table.
func actionsOf(mode provider.Mode) []string {
	var actions []string
	for _, a := range modeActions {
		if mode == provider.ReadWrite && a.rw || mode == provider.ReadOnly && a.ro || mode == provider.WriteOnly && a.wo {
			actions = append(actions, a.action)
		}
	}
	return actions
}

// modes lists the modes in the order of the policy's statements.
func modes() []provider.Mode {
	return []provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly}
}
