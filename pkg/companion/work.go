package companion

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// The label on every Secret that the companion makes, and how the cache finds
// them.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "zuber"
)

// How often every access is looked at again: for what COSI writes into its
// Secrets without a word, and for what the companion does not watch.
const (
	resync          = 10 * time.Minute
	resyncUnwatched = time.Minute
)

// loggerSet guards controller-runtime's logger, which all companions of a process
// share.
var loggerSet sync.Once

// work runs the controllers until ctx ends, or the Lease is lost. Only the
// process that has the Lease writes.
func (c *Companion) work(ctx context.Context, keys *driver.Driver, p plan, self string) error {
	logger := klog.FromContext(ctx)
	loggerSet.Do(func() { ctrllog.SetLogger(logger) })
	m, err := manager.New(c.config.REST, manager.Options{
		Scheme:                        c.scheme,
		Logger:                        logger,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		LeaderElection:                true,
		LeaderElectionID:              c.config.Driver + "-companion",
		LeaderElectionNamespace:       c.config.Namespace,
		LeaderElectionReleaseOnCancel: true, // its controllers have stopped by then
		Cache:                         p.cache(),
		NewCache:                      newStoppable(ctx),
		Controller:                    ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	cached := view{p.version, m.GetCache()}
	record := &recorder{client: m.GetClient(), now: time.Now, told: map[string]time.Time{}}
	if err := (&claims{
		view: cached, events: m.GetCache(), record: record, news: newNews(time.Now),
		driver: c.config.Driver, allowWipe: c.config.AllowWipe,
	}).register(ctx, m); err != nil {
		return err
	}
	if err := (&accesses{
		view: cached, live: view{p.version, m.GetAPIReader()}, record: record, news: newNews(time.Now), driver: c.config.Driver, keys: keys, now: time.Now, metrics: c.config.Metrics,
		secrets: &secrets{client: m.GetClient(), live: m.GetAPIReader(), watched: p.everywhere, subject: self},
	}).register(m); err != nil {
		return err
	}
	if metrics := c.config.Metrics; metrics != nil {
		s := shown{view: cached, events: m.GetCache(), driver: c.config.Driver, allowWipe: c.config.AllowWipe}
		// Like the controllers, it starts once this process has the Lease.
		if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return metrics.serve(ctx, m.GetCache(), s) })); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// cache holds COSI's objects, the events about Buckets, and of Secrets the
// metadata of the companion's own.
func (plan) cache() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy})},
			&corev1.Event{}: {Namespaces: map[string]cache.Config{
				clusterEvents: {FieldSelector: fields.OneTermEqualSelector("involvedObject.kind", kindBucket)},
			}},
		},
	}
}
