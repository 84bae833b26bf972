package transport

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestCalls: every try is told, with what it was and how it ended; what was not
// sent has no duration.
func TestCalls(t *testing.T) {
	var mu sync.Mutex
	var calls []Call
	collect := func(o *Options) {
		o.Tries = 3
		o.Routes = []string{"GET /v1/things"}
		o.Pacing.OnCall = func(c Call) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, c)
		}
	}
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		told := func(want ...Outcome) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			var got []Outcome
			for i, c := range calls {
				got = append(got, c.Outcome)
				if c.Operation != "GET /v1/things" || c.Endpoint != (Endpoint{PlaneControl, "api.example"}) {
					t.Errorf("call %d is %+v", i, c)
				}
				if c.Retry != (i > 0) || (c.Took > 0) != (c.Outcome == OutcomeNoAnswer || c.Outcome == OutcomeCanceled) {
					t.Errorf("call %d: %+v", i, c)
				}
			}
			if calls = nil; !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
		}
		for code, want := range map[int][]Outcome{
			200: {OutcomeOK}, 304: {OutcomeClientError}, 404: {OutcomeClientError},
			429: {OutcomeThrottled, OutcomeThrottled, OutcomeThrottled}, 501: {OutcomeServerError},
			503: {OutcomeServerError, OutcomeServerError, OutcomeServerError},
		} {
			b.serve(status(code))
			time.Sleep(time.Hour) // any pause is over
			if got, err := b.control(t.Context()); got != code {
				t.Fatal(got, err)
			}
			told(want...)
		}
		b.serve(hang)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = b.control(ctx)
		told(OutcomeNoAnswer)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _ = b.control(ctx)
		told(OutcomeCanceled)
		b.serve(status(503))
		for range tripAfter {
			_, _ = b.control(t.Context())
		}
		calls = nil
		_, err := b.control(t.Context())
		b.refused(err)
		told(OutcomeRefused)
	}, collect)
}

// TestOperations: the name of a call never holds what it is about.
func TestOperations(t *testing.T) {
	names := newOperations("/gateway/", []string{"GET /v1/users", "DELETE /v1/users/{id}", "PUT /v2/bucket/{name}"})
	for _, c := range []struct {
		plane        Plane
		method, path string
		want         string
	}{
		{PlaneControl, "GET", "/gateway/v1/users?tag=x", "GET /v1/users"},
		{PlaneControl, "DELETE", "/gateway/v1/users/abc", "DELETE /v1/users/{id}"},
		{PlaneControl, "DELETE", "/gateway/v1/users/a%2Fb", "DELETE /v1/users/{id}"},
		{PlaneControl, "POST", "/gateway/v1/users", OperationOther},
		{PlaneControl, "DELETE", "/gateway/v1//secret/../users/secret", "DELETE /v1/users/{id}"},
		{PlaneControl, "GET", "/elsewhere/v1/users", OperationOther},
		{PlaneControl, "GET", "/gateway/v1/secret", OperationOther},
		{PlaneToken, "POST", "/token/secret", "token"},
		{PlaneS3, "GET", "/", "ListBuckets"},
		{PlaneS3, "POST", "/", OperationOther},
		{PlaneS3, "PUT", "/bucket/", "CreateBucket"},
		{PlaneS3, "HEAD", "/bucket", "HeadBucket"},
		{PlaneS3, "DELETE", "/bucket", "DeleteBucket"},
		{PlaneS3, "GET", "/bucket?location=", "GetBucketLocation"},
		{PlaneS3, "PUT", "/bucket?policy", "PutBucketPolicy"},
		{PlaneS3, "DELETE", "/bucket?policy=", "DeleteBucketPolicy"},
		{PlaneS3, "GET", "/bucket?tagging", "GetBucketTagging"},
		{PlaneS3, "GET", "/bucket?publicAccessBlock=", "GetPublicAccessBlock"},
		{PlaneS3, "GET", "/bucket/?list-type=2&prefix=secret", "ListObjects"},
		{PlaneS3, "GET", "/bucket/?versions&max-keys=1", "ListObjectVersions"},
		{PlaneS3, "GET", "/bucket/?uploads", "ListMultipartUploads"},
		{PlaneS3, "POST", "/bucket/?delete", "DeleteObjects"},
		{PlaneS3, "PATCH", "/bucket/", OperationOther},
		{PlaneS3, "GET", "/bucket/a/b", "GetObject"},
		{PlaneS3, "PUT", "/bucket/a?tagging", "PutObjectTagging"},
		{PlaneS3, "PUT", "/bucket/a", "PutObject"},
		{PlaneS3, "DELETE", "/bucket/a?versionId=1", "DeleteObject"},
		{PlaneS3, "POST", "/bucket/a?uploads", "CreateMultipartUpload"},
		{PlaneS3, "PUT", "/bucket/a?uploadId=1&partNumber=1", "UploadPart"},
		{PlaneS3, "GET", "/bucket/a?uploadId=1", "ListParts"},
		{PlaneS3, "POST", "/bucket/a?uploadId=1", "CompleteMultipartUpload"},
		{PlaneS3, "DELETE", "/bucket/a?uploadId=1", "AbortMultipartUpload"},
	} {
		u, err := url.Parse("http://host.example" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := names.of(c.plane, &http.Request{Method: c.method, URL: u}); got != c.want {
			t.Errorf("%s %s %s is %q, want %q", c.plane, c.method, c.path, got, c.want)
		}
	}
}
