package companion

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// tries is how often a process looks at an access, at most, until it is content.
const tries = 12

// TestCrashInRotation stops the companion, and the driver in its process, before and
// after every call that a rotation makes to the cloud and to the API server. Another
// process goes on, and ends where an undisturbed one does. No Secret ever holds a
// key that does not work, and no crash shortens the grace.
func TestCrashInRotation(t *testing.T) {
	for _, cloud := range clouds() {
		for _, c := range []struct {
			version string
			buckets int
			grace   time.Duration
			writes  bool // whether it crashes only at calls that change something
		}{{v1alpha1, 1, 0, false}, {v1alpha2, 2, 90 * time.Second, true}} {
			if testing.Short() && c.writes {
				continue
			}
			t.Run(cloud+"/"+c.version, func(t *testing.T) {
				t.Parallel()
				var dying sync.WaitGroup
				defer dying.Wait()
				points := 0
				for _, carriedOut := range []bool{false, true} {
					for n, crashed := 1, true; crashed; n++ {
						t.Run(fmt.Sprintf("%d, carried out %v", n, carriedOut), func(t *testing.T) {
							r := newRotating(t, startEmulator(t), cloud, c.version, c.buckets, nil)
							r.dying = &dying
							var err error
							if crashed, err = r.crashAt(c.grace, n, carriedOut, c.writes); err != nil {
								crashed = false
								t.Error(err)
							}
						})
						points++
					}
				}
				t.Logf("%d points", points)
				if points < 20 {
					t.Error("that is too few")
				}
			})
		}
	}
}

// crashAt rotates the key and crashes at the n-th call. It reports whether there was
// one.
func (r *rotating) crashAt(grace time.Duration, n int, carriedOut, writes bool) (crashed bool, err error) {
	p := r.first
	if _, err := r.look(p); err != nil { // the env Secret is there before
		return false, err
	}
	r.annotate(AnnotationRotateAt, "now")
	r.annotate(AnnotationRotationGrace, grace.String())
	p.wire.arm(n, carriedOut, writes)
	begun := r.now
	var last error
	for range tries {
		result, err := r.look(p)
		last = err
		if err := r.sound(begun.Add(grace)); err != nil {
			return crashed, err
		}
		j := r.remembered()
		switch {
		case errors.Is(err, errCrash):
			crashed, p = true, r.start()
		case err == nil && j.Handled == "now" && j.Running == nil:
			p.wire.arm(0, false, false)
			return crashed, r.rotated(p)
		case err == nil:
			r.now = r.now.Add(result.RequeueAfter)
		}
	}
	return crashed, errors.Join(last, fmt.Errorf("not finished: %+v; told %q", r.remembered(), r.told("")))
}

// sound checks what holds at any moment.
func (r *rotating) sound(graceEnds time.Time) error {
	if r.now.Before(graceEnds) {
		if err := r.opens(r.grant.Credentials); err != nil {
			return fmt.Errorf("in the grace: %w", err)
		}
	}
	return r.usable()
}

// rotated checks the end of a rotation, and that it is one.
func (r *rotating) rotated(p *rotator) error {
	fresh, err := r.key(r.secretName(0))
	if err != nil {
		return err
	}
	if fresh.AccessKeyID == r.grant.Credentials.AccessKeyID {
		return errors.New("the Secret holds the old key")
	}
	check := func() error {
		for _, name := range r.secretNames() {
			if key, err := r.key(name); err != nil || key != fresh {
				return fmt.Errorf("Secret %s holds another key: %w", name, err)
			}
		}
		if len(r.secretNames()) != len(r.buckets)+1 {
			return errors.New("there is no env Secret")
		}
		if r.opens(r.grant.Credentials) == nil {
			return errors.New("the old key works")
		}
		if n := r.keysAtCloud(); n != 1 {
			return fmt.Errorf("%d keys", n)
		}
		if events := r.told(ReasonCredentialsRotated); len(events) != 1 {
			return fmt.Errorf("events %q", events)
		}
		for _, reason := range []string{ReasonRotationRefused, ReasonRotationFailed, ReasonRotationForbidden, ReasonEnvSecretRefused} {
			if events := r.told(reason); len(events) > 0 {
				return fmt.Errorf("%s: %q", reason, events)
			}
		}
		return r.usable()
	}
	if err := check(); err != nil {
		return err
	}
	// Whoever looks again finds nothing to do.
	if _, err := r.look(p); err != nil {
		return err
	}
	if err := check(); err != nil {
		return fmt.Errorf("looked at again: %w", err)
	}
	return nil
}
