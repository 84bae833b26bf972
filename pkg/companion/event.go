package companion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of the companion's events.
const (
	ReasonProvisioned         = "Provisioned"
	ReasonAccessGranted       = "AccessGranted"
	ReasonEnvSecretWritten    = "EnvSecretWritten"
	ReasonEnvSecretRefused    = "EnvSecretRefused"
	ReasonEnvSecretForbidden  = "EnvSecretForbidden"
	ReasonProvisioningFailed  = "ProvisioningFailed"
	ReasonWipeOnDeleteSkipped = "WipeOnDeleteSkipped"
	ReasonCredentialsRotated  = "CredentialsRotated"
	ReasonRotationRefused     = "RotationRefused"
	ReasonRotationForbidden   = "RotationForbidden"
	ReasonRotationFailed      = "RotationFailed"
)

// Reasons lists those that the companion makes itself, for documents. It repeats
// others of COSI's.
func Reasons() []string {
	return []string{
		ReasonProvisioned, ReasonAccessGranted, ReasonEnvSecretWritten, ReasonEnvSecretRefused, ReasonEnvSecretForbidden,
		ReasonCredentialsRotated, ReasonRotationRefused, ReasonRotationForbidden, ReasonRotationFailed,
		ReasonProvisioningFailed, ReasonWipeOnDeleteSkipped,
	}
}

// reporter is what the companion calls itself in events.
const reporter = "zuber-companion"

// How events are kept few.
const (
	// quiet is how long the same event is not written again.
	quiet = 5 * time.Minute
	// remembered bounds how many events are known to be quiet.
	remembered = 4096
	// eventMessage is the API server's limit.
	eventMessage = 1024
)

// recorder writes events. The name of one follows from what it says about which
// object, so that the API server itself keeps it from being there twice, whoever
// writes it and however often. It is safe for concurrent use.
type recorder struct {
	client client.Client
	now    func() time.Time

	mu   sync.Mutex
	told map[string]time.Time // when, by namespace and name of the event
}

// occurrence is an event's time and count.
type occurrence struct {
	first, last time.Time
	count       int32
}

// problem is what a user has to put right. It is told and not retried.
type problem struct{ reason, message string }

// normal tells what went well, once.
func (r *recorder) normal(ctx context.Context, about meta, reason, message string) error {
	return r.tell(ctx, about, corev1.EventTypeNormal, reason, message)
}

// warn tells what a user has to put right.
func (r *recorder) warn(ctx context.Context, about meta, p problem) error {
	return r.tell(ctx, about, corev1.EventTypeWarning, p.reason, p.message)
}

func (r *recorder) tell(ctx context.Context, about meta, kind, reason, message string) error {
	now := r.now()
	e := newEvent(about, kind, reason, message, occurrence{now, now, 1})
	if at, told := r.last(e); told && now.Sub(at) < quiet {
		return nil
	}
	err := r.client.Create(ctx, e)
	if apierrors.IsAlreadyExists(err) && kind == corev1.EventTypeWarning {
		err = r.again(ctx, e, map[string]any{"lastTimestamp": metav1.NewTime(now)})
	}
	return r.done(e, now, err)
}

// mirror repeats an event of another object about this one, with its count.
func (r *recorder) mirror(ctx context.Context, about meta, kind, reason, message string, o occurrence) error {
	e := newEvent(about, kind, reason, message, o)
	if at, told := r.last(e); told && at.Equal(o.last) {
		return nil
	}
	err := r.client.Create(ctx, e)
	if apierrors.IsAlreadyExists(err) {
		err = r.again(ctx, e, map[string]any{"lastTimestamp": e.LastTimestamp, "count": e.Count})
	}
	return r.done(e, o.last, err)
}

// again updates an event that is there.
func (r *recorder) again(ctx context.Context, e *corev1.Event, fields map[string]any) error {
	patch, err := mergePatch(fields)
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, e.DeepCopy(), patch)
}

// last is when the event was last written.
func (r *recorder) last(e *corev1.Event) (at time.Time, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, told = r.told[e.Namespace+"/"+e.Name]
	return at, told
}

// done remembers a written event. A namespace that is being deleted takes none,
// which is no error.
func (r *recorder) done(e *corev1.Event, at time.Time, err error) error {
	ending := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
	if err != nil && !apierrors.IsAlreadyExists(err) && !ending {
		return fmt.Errorf("event %s about %s %s/%s: %w", e.Reason, e.InvolvedObject.Kind, e.Namespace, e.InvolvedObject.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) >= remembered {
		clear(r.told)
	}
	r.told[e.Namespace+"/"+e.Name] = at
	return nil
}

func newEvent(about meta, kind, reason, message string, o occurrence) *corev1.Event {
	message = cut(message, eventMessage)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.namespace, Name: eventName(about, kind, reason, message)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: cosiGroup + "/" + about.version, Kind: about.kind,
			Namespace: about.namespace, Name: about.name, UID: types.UID(about.uid),
		},
		Type: kind, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: reporter},
		ReportingController: reporter,
		FirstTimestamp:      metav1.NewTime(o.first), LastTimestamp: metav1.NewTime(o.last), Count: max(o.count, 1),
	}
}

// eventName begins with the object's name, as the names of events do.
func eventName(about meta, parts ...string) string {
	const most, digits = 200, 16
	h := sha256.Sum256([]byte(strings.Join(append([]string{about.uid, about.kind}, parts...), "\x00")))
	name := strings.TrimRight(about.name[:min(len(about.name), most)], "-.")
	return name + "." + hex.EncodeToString(h[:])[:digits]
}

// cut shortens a text without breaking a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	return strings.ToValidUTF8(s[:most-len(more)], "") + more
}
