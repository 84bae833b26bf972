package companion

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// about names an object that an event may be about. An empty UID is not known.
type about struct{ kind, namespace, name, uid string }

// eventNote is an event that tells of a failure.
type eventNote struct {
	about
	report ErrorReport
}

// readEvents reads the warnings about COSI's objects. In v1alpha2 what the driver
// says is in their status, and the events are the companion's alone.
func (l *look) readEvents(ctx context.Context) error {
	kinds := []string{kindClaim, kindAccess}
	if l.view.version == v1alpha1 {
		kinds = append(kinds, kindBucket)
	}
	for _, kind := range kinds {
		namespace, missing := l.Namespace, "last errors"
		if kind == kindBucket {
			namespace, missing = clusterEvents, "last errors of buckets, unless the companion repeats them"
		}
		var list corev1.EventList
		err := l.view.reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.kind": kind, "type": corev1.EventTypeWarning})
		if _, err = l.tolerated(err, right{"list", "", "events", namespace}, missing); err != nil {
			return l.unanswered("the events", err)
		}
		for i := range list.Items {
			if e := &list.Items[i]; strings.HasPrefix(e.InvolvedObject.APIVersion, cosiGroup+"/") {
				l.events = append(l.events, noteOf(e))
			}
		}
	}
	return nil
}

// noteOf reads an event as either of the events' APIs writes it.
func noteOf(e *corev1.Event) eventNote {
	o := e.InvolvedObject
	first, last, count := e.FirstTimestamp.Time, e.LastTimestamp.Time, max(e.Count, 1)
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	for _, other := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if first.IsZero() {
			first = other
		}
		if last.IsZero() {
			last = other
		}
	}
	return eventNote{about{o.Kind, o.Namespace, o.Name, string(o.UID)}, ErrorReport{
		Object: o.Kind + "/" + o.Name, Reason: e.Reason, Message: e.Message,
		First: someTime(first), Last: someTime(last), Count: count,
	}}
}

// statusError is the error that an object of v1alpha2 has in its status; nil is none.
func statusError(u *unstructured.Unstructured) *ErrorReport {
	message := text(u, "status", "error", "message")
	if message == "" {
		return nil
	}
	r := &ErrorReport{Object: u.GetKind() + "/" + u.GetName(), Message: message}
	if at, err := time.Parse(time.RFC3339, text(u, "status", "error", "time")); err == nil {
		r.Last = someTime(at)
	}
	return r
}

// untilReady are the reasons of failures that are over once the object is ready.
// Events stay for a while after that.
func untilReady() []string {
	return []string{"FailedCreateBucket", "FailedGrantAccess", "WaitingForBucket", ReasonProvisioningFailed}
}

// lastError is the newest failure of some objects: of those in their status, which
// count as long as they are there, and of the events about them; nil is none. Of two
// with the same message the first counts.
func (l *look) lastError(failures []*ErrorReport, ready bool, objects ...about) *ErrorReport {
	var all []*ErrorReport
	add := func(r *ErrorReport) {
		if r != nil && !slices.ContainsFunc(all, func(o *ErrorReport) bool { return o.Message == r.Message }) {
			all = append(all, r)
		}
	}
	for _, f := range failures {
		add(f)
	}
	for _, o := range objects {
		for i := range l.events {
			e := &l.events[i]
			same := e.kind == o.kind && e.name == o.name && (e.namespace == o.namespace || o.namespace == "") && (o.uid == "" || e.uid == o.uid)
			if same && (!ready || !slices.Contains(untilReady(), e.report.Reason)) {
				add(&e.report)
			}
		}
	}
	var newest *ErrorReport
	for _, r := range all {
		if newest == nil || r.Last != nil && newest.Last != nil && r.Last.After(*newest.Last) {
			newest = r
		}
	}
	return newest
}
