package stackit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// Defaults of Config.
const (
	DefaultPropagationWait = 45 * time.Second
	DefaultListingWait     = 10 * time.Second
	DefaultAdminKeyTTL     = 24 * time.Hour
)

// adminKeyTTLMin keeps a third of the life, after which a key is renewed, above
// the longest single call.
const adminKeyTTLMin = 15 * time.Minute

// Config configures New.
type Config struct {
	// DriverName is the mark on every bucket made; [a-z0-9.-], at most 63.
	DriverName string
	// ClusterID is recorded with every bucket made, so that clusters may share the
	// project and the driver's name; [a-z0-9.-], at most 63. Empty records none.
	ClusterID   string
	Credentials Credentials
	// ProjectID is the project to work in; "" means the one that the service
	// account key names. Federation needs it.
	ProjectID string
	// Regions are the regions to serve; nil means eu01 and eu02.
	Regions []string
	// APIURL is the base of the control plane; default DefaultAPIURL.
	APIURL string
	// TokenURL is the token endpoint; "" means the key's own, and
	// DefaultFederationURL with federation.
	TokenURL string
	// Endpoints holds S3 endpoints by region, scheme://host[:port]; a region
	// without an entry has the one that the API names for its buckets.
	Endpoints map[string]string
	// AdminGroupID is the credentials group to be the admin, instead of one that
	// is found or made by name. A group lives in one region, so Regions must then
	// hold exactly one.
	AdminGroupID string
	// AdminKey returns a key of the admin group that somebody else keeps; nil
	// means that the driver mints short-lived ones for itself. It is asked anew
	// when the key does not work. Regions must then hold exactly one.
	AdminKey func() (provider.Credentials, error)
	// AdminKeyTTL is the life of a minted admin key, which is replaced after two
	// thirds of it; 0 means DefaultAdminKeyTTL, the least is 15 minutes.
	AdminKeyTTL time.Duration
	// Transport carries requests out below the retries; nil means one with
	// time-outs of its own.
	Transport http.RoundTripper
	// Pacing limits the requests to the control plane, to the token endpoint and
	// to each region's S3.
	Pacing    transport.Pacing
	UserAgent string           // "name/version"; may be empty
	Now       func() time.Time // nil means time.Now
	// PropagationWait bounds the wait for a new key, policy or bucket to work; 0
	// means DefaultPropagationWait.
	PropagationWait time.Duration
	// ListingWait is how long the list of credentials groups may lag its writes;
	// 0 means DefaultListingWait. It is waited out when the admin group is first
	// made, and after a call that was cut short.
	ListingWait time.Duration
	// OnKeyWait is told of the progress of a wait for a key; it may be nil.
	OnKeyWait func(region string, waited time.Duration)
	// OnKeyWaited is told of its end, and whether the key works then; it may be nil.
	OnKeyWaited func(region string, waited time.Duration, works bool)
	// OnPurge is told what a step of a purge has deleted; it may be nil.
	OnPurge func(objects, bytes int64)
	// OnCredentials is told when the credentials in use change and when a new key
	// is rejected; it may be nil. It must not call the provider.
	OnCredentials func(CredentialState)
}

// Provider implements provider.Provider for one STACKIT project. It keeps
// nothing but caches: the admin's keys, and the keys that it has granted.
type Provider struct {
	config      Config
	endpoints   map[string]endpoint
	transport   *transport.Transport
	credentials *credentials
	admins      map[string]*admin // by region
	locks       keyLock           // by bucket
	waits       backoff

	mu      sync.Mutex
	granted map[string]grantedKey // by group ID
	made    map[string]group      // groups of accesses, by region and name
	intents map[string]intent     // by bucket
	printed map[string]string     // buckets of accesses that span several, by region and print
}

var _ provider.Provider = (*Provider)(nil)

