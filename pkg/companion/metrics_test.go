package companion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// shelf has objects, as a cache does.
type shelf struct {
	client.Reader
	objects []unstructured.Unstructured
	events  []corev1.Event
	broken  bool
}

// List implements client.Reader.
func (s *shelf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if s.broken {
		return errors.New("broken")
	}
	switch l := list.(type) {
	case *corev1.EventList:
		l.Items = s.events
	case *unstructured.UnstructuredList:
		for _, o := range s.objects {
			if o.GetKind()+"List" == l.GetKind() && o.GetAPIVersion() == l.GetAPIVersion() {
				l.Items = append(l.Items, o)
			}
		}
	}
	return nil
}

// put reads objects from YAML.
func (s *shelf) put(t *testing.T, documents string) {
	t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		s.objects = append(s.objects, unstructured.Unstructured{Object: o})
	}
}

// gathered are the series of the collector, a line each, sorted.
func gathered(t *testing.T, m *Metrics) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s %s %v", f.GetName(), strings.Join(labels, ","), one.GetGauge().GetValue()))
		}
	}
	return all
}

// wantSeries fails the test unless there are all of these series and no other that is
// not 0.
func wantSeries(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, series := range want {
		if !slices.Contains(got, series) {
			t.Errorf("there is no %s", series)
		}
	}
	for _, series := range got {
		if !strings.HasSuffix(series, " 0") && !slices.Contains(want, series) {
			t.Errorf("there is %s", series)
		}
	}
}

const madeAt = "2026-01-01T00:00:00Z"

var made = float64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())

func TestMetricsOfV1alpha1(t *testing.T) {
	s := &shelf{}
	object := func(kind, name, rest string) {
		s.put(t, fmt.Sprintf("apiVersion: objectstorage.k8s.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: ns, uid: %s-%s, creationTimestamp: %q%s", kind, name, kind, name, madeAt, rest))
	}
	ours := func(class, claim, status string) string {
		return fmt.Sprintf("}\nspec: {driverName: D.example, bucketClassName: %s, bucketClaim: {namespace: ns, name: %s, uid: BucketClaim-%s}}\nstatus: {%s}", class, claim, claim, status)
	}
	object("Bucket", "ready", ours("a", "c1", "bucketReady: true"))
	object("Bucket", "pending", ours("a", "c2", "bucketReady: false"))
	object("Bucket", "failed", ours("b", "c3", ""))
	object("Bucket", "going", `, deletionTimestamp: "2026-01-02T00:00:00Z"`+ours("b", "c4", "bucketReady: true"))
	object("Bucket", "second", ours("a", "c1", "bucketReady: true")) // it names a claim that has another
	object("Bucket", "foreign", "}\nspec: {driverName: other.example, bucketClassName: c, bucketClaim: {namespace: ns, name: c5, uid: BucketClaim-c5}}")
	const wipe = `, annotations: {zuber.dev/wipe-on-delete: "true"}`
	object("BucketClaim", "c1", wipe+"}\nspec: {bucketClassName: a}")
	object("BucketClaim", "c2", `, annotations: {zuber.dev/wipe-on-delete: "yes"}}`)
	object("BucketClaim", "c4", wipe+`, deletionTimestamp: "2026-01-02T00:00:00Z"}`)
	object("BucketClaim", "c5", wipe+"}") // of another driver
	object("BucketAccessClass", "read", "}\ndriverName: d.example\nparameters: {accessMode: ReadOnly}")
	object("BucketAccessClass", "write", "}\ndriverName: d.example")
	object("BucketAccessClass", "foreign", "}\ndriverName: other.example")
	object("BucketAccess", "reader", "}\nspec: {bucketAccessClassName: read, bucketClaimName: c1}\nstatus: {accessGranted: true, accountID: x}")
	object("BucketAccess", "writer", "}\nspec: {bucketAccessClassName: write, bucketClaimName: c1}")
	object("BucketAccess", "foreign", "}\nspec: {bucketAccessClassName: foreign, bucketClaimName: c1}")
	warning := func(uid string) {
		s.events = append(s.events, corev1.Event{Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}})
	}
	warning("Bucket-failed")
	warning("Bucket-ready") // once upon a time
	s.events = append(s.events, corev1.Event{Type: corev1.EventTypeNormal, InvolvedObject: corev1.ObjectReference{UID: "Bucket-pending"}})

	m := NewMetrics()
	if got := gathered(t, m); len(got) != 0 {
		t.Errorf("before it works there is %v", got)
	}
	m.set(&shown{view: view{v1alpha1, s}, events: s, driver: "d.example", allowWipe: true})
	reader := access{meta: meta{namespace: "ns", name: "reader", uid: "BucketAccess-reader"}}
	m.rotated(reader, true, &journal{Rotated: time.Unix(1000, 0)}, nil)
	m.rotated(access{meta: meta{namespace: "ns", name: "writer", uid: "of an earlier one"}}, true, nil, errors.New("failed"))
	want := []string{
		"zuber_buckets a,Ready 2", "zuber_buckets a,Pending 1", "zuber_buckets a,Failed 0", "zuber_buckets b,Failed 1", "zuber_buckets b,Deleting 1",
		fmt.Sprintf("zuber_bucket_oldest_timestamp_seconds a,Pending %v", made),
		fmt.Sprintf("zuber_bucket_oldest_timestamp_seconds b,Failed %v", made),
		fmt.Sprintf("zuber_bucket_oldest_timestamp_seconds b,Deleting %v", made+86400),
		"zuber_accesses ReadOnly,Ready 1", "zuber_accesses ReadWrite,Pending 1",
		"zuber_wipe_on_delete_claims ns,Present 1", "zuber_wipe_on_delete_claims ns,Deleting 1", "zuber_wipe_on_delete_allowed  1",
	}
	rotated := []string{"zuber_access_last_rotation_timestamp_seconds reader,ns 1000", "zuber_access_rotation_failing reader,ns 0"}
	wantSeries(t, gathered(t, m), slices.Concat(want, rotated)...)

	// A failure does not hide when the last one was.
	m.rotated(reader, true, nil, errors.New("failed"))
	rotated[1] = "zuber_access_rotation_failing reader,ns 1"
	wantSeries(t, gathered(t, m), slices.Concat(want, rotated)...)
	// A new key that is delivered counts before the grace of the old one is over.
	m.rotated(reader, true, &journal{Rotated: time.Unix(1000, 0), Running: &running{Replaced: "x", Delivered: time.Unix(2000, 0)}}, nil)
	wantSeries(t, gathered(t, m), slices.Concat(want, []string{"zuber_access_last_rotation_timestamp_seconds reader,ns 2000", "zuber_access_rotation_failing reader,ns 0"})...)
	// When nothing is asked for any more, the last one is still known and nothing fails.
	m.rotated(reader, false, &journal{Rotated: time.Unix(1000, 0)}, nil)
	got := gathered(t, m)
	wantSeries(t, got, slices.Concat(want, rotated[:1])...)
	if slices.Contains(got, "zuber_access_rotation_failing reader,ns 0") {
		t.Error("a rotation that nobody asks for is shown")
	}
	// An access that was never rotated, and is not to be, has none.
	m.forget(types.NamespacedName{Namespace: "ns", Name: "reader"})
	m.rotated(reader, false, &journal{}, nil)
	wantSeries(t, gathered(t, m), want...)

	s.broken = true
	if got := gathered(t, m); len(got) != 0 {
		t.Errorf("without the cache there is %v", got)
	}
	s.broken = false
	m.set(nil)
	if got := gathered(t, m); len(got) != 0 {
		t.Errorf("after it has worked there is %v", got)
	}
}

