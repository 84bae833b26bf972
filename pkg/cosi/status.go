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

// APIVersion is a version of the COSI API.
type APIVersion string

// The versions that are served.
const (
	V1alpha1 APIVersion = "v1alpha1"
	V1alpha2 APIVersion = "v1alpha2"
)

// statusRow says which code a sentinel becomes in each API version, and why.
type statusRow struct {
	sentinel error
	v1alpha1 codes.Code
	v1alpha2 codes.Code
	why      string
}

// statusTable is the only place that names a code for an error of the driver.
//
// The v1alpha1 sidecar repeats every call that failed, for ever and at most
// 30 s apart, with two exceptions: AlreadyExists from a create is swallowed and
// hangs, and from a grant crashes it; NotFound from a deletion is success.
//
// The v1alpha2 sidecar does nothing more, until the object changes or it starts
// anew, after InvalidArgument, AlreadyExists and Unimplemented, and repeats the
// rest, ever more slowly. So these three stand where nothing but another request
// can help. To a grant OutOfRange is final too, and means that the driver has no
// accesses to several buckets. This one has; buckets that one identity cannot
// span are a fault of the request.
func statusTable() []statusRow {
	return []statusRow{
		{provider.ErrInvalidArgument, codes.InvalidArgument, codes.InvalidArgument,
			"the same request is as wrong the next time; classes and IDs are immutable"},
		{provider.ErrNotFound, codes.NotFound, codes.NotFound,
			"the v1alpha2 sidecar waits so for an existing bucket; the driver keeps it from deletions and revocations"},
		{provider.ErrAlreadyExists, codes.FailedPrecondition, codes.AlreadyExists,
			"somebody else has the name, or the bucket has other parameters, and a request never gets new ones; v1alpha1 cannot live with the code"},
		{provider.ErrNotEmpty, codes.FailedPrecondition, codes.FailedPrecondition,
			"somebody may empty the bucket"},
		{provider.ErrPrecondition, codes.FailedPrecondition, codes.FailedPrecondition,
			"somebody may bring about the state that the text names"},
		{provider.ErrPermissionDenied, codes.PermissionDenied, codes.PermissionDenied,
			"somebody may give the driver's credentials the right, or the bucket the mark"},
		{provider.ErrUnauthenticated, codes.Unauthenticated, codes.Unauthenticated,
			"credentials are renewed while the driver runs"},
		{provider.ErrQuotaExceeded, codes.ResourceExhausted, codes.ResourceExhausted,
			"a limit may be raised, or something removed below it"},
		{provider.ErrConflict, codes.Aborted, codes.Aborted,
			"the other writer comes to an end"},
		{provider.ErrUnavailable, codes.Unavailable, codes.Unavailable,
			"an outage passes, and long work goes on where it was"},
		{provider.ErrUnsupported, codes.Unimplemented, codes.Unimplemented,
			"the cloud has no such thing; what an endpoint may learn is ErrPrecondition"},
	}
}

func (r statusRow) code(v APIVersion) codes.Code {
	if v == V1alpha2 {
		return r.v1alpha2
	}
	return r.v1alpha1
}

// codeOf finds the code of an error. The end of the call's own context wins
// over what it made of the calls below; after it the sentinels, because a
// single HTTP call that timed out also looks like an ended context. What is in
// no table is a fault of ours: Internal, which both sidecars repeat.
func codeOf(ctx context.Context, v APIVersion, err error) codes.Code {
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
func statusOf(ctx context.Context, v APIVersion, limit time.Duration, err error) error {
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
