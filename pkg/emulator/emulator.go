// Package emulator is a cloud on loopback: real HTTP listeners for a control
// plane and for its S3 regions, kept in memory, with faults on demand. It is an
// independent reading of the clouds' wire behaviour and therefore imports no
// cloud SDK.
//
// It serves two clouds, cloudscale.ch and STACKIT, whose behaviour lives in the
// files named cloudscale*.go and stackit*.go. Listeners, faults, call records,
// late keys and the admin endpoint know nothing of them.
package emulator

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// Plane names, as Fault and Call use them.
const (
	PlaneControl = "control" // a cloud's own API
	PlaneS3      = "s3"      // the S3 endpoints
)

// Cloud names, as Fault and Call use them.
const (
	CloudCloudscale = "cloudscale"
	CloudStackit    = "stackit"
)

// Options configures Start. The zero value is a usable emulator on free ports.
type Options struct {
	// Listen is the host:port of cloudscale's control plane, default 127.0.0.1:0.
	// With a fixed port the other listeners take the ports that follow it: the
	// region endpoints in the order of the cloud's regions, then STACKIT's control
	// plane and its regions. With port 0 every listener takes a free one.
	Listen string
	// Now is the clock of users, keys, objects and metrics, default time.Now. It
	// must be safe for concurrent use. Fault latencies run on real time.
	Now func() time.Time
	// KeyDelay is, per region, how late a new key works and a removed key stops
	// working; a region without an entry has no delay. See RealisticKeyDelay.
	KeyDelay map[string]Delay
	// Seed drives every random choice of faults and key delays. Ids, keys and
	// tokens do not depend on it: they differ between any two emulators.
	Seed uint64
	// Token fixes the control plane's read-write token, so that it survives a
	// restart; the other tokens are derived from it. Empty makes a random one.
	// Allowed are letters, digits, "-", "." and "_".
	Token string
	// RGWRelease is the release of the Ceph gateway behind cloudscale's S3
	// endpoints, default objectstore.Reef. Which one the cloud runs is not known.
	RGWRelease objectstore.Release
	// Stackit configures the second cloud.
	Stackit StackitOptions
}

// Emulator is a set of running emulated clouds. All methods are safe for concurrent use.
type Emulator struct {
	faults     *faultList
	calls      *callLog
	listeners  *listeners
	clouds     []cloud
	cloudscale *Cloudscale
}

// cloud is what a kind of cloud brings to the emulator.
type cloud interface {
	name() string
	// endpoints lists what to listen on, the control plane first.
	endpoints() []endpoint
	keys() *keyring
	// state is a summary for the admin endpoint; it holds no secret.
	state() any
	describe(w io.Writer) error
}

// Start makes an emulator and returns when all its listeners accept. It takes
// milliseconds; a process may run any number of them. On an error nothing is
// left open.
func Start(o Options) (*Emulator, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	cs, err := newCloudscale(o)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	e := &Emulator{
		faults:     newFaultList(o.Seed),
		calls:      &callLog{},
		clouds:     []cloud{cs},
		cloudscale: cs,
	}
	if err := e.addStackit(&o, o.Stackit); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	if err := e.setKeyDelay(o.KeyDelay); err != nil {
		return nil, fmt.Errorf("emulator: key delay: %w", err)
	}
	var eps []endpoint
	for _, c := range e.clouds {
		for i, ep := range c.endpoints() {
			ep.cloud = c.name()
			ep.handler = e.withFaults(ep)
			if i == 0 {
				ep.handler = e.withAdmin(ep.handler)
			}
			eps = append(eps, ep)
		}
	}
	if e.listeners, err = listen(o.Listen, eps); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return e, nil
}

// Close ends all listeners, connections and running calls, latencies included,
// and returns when they are gone. It is idempotent.
func (e *Emulator) Close() error {
	if err := e.listeners.close(); err != nil {
		return fmt.Errorf("emulator: close: %w", err)
	}
	return nil
}

// Cloudscale is the emulated cloudscale.ch.
func (e *Emulator) Cloudscale() *Cloudscale { return e.cloudscale }

// Inject adds a fault and returns a function that removes it again, which may
// be called any number of times.
func (e *Emulator) Inject(f Fault) (remove func()) {
	id := e.faults.add(f).ID
	return func() { e.faults.remove(id) }
}

// Calls returns the calls since the start or the last ResetCalls, in the order
// of their arrival. A call is in it before its answer reaches the client. Only
// the latest 65,536 are kept.
func (e *Emulator) Calls() []Call { return e.calls.list() }

// ResetCalls forgets the recorded calls. Faults keep their own counts.
func (e *Emulator) ResetCalls() { e.calls.reset() }

// SetKeyDelay replaces the key delays of all regions; a region that is not
// named has none. It counts for keys made and removed from then on. An unknown
// region or a malformed delay is an error, and nothing is changed.
func (e *Emulator) SetKeyDelay(delays map[string]Delay) error {
	if err := e.setKeyDelay(delays); err != nil {
		return fmt.Errorf("emulator: key delay: %w", err)
	}
	return nil
}

func (e *Emulator) setKeyDelay(delays map[string]Delay) error {
	var errs []error
	var known []string
	for _, c := range e.clouds {
		known = append(known, c.keys().regions...)
	}
	for region, d := range delays {
		if !slices.Contains(known, region) {
			errs = append(errs, fmt.Errorf("unknown region %q, there are %q", region, known))
		}
		if err := d.validate(); err != nil {
			errs = append(errs, fmt.Errorf("region %q: %w", region, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, c := range e.clouds {
		c.keys().setDelays(delays)
	}
	return nil
}

// keyDelay returns the delays in force, one entry per region.
func (e *Emulator) keyDelay() map[string]Delay {
	all := map[string]Delay{}
	for _, c := range e.clouds {
		for region, d := range c.keys().currentDelays() {
			all[region] = d
		}
	}
	return all
}

// Describe writes, for a person, the endpoints, the tokens and lines to paste
// into a shell. It prints tokens, which open nothing but this emulator.
func (e *Emulator) Describe(w io.Writer) error {
	for _, c := range e.clouds {
		if err := c.describe(w); err != nil {
			return fmt.Errorf("emulator: describe: %w", err)
		}
	}
	return nil
}
