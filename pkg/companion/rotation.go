package companion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

const (
	// cloudTimeout bounds one call to the driver, which may have to wait until a new
	// key works everywhere.
	cloudTimeout = 3 * time.Minute
	// soon is when the next rotation begins after another.
	soon = time.Millisecond
)

// rotation is the work on the key of one access. What it does next follows from its
// journal and from which keys COSI's Secrets hold, so that it may end after any
// step and be gone on with by another process.
type rotation struct {
	*accesses
	access     access
	parameters map[string]string
	buckets    []bucket
	wish       wish
	journal    *journal
	held       []holding // one for each bucket
}

// holding is a Secret that COSI wrote, with the credentials in it.
type holding struct {
	credentials
	secret *corev1.Secret
}

// unborn takes what an access says before it is granted for handled: its first key
// is new enough.
func (r *accesses) unborn(ctx context.Context, a access, parameters map[string]string) error {
	value := a.annotations[AnnotationRotateAt]
	if value == "" || a.account != "" || parameters == nil {
		return nil
	}
	j, err := r.secrets.journal(ctx, a)
	if err != nil || j.Handled == value {
		return err
	}
	now, found, err := r.live.refreshed(ctx, a)
	if err != nil || !found || now.deleting || now.account != "" {
		return err
	}
	j.Handled = now.annotations[AnnotationRotateAt]
	return r.secrets.remember(ctx, a, j)
}

// rotate brings a rotation that goes on, is asked for or is due as far as it can,
// and returns when to go on with it; zero is when something changes.
func (r *accesses) rotate(ctx context.Context, a access, parameters map[string]string, buckets []bucket) (wait time.Duration, err error) {
	j, err := r.secrets.journal(ctx, a)
	defer func() {
		if ctx.Err() == nil {
			r.metrics.rotated(a, asksForRotation(a, parameters), j, err)
		}
	}()
	var p *problemError
	if !asksForRotation(a, parameters) && (err == nil && j.Running == nil || errors.As(err, &p)) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// A cache may still have what another process has handled.
	now, found, err := r.live.refreshed(ctx, a)
	if err != nil || !found || now.deleting || !now.granted {
		return 0, err
	}
	a.annotations = now.annotations
	w, err := readWish(a, parameters)
	if err != nil {
		return 0, refused(err)
	}
	held, err := r.holdings(ctx, a)
	if err != nil {
		return 0, err
	}
	return (&rotation{r, a, parameters, buckets, w, j, held}).advance(ctx)
}

// holdings reads the Secrets of COSI.
func (r *accesses) holdings(ctx context.Context, a access) ([]holding, error) {
	held := make([]holding, len(a.targets))
	for i, t := range a.targets {
		secret := &corev1.Secret{}
		err := r.secrets.live.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: t.secret}, secret)
		if apierrors.IsNotFound(err) {
			return nil, refused(fmt.Errorf("the Secret %s that COSI wrote is gone: make the BucketAccess again", t.secret))
		}
		if err != nil {
			return nil, r.secrets.judged(a, err)
		}
		c, err := readCredentials(a, secret.Data)
		if err != nil {
			return nil, refused(fmt.Errorf("the Secret %s that COSI wrote: %w", t.secret, err))
		}
		held[i] = holding{c, secret}
	}
	return held, nil
}

// advance begins a rotation if there is to be one, and does what is left of it.
func (r *rotation) advance(ctx context.Context) (time.Duration, error) {
	run := r.journal.Running
	switch {
	case run != nil && run.Minted == "" && !r.wish.asks():
		return 0, r.abandon(ctx)
	case run == nil:
		if wait, due := r.due(); !due {
			return wait, nil
		}
		if err := r.begin(ctx); err != nil {
			return 0, err
		}
	}
	if err := r.deliver(ctx); err != nil {
		return 0, err
	}
	return r.finish(ctx)
}

