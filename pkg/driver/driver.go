// Package driver is the version-neutral half of the driver: it parses IDs and
// parameters, picks the back end, keeps one writer per bucket and decides what
// COSI's requests mean. It knows providers, but no gRPC and no Kubernetes.
//
// Every error wraps a sentinel of package provider or the context's error.
package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// DefaultRevokeGrace is how long DeleteBucket waits for accesses that are
// still live when Config.RevokeGrace is zero.
const DefaultRevokeGrace = 10 * time.Second

// Backend is one cloud project under the name that BucketClasses use.
type Backend struct {
	// Name is 1 to 63 characters of a-z, 0-9, "-", "_" and ".", starting and
	// ending with a letter or digit. It is part of every ID, so it must not
	// change while buckets of it exist.
	Name     string
	Kind     string // the cloud, for example "cloudscale"; for people
	Provider provider.Provider
}

// Config is what New needs.
type Config struct {
	Name     string    // the driver's name, as BucketClasses spell it
	Backends []Backend // none makes an unconfigured driver
	// AllowDeleteAll is the process-wide gate: without it no bucket that holds
	// data is ever deleted, whatever its deletion policy says.
	AllowDeleteAll bool
	// WipeOnDelete reports whether whoever claimed the bucket with that ID, and is
	// allowed to, asks for its data to be deleted with it. Any doubt is false. It is
	// asked about a bucket that holds data only; nil is nobody.
	WipeOnDelete func(ctx context.Context, bucketID string) bool
	// Claims answers questions about the cluster; nil is nobody, and what needs an
	// answer is refused.
	Claims Claims
	// ClusterID tells this cluster's claims from those of others in the same cloud
	// project. Empty is none; it must be that of the back ends' providers, and never
	// change.
	ClusterID string
	// RevokeGrace is how long DeleteBucket is refused while accesses to the
	// bucket live; zero means DefaultRevokeGrace, a negative value none.
	RevokeGrace time.Duration
	// DeleteSlice is how long one call goes on deleting data before it answers
	// with its progress; zero means DefaultDeleteSlice.
	DeleteSlice time.Duration
	Now         func() time.Time // nil means time.Now
	Observer    Observer         // nil is nobody
}

// Driver serves any number of back ends. It is safe for concurrent use. Its
// only state is an in-process record of granted accesses, which a restart may
// lose without harm.
type Driver struct {
	name           string
	backends       []Backend
	byName         map[string]Backend
	allowDeleteAll bool
	wipeOnDelete   func(ctx context.Context, bucketID string) bool
	claims         Claims
	clusterID      string
	grace          time.Duration
	slice          time.Duration
	now            func() time.Time
	observer       Observer
	locks          *keyLock
	live           *liveAccesses
	deliveries     *deliveries
}

// CreatedBucket is a bucket under the ID that COSI knows it by.
type CreatedBucket struct {
	ID     string
	Bucket provider.Bucket
}

// New checks the configuration, reporting all its faults at once. It makes no
// call. With no back ends it returns an unconfigured driver.
func New(cfg Config) (*Driver, error) {
	d := &Driver{
		name:           cfg.Name,
		backends:       append([]Backend(nil), cfg.Backends...),
		byName:         make(map[string]Backend, len(cfg.Backends)),
		allowDeleteAll: cfg.AllowDeleteAll,
		wipeOnDelete:   cfg.WipeOnDelete,
		claims:         cfg.Claims,
		clusterID:      cfg.ClusterID,
		grace:          cfg.RevokeGrace,
		slice:          cmp.Or(cfg.DeleteSlice, DefaultDeleteSlice),
		now:            cfg.Now,
		observer:       cfg.Observer,
		locks:          newKeyLock(),
		live:           newLiveAccesses(),
		deliveries:     newDeliveries(),
	}
	if d.grace == 0 {
		d.grace = DefaultRevokeGrace
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.observer == nil {
		d.observer = unobserved{}
	}
	d.locks.observer = d.observer
	problems := []error{checkDriverName(cfg.Name), CheckClusterID(cfg.ClusterID)}
	for i, b := range d.backends {
		switch {
		case b.Provider == nil:
			problems = append(problems, fmt.Errorf("back end %d (%q) has no provider", i+1, b.Name))
		case len(b.Name) > maxBackendName || !backendName.MatchString(b.Name):
			problems = append(problems, fmt.Errorf("back end name %s: want 1 to %d characters of a-z, 0-9, \"-\", \"_\" and \".\", "+
				"starting and ending with a letter or digit", quote(b.Name), maxBackendName))
		}
		if _, dup := d.byName[b.Name]; dup {
			problems = append(problems, fmt.Errorf("back end name %q is used twice", b.Name))
		}
		d.byName[b.Name] = b
	}
	if d.slice < 0 {
		problems = append(problems, fmt.Errorf("the time slice of a deletion, %s, is negative", d.slice))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("driver configuration: %w: %w", provider.ErrInvalidArgument, err)
	}
	return d, nil
}

const (
	maxBackendName = 63
	maxDriverName  = 63
	maxClusterID   = 63
)

var (
	backendName = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*$`)
	clusterID   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	driverName  = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$`)
)

