package companion

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// must lets the process look at the access once, and returns when to look again.
func (r *rotating) must(p *rotator) time.Duration {
	r.Helper()
	result, err := r.look(p)
	if err != nil {
		r.Fatal(err)
	}
	return result.RequeueAfter
}

// current is the key in the first Secret of COSI.
func (r *rotating) current() provider.Credentials {
	r.Helper()
	key, err := r.key(r.secretName(0))
	if err != nil {
		r.Fatal(err)
	}
	return key
}

// wantKeys checks which keys open the buckets, how many there are, and that the
// Secrets hold one that does.
func (r *rotating) wantKeys(n int, works, ended []provider.Credentials) {
	r.Helper()
	if err := r.usable(); err != nil {
		r.Error(err)
	}
	for _, key := range works {
		if err := r.opens(key); err != nil {
			r.Error(err)
		}
	}
	for _, key := range ended {
		if r.opens(key) == nil {
			r.Errorf("key %s works", key.AccessKeyID)
		}
	}
	if got := r.keysAtCloud(); got != n {
		r.Errorf("%d keys, want %d", got, n)
	}
}

// wantEvents checks how many events with a reason there are, and what they say.
func (r *rotating) wantEvents(n int, reason, about string) {
	r.Helper()
	events := r.told(reason)
	if len(events) != n || n > 0 && !strings.Contains(strings.Join(events, "\n"), about) {
		r.Errorf("%s: %q, want %d about %q", reason, events, n, about)
	}
}

// untouched checks that nothing was rotated.
func (r *rotating) untouched() {
	r.Helper()
	if r.current() != r.grant.Credentials {
		r.Error("the Secret has another key")
	}
	r.wantKeys(1, []provider.Credentials{r.grant.Credentials}, nil)
	r.wantEvents(0, ReasonCredentialsRotated, "")
}

type keyList = []provider.Credentials

// TestRotationOncePerValue: what an access says before it is granted asks for
// nothing, every other value for one new key.
func TestRotationOncePerValue(t *testing.T) {
	e := startEmulator(t)
	for _, cloud := range clouds() {
		t.Run(cloud, func(t *testing.T) {
			r := newRotating(t, e, cloud, v1alpha1, 1, nil)
			status := r.server.objects[r.path("bucketaccesses", "photos")]["status"]
			r.set(nil, "status")
			r.annotate(AnnotationRotateAt, "born-with")
			r.must(r.first)
			r.set(status, "status")
			r.must(r.first)
			r.untouched()

			keys := keyList{r.grant.Credentials}
			for _, value := range []string{"one", "two", "one"} {
				r.annotate(AnnotationRotateAt, value)
				r.must(r.first)
				r.must(r.start())
				keys = append(keys, r.current())
				r.wantKeys(1, keys[len(keys)-1:], keys[:len(keys)-1])
				r.wantEvents(len(keys)-1, ReasonCredentialsRotated, "has ended")
			}
			r.set(nil, "metadata", "annotations", AnnotationRotateAt)
			r.must(r.first)
			r.annotate(AnnotationRotateAt, "one")
			r.must(r.first)
			r.wantKeys(1, keys[3:], keys[:3])
		})
	}
}

// TestRotationGrace: both keys work in the grace, another value waits for its end,
// and whoever shortens it is heeded.
func TestRotationGrace(t *testing.T) {
	e := startEmulator(t)
	for _, cloud := range clouds() {
		t.Run(cloud, func(t *testing.T) {
			r := newRotating(t, e, cloud, v1alpha1, 1, nil)
			r.annotate(AnnotationRotationGrace, "50s")
			r.annotate(AnnotationRotateAt, "one")
			if wait := r.must(r.first); wait != 50*time.Second {
				t.Errorf("looks again in %s", wait)
			}
			first := r.current()
			r.wantKeys(2, keyList{r.grant.Credentials, first}, nil)
			r.wantEvents(1, ReasonCredentialsRotated, "goes on working for 50s")
			r.annotate(AnnotationRotateAt, "two")
			r.now = r.now.Add(50*time.Second - 1)
			r.must(r.start())
			r.wantKeys(2, keyList{r.grant.Credentials, first}, nil)

			r.now = r.now.Add(1)
			p := r.start()
			if wait := r.must(p); wait != soon || r.current() != first {
				t.Errorf("the next rotation begins in %s", wait)
			}
			r.wantKeys(1, keyList{first}, keyList{r.grant.Credentials})
			r.must(p)
			second := r.current()
			r.wantKeys(2, keyList{first, second}, nil)
			r.annotate(AnnotationRotationGrace, "0")
			r.must(p)
			r.wantKeys(1, keyList{second}, keyList{first})
			r.wantEvents(2, ReasonCredentialsRotated, second.AccessKeyID)
		})
	}
}

