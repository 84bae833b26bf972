package transport

import (
	"net/http"
	"net/url"
	"strings"
)

// OperationOther is the operation of a request that has no name of its own.
const OperationOther = "other"

// operationToken is that of every request for an access token.
const operationToken = "token"

// operations names requests by what they do, never by what they do it to, so
// that the names are few.
type operations struct {
	root   string // path of the control plane's base, without a slash at its end
	routes *http.ServeMux
}

// newOperations takes the path of the control plane's base and its routes, as
// http.ServeMux spells them.
func newOperations(root string, routes []string) operations {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route, http.NotFoundHandler())
	}
	return operations{strings.TrimSuffix(root, "/"), mux}
}

// of names the request.
func (o operations) of(plane Plane, req *http.Request) string {
	switch plane {
	case PlaneControl:
		return o.route(req)
	case PlaneToken:
		return operationToken
	case PlaneS3:
	}
	return s3Operation(req)
}

// route is the pattern that the request fits.
func (o operations) route(req *http.Request) string {
	path, found := strings.CutPrefix(req.URL.EscapedPath(), o.root)
	if !found {
		return OperationOther
	}
	u, err := url.Parse(path)
	if err != nil {
		return OperationOther
	}
	_, pattern := o.routes.Handler(&http.Request{Method: req.Method, URL: u})
	if pattern == "" {
		return OperationOther
	}
	return pattern
}

// s3Operation is what S3 calls the operation of a request that has its bucket in
// the path.
func s3Operation(req *http.Request) string {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	query := req.URL.Query()
	var name string
	switch {
	case bucket == "" && req.Method == http.MethodGet:
		name = "ListBuckets"
	case bucket != "" && key == "":
		name = bucketOperation(req.Method, query)
	case key != "":
		name = objectOperation(req.Method, query)
	}
	if name == "" {
		return OperationOther
	}
	return name
}

// bucketParts are the parts of a bucket's configuration, by the parameter that
// asks for them.
func bucketParts() map[string]string {
	return map[string]string{
		"acl": "BucketAcl", "location": "BucketLocation", "object-lock": "ObjectLockConfiguration", "policy": "BucketPolicy",
		"publicAccessBlock": "PublicAccessBlock", "tagging": "BucketTagging", "versioning": "BucketVersioning",
	}
}

func bucketOperation(method string, query url.Values) string {
	for parameter, part := range bucketParts() {
		if query.Has(parameter) {
			return verb(method, part)
		}
	}
	switch {
	case method == http.MethodGet && query.Has("versions"):
		return "ListObjectVersions"
	case method == http.MethodGet && query.Has("uploads"):
		return "ListMultipartUploads"
	case method == http.MethodGet:
		return "ListObjects"
	case method == http.MethodPost && query.Has("delete"):
		return "DeleteObjects"
	case method == http.MethodPut:
		return "CreateBucket"
	}
	return verb(method, "Bucket")
}

func objectOperation(method string, query url.Values) string {
	if query.Has("tagging") {
		return verb(method, "ObjectTagging")
	}
	upload := query.Has("uploadId")
	switch {
	case method == http.MethodPost && query.Has("uploads"):
		return "CreateMultipartUpload"
	case method == http.MethodPost && upload:
		return "CompleteMultipartUpload"
	case method == http.MethodPut && upload:
		return "UploadPart"
	case method == http.MethodGet && upload:
		return "ListParts"
	case method == http.MethodDelete && upload:
		return "AbortMultipartUpload"
	}
	return verb(method, "Object")
}

// verb puts S3's word for the method before the noun, "" where it has none.
func verb(method, noun string) string {
	word := map[string]string{http.MethodGet: "Get", http.MethodHead: "Head", http.MethodPut: "Put", http.MethodDelete: "Delete"}[method]
	if word == "" {
		return ""
	}
	return word + noun
}