// checkDriverName applies the rule of the stricter API version, v1alpha2: every
// label of the name is a DNS-1035 label.
func checkDriverName(name string) error {
	if len(name) > maxDriverName || !driverName.MatchString(name) {
		return fmt.Errorf("driver name %s: want at most %d characters, labels of a-z, 0-9 and \"-\" separated by \".\", each starting with a letter",
			quote(name), maxDriverName)
	}
	return nil
}

// CheckClusterID accepts what every cloud can record; empty is none.
func CheckClusterID(id string) error {
	if id != "" && (len(id) > maxClusterID || !clusterID.MatchString(id)) {
		return fmt.Errorf("cluster ID %s: want at most %d characters of a-z, 0-9, \".\" and \"-\", starting and ending with a letter or digit",
			quote(id), maxClusterID)
	}
	return nil
}

// Name returns the driver's name, also when it is unconfigured.
func (d *Driver) Name() string { return d.name }

// Unconfigured reports whether there is no back end. Every call then returns
// ErrPrecondition with the remedy.
func (d *Driver) Unconfigured() bool { return len(d.backends) == 0 }

// Backends returns the back ends in the order of the configuration.
func (d *Driver) Backends() []Backend { return append([]Backend(nil), d.backends...) }

// configured returns ErrPrecondition with the remedy when there is no back end.
func (d *Driver) configured() error {
	if !d.Unconfigured() {
		return nil
	}
	return fmt.Errorf("%w: driver %s has no back end: start it with credentials in the environment (CLOUDSCALE_API_TOKEN, "+
		"CLOUDSCALE_API_TOKEN_FILE, STACKIT_SERVICE_ACCOUNT_KEY or STACKIT_SERVICE_ACCOUNT_KEY_PATH), or with --config FILE, or with --emulate to try it without an account", provider.ErrPrecondition, d.name)
}

// backendNames lists the names for messages.
func (d *Driver) backendNames() string {
	names := make([]string, 0, len(d.backends))
	for _, b := range d.backends {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

// ours finds the back end that an ID names. An ID of another back end is
// foreign, and never "already gone": the v1alpha1 sidecar sends every driver
// the revocations of all drivers, and takes success as leave to remove the
// objects of the driver that was meant.
func (d *Driver) ours(what, id, backend string) (Backend, error) {
	b, ok := d.byName[backend]
	if !ok {
		return Backend{}, fmt.Errorf("%s %s: %w: not this driver's: it has no back end named %s (it has: %s)",
			what, quote(id), provider.ErrInvalidArgument, quote(backend), d.backendNames())
	}
	return b, nil
}

// quoteLimit bounds what a message repeats of a value somebody sent.
const quoteLimit = 128

// quote makes a value from outside fit for a one-line message.
func quote(s string) string {
	if len(s) > quoteLimit {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:quoteLimit], ""))
	}
	return fmt.Sprintf("%q", s)
}

// joined is errors.Join for one-line messages.
func joined(errs ...error) error {
	var all faultList
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// faultList is several faults of one request.
type faultList []error

func (f faultList) Error() string {
	texts := make([]string, 0, len(f))
	for _, err := range f {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (f faultList) Unwrap() []error { return f }
