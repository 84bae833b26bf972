package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	sdk "github.com/cloudscale-ch/cloudscale-go-sdk/v8"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// refuse makes an error that wraps the sentinel and nothing else.
func refuse(sentinel error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", sentinel, fmt.Sprintf(format, args...))
}

// statusError is an error answer of the control plane.
type statusError struct {
	op     string
	status int
	detail string
	// vague: a 404 does not say that an objects user is missing, because the
	// call names none or the answer is not the API's own.
	vague bool
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("%s: %s: the API answered %d %s", e.Unwrap(), e.op, e.status, http.StatusText(e.status))
	if e.detail != "" {
		text += " (" + e.detail + ")"
	}
	switch {
	case e.limited():
		text += "; " + limitRemedy
	case e.status == http.StatusUnauthorized:
		text += "; check the API token"
	case e.status == http.StatusForbidden:
		text += "; " + readWriteRemedy
	case e.status == http.StatusNotFound && e.vague:
		text += "; check the API URL"
	}
	return text
}

const limitRemedy = "ask cloudscale.ch for a higher limit, or delete what is not needed"

// limitPattern finds the word that says of a refusal that a limit is its cause:
// the API has no code for it.
var limitPattern = regexp.MustCompile(`(?i)\b(limits?|quotas?|maximum|exceed(s|ed)?|too many)\b`)

// limited reports whether a limit of the project is reached.
func (e *statusError) limited() bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusRequestEntityTooLarge:
		return true
	}
	return e.status >= 400 && e.status < 500 && limitPattern.MatchString(e.detail)
}

// Unwrap returns the sentinel. None is ErrInvalidArgument, which would be final:
// what users ask for is checked before, and the bodies are the driver's own, so
// that a refusal tells of the project's state.
func (e *statusError) Unwrap() error {
	if e.limited() {
		return provider.ErrQuotaExceeded
	}
	switch e.status {
	case http.StatusUnauthorized:
		return provider.ErrUnauthenticated
	case http.StatusForbidden:
		return provider.ErrPermissionDenied
	case http.StatusNotFound:
		if e.vague {
			return provider.ErrUnavailable
		}
		return provider.ErrNotFound
	case http.StatusConflict:
		return provider.ErrConflict
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return provider.ErrUnavailable
	}
	if e.status >= 400 && e.status < 500 {
		return provider.ErrPrecondition
	}
	return provider.ErrUnavailable
}

// statusOf returns the status of a control plane error, 0 if it has none.
func statusOf(err error) int {
	var e *statusError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

// apiError is the one place where errors of the control plane get their
// sentinel. Causes are kept as text: time-outs of net/http claim to be the
// context's.
func apiError(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("%s: %w", op, ctxErr)
	}
	var token *errToken
	if errors.As(err, &token) {
		return refuse(provider.ErrUnauthenticated, "%s: %s", op, token)
	}
	var answer *sdk.ErrorResponse
	if errors.As(err, &answer) {
		return &statusError{
			op: op, status: answer.StatusCode, detail: answer.Message["detail"], vague: answer.Message[alienField] != "",
		}
	}
	var strange *errAlien
	if errors.As(err, &strange) {
		return refuse(provider.ErrUnavailable, "%s: %s", op, strange)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return refuse(provider.ErrUnavailable, "%s: no answer of the API: %s", op, clip(provider.Redact(u.Err.Error())))
	}
	return refuse(provider.ErrUnavailable, "%s: the API's answer cannot be read: %s", op, clip(provider.Redact(err.Error())))
}

// listError is apiError for calls that name no single thing: their 404 is about
// the API itself.
func listError(ctx context.Context, op string, err error) error {
	err = apiError(ctx, op, err)
	var answer *statusError
	if errors.As(err, &answer) {
		answer.vague = true
	}
	return err
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
	sorted := refuse(sentinel, "%s%s", err, remedy)
	if notImplemented(s3.Code(err)) {
		return &lackError{sorted}
	}
	return sorted
}

func notImplemented(code string) bool { return code == "NotImplemented" || code == "MethodNotAllowed" }

// lackError is the ErrPrecondition of what an endpoint does not implement, and may
// with its next release.
type lackError struct{ error }

func (e *lackError) Unwrap() error { return e.error }

// lacks reports whether an endpoint has said that it does not implement something.
func lacks(err error) bool {
	var lack *lackError
	return errors.As(err, &lack)
}

// s3Sentinel returns the sentinel of an S3 error and what can be done about it.
func s3Sentinel(err error) (remedy string, sentinel error) {
	switch s3.Code(err) {
	case codeUnknownKey:
		return "the endpoint does not know the key yet", provider.ErrUnavailable
	case "SignatureDoesNotMatch":
		return "the secret key is not the one the endpoint knows", provider.ErrUnauthenticated
	case codeSkewed:
		return "set the clock of this host", provider.ErrPrecondition
	case "BucketNotEmpty":
		return "", provider.ErrNotEmpty
	case "TooManyBuckets", "QuotaExceeded":
		return "ask cloudscale.ch for a higher limit, or delete buckets", provider.ErrQuotaExceeded
	case "InvalidRange":
		// So the endpoint calls a policy of more than 1 MiB.
		return "the bucket has too many accesses; revoke some, or use more buckets", provider.ErrQuotaExceeded
	case "InvalidBucketName":
		return "use another name", provider.ErrInvalidArgument
	case "BucketAlreadyExists", "BucketAlreadyOwnedByYou":
		return "", provider.ErrAlreadyExists
	case "NotImplemented", "MethodNotAllowed":
		return "the endpoint does not implement it", provider.ErrPrecondition
	}
	switch status := s3.StatusCode(err); {
	case status == http.StatusMovedPermanently && namesBucket(err):
		return "the bucket lives in another region", provider.ErrInvalidArgument
	case status >= 300 && status < 400:
		return "the answer is not S3's own; check the endpoint", provider.ErrUnavailable
	case status == http.StatusUnauthorized:
		return "", provider.ErrUnauthenticated
	case status == http.StatusForbidden:
		return "", provider.ErrPermissionDenied
	case status == http.StatusNotFound && s3.Code(err) != "":
		return "", provider.ErrNotFound
	case status == http.StatusConflict || status == http.StatusPreconditionFailed:
		return "", provider.ErrConflict
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return "", provider.ErrUnavailable
	case status == http.StatusNotFound:
		return "the answer is not S3's own; check the endpoint", provider.ErrUnavailable
	case s3.Code(err) != "" && status >= 400 && status < 500:
		// The request is the driver's own, whatever the user asked for.
		return "", provider.ErrPrecondition
	}
	return "", provider.ErrUnavailable
}

// namesBucket reports whether an S3 error is of a request about one bucket.
func namesBucket(err error) bool {
	var e *s3.Error
	return errors.As(err, &e) && e.Bucket != ""
}
