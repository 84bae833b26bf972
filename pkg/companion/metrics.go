package companion

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The states of Buckets and BucketAccesses in metrics.
const (
	stateReady    = "Ready"
	statePending  = "Pending"
	stateFailed   = "Failed" // not ready, and the driver has said why
	stateDeleting = "Deleting"
)

func states() []string { return []string{stateReady, statePending, stateFailed, stateDeleting} }

// modeSeveral is the mode of an access to several buckets that differ in it.
const modeSeveral = "Several"

// scrapeTimeout bounds a look at the caches, which are in memory.
const scrapeTimeout = 5 * time.Second

// Metrics shows the objects of the driver in the cluster as metrics. It looks at the
// caches of the companion when it is asked and makes no call. While the companion of
// this process does not work, has not read everything yet, or another process has
// the Lease, there are none: so of several replicas one has them. It implements
// prometheus.Collector and is safe for concurrent use.
type Metrics struct {
	buckets, oldest, accesses, wipes, allowed, lastRotation, failing *prometheus.Desc

	mu        sync.Mutex
	source    *shown
	rotations map[types.NamespacedName]rotations
}

var _ prometheus.Collector = (*Metrics)(nil)

// shown is what the metrics are read from.
type shown struct {
	view      view
	events    client.Reader
	driver    string
	allowWipe bool
}

// rotations is what became of the rotations of an access.
type rotations struct {
	uid     string
	last    time.Time // when the last new key was in the Secrets; zero if never
	asked   bool      // there is to be a rotation
	failing bool      // the last attempt failed, or was refused
}

// NewMetrics makes the collector. It shows nothing until a companion that it is given
// to works.
func NewMetrics() *Metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &Metrics{
		buckets: desc("zuber_buckets",
			"Buckets of the driver in the cluster by class and state: Ready, Pending, Failed (not ready, and the driver has said why), or Deleting.", "class", "state"),
		oldest: desc("zuber_bucket_oldest_timestamp_seconds",
			"Since when the oldest Bucket of the class is in the state, which is not Ready, in seconds since 1970: since it was made, or since its deletion was asked for.", "class", "state"),
		accesses: desc("zuber_accesses",
			"BucketAccesses of the driver in the cluster by mode, or Several, and state; in COSI v1alpha1 none is Failed.", "mode", "state"),
		wipes: desc("zuber_wipe_on_delete_claims",
			"BucketClaims with the annotation zuber.dev/wipe-on-delete that asks for their data to be deleted with them, by namespace and state: Present or Deleting.", "claim_namespace", "state"),
		allowed: desc("zuber_wipe_on_delete_allowed", "1 if the driver runs with --allow-wipe-annotation, else 0."),
		lastRotation: desc("zuber_access_last_rotation_timestamp_seconds",
			"When the last new key of the BucketAccess was in its Secrets, in seconds since 1970; absent if it was never rotated.", "access_namespace", "access"),
		failing: desc("zuber_access_rotation_failing",
			"1 if the last attempt to rotate the key of the BucketAccess failed or was refused, else 0; absent where no rotation is asked for.", "access_namespace", "access"),
		rotations: map[types.NamespacedName]rotations{},
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.buckets, m.oldest, m.accesses, m.wipes, m.allowed, m.lastRotation, m.failing} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	s := m.source
	m.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := s.read(ctx)
	if err != nil {
		return // half of the objects would look like the loss of the others
	}
	m.bucketMetrics(ch, all)
	m.accessMetrics(ch, all)
	value := 0.0
	if s.allowWipe {
		value = 1
	}
	gauge(ch, m.allowed, value)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// serve shows what the source has until ctx ends. The kinds are those that the
// controllers watch: it waits until they are read, so that no scrape does.
func (m *Metrics) serve(ctx context.Context, c cache.Cache, s shown) error {
	kinds := []client.Object{s.view.object(kindBucket), s.view.object(kindClaim), s.view.object(kindAccess)}
	if s.view.version == v1alpha1 {
		kinds = append(kinds, s.view.object(kindAccessClass), &corev1.Event{})
	}
	for _, kind := range kinds {
		if _, err := c.GetInformer(ctx, kind); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
	m.set(&s)
	defer m.set(nil)
	<-ctx.Done()
	return nil
}

func (m *Metrics) set(s *shown) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.source = s
	if s == nil {
		clear(m.rotations) // another process goes on
	}
}

// rotated notes what became of a rotation, or of the look for one. A journal that
// could not be read is nil.
func (m *Metrics) rotated(a access, asked bool, j *journal, err error) {
	if m == nil {
		return
	}
	key := types.NamespacedName{Namespace: a.namespace, Name: a.name}
	r := rotations{uid: a.uid, asked: asked, failing: err != nil}
	if j != nil {
		r.last = j.Rotated
		if j.Running != nil && !j.Running.Delivered.IsZero() {
			r.last = j.Running.Delivered
		}
	}
	if !asked && r.last.IsZero() {
		m.forget(key)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.last.IsZero() && m.rotations[key].uid == a.uid {
		r.last = m.rotations[key].last
	}
	m.rotations[key] = r
}

// forget drops what is known of an access.
func (m *Metrics) forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rotations, key)
}

// objects are those of the driver.
type objects struct {
	buckets  []stated[bucket]
	claims   []claim
	accesses []stated[access]
}

// stated is an object in a state.
type stated[O any] struct {
	object       O
	class, state string
}

