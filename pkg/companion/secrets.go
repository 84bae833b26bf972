package companion

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretsRole is the ClusterRole of config/companion that a RoleBinding gives in
// one namespace.
const secretsRole = "zuber-companion-secrets"

// secrets reads and writes Secrets. Their data is read from the API server when
// it is needed and never kept.
type secrets struct {
	client  client.Client
	live    client.Reader
	watched bool   // whether the client's cache has the metadata of our Secrets
	subject string // as kubectl create rolebinding names the companion
}

// read returns the data of a Secret.
func (s *secrets) read(ctx context.Context, a access, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := s.live.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, refused(fmt.Errorf("the Secret %s that COSI wrote is gone: make the BucketAccess again", name))
	}
	return secret.Data, s.allowed(a, err)
}

// correct has a Secret that COSI v1alpha1 wrote for the access name the bucket.
func (s *secrets) correct(ctx context.Context, a access, name, bucketName string) error {
	var secret corev1.Secret
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, &secret); err != nil {
		return s.allowed(a, client.IgnoreNotFound(err))
	}
	document, changed, err := correctBucketInfo(secret.Data[bucketInfoKey], a.uid, bucketName)
	if err != nil || !changed {
		return nil //nolint:nilerr // a Secret that COSI did not write for this access stays as it is
	}
	secret.Data[bucketInfoKey] = document
	return s.allowed(a, s.client.Update(ctx, &secret))
}

// write makes sure that the access's env Secret has this data, and reports
// whether it was not there. A Secret that is not the access's stays as it is.
func (s *secrets) write(ctx context.Context, a access, name string, data map[string][]byte) (made bool, err error) {
	var secret corev1.Secret
	err = s.live.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return true, s.allowed(a, s.client.Create(ctx, newSecret(a, name, data)))
	}
	if err != nil {
		return false, s.allowed(a, err)
	}
	if !owned(&secret, a) {
		return false, refused(fmt.Errorf("the Secret %s is not of this BucketAccess and stays as it is: "+
			"delete it, or choose another name with %s", name, AnnotationEnvSecret))
	}
	if maps.EqualFunc(secret.Data, data, slices.Equal) && secret.Labels[labelManagedBy] == managedBy {
		return false, nil
	}
	secret.Data = data
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[labelManagedBy] = managedBy
	err = s.client.Update(ctx, &secret)
	if apierrors.IsInvalid(err) && ptr.Deref(secret.Immutable, false) {
		// Nothing can change it but a new one.
		return s.replace(ctx, a, &secret, data)
	}
	return false, s.allowed(a, err)
}

// newSecret is an env Secret of an access.
func newSecret(a access, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: name,
			Labels:          map[string]string{labelManagedBy: managedBy},
			OwnerReferences: []metav1.OwnerReference{ownerOf(a)},
		},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// replace makes a Secret anew, in one attempt: a finalizer may keep the old one
// for as long as its user likes.
func (s *secrets) replace(ctx context.Context, a access, old *corev1.Secret, data map[string][]byte) (bool, error) {
	if err := s.delete(ctx, a, old); err != nil {
		return false, err
	}
	err := s.client.Create(ctx, newSecret(a, old.Name, data))
	if apierrors.IsAlreadyExists(err) {
		return false, refused(fmt.Errorf("the Secret %s is immutable and holds something else; it was deleted, and is still there: "+
			"see who has put finalizers on it", old.Name))
	}
	return true, s.allowed(a, err)
}

// remove deletes the access's env Secrets but the one that is kept. COSI v1alpha2
// has its own belong to the access, too, and anybody can put a label on them.
func (s *secrets) remove(ctx context.Context, a access, keep string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	reader := s.live
	if s.watched {
		reader = s.client
	}
	err := reader.List(ctx, list, client.InNamespace(a.namespace), client.MatchingLabels{labelManagedBy: managedBy})
	if apierrors.IsForbidden(err) && keep == "" {
		return nil // a namespace where nobody wants an env Secret
	}
	if err != nil {
		return s.allowed(a, err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; owned(o, a) && o.Name != keep && o.Name != journalName(a) && !a.delivers(o.Name) {
			if err := s.delete(ctx, a, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete deletes exactly this Secret.
func (s *secrets) delete(ctx context.Context, a access, o client.Object) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	err := s.client.Delete(ctx, secret, client.Preconditions{UID: ptr.To(o.GetUID())})
	return s.allowed(a, client.IgnoreNotFound(err))
}

// ownerOf has Kubernetes delete what an access owns together with it.
func ownerOf(a access) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: cosiGroup + "/" + a.version, Kind: kindAccess,
		Name: a.name, UID: types.UID(a.uid), Controller: ptr.To(true),
	}
}

// owned reports whether an object is the access's.
func owned(o metav1.Object, a access) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kindAccess && string(owner.UID) == a.uid
}

// allowed is judged, but takes it for done in a namespace that is being deleted:
// nothing can be made there, which is nobody's fault.
func (s *secrets) allowed(a access, err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return s.judged(a, err)
}

// judged turns a refusal into what the user can do about it: trying again is of no
// use before that.
func (s *secrets) judged(a access, err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused(fmt.Errorf("the API server does not take the Secret: %w", err))
	case apierrors.IsForbidden(err):
		return &problemError{forbidden: true, message: fmt.Sprintf("%s. If it lacks a right: kubectl create rolebinding %s --namespace=%s --clusterrole=%s %s",
			err.Error(), secretsRole, a.namespace, secretsRole, s.subject)}
	}
	return err
}

// mergePatch changes single fields of an object.
func mergePatch(fields map[string]any) (client.Patch, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.MergePatchType, raw), nil
}
