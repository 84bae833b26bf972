package cosi

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// metrics are the figures of one server. They never hold a name of a bucket or
// an account: those are unbounded.
type metrics struct {
	duration *prometheus.HistogramVec
	panics   prometheus.Counter
}

// newMetrics registers the figures; with no registerer it keeps them to itself.
// A second server on the same registerer shares the first one's.
func newMetrics(r prometheus.Registerer, version string, unconfigured bool) (*metrics, error) {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	m := &metrics{}
	var err error
	m.duration, err = register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "zuber_rpc_duration_seconds",
		Help:    "Duration of COSI calls by API version, method and gRPC code.",
		Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90, 120},
	}, []string{"api_version", "method", "code"}))
	if err != nil {
		return nil, err
	}
	m.panics, err = register(r, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "zuber_rpc_panics_total",
		Help: "Calls that ended in a panic and were answered with Internal.",
	}))
	if err != nil {
		return nil, err
	}
	gauge, err := register(r, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "zuber_unconfigured",
		Help: "1 while the driver has no back end and refuses every call, else 0.",
	}))
	if err != nil {
		return nil, err
	}
	gauge.Set(0)
	if unconfigured {
		gauge.Set(1)
	}
	info, err := register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "zuber_build_info",
		Help: "1, with the version of the driver and of Go as labels.",
	}, []string{"version", "go_version"}))
	if err != nil {
		return nil, err
	}
	info.WithLabelValues(version, runtime.Version()).Set(1)
	return m, nil
}

func register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	err := r.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register metrics: %w", err)
	}
	return c, nil
}

func (m *metrics) observe(version, method string, code codes.Code, took time.Duration) {
	m.duration.WithLabelValues(version, method, code.String()).Observe(took.Seconds())
}
