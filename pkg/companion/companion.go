// Package companion is the Kubernetes half of the driver: what users of
// BucketClaims and BucketAccesses need beyond what COSI does. It makes env
// Secrets, corrects what COSI v1alpha1 writes about a bucket's name, rotates keys,
// tells claims what the driver said about their buckets, and finds out for the
// driver which claim a bucket is for, and what that asks for.
//
// It changes no spec, label or annotation of anybody's object. What it writes is
// its own Secrets, events, its Lease, and, in the Secrets that COSI writes, a new
// key and, in v1alpha1, the bucket's name.
package companion

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// Config is what New needs.
type Config struct {
	Driver    string       // the driver's name
	REST      *rest.Config // the API server and who the companion is to it
	Namespace string       // that of the driver, for the Lease
	// AllowWipe lets claims have the data of their buckets deleted.
	AllowWipe bool
	// Insist makes what keeps the companion from its work an error in the log.
	Insist bool
	// Metrics shows the driver's objects while the companion works; nil is none.
	Metrics *Metrics
}

// How often the companion looks at what it depends on.
const (
	// recheckFirst is the first wait after what keeps the companion from its work,
	// recheckMost the longest, and the one between looks while it works.
	recheckFirst = time.Second
	recheckMost  = 30 * time.Second
	// askTimeout bounds one look.
	askTimeout = 10 * time.Second
)

// Companion works beside a driver. It is safe for concurrent use.
type Companion struct {
	config    Config
	client    client.Client // asks the API server, never a cache
	discovery *discovery.DiscoveryClient
	scheme    *runtime.Scheme

	mu   sync.Mutex
	last string // the state that was logged last
}

// unlimited is a copy of a configuration, without the API server's warnings, and
// without client-go's limit of 5 requests a second: the API server shares itself out.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if config.QPS == 0 {
		config.QPS = -1
	}
	return config
}

// New makes a companion. It makes no call.
func New(cfg Config) (*Companion, error) {
	cfg.REST = rest.AddUserAgent(unlimited(cfg.REST), reporter)
	live, err := client.New(cfg.REST, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("companion: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("companion: %w", err)
	}
	return &Companion{config: cfg, client: live, discovery: d, scheme: scheme.Scheme}, nil
}

// Run works until ctx ends, and has the driver rotate keys. Whatever fails, be it the API server, a missing right
// or a cluster without COSI, is logged once and tried again.
func (c *Companion) Run(ctx context.Context, keys *driver.Driver) {
	ctx = withoutBodies(ctx)
	var wait time.Duration
	for ctx.Err() == nil {
		started := time.Now()
		if err := c.once(ctx, keys); err != nil && ctx.Err() == nil {
			c.say(ctx, err)
		}
		wait = nextWait(wait, time.Since(started))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// nextWait is how long the next try waits after one that lasted so long. Work that
// fails as soon as it starts is no better than none.
func nextWait(last, lasted time.Duration) time.Duration {
	if last == 0 || lasted > recheckMost {
		return recheckFirst
	}
	return min(2*last, recheckMost)
}

// plan is what the companion can do in the cluster as it is.
type plan struct {
	version    string
	everywhere bool // whether it has the rights to Secrets in all namespaces
}

// errOff is why the companion has nothing to do, which is no failure.
var errOff = errors.New("the companion is off")

// once works as long as the cluster stays as it is. A panic is an error, as the
// driver in the same process has to go on.
func (c *Companion) once(ctx context.Context, keys *driver.Driver) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the companion starts again after a panic: %v\n%s", cause, debug.Stack())
		}
	}()
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	self, err := subject(ctx, c.client)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go c.watch(ctx, p, cancel)
	c.say(ctx, nil, "driver", c.config.Driver, "cosi", p.version, "secretsEverywhere", p.everywhere)
	if err := c.work(ctx, keys, p, self); err != nil {
		return fmt.Errorf("the companion starts again: %w", err)
	}
	return context.Cause(ctx)
}

// watch ends the work when the plan is another one. While the API server does
// not answer nothing is known to be.
func (c *Companion) watch(ctx context.Context, old plan, end context.CancelCauseFunc) {
	ticker := time.NewTicker(recheckMost)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch p, err := c.plan(ctx); {
		case errors.Is(err, errOff):
			end(err)
		case err == nil && p != old:
			end(fmt.Errorf("the companion starts again: the cluster has COSI %s, and it had %s; rights to all Secrets: %v, before %v",
				p.version, old.version, p.everywhere, old.everywhere))
		}
	}
}

// plan looks at the cluster. What keeps the companion from its work is errOff.
func (c *Companion) plan(ctx context.Context) (plan, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	version, err := c.version(ctx)
	if err != nil {
		return plan{}, err
	}
	absent, err := missing(ctx, c.client, requiredRights(version, c.config.Namespace))
	if err != nil {
		return plan{}, err
	}
	if len(absent) > 0 {
		return plan{}, fmt.Errorf("%w: it may not %s; apply config/companion for its roles", errOff, strings.Join(absent, ", nor "))
	}
	absent, err = missing(ctx, c.client, secretRights())
	return plan{version, len(absent) == 0}, err
}

// version is that of COSI's API in the cluster.
func (c *Companion) version(ctx context.Context) (string, error) {
	found, err := servedVersion(ctx, c.discovery)
	switch {
	case err != nil:
		return "", fmt.Errorf("the companion waits for the API server: %w", err)
	case found == "":
		return "", fmt.Errorf("%w: the cluster has no %s of version %s or %s", errOff, cosiGroup, v1alpha1, v1alpha2)
	}
	return found, nil
}

// servedVersion is that of COSI's API in a cluster; an empty one is none.
func servedVersion(ctx context.Context, d *discovery.DiscoveryClient) (string, error) {
	var group metav1.APIGroup
	err := d.RESTClient().Get().AbsPath("/apis/" + cosiGroup).Do(ctx).Into(&group)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	found := ""
	for _, v := range group.Versions {
		// The newer one wins where, against upstream's word, both are served.
		if v.Version == v1alpha2 || v.Version == v1alpha1 && found == "" {
			found = v.Version
		}
	}
	return found, nil
}

// say logs a change of state: that the companion works, if err is nil, or else
// why it does not.
func (c *Companion) say(ctx context.Context, err error, details ...any) {
	state := fmt.Sprint(err, details)
	if err != nil && !errors.Is(err, errOff) {
		state = "failing" // the text of a failure may differ each time
	}
	c.mu.Lock()
	again := state == c.last
	c.last = state
	c.mu.Unlock()
	logger := klog.FromContext(ctx)
	switch {
	case again:
	case err == nil:
		logger.Info("The companion works", details...)
	case c.config.Insist:
		logger.Error(err, "The companion does not work; the driver does")
	default:
		logger.Info("The companion does not work; the driver does", "reason", err.Error())
	}
}
