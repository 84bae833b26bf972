package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Error is a failed operation. It holds neither URLs nor texts of the server,
// which may carry signatures.
type Error struct {
	Op         string // S3 operation, "CreateBucket"
	Bucket     string
	StatusCode int    // 0 when there was no answer
	Code       string // S3 error code; "" when the answer had none
	Cause      string // why there was no usable answer
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Bucket != "" {
		fmt.Fprintf(&b, " %q", e.Bucket)
	}
	b.WriteString(":")
	if e.StatusCode != 0 {
		fmt.Fprintf(&b, " %d", e.StatusCode)
	}
	switch {
	case e.Code != "":
		b.WriteString(" " + e.Code)
	case e.StatusCode != 0:
		b.WriteString(" " + http.StatusText(e.StatusCode))
	}
	if e.Cause != "" {
		b.WriteString(" " + e.Cause)
	}
	return b.String()
}

// Code returns the S3 error code of err, "" if it has none.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// StatusCode returns the HTTP status of err, 0 if there was no answer.
func StatusCode(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.StatusCode
	}
	return 0
}

// wrong turns an error of minio-go or net/http into one of this package.
func wrong(ctx context.Context, op, bucket string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("%s %q: %w", op, bucket, ctxErr)
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return &Error{Op: op, Bucket: bucket, Cause: "no usable answer: " + cause(err)}
	}
	e := &Error{Op: op, Bucket: bucket, StatusCode: answer.StatusCode, Code: cleanCode(answer.Code)}
	if answer.RequestID == "minio" {
		// minio-go refused it before any call; its text is about the arguments.
		e.Cause = sanitise(answer.Message)
	}
	return e
}

var (
	codePattern  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]{0,63}$`)
	queryPattern = regexp.MustCompile(`\?[^\s"']*`)
)

// cleanCode drops what is no S3 code; minio-go puts the status line there when
// an answer has none.
func cleanCode(code string) string {
	if !codePattern.MatchString(code) {
		return ""
	}
	return code
}

// cause tells why a request had no answer, without its URL. It returns a text
// and not the error because time-outs of net/http claim to be the context's.
func cause(err error) string {
	var u *url.Error
	for errors.As(err, &u) && u.Err != nil {
		err = u.Err
	}
	text := err.Error()
	if strings.Contains(text, "Connection closed by foreign host") {
		return "the connection was closed without an answer"
	}
	return sanitise(text)
}

// sanitise makes a text one short line without query strings.
func sanitise(text string) string {
	text = queryPattern.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	const limit = 200
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