// read reads the driver's objects from the caches.
func (s *shown) read(ctx context.Context) (objects, error) {
	var all objects
	claimed, counted := map[claimRef]claim{}, map[claimRef]bool{}
	claims, err := s.list(ctx, kindClaim)
	if err != nil {
		return all, err
	}
	for i := range claims {
		c := readClaim(&claims[i])
		claimed[claimRef{c.namespace, c.name, c.uid}] = c
	}
	failed, err := s.failed(ctx)
	if err != nil {
		return all, err
	}
	buckets, err := s.list(ctx, kindBucket)
	if err != nil {
		return all, err
	}
	for i := range buckets {
		b := readBucket(&buckets[i])
		if !s.view.serves(s.driver, b.driver) {
			continue
		}
		owner, known := claimed[b.claim]
		if known && !counted[b.claim] {
			all.claims = append(all.claims, owner)
		}
		counted[b.claim] = true // a second Bucket that names the claim makes no second claim
		all.buckets = append(all.buckets, stated[bucket]{b, first(b.class, owner.class), stateOf(b.meta, b.ready, b.failure != "" || failed[b.uid])})
	}
	all.accesses, err = s.accesses(ctx)
	return all, err
}

// list reads every object of a kind, without copying what is in the cache.
func (s *shown) list(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	l := s.view.list(kind)
	err := s.view.reader.List(ctx, l, client.UnsafeDisableDeepCopy)
	return l.Items, err
}

// failed are the UIDs of the Buckets that a warning is about. In v1alpha1 nothing
// else tells of a failure.
func (s *shown) failed(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	if s.view.version != v1alpha1 {
		return found, nil
	}
	var list corev1.EventList
	if err := s.events.List(ctx, &list, client.InNamespace(clusterEvents), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		if e.Type == corev1.EventTypeWarning {
			found[string(e.InvolvedObject.UID)] = true
		}
	}
	return found, nil
}

// accesses reads those of the driver, with their modes for classes.
func (s *shown) accesses(ctx context.Context) ([]stated[access], error) {
	found, err := s.list(ctx, kindAccess)
	if err != nil {
		return nil, err
	}
	classes := map[string]accessClass{}
	if s.view.version == v1alpha1 {
		list, err := s.list(ctx, kindAccessClass)
		if err != nil {
			return nil, err
		}
		for i := range list {
			classes[list[i].GetName()] = readAccessClass(&list[i])
		}
	}
	var all []stated[access]
	for i := range found {
		a := readAccess(&found[i])
		class := accessClass{a.driver, a.parameters}
		if s.view.version == v1alpha1 {
			class = classes[a.class]
		}
		if s.view.serves(s.driver, class.driver) {
			all = append(all, stated[access]{a, modeOf(a, class), stateOf(a.meta, a.granted, a.failure != "")})
		}
	}
	return all, nil
}

func stateOf(m meta, ready, failed bool) string {
	switch {
	case m.deleting:
		return stateDeleting
	case ready:
		return stateReady
	case failed:
		return stateFailed
	}
	return statePending
}

// modeOf is the mode of all buckets of an access.
func modeOf(a access, class accessClass) string {
	var modes []string
	for _, t := range a.targets {
		modes = append(modes, t.modeIn(class.parameters))
	}
	modes = slices.Compact(modes)
	if len(modes) == 1 {
		return modes[0]
	}
	return modeSeveral
}

// bucketMetrics shows Buckets and their claims.
func (m *Metrics) bucketMetrics(ch chan<- prometheus.Metric, all objects) {
	count := map[[2]string]int{}
	oldest := map[[2]string]time.Time{}
	for _, b := range all.buckets {
		for _, state := range states() {
			count[[2]string{b.class, state}] += 0
		}
		key := [2]string{b.class, b.state}
		count[key]++
		since := b.object.created
		if b.state == stateDeleting {
			since = b.object.deletingSince
		}
		if at, known := oldest[key]; b.state != stateReady && (!known || since.Before(at)) {
			oldest[key] = since
		}
	}
	for key, n := range count {
		gauge(ch, m.buckets, float64(n), key[0], key[1])
	}
	for key, since := range oldest {
		gauge(ch, m.oldest, float64(since.Unix()), key[0], key[1])
	}
	wipes := map[[2]string]int{}
	for _, c := range all.claims {
		state := "Present"
		if c.deleting {
			state = stateDeleting
		}
		if c.annotations[AnnotationWipeOnDelete] == wipe {
			wipes[[2]string{c.namespace, state}]++
		}
	}
	for key, n := range wipes {
		gauge(ch, m.wipes, float64(n), key[0], key[1])
	}
}

// accessMetrics shows BucketAccesses and their rotations.
func (m *Metrics) accessMetrics(ch chan<- prometheus.Metric, all objects) {
	count := map[[2]string]int{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range all.accesses {
		for _, state := range states() {
			count[[2]string{a.class, state}] += 0
		}
		count[[2]string{a.class, a.state}]++
		r, known := m.rotations[types.NamespacedName{Namespace: a.object.namespace, Name: a.object.name}]
		if !known || r.uid != a.object.uid {
			continue
		}
		switch {
		case r.failing:
			gauge(ch, m.failing, 1, a.object.namespace, a.object.name)
		case r.asked:
			gauge(ch, m.failing, 0, a.object.namespace, a.object.name)
		}
		if !r.last.IsZero() {
			gauge(ch, m.lastRotation, float64(r.last.Unix()), a.object.namespace, a.object.name)
		}
	}
	for key, n := range count {
		gauge(ch, m.accesses, float64(n), key[0], key[1])
	}
}
