package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// many is a number of claims with an access each.
type many struct {
	*story
	claims, accesses []object
}

// make applies claims and accesses all at once.
func (m *many) make(n int, class, accessClass string) {
	m.Helper()
	var manifests []string
	for i := range n {
		name := fmt.Sprintf("many-%d", i)
		manifests = append(manifests, claimManifest(name, class), accessManifest(name, name, accessClass))
	}
	for _, o := range m.apply(manifests...) {
		if o.text("kind") == "BucketClaim" {
			m.claims = append(m.claims, o)
		} else {
			m.accesses = append(m.accesses, o)
		}
	}
}

// ready waits until all have their Secret.
func (m *many) ready() {
	m.Helper()
	repairs := map[string]*repair{}
	m.within(long, func() error {
		claims, err := m.Get(m.Context(), cosiPath("bucketclaims", m.ns))
		if err != nil {
			return err
		}
		var wrong []error
		for _, claim := range object(claims).list("items") {
			if repairs[claim.name()] == nil {
				repairs[claim.name()] = &repair{story: m.story}
			}
			wrong = append(wrong, repairs[claim.name()].claim(claim))
		}
		if err := errors.Join(wrong...); err != nil {
			return err
		}
		return m.count(len(m.accesses), "bucketaccesses", "granted", func(access object) bool {
			return access.at("status", "accessGranted") == true && access.name() != "one"
		})
	})
}

// count expects that a number of objects of the namespace fulfil a condition.
func (m *many) count(want int, resource, what string, fulfils func(object) bool) error {
	list, err := m.Get(m.Context(), cosiPath(resource, m.ns))
	if err != nil {
		return err
	}
	n := 0
	for _, o := range object(list).list("items") {
		if fulfils(o) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d %s are %s, want %d", n, resource, what, want)
	}
	return nil
}

// buckets counts those in the clouds.
func (m *many) buckets() int {
	return len(m.Emulator.Cloudscale().Buckets()) + len(m.Emulator.Stackit().Buckets())
}

// killDuring kills the driver while a few calls of an operation have been carried
// out and the cloud holds all the others.
func (m *many) killDuring(operation string, start func()) {
	m.Helper()
	const few = 10
	before := m.buckets()
	release := m.Emulator.Inject(emulator.Fault{Operation: operation, After: few, Latency: time.Hour})
	defer release()
	start()
	m.eventually(func() error {
		if m.buckets() == before {
			return fmt.Errorf("there are still %d buckets", before)
		}
		return nil
	})
	m.Driver.Kill()
	m.Logf("killed with %d buckets, %d before", m.buckets(), before)
	release()
	m.start(m.Driver)
}

// allGone waits until the claims are gone.
func (m *many) allGone() {
	m.Helper()
	m.within(long, func() error {
		return m.count(0, "bucketclaims", "left", func(o object) bool { return o.name() != "one" })
	})
}

// wantUsable takes every bucket into use.
func (m *many) wantUsable() {
	m.Helper()
	for _, access := range m.accesses {
		m.story.wantUsable(m.bucketInfo(access).s3())
	}
}

// TestKilled kills the driver in the middle of 50 claims, and again in the middle
// of their deletion.
func TestKilled(t *testing.T) {
	const n = 50
	m := &many{story: alone(t)}
	class, accessClass := m.class(cloudscale), m.accessClass()
	// One first, so that the driver has probed the region.
	m.bucketInfo(m.access("one", m.claim("one", class).name(), accessClass))
	before := m.buckets()
	m.killDuring("CreateBucket", func() { m.make(n, class, accessClass) })
	m.ready()
	if made := m.buckets() - before; made != n {
		t.Errorf("%d buckets for %d claims", made, n)
	}
	m.wantUsable()

	m.deleteSoon(m.accesses...)
	m.crash(m.Driver)
	m.freed(m.accesses...)
	m.killDuring("DeleteBucket", func() { m.deleteSoon(m.claims...) })
	m.allGone()
}

// TestMany makes 200 claims with an access each at once, and deletes them at once.
func TestMany(t *testing.T) {
	m := &many{story: alone(t)}
	class, accessClass := m.class(cloudscale), m.accessClass()
	start := time.Now()
	m.bucketInfo(m.access("one", m.claim("one", class).name(), accessClass))
	t.Logf("1 claim has its Secret after %s", time.Since(start).Round(10*time.Millisecond))
	start = time.Now()
	m.make(200, class, accessClass)
	t.Logf("%d claims are made after %s", len(m.claims), time.Since(start).Round(100*time.Millisecond))
	m.ready()
	t.Logf("%d claims have their Secrets after %s", len(m.claims), time.Since(start).Round(100*time.Millisecond))
	m.wantUsable()
	start = time.Now()
	m.deleteSoon(m.accesses...)
	m.freed(m.accesses...)
	m.deleteSoon(m.claims...)
	m.allGone()
	t.Logf("they are gone after %s", time.Since(start).Round(100*time.Millisecond))
}
