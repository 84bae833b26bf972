package stackit

import (
	"fmt"
	"mime"
	"net/http"
)

// alienAnswer marks a good answer that is not of the API's form, so that something
// in front of the API may have given it.
type alienAnswer struct {
	status int
	kind   string
}

func (e *alienAnswer) Error() string {
	return fmt.Sprintf("the answer %d cannot be read: it is %q and not JSON, so something between the API and the driver gave it", e.status, clip(e.kind))
}

// ownAnswers turns good answers that are not the API's own into errors: the SDK
// takes any success for the API's, and an empty one has no body that would tell.
type ownAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o ownAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err != nil || resp.StatusCode < 200 || resp.StatusCode > 299 || resp.StatusCode == http.StatusNoContent {
		return resp, err
	}
	kind := resp.Header.Get("Content-Type")
	if parsed, _, err := mime.ParseMediaType(kind); err == nil && parsed == "application/json" {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, &alienAnswer{resp.StatusCode, kind}
}
