package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
)

// prober is a provider that must find out whether an endpoint can tell accesses
// apart.
type prober interface {
	// ProbePolicies answers from what was found before, or probes.
	ProbePolicies(ctx context.Context, region, endpoint string) (cloudscale.Verdict, error)
}

// verdicts is the metric of what probes found. It is safe for concurrent use.
type verdicts struct{ honoured *prometheus.GaugeVec }

func newVerdicts(registerer prometheus.Registerer) verdicts {
	v := verdicts{honoured: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "zuber_backend_policies_honoured",
		Help: "1 if a probe found that the region's endpoint enforces bucket policies, so that accesses have keys of their own; 0 if it found that it does not.",
	}, []string{"backend", "region"})}
	registerer.MustRegister(v.honoured)
	return v
}

// found records what a probe of the back end found.
func (v verdicts) found(backend string, verdict cloudscale.Verdict) {
	value := 0.0
	if verdict.Honoured {
		value = 1
	}
	v.honoured.WithLabelValues(backend, verdict.Region).Set(value)
}
