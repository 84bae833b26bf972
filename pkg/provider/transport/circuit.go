package transport

import (
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// tripAfter is how many failures in a row, without any answer in between, open
// a circuit. A row and not a rate: where some calls are answered the cloud is
// up, however many others fail, and one call in twenty or even two that fails
// at random makes no row of ten in the life of a process.
const tripAfter = 10

// cooldownJitter keeps the trials of several endpoints apart.
const cooldownJitter = 0.2

// circuit is the breaker of one endpoint. Its gate's lock guards it, the
// breaker's listener included.
type circuit struct {
	endpoint Endpoint
	breaker  circuitbreaker.CircuitBreaker[any]
	since    time.Time // when the row of failures began; zero when the last call was answered
	cause    string    // of the last failure
	target   string    // of the last failure
	// spare is a trial that ended undecided: the breaker itself knows no way to
	// give one back, and would never close without another.
	spare bool
}

func newCircuit(e Endpoint, p Pacing) *circuit {
	c := &circuit{endpoint: e}
	c.breaker = circuitbreaker.NewBuilder[any]().
		WithFailureThreshold(tripAfter).
		WithSuccessThreshold(1).
		WithDelay(p.Cooldown).
		WithJitterFactor(cooldownJitter).
		OnStateChanged(func(change circuitbreaker.StateChangedEvent) {
			c.spare = false
			switch {
			case change.OldState == circuitbreaker.ClosedState:
				p.OnEvent(Event{What: CircuitOpened, Endpoint: e, Since: c.since, Cause: c.cause})
			case change.NewState == circuitbreaker.ClosedState:
				p.OnEvent(Event{What: CircuitClosed, Endpoint: e, Since: c.since})
			}
		}).
		Build()
	return c
}

// refusal is the error of a request while the endpoint is left alone, nil when
// it may be tried.
func (c *circuit) refusal(now time.Time) error {
	if wait := c.breaker.RemainingDelay(); wait > 0 {
		return c.refuse(now, "next try in "+max(wait.Round(time.Second), time.Second).String())
	}
	return nil
}

// take asks for leave to send a request, and says whether it is the trial that
// decides on the circuit.
func (c *circuit) take(now time.Time) (trial bool, err error) {
	allowed := c.breaker.TryAcquirePermit()
	trial = c.breaker.IsHalfOpen()
	if !allowed && trial && c.spare {
		c.spare, allowed = false, true
	}
	if !allowed {
		return false, c.refuse(now, "it is being tried right now, repeat the call")
	}
	return trial, nil
}

// record takes the outcome of a request in.
func (c *circuit) record(r result, target string, trial bool, now time.Time) {
	switch r.verdict {
	case undecided:
		c.spare = c.spare || trial && c.breaker.IsHalfOpen()
	case answered:
		c.breaker.RecordSuccess()
		if c.breaker.IsClosed() {
			c.since, c.cause, c.target = time.Time{}, "", ""
		}
	case failed:
		// A bucket that fails again and again says no more than once that the
		// endpoint does.
		again := target != "" && target == c.target && c.breaker.IsClosed()
		if c.since.IsZero() {
			c.since = now
		}
		c.cause, c.target = r.cause, target
		if !again {
			c.breaker.RecordFailure()
		}
	}
}

func (c *circuit) refuse(now time.Time, next string) error {
	return &refusedError{fmt.Sprintf("%s unavailable since %s (%s): %s; %s", c.endpoint,
		c.since.UTC().Format(time.RFC3339), now.Sub(c.since).Round(time.Second), c.cause, next)}
}

// refusedError is a request that was not sent to spare its endpoint. Adapters
// make provider.ErrUnavailable of it, as of every request without an answer.
type refusedError struct{ text string }

// Error implements error.
func (e *refusedError) Error() string { return e.text }
