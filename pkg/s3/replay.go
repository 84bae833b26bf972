package s3

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
)

// replayLimit bounds the request bodies held in memory; a multi-object delete of
// 1,000 long keys stays below it.
const replayLimit = 4 << 20

// refusalLimit is how much of a refusal's body is looked at.
const refusalLimit = 64 << 10

// replayable gives small request bodies a GetBody, which minio-go does not set,
// so that the transport below may repeat a request that was not carried out, and
// keeps minio-go from guessing what a refusal means.
type replayable struct {
	next      http.RoundTripper
	userAgent string
}

// RoundTrip implements http.RoundTripper.
func (r *replayable) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.send(req)
	if err != nil || resp.StatusCode < 400 || req.Method == http.MethodHead {
		return resp, err
	}
	return codeless(resp)
}

// codeless gives a refusal that holds no S3 code an empty S3 error as its body.
// minio-go takes any other 404 for NoSuchBucket and any other 403 for
// AccessDenied, even a page that a proxy wrote. A refusal that is cut short is no
// answer.
func codeless(resp *http.Response) (*http.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, refusalLimit))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var answer struct{ Code string }
	if xml.Unmarshal(raw, &answer) != nil || cleanCode(answer.Code) == "" {
		raw = []byte("<Error></Error>")
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	resp.ContentLength = int64(len(raw))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// send carries the request out with a body that can be replayed.
func (r *replayable) send(req *http.Request) (*http.Response, error) {
	needsBody := req.Body != nil && req.Body != http.NoBody && req.GetBody == nil &&
		req.ContentLength > 0 && req.ContentLength <= replayLimit
	if !needsBody && r.userAgent == "" {
		return r.next.RoundTrip(req)
	}
	out := req.Clone(req.Context())
	if r.userAgent != "" {
		// It is not part of the signature.
		out.Header.Set("User-Agent", r.userAgent+" "+req.UserAgent())
	}
	if needsBody {
		data, err := io.ReadAll(io.LimitReader(req.Body, replayLimit+1))
		if closeErr := req.Body.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		out.Body = io.NopCloser(bytes.NewReader(data))
	}
	return r.next.RoundTrip(out)
}