// due reports whether the key is to be replaced now, or else in how long; zero is
// not before somebody asks for it.
func (r *rotation) due() (wait time.Duration, due bool) {
	if r.wish.value != "" && r.wish.value != r.journal.Handled {
		return 0, true
	}
	if r.wish.every == 0 {
		return 0, false
	}
	last := r.journal.Rotated
	if last.IsZero() {
		last = r.held[0].secret.CreationTimestamp.Time // when COSI was granted the access
	}
	wait = last.Add(r.wish.every).Sub(r.now())
	return wait, wait <= 0
}

// begin notes which key is to be replaced.
func (r *rotation) begin(ctx context.Context) error {
	if !r.hold(r.held[0].accessKeyID) {
		return r.strange("they hold different keys")
	}
	r.journal.Running = &running{Value: r.wish.value, Replaced: r.held[0].accessKeyID}
	return r.secrets.remember(ctx, r.access, r.journal)
}

// abandon gives up a rotation that nobody asks for any more and whose new key
// nobody has been given.
func (r *rotation) abandon(ctx context.Context) error {
	if !r.hold(r.held[0].accessKeyID) {
		return r.strange("they hold different keys")
	}
	err := r.retire(ctx)
	if err != nil && !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrUnsupported) {
		return r.judged(ctx, err)
	}
	r.journal.Running = nil
	return r.secrets.remember(ctx, r.access, r.journal)
}

// deliver has every Secret hold the new key, and makes it if there is none that can
// be delivered. From then on the grace counts.
func (r *rotation) deliver(ctx context.Context) error {
	run := r.journal.Running
	fresh := slices.IndexFunc(r.held, func(h holding) bool { return h.accessKeyID == run.Minted })
	var err error
	switch {
	case r.hold(run.Replaced):
		err = r.mint(ctx)
	case fresh >= 0 && r.hold(run.Replaced, run.Minted):
		err = r.put(ctx, provider.Credentials{AccessKeyID: run.Minted, SecretAccessKey: r.held[fresh].secretAccessKey})
	case r.access.version == v1alpha2 && r.hold(r.held[0].accessKeyID):
		// The sidecar of v1alpha2 writes its Secrets anew when it starts, and maybe with
		// yet another key.
		if run.Delivered.IsZero() {
			run.Minted = r.held[0].accessKeyID
		}
	default:
		err = r.strange(fmt.Sprintf("key %s is being replaced, and they hold neither that nor the new one", run.Replaced))
	}
	if err == nil {
		err = r.env(ctx, r.access, r.parameters, r.buckets)
	}
	if err != nil || !run.Delivered.IsZero() {
		return err
	}
	run.Delivered, run.Grace = r.now(), r.wish.grace
	return r.secrets.remember(ctx, r.access, r.journal)
}

// mint makes the new key and puts it into the Secrets.
func (r *rotation) mint(ctx context.Context) error {
	for _, h := range r.held {
		if ptr.Deref(h.secret.Immutable, false) {
			return refused(fmt.Errorf("the Secret %s that COSI wrote is immutable and can take no new key: make the BucketAccess again", h.secret.Name))
		}
	}
	run := r.journal.Running
	bounded, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	key, err := r.keys.RotateAccess(bounded, r.request(run.Replaced))
	if err != nil {
		return r.judged(ctx, err)
	}
	run.Minted, run.Delivered = key.AccessKeyID, time.Time{}
	if r.wish.value != "" {
		run.Value = r.wish.value // the key is newer than whatever is asked for by now
	}
	if err := r.secrets.remember(ctx, r.access, r.journal); err != nil {
		return err
	}
	return r.put(ctx, key)
}

