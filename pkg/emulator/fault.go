package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fault is a disturbance of matching calls. Cloud, Plane, Operation and Region select
// calls; After, Times and Probability select among those; the rest says what
// happens. Latency comes first and combines with any outcome. Without an
// outcome the call is merely late.
//
// Several faults may match one call. Each counts its own calls, their latencies
// add up, and the first injected one that has an outcome decides.
//
// The outage of a plane is a fault that names nothing but the plane, with
// CutConnection or a Status. A rate limit is Status 429 with a Retry-After header.
type Fault struct {
	Cloud     string // CloudCloudscale, CloudStackit; "" = any
	Plane     string // PlaneControl, PlaneS3; "" = any
	Operation string // "CreateObjectsUser", …, or an S3 operation such as "PutObject"; "" = any
	Region    string // S3 plane only; "" = any

	After       int     // let this many matching calls pass first
	Times       int     // then hit this many; 0 = all
	Probability float64 // of each hit, by the emulator's seed; 0 = always

	// Latency holds the call back before it is carried out. It ends early, with
	// the call not carried out, when the client gives up or the emulator closes.
	Latency time.Duration
	// Status answers with Header and Body in place of carrying the call out.
	Status int
	Header http.Header
	Body   string
	// LoseAnswer carries the call out, then cuts the connection without an
	// answer. With a Status that status is answered in place of the cut.
	LoseAnswer bool
	// CutConnection cuts the connection before the call is carried out.
	CutConnection bool
	// ResetBodyAfter cuts the connection after that many bytes of the answer's
	// body, of Body if there is a Status. A body that is no longer is sent whole.
	ResetBodyAfter int64
}

// outcome says whether the fault does more than delay.
func (f Fault) outcome() bool {
	return f.Status != 0 || f.LoseAnswer || f.CutConnection || f.ResetBodyAfter > 0
}

func (f Fault) matches(c Call) bool {
	return (f.Cloud == "" || f.Cloud == c.Cloud) &&
		(f.Plane == "" || f.Plane == c.Plane) &&
		(f.Operation == "" || f.Operation == c.Operation) &&
		(f.Region == "" || f.Region == c.Region)
}

// validate reports everything that is wrong with a fault.
func (f Fault) validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(f.Cloud != "" && f.Cloud != CloudCloudscale && f.Cloud != CloudStackit,
		"cloud is %q, want %q, %q or none for both", f.Cloud, CloudCloudscale, CloudStackit)
	bad(f.Plane != "" && f.Plane != PlaneControl && f.Plane != PlaneS3,
		"plane is %q, want %q, %q or none for both", f.Plane, PlaneControl, PlaneS3)
	bad(f.Region != "" && f.Plane == PlaneControl, "region goes with the plane %q only", PlaneS3)
	bad(f.After < 0, "after is negative")
	bad(f.Times < 0, "times is negative")
	bad(f.Probability < 0 || f.Probability > 1, "probability is %v, want 0 to 1", f.Probability)
	bad(f.Latency < 0, "latency is negative")
	bad(f.Status != 0 && (f.Status < 200 || f.Status > 599), "status is %d, want 200 to 599", f.Status)
	bad(f.Status == 0 && (len(f.Header) > 0 || f.Body != ""), "header and body need a status")
	bad(f.ResetBodyAfter < 0, "resetBodyAfter is negative")
	bad(f.CutConnection && (f.Status != 0 || f.LoseAnswer || f.ResetBodyAfter > 0),
		"cutConnection excludes status, loseAnswer and resetBodyAfter")
	bad(f.LoseAnswer && f.ResetBodyAfter > 0, "loseAnswer excludes resetBodyAfter")
	bad(!f.outcome() && f.Latency == 0,
		"the fault does nothing: set latency, status, loseAnswer, cutConnection or resetBodyAfter")
	return errors.Join(errs...)
}

// activeFault is an injected fault with its counts.
type activeFault struct {
	Fault
	ID   int
	Seen int // matching calls
	Hits int
	rng  *rand.Rand
}

// faultList holds the injected faults in order.
type faultList struct {
	seed uint64

	mu     sync.Mutex
	lastID int
	active []*activeFault
}

func newFaultList(seed uint64) *faultList { return &faultList{seed: seed} }

// add returns a copy of the new entry.
func (l *faultList) add(f Fault) activeFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	f.Header = f.Header.Clone()
	a := &activeFault{
		Fault: f,
		ID:    l.lastID,
		// A stream of its own keeps a fault's choices independent of other faults.
		rng: rand.New(rand.NewPCG(l.seed, uint64(l.lastID))), // #nosec G404 -- repeatable on purpose, nothing secret
	}
	l.active = append(l.active, a)
	return *a
}

// remove reports whether the fault was there.
func (l *faultList) remove(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.active)
	l.active = slices.DeleteFunc(l.active, func(a *activeFault) bool { return a.ID == id })
	return len(l.active) < n
}

func (l *faultList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = nil
}

func (l *faultList) list() []activeFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]activeFault, len(l.active))
	for i, a := range l.active {
		out[i] = *a
	}
	return out
}

// strike counts a call against every fault and returns what happens to it; the
// returned fault has no outcome if the call is to be carried out undisturbed.
func (l *faultList) strike(c Call) (latency time.Duration, f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.active {
		if !a.matches(c) {
			continue
		}
		a.Seen++
		if a.Seen <= a.After || (a.Times > 0 && a.Hits >= a.Times) {
			continue
		}
		if a.Probability > 0 && a.rng.Float64() >= a.Probability {
			continue
		}
		a.Hits++
		latency += a.Latency
		if !f.outcome() && a.outcome() {
			f = a.Fault
		}
	}
	return latency, f
}
