package cosi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// apiVersion is a version of the COSI API.
type apiVersion string

const (
	v1alpha1 apiVersion = "v1alpha1"
	v1alpha2 apiVersion = "v1alpha2"
)

// statusRow says which code a sentinel becomes in each API version.
type statusRow struct {
	sentinel error
	v1alpha1 codes.Code
	v1alpha2 codes.Code
}

// statusTable is the only place that names a code for an error of the driver.
//
// The v1alpha1 sidecar repeats every call that failed, for ever and at most
// 30 s apart, with one exception: AlreadyExists from a create is swallowed and
// hangs, and from a grant crashes it. The v1alpha2 sidecar gives up for good on
// InvalidArgument, AlreadyExists and Unimplemented, and repeats the rest.
func statusTable() []statusRow {
	return []statusRow{
		{provider.ErrInvalidArgument, codes.InvalidArgument, codes.InvalidArgument},
		{provider.ErrNotFound, codes.NotFound, codes.NotFound},
		{provider.ErrAlreadyExists, codes.FailedPrecondition, codes.AlreadyExists},
		{provider.ErrNotEmpty, codes.FailedPrecondition, codes.FailedPrecondition},
		{provider.ErrPrecondition, codes.FailedPrecondition, codes.FailedPrecondition},
		{provider.ErrPermissionDenied, codes.PermissionDenied, codes.PermissionDenied},
		{provider.ErrUnauthenticated, codes.Unauthenticated, codes.Unauthenticated},
		{provider.ErrQuotaExceeded, codes.ResourceExhausted, codes.ResourceExhausted},
		{provider.ErrConflict, codes.Aborted, codes.Aborted},
		{provider.ErrUnavailable, codes.Unavailable, codes.Unavailable},
		{provider.ErrUnsupported, codes.Unimplemented, codes.Unimplemented},
	}
}

func (r statusRow) code(v apiVersion) codes.Code {
	if v == v1alpha2 {
		return r.v1alpha2
	}
	return r.v1alpha1
}

// codeOf finds the code of an error. The end of the call's own context wins
// over what it made of the calls below; after it the sentinels, because a
// single HTTP call that timed out also looks like an ended context. What is in
// no table is a fault of ours: Internal, which both sidecars repeat.
func codeOf(ctx context.Context, v apiVersion, err error) codes.Code {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return codeOfContext(ended)
	}
	for _, row := range statusTable() {
		if errors.Is(err, row.sentinel) {
			return row.code(v)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return codeOfContext(err)
	}
	return codes.Internal
}

func codeOfContext(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return codes.Canceled
}

// statusOf turns an error of the driver into the status that the sidecar sees.
// It carries no details: v1alpha2 forbids them.
func statusOf(ctx context.Context, v apiVersion, limit time.Duration, err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(ctx, v, err)
	text := err.Error()
	if code == codes.DeadlineExceeded {
		text = fmt.Sprintf("not finished within %s, the call will be repeated: %s", limit, text)
	}
	return status.Error(code, message(text))
}

// maxMessage bounds a status message in bytes: it ends up in an event or in
// the status of an object.
const maxMessage = 1024

// message makes a text fit for a status.
func message(text string) string { return oneLine(text, maxMessage) }

// oneLine makes a text one line of valid UTF-8 with at most so many bytes.
func oneLine(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	cut := limit - len(ellipsis)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
