package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/gc"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// orphanAge is how old something must be to be counted as an orphan.
const orphanAge = time.Hour

// orphans counts what `zuber gc` would list, and deletes nothing. It is safe for
// concurrent use; a nil *orphans has no cluster to compare with.
type orphans struct {
	config     *rest.Config
	driverName string
	age        time.Duration // orphanAge
	backends   []driver.Backend
	logger     klog.Logger
	count      *prometheus.GaugeVec
	unknown    *prometheus.GaugeVec

	mu   sync.Mutex
	seen map[string]gc.Sightings // by back end
	last map[string]string       // the error that was logged last, by back end
}

func newOrphans(backends []driver.Backend, s serveSettings, registerer prometheus.Registerer, logger klog.Logger) *orphans {
	o := &orphans{
		driverName: s.DriverName, age: orphanAge, backends: backends, logger: logger, seen: map[string]gc.Sightings{}, last: map[string]string{},
		count: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_orphans",
			Help: "What the last audit of the back end found that carries the driver's mark, is older than an hour and has no object in the cluster, by kind; absent where the cluster cannot be read.",
		}, []string{"backend", "kind"}),
		unknown: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_orphans_unknown",
			Help: "1 while the last audit of the back end could not find out what zuber_orphans counts, else 0; absent where the cluster is not asked.",
		}, []string{"backend"}),
	}
	registerer.MustRegister(o.count, o.unknown)
	if s.Companion == companionOff {
		return nil
	}
	config, _, err := s.cluster()
	if err != nil {
		return nil // the companion tells it
	}
	config.Timeout = clusterTimeout // an API server that does not answer must not end the audits
	o.config = config
	return o
}

// look counts the orphans of a back end.
func (o *orphans) look(ctx context.Context, b driver.Backend) {
	if o == nil {
		return
	}
	o.mu.Lock()
	seen := o.seen[b.Name]
	if seen == nil {
		seen = gc.Sightings{}
		o.seen[b.Name] = seen
	}
	o.mu.Unlock()
	collector := gc.Collector{
		Backends: []gc.Backend{{Name: b.Name, Provider: b.Provider}}, Expect: o.expect, MinAge: o.age, Seen: seen, Now: time.Now,
	}
	plan, err := collector.Look(ctx)
	if err == nil {
		err = errors.Join(append(plan.Unread, plan.Refusal)...)
	}
	if ctx.Err() != nil {
		return
	}
	o.tell(b.Name, err)
	if err != nil {
		o.unknown.WithLabelValues(b.Name).Set(1)
		o.count.DeletePartialMatch(prometheus.Labels{"backend": b.Name})
		return
	}
	found := map[provider.Kind]int{}
	for _, i := range plan.Items {
		if i.Verdict == gc.Orphan {
			found[i.Kind]++
		}
	}
	for _, kind := range []provider.Kind{provider.KindBucket, provider.KindOwner, provider.KindAccess} {
		o.count.WithLabelValues(b.Name, string(kind)).Set(float64(found[kind]))
	}
	o.unknown.WithLabelValues(b.Name).Set(0)
}

// tell logs why orphans are not known, once.
func (o *orphans) tell(backend string, err error) {
	text := fmt.Sprint(err)
	o.mu.Lock()
	again := o.last[backend] == text
	o.last[backend] = text
	o.mu.Unlock()
	if err != nil && !again {
		o.logger.Info("Orphans are not known", "backend", backend, "reason", text)
	}
}

// expect reads what should exist. An answer in doubt is an error.
func (o *orphans) expect(ctx context.Context) (gc.Expected, error) {
	objects, err := objectsInCluster(ctx, o.config)
	if err != nil {
		return gc.Expected{}, err
	}
	e := newExpectation(o.driverName, o.backends)
	for _, object := range objects {
		if err := e.add(object); err != nil {
			return gc.Expected{}, err
		}
	}
	return e.Expected, nil
}
