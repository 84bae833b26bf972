package transport

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeClientError Outcome = "client_error" // 3xx and 4xx but 429: among them 404, as the answer to a question
	OutcomeThrottled   Outcome = "throttled"    // 429
	OutcomeServerError Outcome = "server_error" // 5xx
	OutcomeNoAnswer    Outcome = "no_answer"    // a time-out, or a connection that failed
	OutcomeCanceled    Outcome = "canceled"     // by the caller
	OutcomeRefused     Outcome = "refused"      // it was not sent: to spare the endpoint, or for want of time
)

// Call is one request to an endpoint. Each try of a request is a call.
type Call struct {
	Endpoint Endpoint
	// Operation is one of a bounded set: a route of Options.Routes, the name of an S3
	// operation, "token", or OperationOther.
	Operation string
	Outcome   Outcome
	// Took is the time from sending to the header of the answer; 0 for what was not
	// sent.
	Took  time.Duration
	Retry bool // it repeats one that failed
}

// outcomeOf goes by the status of an answer, or by why there is none.
func outcomeOf(ctx context.Context, resp *http.Response, err error) Outcome {
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return OutcomeCanceled
	case err != nil:
		return OutcomeNoAnswer
	case resp.StatusCode == http.StatusTooManyRequests:
		return OutcomeThrottled
	case resp.StatusCode >= http.StatusInternalServerError:
		return OutcomeServerError
	case resp.StatusCode >= http.StatusMultipleChoices:
		return OutcomeClientError
	}
	return OutcomeOK
}

// retryKey marks the context of a request that repeats another.
type retryKey struct{}

func asRetry(ctx context.Context) context.Context { return context.WithValue(ctx, retryKey{}, true) }

func isRetry(ctx context.Context) bool { return ctx.Value(retryKey{}) != nil }