func TestMetricsOfV1alpha2(t *testing.T) {
	s := &shelf{}
	object := func(kind, name, rest string) {
		s.put(t, fmt.Sprintf("apiVersion: objectstorage.k8s.io/v1alpha2\nkind: %s\nmetadata: {name: %s, namespace: ns, uid: %s-%s, creationTimestamp: %q%s", kind, name, kind, name, madeAt, rest))
	}
	bucket := func(name, claim, status string) {
		object("Bucket", name, fmt.Sprintf("}\nspec: {driverName: d.example, bucketClaimRef: {namespace: ns, name: %s, uid: BucketClaim-%s}}\nstatus: {%s}", claim, claim, status))
	}
	bucket("ready", "c1", "readyToUse: true")
	bucket("failed", "c1", `readyToUse: false, error: {message: "no"}`)
	bucket("kept", "gone", "readyToUse: true")
	object("BucketClaim", "c1", "}\nspec: {bucketClassName: a}")
	access := func(name, modes, status string) {
		object("BucketAccess", name, fmt.Sprintf("}\nspec: {bucketClaims: [%s]}\nstatus: {driverName: d.example, %s}", modes, status))
	}
	access("one", "{accessMode: ReadOnly}", "readyToUse: true, accountID: x")
	access("same", "{accessMode: WriteOnly}, {accessMode: WriteOnly}", "readyToUse: false")
	access("mixed", "{accessMode: ReadOnly}, {accessMode: ReadWrite}", `error: {message: "no"}`)
	access("by-class", "{}", "parameters: {accessMode: ReadOnly}")
	m := NewMetrics()
	m.set(&shown{view: view{v1alpha2, s}, events: s, driver: "d.example"})
	wantSeries(t, gathered(t, m),
		"zuber_buckets a,Ready 1", "zuber_buckets a,Failed 1", "zuber_buckets ,Ready 1",
		fmt.Sprintf("zuber_bucket_oldest_timestamp_seconds a,Failed %v", made),
		"zuber_accesses ReadOnly,Ready 1", "zuber_accesses WriteOnly,Pending 1", "zuber_accesses Several,Failed 1", "zuber_accesses ReadOnly,Pending 1",
		"zuber_wipe_on_delete_allowed  0",
	)
}