// put writes the new key into the Secrets that lack it.
func (r *rotation) put(ctx context.Context, key provider.Credentials) error {
	for i := range r.held {
		h := &r.held[i]
		if h.accessKeyID == key.AccessKeyID {
			continue
		}
		if run := r.journal.Running; !run.Delivered.IsZero() {
			// Somebody has put the old key back: the grace begins anew.
			run.Delivered = time.Time{}
			if err := r.secrets.remember(ctx, r.access, r.journal); err != nil {
				return err
			}
		}
		if err := setKey(r.access, h.secret.Data, key); err != nil {
			return refused(fmt.Errorf("the Secret %s that COSI wrote: %w", h.secret.Name, err))
		}
		if err := r.secrets.client.Update(ctx, h.secret); err != nil {
			return r.secrets.judged(r.access, err)
		}
		h.accessKeyID, h.secretAccessKey = key.AccessKeyID, key.SecretAccessKey
	}
	return nil
}

// finish ends the replaced key when its grace is over.
func (r *rotation) finish(ctx context.Context) (time.Duration, error) {
	run, now := r.journal.Running, r.now()
	// An event is gone some time after it was written, and would be told anew.
	if run.Grace > 0 && now.Sub(run.Delivered) < eventsLast {
		message := fmt.Sprintf("Key %s is in the Secrets; key %s, which it replaces, goes on working for %s (%s)", run.Minted, run.Replaced, run.Grace, AnnotationRotationGrace)
		if err := r.record.normal(ctx, r.access.meta, ReasonCredentialsRotated, message); err != nil {
			return 0, err
		}
	}
	if wait := run.Delivered.Add(r.wish.grace).Sub(now); wait > 0 {
		return wait, nil
	}
	if err := r.retire(ctx); err != nil {
		return 0, r.judged(ctx, err)
	}
	if run.Grace == 0 {
		message := fmt.Sprintf("Key %s is in the Secrets; key %s, which it replaces, has ended", run.Minted, run.Replaced)
		if err := r.record.normal(ctx, r.access.meta, ReasonCredentialsRotated, message); err != nil {
			return 0, err
		}
	}
	if run.Value != "" {
		r.journal.Handled = run.Value
	}
	r.journal.Rotated, r.journal.Running = run.Delivered, nil
	if err := r.secrets.remember(ctx, r.access, r.journal); err != nil {
		return 0, err
	}
	wait, due := r.due()
	if due {
		wait = soon
	}
	return wait, nil
}

// retire ends every key of the access but the one in its Secrets.
func (r *rotation) retire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	return r.keys.RetireKeys(ctx, r.request(r.held[0].accessKeyID))
}

// request names the access to the driver.
func (r *rotation) request(keep string) driver.RotateRequest {
	req := driver.RotateRequest{AccountID: r.access.account, KeepAccessKeyID: keep}
	for _, b := range r.buckets {
		req.BucketIDs = append(req.BucketIDs, b.id)
	}
	return req
}

// hold reports whether every Secret holds one of the keys.
func (r *rotation) hold(accessKeyIDs ...string) bool {
	return !slices.ContainsFunc(r.held, func(h holding) bool { return !slices.Contains(accessKeyIDs, h.accessKeyID) })
}

// strange is about Secrets of COSI that somebody else has written into.
func (r *rotation) strange(what string) error {
	names := make([]string, len(r.held))
	for i, h := range r.held {
		names[i] = h.secret.Name
	}
	return refused(fmt.Errorf("what COSI wrote into the Secrets was changed (%s): %s; no key was ended: make the BucketAccess again", strings.Join(names, ", "), what))
}

// judged sorts what the driver says. What somebody has to put right is refused; all
// else is told and tried again, but for what the next attempt alone settles.
func (r *rotation) judged(ctx context.Context, err error) error {
	is := func(sentinel error) bool { return errors.Is(err, sentinel) }
	switch {
	case ctx.Err() != nil || is(provider.ErrConflict):
		return err
	case is(provider.ErrNotFound):
		return refused(fmt.Errorf("%w: make the BucketAccess again", err))
	case slices.ContainsFunc([]error{provider.ErrInvalidArgument, provider.ErrPrecondition, provider.ErrUnsupported}, is):
		return refused(err)
	}
	return errors.Join(err, r.record.warn(ctx, r.access.meta, problem{ReasonRotationFailed, err.Error() + "; it is tried again"}))
}
