package crash

import (
	"context"
	"errors"
	"net/http"
	"time"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// storyTries is how often an RPC in trouble is repeated, at most.
const storyTries = 10

// trouble is what an RPC meets.
type trouble struct {
	fault      *emulator.Fault
	crashAt    int // 0 is never
	carriedOut bool
	deadline   time.Duration // of the first try; 0 is none
}

// passing reports whether the error of a request that is right asks for a
// repetition. A sidecar may give up on any other, or take it for success.
func passing(err error) bool {
	for _, s := range []error{provider.ErrUnavailable, provider.ErrConflict, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// faults returns what a call may meet.
func faults() []emulator.Fault {
	page := http.Header{"Content-Type": {"text/html"}}
	return []emulator.Fault{
		{Status: http.StatusInternalServerError},
		{Status: http.StatusServiceUnavailable, Body: `{"detail":"maintenance"}`},
		{Status: http.StatusBadGateway, Header: page, Body: "<html><head><title>502 Bad Gateway</title></head></html>"},
		{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}},
		{Status: http.StatusTooManyRequests, Body: "rate limit on IP level exceeded"},
		{LoseAnswer: true},
		{LoseAnswer: true, Status: http.StatusGatewayTimeout},
		{CutConnection: true},
		{ResetBodyAfter: 7},
		{Latency: 15 * time.Millisecond},
	}
}

// drawTrouble draws none, for most.
func drawTrouble(t *rapid.T, c cloud) (met trouble) {
	switch rapid.IntRange(0, 9).Draw(t, "trouble") {
	case 4, 5, 6:
		f := rapid.SampledFrom(faults()).Draw(t, "fault")
		f.Cloud = c.name()
		f.Plane = rapid.SampledFrom([]string{"", emulator.PlaneControl, emulator.PlaneS3}).Draw(t, "plane")
		f.After = rapid.IntRange(0, 15).Draw(t, "after")
		f.Times = rapid.IntRange(1, 4).Draw(t, "times")
		met.fault = &f
	case 7, 8:
		met.crashAt = rapid.IntRange(1, 15).Draw(t, "crash")
		met.carriedOut = rapid.Bool().Draw(t, "carried out")
	case 9:
		met.deadline = time.Duration(rapid.IntRange(1, 30).Draw(t, "milliseconds")) * time.Millisecond
	}
	return met
}

// inject lets the cloud be disturbed until the returned function is called.
func (m trouble) inject(s *story) (remove func()) {
	if m.deadline > 0 {
		s.tally.deadlines.Add(1)
	}
	if m.fault == nil {
		return func() {}
	}
	s.tally.faults.Add(1)
	return s.emu.Inject(*m.fault)
}
