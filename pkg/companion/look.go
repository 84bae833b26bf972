package companion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// LookOptions says what Look reports on.
type LookOptions struct {
	Driver    string // the driver's name; the IDs of other drivers are not taken apart
	Namespace string // empty is all
	Claim     string // this one alone, which has to be there; empty is all
}

// Look reports on BucketClaims with the rights of whoever the configuration is for,
// and changes nothing. What they may not read is named in the report. It is an error
// if they may not read BucketClaims at all (ErrPermissionDenied), if the one that was
// asked for is not there (ErrNotFound), if the cluster has no COSI (ErrPrecondition),
// or if the API server does not answer (ErrUnavailable).
func Look(ctx context.Context, config *rest.Config, o LookOptions) (Report, error) {
	ctx = withoutBodies(ctx)
	loggerSet.Do(func() { ctrllog.SetLogger(klog.FromContext(ctx)) })
	config = unlimited(config)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Report{}, err
	}
	version, err := servedVersion(ctx, d)
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("%w: the API server %s does not answer: %w", provider.ErrUnavailable, config.Host, err)
	case version == "":
		return Report{}, fmt.Errorf("%w: the cluster at %s has no %s of version %s or %s", provider.ErrPrecondition, config.Host, cosiGroup, v1alpha1, v1alpha2)
	}
	reader, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return Report{}, fmt.Errorf("%w: the API server %s does not answer: %w", provider.ErrUnavailable, config.Host, err)
	}
	l := &look{LookOptions: o, view: view{version, reader}, unread: map[right]string{}, classes: map[string]*accessClass{}, buckets: map[string]*unstructured.Unstructured{}, hints: map[string]bucketHint{}}
	return l.report(ctx)
}

// looksAtOnce is how many accesses are looked at at a time.
const looksAtOnce = 8

// look is one report in the making.
type look struct {
	LookOptions
	view view

	classes map[string]*accessClass               // nil is one that cannot be read
	buckets map[string]*unstructured.Unstructured // by name, those that could be read
	events  []eventNote
	// noBuckets is set where Buckets may not be read.
	noBuckets bool

	mu     sync.Mutex
	unread map[right]string
	hints  map[string]bucketHint // by namespace and name of the claim
}