// TestScheduledRotation counts from the grant and then from the last rotation, be
// it one that was asked for.
func TestScheduledRotation(t *testing.T) {
	const every = 720 * time.Hour
	r := newRotating(t, startEmulator(t), emulator.CloudStackit, v1alpha2, 2, map[string]string{rotateEvery: every.String()})
	granted := r.now
	after := func(from time.Time, age time.Duration) {
		t.Helper()
		r.now = from.Add(age)
		r.must(r.first)
	}
	after(granted, every-time.Second)
	r.untouched()
	after(granted, every+time.Hour)
	first, rotated := r.current(), r.now
	r.wantKeys(1, keyList{first}, keyList{r.grant.Credentials})
	after(rotated, every-time.Second)
	r.annotate(AnnotationRotateAt, "between")
	after(rotated, every-time.Second)
	second, asked := r.current(), r.now
	after(asked, every-time.Second)
	r.wantKeys(1, keyList{second}, keyList{first})
	after(asked, every)
	r.wantKeys(1, keyList{r.current()}, keyList{second})
	r.wantEvents(3, ReasonCredentialsRotated, "has ended")
}

// TestRotationWithOwnBuckets: a key with which somebody made buckets outlives its rotation,
// because they would go with it; the user hears which, and it ends when they are gone.
func TestRotationWithOwnBuckets(t *testing.T) {
	r := newRotating(t, startEmulator(t), emulator.CloudCloudscale, v1alpha1, 1, nil)
	key := r.grant.Credentials
	c, err := s3.New(s3.Config{Endpoint: r.grant.Buckets[0].Bucket.Endpoint, AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal})
	if err == nil {
		err = c.CreateBucket(t.Context(), "made-by-hand")
	}
	if err != nil {
		t.Fatal(err)
	}
	r.annotate(AnnotationRotateAt, "one")
	r.must(r.first)
	r.must(r.start())
	r.wantKeys(2, keyList{key, r.current()}, nil)
	r.wantEvents(1, ReasonRotationRefused, "the buckets made-by-hand were made with a key that would go")
	r.wantEvents(0, ReasonCredentialsRotated, "")
	if err := c.DeleteBucket(t.Context(), "made-by-hand"); err != nil {
		t.Fatal(err)
	}
	r.must(r.start())
	r.wantKeys(1, keyList{r.current()}, keyList{key})
	r.wantEvents(1, ReasonCredentialsRotated, "has ended")
}