// New makes the provider. It reads the credentials and makes no call; all faults
// of the configuration are in the error, which is ErrInvalidArgument.
func New(c Config) (*Provider, error) {
	withDefaults(&c)
	p := &Provider{
		config: c, endpoints: map[string]endpoint{}, waits: defaultBackoff,
		admins: map[string]*admin{}, granted: map[string]grantedKey{}, made: map[string]group{}, intents: map[string]intent{}, printed: map[string]string{},
	}
	faults := c.faults()
	for region, value := range c.Endpoints {
		e, err := parseEndpoint(value)
		if err != nil {
			faults = append(faults, fmt.Errorf("region %q: %w", region, err))
		}
		p.endpoints[region] = e
	}
	for _, region := range c.Regions {
		p.admins[region] = &admin{region: region}
	}
	base, err := parseURL(c.APIURL)
	if err != nil {
		faults = append(faults, fmt.Errorf("API URL: %w", err))
	}
	if len(faults) == 0 {
		p.transport = transport.New(transport.Options{Base: c.Transport, Pacing: c.Pacing, Root: base.Path, Routes: routes()})
		p.credentials = &credentials{
			source: c.Credentials, project: c.ProjectID, region: c.Regions[0], base: base, tokenURL: c.TokenURL,
			transport: p.transport, userAgent: c.UserAgent, now: c.Now, onChange: c.OnCredentials, every: reloadEvery,
		}
		if err := p.credentials.open(); err != nil {
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("stackit: %w: %w", provider.ErrInvalidArgument, err)
	}
	return p, nil
}

// DefaultRegions returns the regions of a configuration that names none.
func DefaultRegions() []string { return []string{"eu01", "eu02"} }

func withDefaults(c *Config) {
	if c.Regions == nil {
		c.Regions = DefaultRegions()
	}
	if c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AdminKeyTTL == 0 {
		c.AdminKeyTTL = DefaultAdminKeyTTL
	}
	if c.PropagationWait == 0 {
		c.PropagationWait = DefaultPropagationWait
	}
	if c.ListingWait == 0 {
		c.ListingWait = DefaultListingWait
	}
	if c.Credentials.FederationEmail == "" {
		return
	}
	if c.Credentials.FederatedTokenFile == "" {
		c.Credentials.FederatedTokenFile = DefaultFederatedTokenFile
	}
	if c.TokenURL == "" {
		c.TokenURL = DefaultFederationURL
	}
}

// faults returns everything that is wrong with the configuration itself.
func (c Config) faults() []error {
	var faults []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	add(!labelPattern.MatchString(c.DriverName), "driver name %q is not 1 to 63 of [a-z0-9.-]", c.DriverName)
	add(c.ClusterID != "" && !labelPattern.MatchString(c.ClusterID), "cluster ID %q is not 1 to 63 of [a-z0-9.-]", c.ClusterID)
	add((c.Credentials.Key == nil) == (c.Credentials.FederationEmail == ""),
		"want exactly one of a service account key and a federation service account")
	add(c.Credentials.FederationEmail != "" && c.ProjectID == "", "federation needs a project ID")
	add(c.ProjectID != "" && !uuidPattern.MatchString(c.ProjectID), "project ID %q is not a UUID", c.ProjectID)
	add(len(c.Regions) == 0, "no region is named")
	for _, region := range c.Regions {
		add(!regionPattern.MatchString(region), "region %q is malformed", region)
	}
	add(c.AdminGroupID != "" && !uuidPattern.MatchString(c.AdminGroupID), "admin group ID %q is not a UUID", c.AdminGroupID)
	add((c.AdminGroupID != "" || c.AdminKey != nil) && len(c.Regions) != 1,
		"an admin group or key of your own lives in one region, and %d are configured; set the regions to that one", len(c.Regions))
	add(c.AdminKeyTTL < adminKeyTTLMin, "the life of admin keys, %s, is below %s", c.AdminKeyTTL, adminKeyTTLMin)
	add(c.PropagationWait < 0, "the wait for propagation is negative: %s", c.PropagationWait)
	add(c.ListingWait < 0, "the wait for listings is negative: %s", c.ListingWait)
	if c.TokenURL != "" {
		_, err := parseURL(c.TokenURL)
		add(err != nil, "token URL: %w", err)
	}
	return faults
}

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Modes: modes(), Rotation: true}
}

// Regions implements provider.Provider. The API has no list of regions, so these
// are the configured ones.
func (p *Provider) Regions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.Sorted(slices.Values(p.config.Regions)), nil
}

// patience returns a fresh budget for a propagation delay.
func (p *Provider) patience() *budget {
	return &budget{backoff: p.waits, left: p.config.PropagationWait}
}
