package companion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// access looks at each target of an access, or at the one that was asked for.
func (l *look) access(ctx context.Context, claims []unstructured.Unstructured, u *unstructured.Unstructured, a access) ([]AccessReport, error) {
	parameters := a.parameters
	if a.version == v1alpha1 {
		parameters = nil
		if class := l.classes[a.class]; class != nil {
			parameters = class.parameters
		}
	}
	whole := AccessReport{
		Namespace: a.namespace, Name: a.name, Created: a.created.UTC(), Deleted: deletedAt(u), Class: a.class, Account: a.account,
	}
	if id, err := driver.ParseAccountID(a.account); err == nil && l.mine(claims, a) {
		whole.Identity = id.IdentityID
	}
	var err error
	if whole.EnvSecret, err = l.envSecret(ctx, a, parameters); err != nil {
		return nil, err
	}
	if whole.Rotation, err = l.rotation(ctx, a, parameters); err != nil {
		return nil, err
	}
	whole.LastError = l.lastError([]*ErrorReport{statusError(u)}, a.granted && !a.deleting, about{kindAccess, a.namespace, a.name, a.uid})
	if e, done := whole.LastError, whole.Rotation; e != nil && done != nil && done.Rotated != nil && e.Last != nil && done.Rotated.After(*e.Last) &&
		slices.Contains([]string{ReasonRotationFailed, ReasonRotationForbidden, ReasonRotationRefused}, e.Reason) {
		whole.LastError = nil
	}
	var all []AccessReport
	for _, t := range a.targets {
		one := whole
		one.Claim, one.Mode = t.claim, modeSeen(t, a.version, parameters)
		if l.Claim != "" && t.claim != l.Claim {
			continue
		}
		if err := l.credentials(ctx, a, t, &one); err != nil {
			return nil, err
		}
		l.hint(u, a, t)
		l.judge(u, a, claimOf(claims, a.namespace, t.claim), &one)
		all = append(all, one)
	}
	return all, nil
}

// mine reports whether nothing says that an access is of another driver.
func (l *look) mine(claims []unstructured.Unstructured, a access) bool {
	if a.driver != "" {
		return l.view.serves(l.Driver, a.driver)
	}
	for _, t := range a.targets {
		c := claimOf(claims, a.namespace, t.claim)
		if c == nil {
			continue
		}
		if b := l.buckets[objectOf(readClaim(c))]; b != nil && !l.view.serves(l.Driver, text(b, "spec", "driverName")) {
			return false
		}
	}
	return true
}

// modeSeen is what a target's access allows; an empty one is not known.
func modeSeen(t target, version string, parameters map[string]string) string {
	if version == v1alpha1 && parameters == nil {
		return ""
	}
	return t.modeIn(parameters)
}

// secret looks for a Secret. A name that none can have is that of none.
func (l *look) secret(ctx context.Context, namespace, name, missing string) (*corev1.Secret, Found, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, FoundMissing, nil
	}
	var secret corev1.Secret
	err := l.view.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, FoundMissing, nil
	}
	forbidden, err := l.tolerated(err, right{"get", "", "secrets", namespace}, missing)
	switch {
	case err != nil:
		return nil, "", l.unanswered("the Secret "+name, err)
	case forbidden:
		return nil, FoundForbidden, nil
	}
	return &secret, FoundPresent, nil
}

// missingSecrets is what a report lacks without a look into Secrets.
const missingSecrets = "access key IDs, whether Secrets are there, and rotations" //nolint:gosec // what a report lacks

// credentials looks at the Secret that COSI writes for a target.
func (l *look) credentials(ctx context.Context, a access, t target, r *AccessReport) error {
	secret, found, err := l.secret(ctx, a.namespace, t.secret, missingSecrets)
	if err != nil {
		return err
	}
	r.Secret = SecretReport{t.secret, found}
	if found != FoundPresent {
		return nil
	}
	c, err := readCredentials(a, secret.Data)
	if err != nil {
		if a.granted {
			r.Secret.Found = FoundInvalid
			r.Detail = fmt.Sprintf("the Secret %s: %v", t.secret, err)
		}
		return nil // it is part of the report
	}
	r.AccessKeyID = c.accessKeyID
	if a.version == v1alpha1 {
		if _, spec, err := readBucketInfo(secret.Data[bucketInfoKey], a.uid); err == nil {
			name, _ := spec["bucketName"].(string)
			l.hinted(a.namespace, t.claim, bucketHint{region: c.region, name: name})
		}
	}
	return nil
}

