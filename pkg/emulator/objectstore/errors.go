package objectstore

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"strconv"
)

// apiError is an answer that is not a success. Its message is empty unless the gateway was measured to
// send one; a profile may have texts for those.
type apiError struct {
	status  int
	code    string
	message string
	// bare leaves the body out: redirects, and the few errors that the gateway sends without one.
	bare bool
	// header is added to the answer.
	header http.Header
}

func (e *apiError) Error() string {
	return strconv.Itoa(e.status) + " " + e.code
}

func failure(status int, code, message string) *apiError {
	return &apiError{status: status, code: code, message: message}
}

func errAccessDenied() *apiError { return failure(http.StatusForbidden, "AccessDenied", "") }
func errNoSuchBucket() *apiError { return failure(http.StatusNotFound, "NoSuchBucket", "") }
func errNoSuchKey() *apiError    { return failure(http.StatusNotFound, "NoSuchKey", "") }
func errNoSuchUpload() *apiError { return failure(http.StatusNotFound, "NoSuchUpload", "") }
func errMalformedXML() *apiError { return failure(http.StatusBadRequest, "MalformedXML", "") }
func errInvalidRange() *apiError {
	return failure(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "")
}
func errPrecondition() *apiError {
	return failure(http.StatusPreconditionFailed, "PreconditionFailed", "")
}
func errInvalidDigest() *apiError { return failure(http.StatusBadRequest, "InvalidDigest", "") }
func errBadDigest() *apiError     { return failure(http.StatusBadRequest, "BadDigest", "") }
func errIncomplete() *apiError    { return failure(http.StatusBadRequest, "IncompleteBody", "") }
func errBucketExists() *apiError  { return failure(http.StatusConflict, "BucketAlreadyExists", "") }

func errSignature() *apiError {
	return failure(http.StatusForbidden, "SignatureDoesNotMatch", "")
}

func errMethodNotAllowed() *apiError {
	return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "")
}

func errInvalidArgument(message string) *apiError {
	return failure(http.StatusBadRequest, "InvalidArgument", message)
}

func errInvalidRequest(message string) *apiError {
	return failure(http.StatusBadRequest, "InvalidRequest", message)
}

func errInvalidBucketName() *apiError {
	return failure(http.StatusBadRequest, "InvalidBucketName", "")
}

// errRedirect sends the client to the region that holds the bucket. The path and query are kept.
func errRedirect(to *Region, r *http.Request) *apiError {
	e := &apiError{status: http.StatusMovedPermanently, code: "PermanentRedirect", bare: true}
	if to == nil || to.URL == nil {
		return e
	}
	location := to.URL() + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		location += "?" + r.URL.RawQuery
	}
	e.header = http.Header{"Location": {location}}
	return e
}

// body renders the error document. The order of the elements, and that Message is there even when
// empty, are the gateway's; some clients stumble over both.
func (e *apiError) body(details [][2]string) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Error>`)
	element := func(name, value string) {
		b.WriteString("<" + name + ">")
		// Writing to a bytes.Buffer cannot fail.
		_ = xml.EscapeText(&b, []byte(value))
		b.WriteString("</" + name + ">")
	}
	element("Code", e.code)
	element("Message", e.message)
	for _, d := range details {
		element(d[0], d[1])
	}
	b.WriteString("</Error>")
	return b.Bytes()
}
