package companion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// accesses looks after the Secrets of BucketAccesses and the keys in them.
type accesses struct {
	view    view
	live    view // asks the API server, never a cache
	secrets *secrets
	record  *recorder
	news    *news
	driver  string
	keys    *driver.Driver // rotates them
	now     func() time.Time
	metrics *Metrics // may be nil
}

// atOnce is how many accesses are looked at at a time. One whose key is rotated
// waits for its cloud, and keeps the others waiting the less.
const atOnce = 8

func (r *accesses) register(m manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named("accesses").For(r.view.object(kindAccess)).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce})
	if r.view.version == v1alpha1 {
		// In v1alpha2 a class does not change, and its parameters are in the access.
		b = b.Watches(r.view.object(kindAccessClass), handler.EnqueueRequestsFromMapFunc(r.ofClass))
	}
	if r.secrets.watched {
		owner := handler.EnqueueRequestForOwner(m.GetScheme(), m.GetRESTMapper(), r.view.object(kindAccess), handler.OnlyControllerOwner())
		b = b.WatchesMetadata(&corev1.Secret{}, owner)
	}
	return b.Complete(r)
}

// ofClass is every access of a class.
func (r *accesses) ofClass(ctx context.Context, o client.Object) []reconcile.Request {
	all, err := r.view.all(ctx, kindAccess, "")
	if err != nil {
		return nil // the cache has them; else each access is looked at as it comes
	}
	var requests []reconcile.Request
	for i := range all {
		if a := readAccess(&all[i]); a.class == o.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: a.namespace, Name: a.name}})
		}
	}
	return requests
}

// Reconcile looks at one access.
func (r *accesses) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	a, err := r.view.access(ctx, req.Namespace, req.Name)
	if apierrors.IsNotFound(err) {
		r.news.forget(req.NamespacedName)
		r.metrics.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err == nil && a.deleting {
		r.metrics.forget(req.NamespacedName) // nobody rotates its key any more
	}
	if err != nil || a.deleting {
		return reconcile.Result{}, err
	}
	parameters, ours, err := r.class(ctx, a)
	if err != nil || !ours {
		return reconcile.Result{}, err
	}
	news := r.news.is(a.meta, a.granted)
	if !a.granted {
		_, err := r.told(ctx, a, r.unborn(ctx, a, parameters), ReasonRotationRefused, ReasonRotationForbidden)
		return reconcile.Result{}, err
	}
	buckets, err := r.buckets(ctx, a)
	if err != nil || len(buckets) == 0 {
		return reconcile.Result{RequeueAfter: r.interval()}, err
	}
	if news {
		if err := r.granted(ctx, a, buckets); err != nil {
			return reconcile.Result{}, err
		}
	}
	settled, err := r.serve(ctx, a, parameters, buckets)
	if err != nil || !settled {
		return reconcile.Result{RequeueAfter: r.interval()}, err
	}
	wait, err := r.rotate(ctx, a, parameters, buckets)
	_, err = r.told(ctx, a, err, ReasonRotationRefused, ReasonRotationForbidden)
	if wait == 0 {
		wait = r.interval()
	}
	return reconcile.Result{RequeueAfter: min(wait, r.interval())}, err
}

func (r *accesses) interval() time.Duration {
	if r.secrets.watched {
		return resync
	}
	return resyncUnwatched
}

// class returns the parameters of the access's class, and whether it is of the
// driver. Those of a v1alpha1 class that is gone are nil, and the Bucket says whose
// it is.
func (r *accesses) class(ctx context.Context, a access) (parameters map[string]string, ours bool, err error) {
	if r.view.version == v1alpha2 {
		return known(a.parameters), r.view.serves(r.driver, a.driver), nil
	}
	class, err := r.view.accessClass(ctx, a.class)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	return known(class.parameters), r.view.serves(r.driver, class.driver), err
}

// known are the parameters of a class that is there; they are not nil.
func known(parameters map[string]string) map[string]string {
	if parameters == nil {
		return map[string]string{}
	}
	return parameters
}

// buckets are the Buckets of an access in its order. They are none if one is gone
// or of another driver.
func (r *accesses) buckets(ctx context.Context, a access) ([]bucket, error) {
	var all []bucket
	for _, t := range a.targets {
		c, err := r.view.claim(ctx, a.namespace, t.claim)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		b, err := r.view.bucket(ctx, bucketNameOf(c))
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if b.atCloud == "" || !r.view.serves(r.driver, b.driver) {
			return nil, nil
		}
		all = append(all, b)
	}
	return all, nil
}

