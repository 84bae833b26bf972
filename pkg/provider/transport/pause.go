package transport

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// pauseLimit bounds what an endpoint can ask for; after it a request finds
	// out whether the endpoint still means it.
	pauseLimit = 5 * time.Minute
	// unaskedLimit bounds the pause after a 429 that does not say how long.
	unaskedLimit = 10 * time.Second
)

// pause is the time that an endpoint asked to be left alone for. Its gate's
// lock guards it.
type pause struct {
	endpoint Endpoint
	first    time.Duration // after a 429 that does not say how long; doubles with each in a row
	until    time.Time
	cause    string
	row      int // of 429 that did not say how long
}

// heed takes an answer in and reports whether it makes the pause longer: a 429,
// or a 503 that says for how long.
func (p *pause) heed(resp *http.Response, now time.Time) bool {
	asked := retryAfter(resp.Header, now)
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		if asked > 0 {
			break
		}
		if now.Before(p.until) {
			return false // it was sent before the pause began
		}
		asked = min(p.first<<min(p.row, 16), unaskedLimit)
		p.row++
	case http.StatusServiceUnavailable:
	default:
		p.row = 0
		return false
	}
	until := now.Add(min(asked, pauseLimit))
	if !until.After(p.until) || asked <= 0 {
		return false
	}
	p.until, p.cause = until, answerText(resp.StatusCode)
	return true
}

// refusal is the error of a request that cannot wait so long.
func (p *pause) refusal() error {
	return &refusedError{fmt.Sprintf("%s is to be left alone until %s, later than this call can wait: %s; repeat it then",
		p.endpoint, p.until.UTC().Format(time.RFC3339), p.cause)}
}
