package objectstore

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOperation(t *testing.T) {
	s := New(Options{Regions: []Region{{Name: "rma", Domains: []string{"objects.rma.localhost"}}}})
	for _, test := range []struct{ call, host, copied, want string }{
		{call: "GET /", want: "ListBuckets"},
		{call: "POST /", want: ""},
		{call: "PUT /b", want: "CreateBucket"},
		{call: "PUT /b/", want: "CreateBucket"},
		{call: "HEAD /b", want: "HeadBucket"},
		{call: "DELETE /b", want: "DeleteBucket"},
		{call: "GET /b", want: "ListObjects"},
		{call: "GET /b?list-type=2", want: "ListObjectsV2"},
		{call: "GET /b?versions", want: "ListObjectVersions"},
		{call: "GET /b?uploads", want: "ListMultipartUploads"},
		{call: "GET /b?location", want: "GetBucketLocation"},
		{call: "GET /b?policy", want: "GetBucketPolicy"},
		{call: "PUT /b?policy", want: "PutBucketPolicy"},
		{call: "DELETE /b?policy", want: "DeleteBucketPolicy"},
		{call: "GET /b?policyStatus", want: "GetBucketPolicyStatus"},
		{call: "PUT /b?versioning", want: "PutBucketVersioning"},
		{call: "PUT /b?lifecycle", want: "PutBucketLifecycleConfiguration"},
		{call: "DELETE /b?lifecycle", want: "DeleteBucketLifecycle"},
		{call: "PUT /b?publicAccessBlock", want: "PutPublicAccessBlock"},
		{call: "GET /b?object-lock", want: "GetObjectLockConfiguration"},
		{call: "POST /b?delete", want: "DeleteObjects"},
		{call: "POST /b", want: ""},
		{call: "PATCH /b", want: ""},
		{call: "GET /b/k", want: "GetObject"},
		{call: "HEAD /b/k", want: "HeadObject"},
		{call: "PUT /b/k", want: "PutObject"},
		{call: "PUT /b/k", copied: "b/x", want: "CopyObject"},
		{call: "DELETE /b/k?versionId=1", want: "DeleteObject"},
		{call: "GET /b/k?acl", want: "GetObjectAcl"},
		{call: "PUT /b/k?tagging", want: "PutObjectTagging"},
		{call: "DELETE /b/k?tagging", want: "DeleteObjectTagging"},
		{call: "DELETE /b/k?acl", want: ""},
		{call: "PUT /b/k?retention", want: "PutObjectRetention"},
		{call: "GET /b/k?legal-hold", want: "GetObjectLegalHold"},
		{call: "POST /b/k?uploads", want: "CreateMultipartUpload"},
		{call: "PUT /b/k?uploadId=1&partNumber=1", want: "UploadPart"},
		{call: "PUT /b/k?uploadId=1&partNumber=1", copied: "b/x", want: "UploadPartCopy"},
		{call: "GET /b/k?uploadId=1", want: "ListParts"},
		{call: "POST /b/k?uploadId=1", want: "CompleteMultipartUpload"},
		{call: "DELETE /b/k?uploadId=1", want: "AbortMultipartUpload"},
		{call: "POST /b/k", want: ""},
		{call: "GET /b?a;b", want: ""},
		{call: "PUT /", host: "b.objects.rma.localhost", want: "CreateBucket"},
		{call: "PUT /k", host: "b.objects.rma.localhost:80", want: "PutObject"},
		{call: "GET /", host: "B.Objects.RMA.localhost", want: "ListObjects"},
		{call: "GET /", host: "objects.rma.localhost", want: "ListBuckets"},
	} {
		method, path, _ := strings.Cut(test.call, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if test.host != "" {
			r.Host = test.host
		}
		if test.copied != "" {
			r.Header.Set("X-Amz-Copy-Source", test.copied)
		}
		if got := s.Operation(r); got != test.want {
			t.Errorf("%s at %q: %q, want %q", test.call, test.host, got, test.want)
		}
	}
}

func TestValidBucketName(t *testing.T) {
	for name, want := range map[string]bool{
		"abc": true, "a-b.c-1": true, strings.Repeat("a", 63): true, "1234": true,
		"ab": false, "": false, strings.Repeat("a", 64): false, "Abc": false, "a_b": false, "a..b": false, ".abc": false,
		"abc.": false, "-abc": false, "abc-": false, "a.-b": false, "a-.b": false, "192.168.0.1": false, "a/b": false, "äbc": false,
	} {
		if got := validBucketName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
