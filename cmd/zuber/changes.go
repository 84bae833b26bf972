package main

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// changes counts what the driver does to accesses, and how calls wait for one
// another. It implements driver.Observer.
type changes struct {
	accesses *prometheus.CounterVec
	waits    *prometheus.HistogramVec
	held     prometheus.Gauge
}

var _ driver.Observer = (*changes)(nil)

// The values of the label outcome of a wait for a lock.
const (
	lockTaken   = "taken"
	lockGivenUp = "given_up"
)

func newChanges(registerer prometheus.Registerer) *changes {
	c := &changes{
		accesses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_access_changes_total",
			Help: "What was done to accesses in a back end (change grant, revoke, rotate, or retire, which ends the old keys after a rotation) by outcome: ok, or the kind of error.",
		}, []string{"backend", "change", "outcome"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "zuber_lock_wait_seconds",
			Help:    "How long calls waited for other calls on the same bucket, by outcome: taken or given_up.",
			Buckets: []float64{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 120},
		}, []string{"outcome"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "zuber_locks_held",
			Help: "Buckets that a call works on at this moment.",
		}),
	}
	registerer.MustRegister(c.accesses, c.waits, c.held)
	return c
}

// known makes the counters of what succeeds in a back end begin at 0, so that the
// first success is an increase.
func (c *changes) known(backend string) {
	for _, change := range driver.Changes() {
		c.accesses.WithLabelValues(backend, string(change), outcomeLabel(nil))
	}
}

// errOther is an error without a sentinel.
var errOther = errors.New("other")

// outcomeLabel is the label of an error: its sentinel's text.
func outcomeLabel(err error) string {
	if err == nil {
		return "ok"
	}
	for _, sentinel := range provider.Sentinels() {
		if errors.Is(err, sentinel) {
			return strings.ReplaceAll(sentinel.Error(), " ", "_")
		}
	}
	return errOther.Error()
}

// AccessChanged implements driver.Observer.
func (c *changes) AccessChanged(backend string, change driver.Change, err error) {
	c.accesses.WithLabelValues(backend, string(change), outcomeLabel(err)).Inc()
}

// LockTaken implements driver.Observer.
func (c *changes) LockTaken(waited time.Duration) {
	c.waits.WithLabelValues(lockTaken).Observe(waited.Seconds())
	c.held.Inc()
}

// LockGivenUp implements driver.Observer.
func (c *changes) LockGivenUp(waited time.Duration) {
	c.waits.WithLabelValues(lockGivenUp).Observe(waited.Seconds())
}

// LockFreed implements driver.Observer.
func (c *changes) LockFreed() { c.held.Dec() }
