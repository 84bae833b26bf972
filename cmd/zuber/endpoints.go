package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// endpoints tells how the endpoints of the clouds fare: in metrics, and in the
// log when one fails and when it answers again. It is safe for concurrent use.
type endpoints struct {
	logger  klog.Logger
	open    *prometheus.GaugeVec
	pauses  *prometheus.CounterVec
	refused *prometheus.CounterVec
}

// The values of the label reason.
const (
	reasonCircuit = "circuit"
	reasonPause   = "pause"
)

func newEndpoints(registerer prometheus.Registerer, logger klog.Logger) *endpoints {
	labels := []string{"backend", "plane", "endpoint"}
	e := &endpoints{
		logger: logger,
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_backend_circuit_open",
			Help: "1 while an endpoint (plane control, token or s3) is left alone because all requests failed, until a trial is answered; else 0.",
		}, labels),
		pauses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_backend_pauses_total",
			Help: "How often an endpoint made all requests to it wait, by 429 or by 503 with Retry-After.",
		}, labels),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_backend_requests_refused_total",
			Help: "Requests that were not sent to an endpoint: reason circuit while it is left alone, pause where the call cannot wait so long.",
		}, append(labels, "reason")),
	}
	registerer.MustRegister(e.open, e.pauses, e.refused)
	return e
}

// happened records what happened at an endpoint of the back end. A nil
// *endpoints ignores it.
func (e *endpoints) happened(backend string, event transport.Event) {
	if e == nil {
		return
	}
	plane, host := string(event.Endpoint.Plane), event.Endpoint.Host
	logger := e.logger.WithValues("backend", backend, "plane", plane, "endpoint", host)
	switch event.What {
	case transport.Used:
		e.open.WithLabelValues(backend, plane, host).Set(0)
		e.pauses.WithLabelValues(backend, plane, host)
		for _, reason := range []string{reasonCircuit, reasonPause} {
			e.refused.WithLabelValues(backend, plane, host, reason)
		}
	case transport.CircuitOpened:
		e.open.WithLabelValues(backend, plane, host).Set(1)
		logger.Info("Warning: endpoint unavailable, calls that need it fail until it answers again", "since", event.Since, "cause", event.Cause)
	case transport.CircuitClosed:
		e.open.WithLabelValues(backend, plane, host).Set(0)
		logger.Info("Endpoint answers again", "after", time.Since(event.Since).Round(time.Second).String())
	case transport.Paused:
		e.pauses.WithLabelValues(backend, plane, host).Inc()
		logger.V(1).Info("Endpoint wants to be left alone", "until", event.Until, "cause", event.Cause)
	case transport.CircuitRefused:
		e.refused.WithLabelValues(backend, plane, host, reasonCircuit).Inc()
	case transport.PauseRefused:
		e.refused.WithLabelValues(backend, plane, host, reasonPause).Inc()
	}
}