// granted tells that the access works.
func (r *accesses) granted(ctx context.Context, a access, buckets []bucket) error {
	for i, b := range buckets {
		message := fmt.Sprintf("Access to bucket %s is granted; the Secret is %s", b.atCloud, a.targets[i].secret)
		if err := r.record.normal(ctx, a.meta, ReasonAccessGranted, message); err != nil {
			return err
		}
	}
	return nil
}

// serve brings the Secrets of an access to what they should be, and reports whether
// they are. What the user has to put right with one keeps nothing from the other.
func (r *accesses) serve(ctx context.Context, a access, parameters map[string]string, buckets []bucket) (settled bool, err error) {
	corrected, err := r.told(ctx, a, r.correct(ctx, a, buckets), ReasonEnvSecretRefused, ReasonEnvSecretForbidden)
	written, envErr := r.told(ctx, a, r.env(ctx, a, parameters, buckets), ReasonEnvSecretRefused, ReasonEnvSecretForbidden)
	return corrected && written, errors.Join(err, envErr)
}

// told tells what the user has to put right, under the reason for it, and reports
// whether there was nothing. All else is left for the caller.
func (r *accesses) told(ctx context.Context, a access, err error, refusal, forbidden string) (fine bool, _ error) {
	var p *problemError
	if !errors.As(err, &p) {
		return err == nil, err
	}
	reason := refusal
	if p.forbidden {
		reason = forbidden
	}
	return false, r.record.warn(ctx, a.meta, problem{reason, p.message})
}

// correct has the Secrets of COSI v1alpha1 name the bucket as it is called at the
// cloud, where that is not the name of the Bucket.
func (r *accesses) correct(ctx context.Context, a access, buckets []bucket) error {
	if r.view.version != v1alpha1 {
		return nil
	}
	for i, b := range buckets {
		if b.atCloud == b.name {
			continue
		}
		err := r.secrets.correct(ctx, a, a.targets[i].secret, b.atCloud)
		var p *problemError
		if errors.As(err, &p) {
			// Who reads the Secret meanwhile has to know.
			return &problemError{p.forbidden, fmt.Sprintf("the bucket of the Secret %s is called %s, whatever its bucketName says: %s", a.targets[i].secret, b.atCloud, p.message)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// env writes the env Secret, if there is to be one, and removes former ones. While
// the class that might ask for one is gone they stay: it comes back, made anew.
func (r *accesses) env(ctx context.Context, a access, parameters map[string]string, buckets []bucket) error {
	name, err := envSecretName(a, parameters)
	if err != nil {
		return refused(fmt.Errorf("%s: %w", AnnotationEnvSecret, err))
	}
	if name == "" && parameters == nil {
		return nil
	}
	if name == "" {
		return r.secrets.remove(ctx, a, "")
	}
	keys, err := parseEnvKeys(a.annotations[AnnotationEnvKeys])
	if err != nil {
		return refused(fmt.Errorf("%s: %w", AnnotationEnvKeys, err))
	}
	sources := make([]envSource, 0, len(buckets))
	for i, b := range buckets {
		source, err := r.source(ctx, a, a.targets[i], b)
		if err != nil {
			return err
		}
		sources = append(sources, source)
	}
	data, err := renderEnv(keys, sources)
	if err != nil {
		return refused(err)
	}
	made, err := r.secrets.write(ctx, a, name, data)
	if err != nil {
		return err
	}
	if made {
		if err := r.record.normal(ctx, a.meta, ReasonEnvSecretWritten, "Secret "+name+" has the credentials as variables"); err != nil {
			return err
		}
	}
	return r.secrets.remove(ctx, a, name)
}

// source reads what the env Secret says about one bucket.
func (r *accesses) source(ctx context.Context, a access, t target, b bucket) (envSource, error) {
	data, err := r.secrets.read(ctx, a, t.secret)
	if err != nil {
		return envSource{}, err
	}
	c, err := readCredentials(a, data)
	if err != nil {
		return envSource{}, refused(fmt.Errorf("the Secret %s that COSI wrote: %w", t.secret, err))
	}
	return envSource{credentials: c, claim: t.claim, bucket: b.atCloud, virtualHosted: b.parameters["s3PathStyle"] == "false"}, nil
}

// refused is what keeps a Secret from being as it is asked for.
func refused(err error) error { return &problemError{message: err.Error()} }

// problemError is a problem on its way to the user.
type problemError struct {
	forbidden bool // by the API server
	message   string
}

func (p *problemError) Error() string { return p.message }
