package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// patience is how long a request must have been under way for the end of its
// caller's patience to speak against the endpoint.
const patience = 10 * time.Second

// causeLimit bounds a cause in our texts.
const causeLimit = 80

// verdict is what a request tells about its endpoint.
type verdict int

const (
	undecided verdict = iota // it ended before the endpoint had a chance
	answered                 // also with a refusal: whoever refuses is up
	failed
)

// result is a verdict, with the cause when it is a failure.
type result struct {
	verdict verdict
	cause   string
}

// judgeStatus goes by the answer's status. A 4xx is the caller's business: bad
// credentials, a late key, a missing bucket, a limit. 501 is a decision too.
func judgeStatus(status int) result {
	if status < 500 || status == http.StatusNotImplemented {
		return result{verdict: answered}
	}
	return result{failed, answerText(status)}
}

func answerText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("it answered %d %s", status, http.StatusText(status)))
}

// judgeError goes by why there was no answer.
func judgeError(ctx context.Context, err error, underWay time.Duration) result {
	switch ended := ctx.Err(); {
	case ended == nil:
		return result{failed, "no answer: " + clip(err.Error())}
	case errors.Is(ended, context.DeadlineExceeded) && underWay >= patience:
		return result{failed, fmt.Sprintf("no answer within %s", underWay.Round(time.Second))}
	}
	return result{verdict: undecided}
}

// clip makes a text one short printable line.
func clip(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) > causeLimit {
		text = strings.ToValidUTF8(text[:causeLimit], "") + "…"
	}
	return text
}