// TestRotationRefused: what somebody has to put right is said, and nothing is done.
func TestRotationRefused(t *testing.T) {
	e := startEmulator(t)
	foreign := newRotating(t, e, emulator.CloudStackit, v1alpha1, 1, nil).grant.Credentials
	for name, c := range map[string]struct {
		parameters map[string]string
		spoil      func(r *rotating)
		about      string
	}{
		"no duration":  {nil, func(r *rotating) { r.annotate(AnnotationRotationGrace, "1 day") }, `"1 day": want a duration`},
		"negative":     {nil, func(r *rotating) { r.annotate(AnnotationRotationGrace, "-1h") }, `"-1h": want a duration`},
		"too often":    {map[string]string{rotateEvery: "5m"}, func(*rotating) {}, "at least 1h"},
		"a shared key": {map[string]string{credentialsParameter: "shared"}, func(*rotating) {}, "the bucket's owner"},
		"the class is away": {nil, func(r *rotating) {
			r.drop(r.path("bucketaccessclasses", "key"))
		}, "is away"},
		"immutable": {nil, func(r *rotating) { r.edit(secretsPath+"/cosi-0", true, "immutable") }, "immutable"},
		"never granted": {nil, func(r *rotating) {
			r.set("stackit/ba-"+newUID(r.T), "status", "accountID")
		}, "make the BucketAccess again"},
		"the journal is somebody's": {nil, func(r *rotating) {
			r.write(secretsPath+"/zuber-rotation-"+r.uid, dict{"apiVersion": "v1", "kind": "Secret", "metadata": dict{"namespace": "ns", "name": "zuber-rotation-" + r.uid}})
		}, "delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRotating(t, e, emulator.CloudStackit, v1alpha1, 1, c.parameters)
			r.annotate(AnnotationRotateAt, "now")
			c.spoil(r)
			r.must(r.first)
			r.must(r.start())
			r.wantEvents(1, ReasonRotationRefused, c.about)
			r.untouched()
		})
	}
	// In the grace somebody deletes what COSI wrote, or writes another key there.
	for name, c := range map[string]struct {
		spoil func(r *rotating)
		about string
	}{
		"deleted": {func(r *rotating) { r.drop(secretsPath + "/cosi-0") }, "is gone"},
		"altered": {func(r *rotating) {
			r.grant.Credentials = foreign
			r.writeSecret(0, r.now.UTC().Format(time.RFC3339))
		}, "no key was ended"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRotating(t, e, emulator.CloudStackit, v1alpha1, 1, nil)
			r.annotate(AnnotationEnvSecret, "")
			r.set(nil, "metadata", "annotations", AnnotationEnvSecret)
			r.annotate(AnnotationRotateAt, "now")
			r.annotate(AnnotationRotationGrace, "1h")
			r.must(r.first)
			keys := keyList{r.grant.Credentials, r.current()}
			c.spoil(r)
			r.now = r.now.Add(2 * time.Hour)
			r.must(r.first)
			r.wantEvents(1, ReasonRotationRefused, c.about)
			for _, key := range keys {
				if err := r.opens(key); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestOldKeyPutBack: the key that is replaced comes back into a Secret, from a
// backup perhaps. It is replaced again.
func TestOldKeyPutBack(t *testing.T) {
	r := newRotating(t, startEmulator(t), emulator.CloudCloudscale, v1alpha2, 2, nil)
	r.annotate(AnnotationRotateAt, "now")
	r.annotate(AnnotationRotationGrace, "1h")
	r.must(r.first)
	begun := r.now
	r.now = begun.Add(30 * time.Minute)
	r.writeSecret(1, "2026-01-01T00:00:00Z")
	r.must(r.first)
	r.wantKeys(2, keyList{r.grant.Credentials, r.current()}, nil)
	r.now = begun.Add(70 * time.Minute)
	r.must(r.first)
	r.wantKeys(2, keyList{r.grant.Credentials, r.current()}, nil)
	for i := range r.buckets {
		r.writeSecret(i, "2026-01-01T00:00:00Z")
	}
	r.must(r.first)
	r.now = r.now.Add(time.Hour)
	r.must(r.first)
	r.wantKeys(1, keyList{r.current()}, keyList{r.grant.Credentials})
}

// TestGrantInTheGrace: the sidecar of v1alpha2 asks for the credentials again, and
// writes what it gets. Where that is yet another key, it is the one that stays.
func TestGrantInTheGrace(t *testing.T) {
	e := startEmulator(t)
	for _, cloud := range clouds() {
		t.Run(cloud, func(t *testing.T) {
			r := newRotating(t, e, cloud, v1alpha2, 2, nil)
			old := r.grant.Credentials
			r.annotate(AnnotationRotateAt, "now")
			r.annotate(AnnotationRotationGrace, "1h")
			r.must(r.first)
			p := r.start()
			r.regrant(p)
			r.must(p)
			r.wantKeys(r.keysAtCloud(), keyList{old, r.current()}, nil)
			r.now = r.now.Add(time.Hour)
			r.must(p)
			r.wantKeys(1, keyList{r.grant.Credentials}, keyList{old})
			r.wantEvents(1, ReasonCredentialsRotated, old.AccessKeyID)
		})
	}
}

// TestGrantWhileKeysEnd: the sidecar of v1alpha2 starts together with the driver and is
// given a key between the companion's look into the Secrets and the end of the other
// keys. It writes that key, which must work.
func TestGrantWhileKeysEnd(t *testing.T) {
	e := startEmulator(t)
	for _, cloud := range clouds() {
		for _, at := range []string{"RetireKeys", "RotateAccess"} {
			t.Run(cloud+"/"+at, func(t *testing.T) {
				r := newRotating(t, e, cloud, v1alpha2, 2, nil)
				old := r.grant.Credentials
				r.annotate(AnnotationRotateAt, "now")
				r.annotate(AnnotationRotationGrace, "1h")
				if at == "RetireKeys" {
					r.must(r.first)
					r.now = r.now.Add(time.Hour)
				}
				held, p := r.current(), r.start()
				p.secrets.live = &between{Reader: p.secrets.live, secret: r.secretName(1), f: func() { r.grantAgain(p) }}
				_, err := r.look(p)
				if r.grant.Credentials != held && !errors.Is(err, provider.ErrConflict) {
					t.Errorf("the companion goes on while %s is on its way into the Secrets: %v", r.grant.Credentials.AccessKeyID, err)
				}
				r.writeSecrets()
				r.wantKeys(r.keysAtCloud(), keyList{r.grant.Credentials}, nil)
				for range 2 {
					r.must(p)
					r.now = r.now.Add(time.Hour)
				}
				r.must(p)
				r.wantKeys(1, keyList{r.current()}, nil)
				if r.opens(old) == nil {
					t.Error("the old key works")
				}
			})
		}
	}
}

// TestCloudThatFails: it is told, tried again, and leaves nothing behind when it is
// not asked for any more.
func TestCloudThatFails(t *testing.T) {
	e := startEmulator(t)
	for cloud, operation := range map[string]string{emulator.CloudCloudscale: "CreateObjectsUser", emulator.CloudStackit: "GetBucketLocation"} {
		t.Run(cloud, func(t *testing.T) {
			r := newRotating(t, e, cloud, v1alpha1, 1, nil)
			r.must(r.first)
			if _, known := r.first.noted(); known {
				t.Error("a rotation is shown before one is asked for")
			}
			remove := e.Inject(emulator.Fault{Operation: operation, Status: http.StatusInternalServerError})
			defer remove()
			r.annotate(AnnotationRotateAt, "now")
			if _, err := r.look(r.first); err == nil {
				t.Fatal("no error")
			}
			if len(r.told(ReasonRotationFailed)) == 0 {
				t.Error("no event")
			}
			if shown, known := r.first.noted(); !known || !shown.failing || !shown.last.IsZero() {
				t.Errorf("the failure is shown as %+v, %v", shown, known)
			}
			r.set(nil, "metadata", "annotations", AnnotationRotateAt)
			remove()
			r.must(r.start())
			r.untouched()
			if r.remembered().Running != nil {
				t.Error("the rotation goes on")
			}
			r.annotate(AnnotationRotateAt, "then")
			p := r.start()
			r.must(p)
			r.wantKeys(1, keyList{r.current()}, keyList{r.grant.Credentials})
			if shown, known := p.noted(); !known || shown.failing || !shown.last.Equal(r.now) {
				t.Errorf("the rotation at %s is shown as %+v, %v", r.now, shown, known)
			}
			r.set("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
			if _, err := r.look(p); err != nil {
				t.Fatal(err)
			}
			if shown, known := p.noted(); known {
				t.Errorf("of an access that goes %+v is shown", shown)
			}
		})
	}
}
