package stackit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// detailLimit is how much of an error answer goes into our text.
const detailLimit = 300

// refuse makes an error that wraps the sentinel and nothing else.
func refuse(sentinel error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", sentinel, fmt.Sprintf(format, args...))
}

// statusError is an error answer of the control plane.
type statusError struct {
	op      string
	project string
	status  int
	answer  answer
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("%s: %s: the API answered %d %s", e.Unwrap(), e.op, e.status, http.StatusText(e.status))
	if e.answer.text != "" {
		text += " (" + e.answer.text + ")"
	}
	switch {
	case e.status >= 200 && e.status <= 299:
		text += ", but its body cannot be read"
	case !e.answer.json:
		text += ", but not in the API's own words: something between it and the driver answered"
	case e.limited():
		text += "; ask the cloud for a higher limit, or delete what is not needed"
	case e.status == http.StatusUnauthorized:
		text += "; check the service account key"
	case e.status == http.StatusForbidden:
		text += fmt.Sprintf("; give the service account the role object-storage.admin in project %s", e.project)
	}
	return text
}

// limitPattern finds the word that says of a refusal that a limit is its cause:
// no code for it is known.
var limitPattern = regexp.MustCompile(`(?i)(\b|_)(limits?|quotas?|maximum|exceed(s|ed)?|too[ _]many)(\b|_)`)

// limited reports whether the API says that a limit of the project is reached.
func (e *statusError) limited() bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusRequestEntityTooLarge:
		return e.answer.structured
	}
	return e.status >= 400 && e.status <= 499 && e.answer.structured &&
		(limitPattern.MatchString(e.answer.text) || slices.ContainsFunc(e.answer.keys, limitPattern.MatchString))
}

// Unwrap returns the sentinel. Only what the API itself has said counts as a
// decision; a gateway's page does not. ErrInvalidArgument is final, so it is for
// what users ask for: the bodies are the driver's own, and a refusal of one tells
// of the project's state.
func (e *statusError) Unwrap() error {
	if !e.answer.json {
		return provider.ErrUnavailable
	}
	if e.limited() {
		return provider.ErrQuotaExceeded
	}
	switch e.status {
	case http.StatusUnauthorized:
		return provider.ErrUnauthenticated
	case http.StatusForbidden:
		return provider.ErrPermissionDenied
	case http.StatusNotFound:
		if !e.answer.structured {
			return provider.ErrUnavailable
		}
		return provider.ErrNotFound
	case http.StatusConflict:
		return provider.ErrConflict
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return provider.ErrUnavailable
	}
	switch {
	case e.status < 400 || e.status > 499 || !e.answer.structured:
		// What a proxy answers says nothing about the request.
		return provider.ErrUnavailable
	case e.answer.asked:
		return provider.ErrInvalidArgument
	}
	return provider.ErrPrecondition
}

// refused reports whether the API itself has decided against the request: it
// was not carried out and will not be.
func refused(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.status >= 400 && e.status <= 499 && !errors.Is(err, provider.ErrUnavailable)
}

// statusOf returns the status that the API itself has answered, 0 if it has not.
func statusOf(err error) int {
	var e *statusError
	if !errors.As(err, &e) || !e.answer.json {
		return 0
	}
	return e.status
}

// done reports whether the API has carried the request out, although the body of
// its answer cannot be read.
func done(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.status >= 200 && e.status <= 299
}

// answer is what the body of an error answer says.
type answer struct {
	json       bool   // the body is JSON, so the API or its gateway wrote it
	structured bool   // it has the API's own shape
	asked      bool   // it finds fault with the bucket's name or region
	text       string // one short line
	keys       []string
}

// askedPattern finds what users choose in a key or in the place of a fault.
var askedPattern = regexp.MustCompile(`(?i)^(bucket[ _.]?name|region)(\b|_)`)

