package cosi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestStatusTable walks the table: every sentinel has one row with a reason, and each
// version's code is one that its sidecar does the right thing with.
func TestStatusTable(t *testing.T) {
	// What the sidecars do with a code: seen of the real ones.
	v1alpha1Breaks := map[codes.Code]string{codes.AlreadyExists: "hangs a create and crashes on a grant", codes.OK: "is no error"}
	v1alpha2GivesUp := map[codes.Code]bool{codes.InvalidArgument: true, codes.AlreadyExists: true, codes.Unimplemented: true, codes.OutOfRange: true}
	// Which errors another request alone can cure.
	hopeless := map[error]bool{provider.ErrInvalidArgument: true, provider.ErrAlreadyExists: true, provider.ErrUnsupported: true}
	// Codes that the run-time of gRPC answers with, or that mean something else.
	notOurs := []codes.Code{codes.OK, codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Canceled, codes.OutOfRange, codes.DataLoss}

	rows := map[error]statusRow{}
	for _, r := range statusTable() {
		if _, twice := rows[r.sentinel]; twice {
			t.Errorf("%v has two rows", r.sentinel)
		}
		rows[r.sentinel] = r
		if len(strings.Fields(r.why)) < 4 {
			t.Errorf("%v has no reason", r.sentinel)
		}
	}
	if len(rows) != len(provider.Sentinels()) {
		t.Errorf("%d rows for %d sentinels", len(rows), len(provider.Sentinels()))
	}
	for _, s := range provider.Sentinels() {
		r, ok := rows[s]
		if !ok {
			t.Errorf("%v has no row", s)
			continue
		}
		for _, v := range []APIVersion{V1alpha1, V1alpha2} {
			if c := r.code(v); slices.Contains(notOurs, c) {
				t.Errorf("%v becomes %v in %s", s, c, v)
			}
			if c := r.code(v); (c == codes.NotFound) != errors.Is(s, provider.ErrNotFound) {
				t.Errorf("%v becomes %v in %s: NotFound ends v1alpha1's deletions and makes v1alpha2 wait", s, c, v)
			}
		}
		if why := v1alpha1Breaks[r.v1alpha1]; why != "" {
			t.Errorf("%v becomes %v in v1alpha1, which %s", s, r.v1alpha1, why)
		}
		switch final := v1alpha2GivesUp[r.v1alpha2]; {
		case final && !hopeless[s]:
			t.Errorf("%v becomes %v in v1alpha2, which is never repeated", s, r.v1alpha2)
		case !final && hopeless[s]:
			t.Errorf("%v becomes %v in v1alpha2, which is repeated for ever", s, r.v1alpha2)
		}
	}
}

func TestCodeOf(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancelLate()
	wrap := func(errs ...error) error {
		err := errors.New("cause")
		for _, e := range errs {
			err = fmt.Errorf("bucket b: %w: %w", e, err)
		}
		return err
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want codes.Code
	}{
		"taken":                            {t.Context(), wrap(provider.ErrAlreadyExists), codes.FailedPrecondition},
		"one HTTP call timed out":          {t.Context(), wrap(context.DeadlineExceeded, provider.ErrUnavailable), codes.Unavailable},
		"the call timed out":               {late, wrap(context.DeadlineExceeded), codes.DeadlineExceeded},
		"the call timed out in the cloud":  {late, wrap(context.DeadlineExceeded, provider.ErrUnavailable), codes.DeadlineExceeded},
		"the caller went away":             {ended, wrap(context.Canceled, provider.ErrUnavailable), codes.Canceled},
		"a real fault while the time ends": {late, wrap(provider.ErrNotEmpty), codes.FailedPrecondition},
		"a bare deadline":                  {t.Context(), context.DeadlineExceeded, codes.DeadlineExceeded},
		"a bare cancellation":              {t.Context(), context.Canceled, codes.Canceled},
		"nothing known":                    {t.Context(), wrap(), codes.Internal},
	} {
		if got := codeOf(c.ctx, V1alpha1, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := codeOf(t.Context(), V1alpha2, wrap(provider.ErrAlreadyExists)); got != codes.AlreadyExists {
		t.Errorf("v1alpha2 taken: %v", got)
	}
}

// TestStatusIsForPeople: one line, bounded, valid, without details.
func TestStatusIsForPeople(t *testing.T) {
	for name, text := range map[string]string{
		"lines":   "a\nb\r\n\tc\x00d",
		"long":    strings.Repeat("word ", 1000),
		"runes":   strings.Repeat("ü", 2000),
		"emoji":   "x" + strings.Repeat("\U0001FAA3", 1000),
		"invalid": "a\xff\xfeb",
		"seams":   "a\u2028b\u0085c",
	} {
		err := statusOf(t.Context(), V1alpha1, time.Second, fmt.Errorf("%w: %s", provider.ErrConflict, text))
		st, ok := status.FromError(err)
		if !ok || st.Code() != codes.Aborted || len(st.Details()) != 0 {
			t.Fatalf("%s: %v", name, err)
		}
		m := st.Message()
		if len(m) > maxMessage || !utf8.ValidString(m) || strings.ContainsAny(m, "\n\r\t\x00\u2028\u0085") {
			t.Errorf("%s: %d bytes: %.80q", name, len(m), m)
		}
		if len(text) > maxMessage && (!strings.HasSuffix(m, "…") || len(m) < maxMessage-8) {
			t.Errorf("%s: cut to %d bytes: …%q", name, len(m), m[len(m)-8:])
		}
	}
	if statusOf(t.Context(), V1alpha1, time.Second, nil) != nil {
		t.Error("success became an error")
	}
}
