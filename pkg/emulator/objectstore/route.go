package objectstore

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// target is what a request addresses.
type target struct {
	bucket string
	key    string
	// virtualHosted tells that the bucket came from the host name.
	virtualHosted bool
}

// Operation names the S3 operation that a request asks for ("PutObject", "ListObjectsV2", …), without
// reading its body. It returns "" for what is no S3 request. It may be called before the request is
// served, and neither consumes nor changes it.
func (s *Store) Operation(r *http.Request) string {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ""
	}
	t := s.target(r)
	return operationName(r.Method, t, query, r.Header.Get("X-Amz-Copy-Source") != "")
}

// target splits the address. The host name decides first: a bucket below one of the domains of any region.
func (s *Store) target(r *http.Request) target {
	host := strings.ToLower(r.Host)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	for _, region := range s.regions {
		for _, domain := range region.Domains {
			if name, ok := strings.CutSuffix(host, "."+strings.ToLower(domain)); ok && name != "" {
				return target{bucket: name, key: path, virtualHosted: true}
			}
		}
	}
	name, key, _ := strings.Cut(path, "/")
	return target{bucket: name, key: key}
}

func operationName(method string, t target, query url.Values, copying bool) string {
	switch {
	case t.bucket == "":
		if t.key == "" && (method == http.MethodGet || method == http.MethodHead) {
			return "ListBuckets"
		}
		return ""
	case t.key == "":
		return bucketOperation(method, query)
	default:
		return objectOperation(method, query, copying)
	}
}

// bucketSubresource maps the query word of a bucket subresource to the noun of its operations. What is
// not here is ignored by the gateway, which then sees a plain bucket request.
func bucketSubresource(query url.Values) (word, noun string) {
	for _, sub := range [...][2]string{
		{"location", "BucketLocation"},
		{"versioning", "BucketVersioning"},
		{"policy", "BucketPolicy"},
		{"policyStatus", "BucketPolicyStatus"},
		{"acl", "BucketAcl"},
		{"cors", "BucketCors"},
		{"lifecycle", "BucketLifecycleConfiguration"},
		{"encryption", "BucketEncryption"},
		{"tagging", "BucketTagging"},
		{"ownershipControls", "BucketOwnershipControls"},
		{"publicAccessBlock", "PublicAccessBlock"},
		{"object-lock", "ObjectLockConfiguration"},
		{"notification", "BucketNotificationConfiguration"},
		{"logging", "BucketLogging"},
		{"replication", "BucketReplication"},
		{"requestPayment", "BucketRequestPayment"},
		{"accelerate", "BucketAccelerateConfiguration"},
		{"website", "BucketWebsite"},
	} {
		if query.Has(sub[0]) {
			return sub[0], sub[1]
		}
	}
	return "", ""
}

func bucketOperation(method string, query url.Values) string {
	_, noun := bucketSubresource(query)
	switch method {
	case http.MethodHead:
		return "HeadBucket"
	case http.MethodGet:
		switch {
		case noun != "":
			return "Get" + noun
		case query.Has("uploads"):
			return "ListMultipartUploads"
		case query.Has("versions"):
			return "ListObjectVersions"
		case query.Get("list-type") == "2":
			return "ListObjectsV2"
		}
		return "ListObjects"
	case http.MethodPut:
		if noun != "" {
			return "Put" + noun
		}
		return "CreateBucket"
	case http.MethodDelete:
		if noun != "" {
			return "Delete" + strings.TrimSuffix(noun, "Configuration")
		}
		return "DeleteBucket"
	case http.MethodPost:
		if query.Has("delete") {
			return "DeleteObjects"
		}
	}
	return ""
}

func objectSubresource(query url.Values) string {
	for _, sub := range [...][2]string{
		{"acl", "ObjectAcl"},
		{"tagging", "ObjectTagging"},
		{"retention", "ObjectRetention"},
		{"legal-hold", "ObjectLegalHold"},
	} {
		if query.Has(sub[0]) {
			return sub[1]
		}
	}
	return ""
}

func objectOperation(method string, query url.Values, copying bool) string {
	noun := objectSubresource(query)
	upload := query.Has("uploadId")
	switch method {
	case http.MethodHead:
		return "HeadObject"
	case http.MethodGet:
		switch {
		case noun != "":
			return "Get" + noun
		case upload:
			return "ListParts"
		}
		return "GetObject"
	case http.MethodPut:
		switch {
		case noun != "":
			return "Put" + noun
		case upload && copying:
			return "UploadPartCopy"
		case upload:
			return "UploadPart"
		case copying:
			return "CopyObject"
		}
		return "PutObject"
	case http.MethodDelete:
		switch {
		case noun == "ObjectTagging":
			return "DeleteObjectTagging"
		case noun != "":
			return ""
		case upload:
			return "AbortMultipartUpload"
		}
		return "DeleteObject"
	case http.MethodPost:
		switch {
		case query.Has("uploads"):
			return "CreateMultipartUpload"
		case upload:
			return "CompleteMultipartUpload"
		}
	}
	return ""
}
