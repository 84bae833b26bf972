package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// patrol audits every back end at an interval while the driver serves. It repairs
// nothing: what drifts has a cause that somebody should see.
type patrol struct {
	backends []driver.Backend
	interval time.Duration // 0 is off
	budget   int           // calls a minute
	logger   klog.Logger
	findings *prometheus.GaugeVec
	last     *prometheus.GaugeVec
	orphans  *orphans // may be nil
}

func newPatrol(backends []driver.Backend, s serveSettings, registerer prometheus.Registerer, logger klog.Logger) *patrol {
	p := &patrol{
		backends: backends, interval: s.AuditInterval, budget: s.AuditCallBudget, logger: logger,
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_audit_findings",
			Help: "What the last whole audit of the back end found, by kind of drift.",
		}, []string{"backend", "kind"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_audit_last_success_timestamp_seconds",
			Help: "When the back end was last audited as a whole, and until then when the driver started, in seconds since 1970.",
		}, []string{"backend"}),
	}
	registerer.MustRegister(p.findings, p.last)
	p.orphans = newOrphans(backends, s, registerer, logger)
	return p
}

// run audits until ctx ends. Back ends do not wait for each other.
func (p *patrol) run(ctx context.Context) {
	if p.interval == 0 {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, b := range p.backends {
		p.last.WithLabelValues(b.Name).SetToCurrentTime() // else an audit that never succeeds would not be noticed
		group.Go(func() { p.watch(ctx, b) })
	}
}

func (p *patrol) watch(ctx context.Context, b driver.Backend) {
	known := map[provider.Finding]bool{}
	failed := false
	ctx = transport.WithBudget(ctx, p.budget)
	for {
		// Several drivers that start at once must not ask a cloud at once.
		if !pause(ctx, p.interval/2+rand.N(p.interval)) { // #nosec G404 -- nothing secret
			return
		}
		findings, err := auditOf(ctx, b)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failed:
			p.logger.Error(err, "Audit failed, it will be repeated", "backend", b.Name)
		}
		if failed = err != nil; failed {
			continue // what was not looked at is not known to be right
		}
		known = p.tell(b.Name, known, findings)
		p.orphans.look(ctx, b)
	}
}

// tell logs what has come and gone, and returns what is there.
func (p *patrol) tell(backend string, known map[provider.Finding]bool, findings []provider.Finding) map[provider.Finding]bool {
	found := map[provider.Finding]bool{}
	count := map[provider.Drift]int{}
	for _, f := range findings {
		found[f] = true
		count[f.Drift]++
		if !known[f] {
			p.logger.Info("Audit found drift", "backend", backend, "kind", f.Drift, "bucket", f.Bucket, "region", f.Region, "id", f.ID,
				"problem", f.Problem, "remedy", f.Remedy)
		}
	}
	for f := range known {
		if !found[f] {
			p.logger.Info("Drift is gone", "backend", backend, "kind", f.Drift, "bucket", f.Bucket, "region", f.Region, "id", f.ID)
		}
	}
	for _, drift := range provider.Drifts() {
		p.findings.WithLabelValues(backend, string(drift)).Set(float64(count[drift]))
	}
	p.last.WithLabelValues(backend).SetToCurrentTime()
	return found
}
