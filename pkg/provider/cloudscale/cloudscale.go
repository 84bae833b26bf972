// Package cloudscale is the provider over cloudscale.ch: one objects user owns
// each bucket, or all buckets of a tenant (tenant.go), one more is made for each access, whatever buckets that spans, and
// their tags are the driver's mark and memory (tags.go, membership.go).
//
// The bucket's policy is rendered whole from the tags of the accesses (policy.go)
// by whoever changes one of them, under a lock of this process, read back, and
// written again if another process won (syncPolicy). In a bucket that the driver
// did not make it is merged with what others have in it (existing.go, merge.go).
// The owner's key never leaves
// the process, but for accesses with CredentialsShared. Whether an endpoint obeys
// policies at all is tried out before the first access relies on it (probe.go).
package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	sdk "github.com/cloudscale-ch/cloudscale-go-sdk/v8"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// DefaultAPIURL is the cloud's own control plane.
const DefaultAPIURL = "https://api.cloudscale.ch/"

// DefaultKeyWait is how long a new key may take to work. A region that is not
// the metadata master learns of keys up to 20 s late.
const DefaultKeyWait = 45 * time.Second

// cleanupTimeout bounds the removal of what a failed call made.
const cleanupTimeout = 20 * time.Second

// Config configures New.
type Config struct {
	// DriverName is the mark on everything made; [a-z0-9.-], at most 63.
	DriverName string
	// ClusterID is recorded with everything made, so that clusters may share the
	// project and the driver's name; [a-z0-9.-], at most 63. Empty records none.
	ClusterID string
	// Token returns the read-write API token of the project. It is asked before
	// every request, so that a rotated token takes effect at once.
	Token func() (provider.Secret, error)
	// APIURL is the base of the control plane, without "v1"; default DefaultAPIURL.
	APIURL string
	// Endpoints holds S3 endpoints by region, scheme://host[:port]; a region
	// without an entry has the cloud's own.
	Endpoints map[string]string
	// Transport carries requests out below the retries; nil means one with
	// time-outs of its own.
	Transport http.RoundTripper
	// Pacing limits the requests to the control plane and to each region's S3.
	Pacing transport.Pacing
	// KeyWait bounds the wait for a new key; 0 means DefaultKeyWait.
	KeyWait time.Duration
	// OnKeyWait is told of the progress of such a wait; it may be nil.
	OnKeyWait func(region string, waited time.Duration)
	// OnKeyWaited is told of its end, and whether the key works then; it may be nil.
	OnKeyWaited func(region string, waited time.Duration, works bool)
	// OnPurge is told what a step of a purge has deleted; it may be nil.
	OnPurge func(objects, bytes int64)
	// OnProbe is told what a probe found; it may be nil.
	OnProbe   func(Verdict)
	UserAgent string // "name/version"; may be empty
}

// Provider implements provider.Provider for one cloudscale.ch project. It keeps
// no state but caches, of the regions and of what probes found.
type Provider struct {
	config    Config
	endpoints map[string]string
	api       *sdk.Client
	transport http.RoundTripper // with retries, for S3
	regions   regionCache
	waits     backoff
	buckets   keyLock  // one writer for each bucket's accesses and policy
	accounts  keyLock  // one writer for each access's tags; taken after those of buckets
	tenants   keyLock  // one writer for the tags of each tenant's owner; taken after those of buckets
	theirIDs  ownerIDs // of buckets that the driver did not make
	probes    probes
}

var _ provider.Provider = (*Provider)(nil)

var driverNamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// New makes the provider. It makes no call; all faults of the configuration are
// in the error, which is ErrInvalidArgument.
func New(c Config) (*Provider, error) {
	var faults []error
	if !driverNamePattern.MatchString(c.DriverName) {
		faults = append(faults, fmt.Errorf("driver name %q is not 1 to 63 of [a-z0-9.-]", c.DriverName))
	}
	if c.ClusterID != "" && !driverNamePattern.MatchString(c.ClusterID) {
		faults = append(faults, fmt.Errorf("cluster ID %q is not 1 to 63 of [a-z0-9.-]", c.ClusterID))
	}
	if c.Token == nil {
		faults = append(faults, errors.New("no source of the API token is set"))
	}
	if c.KeyWait < 0 {
		faults = append(faults, fmt.Errorf("the wait for a key is negative: %s", c.KeyWait))
	}
	base, err := parseAPIURL(c.APIURL)
	if err != nil {
		faults = append(faults, err)
	}
	endpoints := make(map[string]string, len(c.Endpoints))
	for region, endpoint := range c.Endpoints {
		e, err := parseEndpoint(endpoint)
		if err != nil {
			faults = append(faults, fmt.Errorf("region %q: %w", region, err))
			continue
		}
		endpoints[region] = e.String()
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("cloudscale: %w: %w", provider.ErrInvalidArgument, err)
	}
	if c.KeyWait == 0 {
		c.KeyWait = DefaultKeyWait
	}
	rt := transport.New(transport.Options{Base: c.Transport, Pacing: c.Pacing, Root: base.Path, Routes: routes()})
	p := &Provider{config: c, endpoints: endpoints, transport: rt, waits: defaultBackoff, probes: probes{age: probeAge, settle: probeSettle}}
	p.api = newAPI(base, rt.As(transport.PlaneControl), c)
	return p, nil
}

// parseAPIURL completes the base: the SDK drops a last path element that does
// not end in a slash.
func parseAPIURL(s string) (*url.URL, error) {
	if s == "" {
		s = DefaultAPIURL
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the API URL is not of the form https://host[:port]/[path/]")
	}
	if strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") {
		return nil, fmt.Errorf("the API URL %q ends in v1; give it without", u)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Modes: []provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly}, Rotation: true, Tenants: true}
}

// Check is the start-up check: the token is valid, may write, and shows secret
// keys. It changes nothing. Errors: ErrUnauthenticated, ErrPermissionDenied with
// the remedy, ErrUnavailable.
func (p *Provider) Check(ctx context.Context) error {
	users, err := p.listUsers(ctx, tagManagedBy, p.config.DriverName)
	if err != nil {
		return fmt.Errorf("cloudscale check: %w", err)
	}
	// A token that hides keys hides all of them; one user without a key says
	// nothing of the token.
	hidden := 0
	for _, u := range users {
		if _, err = u.key(); err != nil {
			hidden++
		}
	}
	if hidden > 0 && hidden == len(users) {
		return fmt.Errorf("cloudscale check: %w", err)
	}
	// No user shows whether the token may write. Changing one that cannot exist
	// does: a read-only token is refused before the user is looked for.
	err = p.updateTags(ctx, strings.Repeat("0", 64), map[string]string{})
	if errors.Is(err, provider.ErrPermissionDenied) {
		return fmt.Errorf("cloudscale check: the API token is read-only: %w", err)
	}
	if err != nil && !errors.Is(err, provider.ErrNotFound) && !errors.Is(err, provider.ErrPrecondition) {
		return fmt.Errorf("cloudscale check: %w", err)
	}
	return nil
}

// client returns an S3 client with the key, for the driver's own calls.
func (p *Provider) client(endpoint string, key keyPair) (*s3.Client, error) {
	// The path form works at every endpoint, also where the users of a bucket
	// are told to use its host name.
	c, err := s3.New(s3.Config{
		Endpoint:        endpoint,
		AccessKeyID:     key.id,
		SecretAccessKey: key.secret.Reveal,
		Transport:       p.transport,
		UserAgent:       p.config.UserAgent,
		OnPurge:         p.config.OnPurge,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrInvalidArgument, err)
	}
	return c, nil
}
