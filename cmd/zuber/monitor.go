package main

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// checker is a provider that can be asked whether its credentials will do.
type checker interface {
	// Check returns an error that wraps provider.ErrUnauthenticated or
	// provider.ErrPermissionDenied, with the remedy, when they will not.
	Check(ctx context.Context) error
}

// How often a back end is asked, and for how long at most.
const (
	checkEvery       = 5 * time.Minute
	checkRetry       = time.Second // doubled with each failure, up to checkRetryMost
	checkRetryMost   = time.Minute
	checkAnswerLimit = 30 * time.Second
)

// monitor asks every back end, from the start on and now and then, whether its
// credentials will do. It blocks nothing: an outage of a cloud must not keep
// the driver from starting. It is safe for concurrent use.
type monitor struct {
	backends    []driver.Backend
	logger      klog.Logger
	credentials *prometheus.GaugeVec
	reachable   *prometheus.GaugeVec
	retry       time.Duration

	mu      sync.Mutex
	pending map[string]bool // back ends whose first check has not ended
	refused map[string]error
}

func newMonitor(backends []driver.Backend, registerer prometheus.Registerer, logger klog.Logger) *monitor {
	m := &monitor{
		backends: backends,
		logger:   logger,
		retry:    checkRetry,
		pending:  map[string]bool{},
		refused:  map[string]error{},
		credentials: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_backend_credentials_ok",
			Help: "1 if the cloud accepted the back end's credentials when it last answered, 0 if it refused them or they are read-only.",
		}, []string{"backend"}),
		reachable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_backend_reachable",
			Help: "1 if the back end's cloud answered the last periodic check, 0 if it did not.",
		}, []string{"backend"}),
	}
	registerer.MustRegister(m.credentials, m.reachable)
	for _, b := range backends {
		if _, ok := b.Provider.(checker); ok {
			m.pending[b.Name] = true
		}
	}
	return m
}

// run checks until ctx ends.
func (m *monitor) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, b := range m.backends {
		if c, ok := b.Provider.(checker); ok {
			group.Go(func() { m.watch(ctx, b.Name, c) })
		}
	}
}

// outcome is what a check found.
type outcome string

const (
	accepted    outcome = "accepted"
	refused     outcome = "refused"
	unreachable outcome = "unreachable"
)

func (m *monitor) watch(ctx context.Context, name string, c checker) {
	logger := m.logger.WithValues("backend", name)
	var last outcome
	wait := m.retry
	for ctx.Err() == nil {
		found, err := m.check(ctx, name, c)
		if ctx.Err() != nil {
			return
		}
		if found != last {
			switch found {
			case accepted:
				logger.Info("Credentials accepted")
			case refused:
				logger.Error(err, "Credentials will not do")
			case unreachable:
				logger.Error(err, "Cloud does not answer, the check will be repeated")
			}
		}
		if found == accepted {
			wait = m.retry
		}
		next := checkEvery
		if found != accepted {
			next = wait
			wait = min(2*wait, checkRetryMost)
		}
		last = found
		pause(ctx, next)
	}
}

// check asks once and records the answer.
func (m *monitor) check(ctx context.Context, name string, c checker) (outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, checkAnswerLimit)
	defer cancel()
	err := c.Check(bounded)
	if ctx.Err() != nil {
		return unreachable, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, name)
	switch {
	case err == nil:
		delete(m.refused, name)
		m.credentials.WithLabelValues(name).Set(1)
		m.reachable.WithLabelValues(name).Set(1)
		return accepted, nil
	case errors.Is(err, provider.ErrUnauthenticated), errors.Is(err, provider.ErrPermissionDenied):
		m.refused[name] = err
		m.credentials.WithLabelValues(name).Set(0)
		m.reachable.WithLabelValues(name).Set(1)
		return refused, err
	}
	m.reachable.WithLabelValues(name).Set(0)
	return unreachable, err
}

// errUnchecked is the reason of a back end before its first check has ended,
// which takes checkAnswerLimit at most.
var errUnchecked = errors.New("its credentials are not checked yet")

// doubts yields the back ends whose credentials will not do or are not checked
// yet, in the order of the configuration.
func (m *monitor) doubts() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, b := range m.backends {
			err := m.refused[b.Name]
			if m.pending[b.Name] {
				err = errUnchecked
			}
			if err != nil && !yield(b.Name, err) {
				return
			}
		}
	}
}