// tolerated takes an error that is about a missing right for an answer, and records
// what is missing for it.
func (l *look) tolerated(err error, r right, missing string) (forbidden bool, _ error) {
	if !apierrors.IsForbidden(err) {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unread[r] == "" { // events in one namespace are asked for twice, the second time for less
		l.unread[r] = missing
	}
	return true, nil
}

// cosiRight is a right to COSI's objects.
func cosiRight(verb, resource, namespace string) right {
	return right{verb, cosiGroup, resource, namespace}
}

func (l *look) report(ctx context.Context) (Report, error) {
	r := Report{COSIVersion: l.view.version, Claims: []ClaimReport{}, Strays: []AccessReport{}, Unread: []Unread{}}
	claims, err := l.readClaims(ctx)
	if err != nil {
		return r, err
	}
	all, err := l.view.all(ctx, kindAccess, l.Namespace)
	if _, err = l.tolerated(err, cosiRight("list", "bucketaccesses", l.Namespace), "the accesses"); err != nil {
		return r, l.unanswered("the BucketAccesses", err)
	}
	if err := errors.Join(l.readBuckets(ctx, claims), l.readClasses(ctx, all), l.readEvents(ctx)); err != nil {
		return r, err
	}
	accesses, err := l.accesses(ctx, claims, all)
	if err != nil {
		return r, err
	}
	for i := range claims {
		of := func(a AccessReport) bool {
			return a.Namespace == claims[i].GetNamespace() && a.Claim == claims[i].GetName()
		}
		r.Claims = append(r.Claims, l.claim(&claims[i], filter(accesses, of)))
	}
	if l.Claim == "" {
		r.Strays = filter(accesses, func(a AccessReport) bool { return claimOf(claims, a.Namespace, a.Claim) == nil })
	}
	slices.SortFunc(r.Claims, func(a, b ClaimReport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for right, missing := range l.unread {
		r.Unread = append(r.Unread, Unread{right.String(), missing})
	}
	slices.SortFunc(r.Unread, func(a, b Unread) int { return cmp.Compare(a.Right, b.Right) })
	return r, nil
}

func (l *look) readClaims(ctx context.Context) ([]unstructured.Unstructured, error) {
	verb, what := "list", "the BucketClaims"
	var claims []unstructured.Unstructured
	var err error
	if l.Claim == "" {
		claims, err = l.view.all(ctx, kindClaim, l.Namespace)
	} else {
		verb, what = "get", fmt.Sprintf("the BucketClaim %s in namespace %s", l.Claim, l.Namespace)
		var one *unstructured.Unstructured
		one, err = l.view.get(ctx, kindClaim, l.Namespace, l.Claim)
		claims = []unstructured.Unstructured{*one}
	}
	switch {
	case apierrors.IsNotFound(err) && l.Claim != "":
		return nil, fmt.Errorf("%s: %w: there is none", what, provider.ErrNotFound)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s: %w: you may not %s; ask for that right", what, provider.ErrPermissionDenied, cosiRight(verb, "bucketclaims", l.Namespace))
	case err != nil:
		return nil, l.unanswered(what, err)
	}
	return claims, nil
}

func (l *look) unanswered(what string, err error) error {
	return fmt.Errorf("%s: %w: %w", what, provider.ErrUnavailable, err)
}

// readBuckets reads the Buckets of the claims. Who may not list them may still be
// allowed to get one.
func (l *look) readBuckets(ctx context.Context, claims []unstructured.Unstructured) error {
	if l.Claim == "" {
		all, err := l.view.all(ctx, kindBucket, "")
		if err == nil {
			for i := range all {
				l.buckets[all[i].GetName()] = &all[i]
			}
			return nil
		}
		if !apierrors.IsForbidden(err) {
			return l.unanswered("the Buckets", err)
		}
	}
	for i := range claims {
		name := objectOf(readClaim(&claims[i]))
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			continue
		}
		u, err := l.view.get(ctx, kindBucket, "", name)
		if err == nil {
			l.buckets[name] = u
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		var forbidden bool
		if forbidden, err = l.tolerated(err, cosiRight("get", "buckets", ""), "back end, region, owner and errors of the buckets"); err != nil {
			return l.unanswered("the Bucket "+name, err)
		}
		if l.noBuckets = forbidden; forbidden {
			return nil
		}
	}
	return nil
}

// readClasses reads the BucketAccessClasses of v1alpha1. In v1alpha2 all that matters
// is in the accesses.
func (l *look) readClasses(ctx context.Context, accesses []unstructured.Unstructured) error {
	if l.view.version == v1alpha2 {
		return nil
	}
	for i := range accesses {
		name := readAccess(&accesses[i]).class
		if _, known := l.classes[name]; known || len(validation.IsDNS1123Subdomain(name)) > 0 {
			continue
		}
		class, err := l.view.accessClass(ctx, name)
		l.classes[name] = nil
		if err == nil {
			class.parameters = known(class.parameters)
			l.classes[name] = &class
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if _, err := l.tolerated(err, cosiRight("get", "bucketaccessclasses", ""), "the modes of accesses, and the env Secrets that their classes ask for"); err != nil {
			return l.unanswered("the BucketAccessClass "+quote(name), err)
		}
	}
	return nil
}

// accesses looks at every target of every access, by namespace, name and claim.
func (l *look) accesses(ctx context.Context, claims, all []unstructured.Unstructured) ([]AccessReport, error) {
	found := make([][]AccessReport, len(all))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(looksAtOnce)
	for i := range all {
		a := readAccess(&all[i])
		if l.Claim != "" && !slices.ContainsFunc(a.targets, func(t target) bool { return t.claim == l.Claim }) {
			continue
		}
		work.Go(func() (err error) {
			found[i], err = l.access(ctx, claims, &all[i], a)
			return err
		})
	}
	err := work.Wait()
	flat := slices.Concat(found...)
	slices.SortStableFunc(flat, func(a, b AccessReport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return flat, err
}

// claimOf is the claim of that name, or nil.
func claimOf(claims []unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	for i := range claims {
		if claims[i].GetNamespace() == namespace && claims[i].GetName() == name {
			return &claims[i]
		}
	}
	return nil
}

// filter returns those that are kept; they are never nil.
func filter[T any](all []T, keep func(T) bool) []T {
	kept := []T{}
	for _, one := range all {
		if keep(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// deletedAt is since when an object is being deleted; nil is not.
func deletedAt(u *unstructured.Unstructured) *time.Time {
	if at := u.GetDeletionTimestamp(); at != nil {
		return someTime(at.Time)
	}
	return nil
}

// someTime is nil for no time, and for one that JSON cannot have: whoever may write a
// Secret or an event chooses what is in it.
func someTime(t time.Time) *time.Time {
	t = t.UTC()
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// heldBy names the finalizers of an object.
func heldBy(u *unstructured.Unstructured) string {
	if held := u.GetFinalizers(); len(held) > 0 {
		return "; it has the finalizers " + strings.Join(held, ", ")
	}
	return ""
}