// readAnswer reads the three shapes that are known: the API's two and the
// gateway's.
func readAnswer(body []byte) answer {
	if !json.Valid(body) {
		return answer{}
	}
	a := answer{json: true}
	var shape struct {
		Detail  json.RawMessage `json:"detail"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &shape) != nil {
		return a
	}
	var items []struct {
		Key  string `json:"key"`
		Msg  string `json:"msg"`
		Type string `json:"type"`
		Loc  []any  `json:"loc"`
	}
	if json.Unmarshal(shape.Detail, &items) != nil {
		a.text = clip(provider.Redact(shape.Message))
		return a
	}
	var parts []string
	for _, i := range items {
		a.structured = a.structured || i.Key != "" || i.Type != ""
		if i.Key != "" {
			a.keys = append(a.keys, i.Key)
		}
		part, last := i.Msg, any(i.Key)
		if len(i.Loc) > 0 {
			last = i.Loc[len(i.Loc)-1]
			part = fmt.Sprintf("%v: %s", i.Loc[len(i.Loc)-1], i.Msg)
		}
		a.asked = a.asked || askedPattern.MatchString(fmt.Sprint(last))
		parts = append(parts, part)
	}
	a.text = clip(provider.Redact(strings.Join(parts, "; ")))
	return a
}

// apiError is the one place where errors of the control plane get their
// sentinel. Causes are kept as text: time-outs of net/http claim to be the
// context's. The SDK's own text is never used, since it repeats bodies, and one
// that holds a secret key is among them.
func apiError(ctx context.Context, project, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("%s: %w", op, ctxErr)
	}
	var token *tokenError
	if errors.As(err, &token) {
		return refuse(token.Unwrap(), "%s: %s", op, token)
	}
	var api *oapierror.GenericOpenAPIError
	if errors.As(err, &api) && api.StatusCode != 0 {
		e := &statusError{op: op, project: project, status: api.StatusCode}
		if api.StatusCode >= 300 {
			e.answer = readAnswer(api.Body)
		}
		return e
	}
	var strange *alienAnswer
	if errors.As(err, &strange) {
		return refuse(provider.ErrUnavailable, "%s: %s", op, strange)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return refuse(provider.ErrUnavailable, "%s: no answer of the API: %s", op, clip(provider.Redact(u.Err.Error())))
	}
	return refuse(provider.ErrUnavailable, "%s: the request was not sent or its answer not understood", op)
}

// s3Error is the one place where errors of the data plane get their sentinel.
func s3Error(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("S3: %w", ctxErr)
	}
	remedy, sentinel := s3Sentinel(err)
	if remedy != "" {
		remedy = "; " + remedy
	}
	return refuse(sentinel, "%s%s", err, remedy)
}

func s3Sentinel(err error) (remedy string, sentinel error) {
	switch s3.Code(err) {
	case codeUnknownKey:
		return "the endpoint does not know the key yet", provider.ErrUnavailable
	case "SignatureDoesNotMatch":
		return "the secret key is not the one the endpoint knows", provider.ErrUnauthenticated
	case "RequestTimeTooSkewed":
		return "set the clock of this host", provider.ErrPrecondition
	case "BucketNotEmpty":
		return "", provider.ErrNotEmpty
	case "TooManyBuckets", "XMaxBucketPolicyLengthExceeded":
		return "", provider.ErrQuotaExceeded
	case "InvalidBucketName":
		return "use another name", provider.ErrInvalidArgument
	case "XBucketPolicyParseException":
		return "the endpoint does not understand the policy", provider.ErrPrecondition
	case "NotImplemented", "XNotImplemented", "MethodNotAllowed":
		// An endpoint may learn it.
		return "", provider.ErrPrecondition
	}
	switch status := s3.StatusCode(err); {
	case status == http.StatusUnauthorized:
		return "", provider.ErrUnauthenticated
	case status == http.StatusForbidden:
		return "", provider.ErrPermissionDenied
	case status == http.StatusNotFound && s3.Code(err) == "":
		return "the answer is not S3's own; check the endpoint", provider.ErrUnavailable
	case status == http.StatusNotFound:
		return "", provider.ErrNotFound
	case status == http.StatusConflict || status == http.StatusPreconditionFailed:
		return "", provider.ErrConflict
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return "", provider.ErrUnavailable
	case s3.Code(err) != "" && status >= 400 && status <= 499:
		// The request is the driver's own, whatever the user asked for.
		return "", provider.ErrPrecondition
	}
	return "", provider.ErrUnavailable
}

// clip makes a text one short printable line.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r <= 0x9f }), " ")
	if len(text) > detailLimit {
		text = strings.ToValidUTF8(text[:detailLimit], "") + "…"
	}
	return text
}
