package objectstore

import (
	"net/http"
	"strings"
	"testing"
)

// gridActionCalls maps each action of a bucket policy to the calls that need it, and need no other;
// {upload} stands for an upload under way. CreateBucket with object lock and the actions that belong to
// the grid's own calls are left out.
func gridActionCalls() map[string][]string {
	return map[string][]string{
		"s3:DeleteBucket":                     {"DELETE /a-bkt"},
		"s3:DeleteBucketPolicy":               {"DELETE /a-bkt?policy"},
		"s3:DeleteReplicationConfiguration":   {"DELETE /a-bkt?replication"},
		"s3:GetBucketAcl":                     {"GET /a-bkt?acl"},
		"s3:GetBucketCORS":                    {"GET /a-bkt?cors"},
		"s3:GetEncryptionConfiguration":       {"GET /a-bkt?encryption"},
		"s3:GetBucketLocation":                {"GET /a-bkt?location"},
		"s3:GetBucketNotification":            {"GET /a-bkt?notification"},
		"s3:GetBucketObjectLockConfiguration": {"GET /a-bkt?object-lock"},
		"s3:GetBucketPolicy":                  {"GET /a-bkt?policy"},
		"s3:GetBucketTagging":                 {"GET /a-bkt?tagging"},
		"s3:GetBucketVersioning":              {"GET /a-bkt?versioning"},
		"s3:GetLifecycleConfiguration":        {"GET /a-bkt?lifecycle"},
		"s3:GetReplicationConfiguration":      {"GET /a-bkt?replication"},
		"s3:ListBucket":                       {"GET /a-bkt", "GET /a-bkt?list-type=2", "HEAD /a-bkt"},
		"s3:ListBucketMultipartUploads":       {"GET /a-bkt?uploads"},
		"s3:ListBucketVersions":               {"GET /a-bkt?versions"},
		"s3:PutBucketCORS":                    {"PUT /a-bkt?cors", "DELETE /a-bkt?cors"},
		"s3:PutEncryptionConfiguration":       {"PUT /a-bkt?encryption", "DELETE /a-bkt?encryption"},
		"s3:PutBucketNotification":            {"PUT /a-bkt?notification"},
		"s3:PutBucketObjectLockConfiguration": {"PUT /a-bkt?object-lock"},
		"s3:PutBucketPolicy":                  {"PUT /a-bkt?policy"},
		"s3:PutBucketTagging":                 {"PUT /a-bkt?tagging", "DELETE /a-bkt?tagging"},
		"s3:PutBucketVersioning":              {"PUT /a-bkt?versioning"},
		"s3:PutLifecycleConfiguration":        {"PUT /a-bkt?lifecycle", "DELETE /a-bkt?lifecycle"},
		"s3:PutReplicationConfiguration":      {"PUT /a-bkt?replication"},
		"s3:AbortMultipartUpload":             {"DELETE /a-bkt/up?uploadId={upload}"},
		"s3:DeleteObject":                     {"DELETE /a-bkt/key"},
		"s3:DeleteObjectVersion":              {"DELETE /a-bkt/key?versionId=null"},
		"s3:DeleteObjectTagging":              {"DELETE /a-bkt/key?tagging"},
		"s3:DeleteObjectVersionTagging":       {"DELETE /a-bkt/key?tagging&versionId=null"},
		"s3:GetObject":                        {"GET /a-bkt/key", "HEAD /a-bkt/key"},
		"s3:GetObjectVersion":                 {"GET /a-bkt/key?versionId=null", "HEAD /a-bkt/key?versionId=null"},
		"s3:GetObjectAcl":                     {"GET /a-bkt/key?acl"},
		"s3:GetObjectLegalHold":               {"GET /a-bkt/key?legal-hold"},
		"s3:GetObjectRetention":               {"GET /a-bkt/key?retention"},
		"s3:GetObjectTagging":                 {"GET /a-bkt/key?tagging"},
		"s3:GetObjectVersionTagging":          {"GET /a-bkt/key?tagging&versionId=null"},
		"s3:ListMultipartUploadParts":         {"GET /a-bkt/up?uploadId={upload}"},
		"s3:PutObject": {"PUT /a-bkt/key", "PUT /a-bkt/new", "POST /a-bkt/new?uploads", "PUT /a-bkt/up?partNumber=1&uploadId={upload}",
			"POST /a-bkt/up?uploadId={upload}"},
		"s3:PutObjectLegalHold":      {"PUT /a-bkt/key?legal-hold"},
		"s3:PutObjectRetention":      {"PUT /a-bkt/key?retention"},
		"s3:PutObjectTagging":        {"PUT /a-bkt/key?tagging"},
		"s3:PutObjectVersionTagging": {"PUT /a-bkt/key?tagging&versionId=null"},
	}
}

// Every call is refused where its action is denied, and let in where everything else is.
func TestGridActions(t *testing.T) {
	g := newGrid(t)
	admin, rw := g.as("admin"), g.as("rw")
	under := func(s gridStatement, call string) answer {
		t.Helper()
		g.forget("a-bkt")
		admin.must(t, "PUT", "/a-bkt", "")
		admin.must(t, "PUT", "/a-bkt/key", "text")
		id := parse[initiateXML](t, admin.must(t, "POST", "/a-bkt/up?uploads", "")).UploadID
		admin.must(t, "PUT", "/a-bkt?policy", gridPolicy(t, "a-bkt", s))
		method, path, _ := strings.Cut(strings.Replace(call, "{upload}", id, 1), " ")
		return rw.call(t, method, path, "")
	}
	for action, calls := range gridActionCalls() {
		denied := gridStatement{Effect: "Deny", Principal: principals(urns("rw")...), Action: []string{action}}
		// The gate on overwriting stands beside the action of the call.
		alone := nothingBut("rw", action, "s3:PutOverwriteObject")
		for _, call := range calls {
			if a := under(denied, call); a.status != http.StatusForbidden {
				t.Errorf("%s without %s: %v", call, action, a)
			}
			if a := under(alone, call); a.status == http.StatusForbidden || a.status >= 500 {
				t.Errorf("%s with %s alone: %v", call, action, a)
			}
		}
	}
}
