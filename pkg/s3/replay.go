package s3

import (
	"bytes"
	"io"
	"net/http"
)

// replayLimit bounds the request bodies held in memory; a multi-object delete of
// 1,000 long keys stays below it.
const replayLimit = 4 << 20

// replayable gives small request bodies a GetBody, which minio-go does not set,
// so that the transport below may repeat a request that was not carried out.
type replayable struct {
	next      http.RoundTripper
	userAgent string
}

// RoundTrip implements http.RoundTripper.
func (r *replayable) RoundTrip(req *http.Request) (*http.Response, error) {
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
