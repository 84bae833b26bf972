package companion

import (
	"testing"
	"time"
)

// TestNextWait: what fails again and again is tried less and less often, and soon
// after it has worked for a while.
func TestNextWait(t *testing.T) {
	var wait time.Duration
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if wait = nextWait(wait, 10*time.Second); wait != want*time.Second {
			t.Errorf("wait %d is %s, want %d s", i+1, wait, want)
		}
	}
	if wait = nextWait(wait, time.Hour); wait != recheckFirst {
		t.Errorf("after an hour of work: %s", wait)
	}
}

// TestNoThrottle: the API server limits its clients itself. What the caller says
// stays, and so does the caller's configuration.
func TestNoThrottle(t *testing.T) {
	for given, want := range map[float32]float32{0: -1, 20: 20} {
		_, config := newAPIServer(t)
		config.QPS = given
		c, err := New(Config{Driver: "cosi.zuber.dev", REST: config})
		if err != nil {
			t.Fatal(err)
		}
		if c.config.REST.QPS != want || config.QPS != given {
			t.Errorf("%v: %v, and the caller's is %v", given, c.config.REST.QPS, config.QPS)
		}
	}
}