// hint takes a bucket ID from a v1alpha2 access.
func (l *look) hint(u *unstructured.Unstructured, a access, t target) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "accessedBuckets")
	for _, one := range all {
		m, _ := one.(map[string]any)
		o := &unstructured.Unstructured{Object: m}
		if text(o, "bucketClaimName") == t.claim && l.view.serves(l.Driver, a.driver) {
			l.hinted(a.namespace, t.claim, bucketHint{id: text(o, "bucketID")})
		}
	}
}

func (l *look) hinted(namespace, claim string, h bucketHint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hints[namespace+"/"+claim] = h
}

// envSecret looks for the env Secret that is asked for; nil is none.
func (l *look) envSecret(ctx context.Context, a access, parameters map[string]string) (*SecretReport, error) {
	name, err := envSecretName(a, parameters)
	if err != nil {
		return &SecretReport{a.annotations[AnnotationEnvSecret], FoundMissing}, nil //nolint:nilerr // the companion's event says what is wrong with the name
	}
	if name == "" {
		return nil, nil
	}
	secret, found, err := l.secret(ctx, a.namespace, name, missingSecrets)
	if err != nil {
		return nil, err
	}
	if found == FoundPresent && !owned(secret, a) {
		found = FoundInvalid
	}
	return &SecretReport{name, found}, nil
}

// rotation reads what is asked for and what the companion has recorded; nil is
// nothing of both.
func (l *look) rotation(ctx context.Context, a access, parameters map[string]string) (*RotationReport, error) {
	r := RotationReport{Asked: a.annotations[AnnotationRotateAt], Every: parameters[rotateEvery], Recorded: FoundPresent}
	j, err := (&secrets{live: l.view.reader}).journal(ctx, a)
	var p *problemError
	switch {
	case errors.As(err, &p) && p.forbidden:
		r.Recorded, j = FoundForbidden, &journal{}
		l.mu.Lock()
		l.unread[right{"get", "", "secrets", a.namespace}] = missingSecrets
		l.mu.Unlock()
	case errors.As(err, &p):
		r.Recorded, j = FoundInvalid, &journal{}
	case err != nil:
		return nil, l.unanswered("the Secret "+journalName(a), err)
	case j.secret.ResourceVersion == "":
		r.Recorded = FoundMissing
	}
	if r.Recorded != FoundPresent && r.Asked == "" && r.Every == "" {
		return nil, nil
	}
	r.Handled, r.Rotated = j.Handled, someTime(j.Rotated)
	if run := j.Running; run != nil {
		r.Replaced, r.Minted, r.Delivered = run.Replaced, run.Minted, someTime(run.Delivered)
		if run.Grace > 0 && !run.Delivered.IsZero() {
			r.GraceUntil = someTime(run.Delivered.Add(run.Grace))
		}
	}
	return &r, nil
}

// judge says how an access to one claim is.
func (l *look) judge(u *unstructured.Unstructured, a access, claim *unstructured.Unstructured, r *AccessReport) {
	gone := fmt.Sprintf("there is no BucketClaim %s", r.Claim)
	switch {
	case a.deleting && a.version == v1alpha1 && (claim == nil || r.Secret.Found == FoundMissing):
		// Upstream's sidecar gives up then; see docs/upstream.md.
		r.State, r.Detail = StateDeleting, "its claim or its Secret is gone, without which COSI v1alpha1 does not let go of it: see that the key has ended, then remove the finalizers by hand"+heldBy(u)
	case a.deleting:
		r.State, r.Detail = StateDeleting, "its key is ended first"+heldBy(u)
	case a.granted && r.Secret.Found == FoundMissing:
		r.State, r.Detail = StateFailed, fmt.Sprintf("the Secret %s that COSI wrote is gone: make the BucketAccess again", r.Secret.Name)
	case a.granted && r.Secret.Found == FoundInvalid:
		r.State, r.Detail = StateFailed, r.Detail+": make the BucketAccess again, with another Secret"
	case a.granted:
		r.State, r.Detail = StateReady, ""
	default:
		r.State = StateWaiting
		if r.LastError != nil {
			r.State = StateFailed
		}
		switch {
		case claim == nil:
			r.Detail = gone
		case !readClaim(claim).ready:
			r.Detail = fmt.Sprintf("it waits for the bucket of the BucketClaim %s", r.Claim)
		default:
			r.Detail = "the bucket is ready, and the access is not granted yet"
		}
	}
}
