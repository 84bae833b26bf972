package emulator

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// Delay is how late a region learns of a new or a removed key: evenly spread
// from Min to Max, or exactly Quick for QuickShare (0 to 1) of the keys.
type Delay struct {
	Min, Max   time.Duration
	Quick      time.Duration
	QuickShare float64
}

func (d Delay) validate() error {
	switch {
	case d.Min < 0 || d.Quick < 0:
		return errors.New("a delay is negative")
	case d.Max < d.Min:
		return errors.New("max is less than min")
	case d.QuickShare < 0 || d.QuickShare > 1:
		return errors.New("quickShare is not from 0 to 1")
	}
	return nil
}

func (d Delay) draw(rng *rand.Rand) time.Duration {
	if d.QuickShare > 0 && rng.Float64() < d.QuickShare {
		return d.Quick
	}
	if d.Max == d.Min {
		return d.Min
	}
	return d.Min + time.Duration(rng.Int64N(int64(d.Max-d.Min)+1))
}

// keyring holds the access keys of one S3 realm and what each region knows of
// them. It is safe for concurrent use and calls nothing but the clock.
type keyring struct {
	now     func() time.Time
	regions []string // the master first

	mu      sync.Mutex
	rng     *rand.Rand
	delays  map[string]Delay
	entries map[string]*keyEntry
}

// keyEntry is a key with, per region, when it begins and ends to work there.
// until is nil while the key exists.
type keyEntry struct {
	key   objectstore.Key
	from  map[string]time.Time
	until map[string]time.Time
}

func newKeyring(seed uint64, now func() time.Time, regions []string) *keyring {
	return &keyring{
		now:     now,
		regions: regions,
		// Faults use the streams 1, 2, 3 …
		rng:     rand.New(rand.NewPCG(seed, 0)), // #nosec G404 -- repeatable on purpose, nothing secret
		entries: map[string]*keyEntry{},
	}
}

// Lookup implements objectstore.Keys.
func (k *keyring) Lookup(region, accessKeyID string) (objectstore.Key, bool) {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[accessKeyID]
	if !ok {
		return objectstore.Key{}, false
	}
	from, ok := e.from[region]
	if !ok || now.Before(from) {
		return objectstore.Key{}, false
	}
	if e.until != nil && !now.Before(e.until[region]) {
		return objectstore.Key{}, false
	}
	return e.key, true
}

func (k *keyring) add(accessKeyID string, key objectstore.Key) {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep(now)
	k.entries[accessKeyID] = &keyEntry{key: key, from: k.times(now)}
}

// rename changes the display name a key's identity shows.
func (k *keyring) rename(accessKeyID, displayName string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.entries[accessKeyID]; ok {
		e.key.Identity.DisplayName = displayName
	}
}

func (k *keyring) remove(accessKeyID string) {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.entries[accessKeyID]; ok && e.until == nil {
		e.until = k.times(now)
	}
	k.sweep(now)
}

// times draws the moment each region learns of a change. It needs mu.
func (k *keyring) times(now time.Time) map[string]time.Time {
	t := make(map[string]time.Time, len(k.regions))
	for _, region := range k.regions {
		t[region] = now.Add(k.delays[region].draw(k.rng))
	}
	return t
}

// sweep forgets keys that work nowhere any more. It needs mu.
func (k *keyring) sweep(now time.Time) {
	maps.DeleteFunc(k.entries, func(_ string, e *keyEntry) bool {
		return e.until != nil && !slices.ContainsFunc(k.regions, func(region string) bool {
			return now.Before(e.until[region])
		})
	})
}

func (k *keyring) setDelays(delays map[string]Delay) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delays = maps.Clone(delays)
}

func (k *keyring) currentDelays() map[string]Delay {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[string]Delay, len(k.regions))
	for _, region := range k.regions {
		all[region] = k.delays[region]
	}
	return all
}
