package companion

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// byObject is the index of events by the name of what they are about.
const byObject = "involvedObject.name"

// claims tells BucketClaims what happens to their buckets.
type claims struct {
	view      view
	events    client.Reader
	record    *recorder
	news      *news
	driver    string
	allowWipe bool
}

func (r *claims) register(ctx context.Context, m manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named("claims").
		For(r.view.object(kindClaim)).
		Watches(r.view.object(kindBucket), handler.EnqueueRequestsFromMapFunc(ofBucket))
	if r.view.version == v1alpha1 {
		err := m.GetFieldIndexer().IndexField(ctx, &corev1.Event{}, byObject, func(o client.Object) []string {
			e, _ := o.(*corev1.Event)
			return []string{e.InvolvedObject.Name}
		})
		if err != nil {
			return err
		}
		b = b.Watches(&corev1.Event{}, handler.EnqueueRequestsFromMapFunc(r.ofEvent))
	}
	return b.Complete(r)
}

// ofBucket is the claim of a Bucket.
func ofBucket(_ context.Context, o client.Object) []reconcile.Request {
	u, _ := o.(*unstructured.Unstructured)
	return requestOf(readBucket(u).claim)
}

// ofEvent is the claim of the Bucket that an event is about.
func (r *claims) ofEvent(ctx context.Context, o client.Object) []reconcile.Request {
	e, _ := o.(*corev1.Event)
	b, err := r.view.bucket(ctx, e.InvolvedObject.Name)
	if err != nil {
		return nil // when the Bucket shows up, its claim is looked at
	}
	return requestOf(b.claim)
}

func requestOf(c claimRef) []reconcile.Request {
	if c.name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: c.name}}}
}

// Reconcile looks at one claim.
func (r *claims) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c, err := r.view.claim(ctx, req.Namespace, req.Name)
	if apierrors.IsNotFound(err) {
		r.news.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	b, err := r.view.bucket(ctx, bucketNameOf(c))
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.view.serves(r.driver, b.driver) || b.claim.name != c.name || b.claim.namespace != c.namespace || b.claim.uid != "" && b.claim.uid != c.uid {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.tell(ctx, c, b)
}

// bucketNameOf is the name of the Bucket that COSI makes for a claim, also before
// the claim's status says so.
func bucketNameOf(c claim) string {
	switch {
	case c.bucket != "":
		return c.bucket
	case c.version == v1alpha2:
		return "bc-" + c.uid
	}
	return "bucket-" + c.uid
}

// tell writes the events about a claim and its Bucket.
func (r *claims) tell(ctx context.Context, c claim, b bucket) error {
	if r.news.is(c.meta, c.ready && b.ready && b.atCloud != "") {
		if err := r.record.normal(ctx, c.meta, ReasonProvisioned, fmt.Sprintf("Bucket %s is ready (%s)", b.atCloud, b.id)); err != nil {
			return err
		}
	}
	if b.failure != "" {
		if err := r.record.warn(ctx, c.meta, problem{ReasonProvisioningFailed, b.failure}); err != nil {
			return err
		}
	}
	if r.view.version == v1alpha1 {
		if err := r.repeat(ctx, c, b); err != nil {
			return err
		}
	}
	if p, skipped := r.skipped(c); skipped {
		return r.record.warn(ctx, c.meta, p)
	}
	return nil
}

// repeat tells the claim what upstream's sidecar has told its Bucket, where the
// claim's owner does not look.
func (r *claims) repeat(ctx context.Context, c claim, b bucket) error {
	var list corev1.EventList
	if err := r.events.List(ctx, &list, client.InNamespace(clusterEvents), client.MatchingFields{byObject: b.name}); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Type != corev1.EventTypeWarning || string(e.InvolvedObject.UID) != b.uid {
			continue
		}
		when := occurrence{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.Count}
		if when.last.IsZero() {
			when.first, when.last = e.CreationTimestamp.Time, e.CreationTimestamp.Time
		}
		if err := r.record.mirror(ctx, c.meta, e.Type, e.Reason, e.Message, when); err != nil {
			return err
		}
	}
	return nil
}

// skipped reports whether a claim asks in vain for its data to be deleted.
func (r *claims) skipped(c claim) (problem, bool) {
	value, asked := c.annotations[AnnotationWipeOnDelete]
	switch {
	case !asked || value == "false" || !c.deleting || value == wipe && r.allowWipe:
		return problem{}, false
	case value != wipe:
		return problem{ReasonWipeOnDeleteSkipped, fmt.Sprintf("%s is %s: want \"true\"; the bucket is deleted only if it is empty",
			AnnotationWipeOnDelete, quote(value))}, true
	}
	return problem{ReasonWipeOnDeleteSkipped, AnnotationWipeOnDelete + " has no effect, because the driver runs without --allow-wipe-annotation; " +
		"the bucket is deleted only if it is empty: empty it, or ask the operator of the driver"}, true
}
