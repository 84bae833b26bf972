package emulator

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// The regions of STACKIT. Each is a grid of its own: bucket names, credentials
// groups and keys of one mean nothing in the other.
const (
	stackitEU01 = "eu01"
	stackitEU02 = "eu02"
)

// StackitOptions configures the emulated STACKIT. The zero value is the cloud
// without delays, with the service enabled in both projects and both regions.
type StackitOptions struct {
	// ListDelay is how late lists of credentials groups and of buckets show what
	// was created and still show what was deleted, by Options.Now. Single reads
	// and lists of access keys never lag.
	ListDelay Delay
	// NotEmptyStatus answers the deletion of a bucket that is not empty: 422
	// (default) or 409. Sources differ on what the cloud does.
	NotEmptyStatus int
	// KeyDelay is how late a new key works and a deleted key stops working, in
	// every region that Options.KeyDelay does not name. The expiry of a key is
	// never late.
	KeyDelay Delay
	// PolicyDelay is how long after the write of a bucket policy requests are
	// still judged by the one before. Reading the policy never lags. The cloud
	// caches policies for up to eight seconds. See SetPolicyDelay.
	PolicyDelay Delay
	// ServiceDisabled starts with Object Storage enabled in no project.
	ServiceDisabled bool
	// Enabling, if set, is called while a project is being enabled in a region:
	// until it returns, every other EnableService for the two is a conflict. The
	// context is that of the HTTP request.
	Enabling func(ctx context.Context, projectID, region string)
}

func (o StackitOptions) validate() error {
	if err := o.ListDelay.validate(); err != nil {
		return fmt.Errorf("list delay: %w", err)
	}
	if err := o.KeyDelay.validate(); err != nil {
		return fmt.Errorf("key delay: %w", err)
	}
	if err := o.PolicyDelay.validate(); err != nil {
		return fmt.Errorf("policy delay: %w", err)
	}
	switch o.NotEmptyStatus {
	case 0, http.StatusConflict, http.StatusUnprocessableEntity:
		return nil
	}
	return fmt.Errorf("status of a bucket that is not empty is %d, want %d or %d",
		o.NotEmptyStatus, http.StatusConflict, http.StatusUnprocessableEntity)
}

// Stackit is the emulated STACKIT Object Storage: two projects, each with a
// service account, and per region an S3 endpoint that both share. Its fields do
// not change after Start; its methods are safe for concurrent use.
type Stackit struct {
	// APIURL is the control plane's base URL, with a trailing slash and without
	// the version.
	APIURL string
	// TokenURL is the token endpoint, for service account keys and for federation.
	TokenURL string
	// Endpoints are the S3 base URLs by region, without a trailing slash. They
	// take path-style requests, and virtual-hosted ones under Domains.
	Endpoints map[string]string
	// Domains are, by region, the host suffix of virtual-hosted requests:
	// <bucket>.<domain>, to be connected to the host and port of Endpoints.
	Domains map[string]string
	// ProjectID and ForeignProjectID are the projects, UUIDs. The credentials of
	// one open nothing of the other.
	ProjectID, ForeignProjectID string
	// FederationEmail is the service account of ProjectID, which federation signs
	// in as; FederatedToken is a workload's token that it accepts for a year.
	FederationEmail, FederatedToken string

	options  StackitOptions
	now      func() time.Time
	ring     *keyring
	s3Keys   *stackitS3Keys
	policies *lateness
	stores   map[string]*objectstore.Store
	issuer   *stackitIssuer

	mu      sync.Mutex
	rng     *rand.Rand
	tenants map[stackitScope]*stackitTenant
}

// stackitScope is what the path of a call addresses.
type stackitScope struct{ project, region string }

// stackitTenant is a project in a region: one account of the region's grid. Its
// fields but the scope are guarded by Stackit.mu.
type stackitTenant struct {
	stackitScope
	// account is the grid's name of the tenant, new each time it is enabled.
	account        string
	enabled        bool
	enabling       bool
	complianceLock bool
	groups         map[string]*stackitGroup // by id
	groupList      listing[*stackitGroup]
	bucketList     listing[stackitBucket]
}

// Group is a credentials group, for assertions and summaries; it holds no secret.
type Group struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	URN         string `json:"urn"`
	Project     string `json:"project"`
	Region      string `json:"region"`
	// Keys counts the access keys that have not expired.
	Keys int `json:"keys"`
}

// addStackit makes STACKIT one of the emulator's clouds. It merges the key delay
// of its options into o, and so comes before the delays are set and the clouds'
// endpoints are listened on.
func (e *Emulator) addStackit(o *Options, so StackitOptions) error {
	c, err := newStackit(*o, so)
	if err != nil {
		return fmt.Errorf("stackit: %w", err)
	}
	o.KeyDelay = c.mergeKeyDelay(o.KeyDelay)
	e.clouds = append(e.clouds, c)
	return nil
}

// Stackit is the emulated STACKIT, or nil if the emulator has none.
func (e *Emulator) Stackit() *Stackit {
	for _, c := range e.clouds {
		if s, ok := c.(*Stackit); ok {
			return s
		}
	}
	return nil
}

func newStackit(o Options, so StackitOptions) (*Stackit, error) {
	if err := so.validate(); err != nil {
		return nil, err
	}
	if so.NotEmptyStatus == 0 {
		so.NotEmptyStatus = http.StatusUnprocessableEntity
	}
	c := &Stackit{
		Endpoints:        map[string]string{},
		Domains:          map[string]string{},
		ProjectID:        newUUID(),
		ForeignProjectID: newUUID(),
		options:          so,
		now:              o.Now,
		stores:           map[string]*objectstore.Store{},
		tenants:          map[stackitScope]*stackitTenant{},
		// Faults use the streams 1, 2, 3 … and keyrings use 0.
		rng: rand.New(rand.NewPCG(o.Seed, 1<<63)), // #nosec G404 -- repeatable on purpose, nothing secret
	}
	c.ring = newKeyring(o.Seed, o.Now, []string{stackitEU01, stackitEU02})
	c.s3Keys = newStackitS3Keys(c.ring, o.Now)
	c.policies = &lateness{
		rng:   rand.New(rand.NewPCG(o.Seed, 1<<63+1)), // #nosec G404 -- repeatable on purpose, nothing secret
		delay: so.PolicyDelay,
	}
	c.issuer = newStackitIssuer(o.Now, c.ProjectID, c.ForeignProjectID)
	c.FederationEmail = c.issuer.accounts[0].email
	c.FederatedToken = c.issuer.federatedToken(365 * 24 * time.Hour)
	for _, region := range c.ring.regions {
		c.Domains[region] = "object.storage." + region + ".localhost"
		c.stores[region] = objectstore.New(objectstore.Options{
			Profile:     objectstore.StorageGRID,
			Keys:        c.s3Keys,
			Now:         o.Now,
			PolicyDelay: c.policies.draw,
			Regions: []objectstore.Region{{
				Name: region,
				// The real name lets a client whose dialer is redirected speak as to the cloud.
				Domains: []string{c.Domains[region], "object.storage." + region + ".onstackit.cloud"},
				URL:     func() string { return c.Endpoints[region] },
			}},
		})
		for _, project := range []string{c.ProjectID, c.ForeignProjectID} {
			t := &stackitTenant{stackitScope: stackitScope{project, region}}
			c.tenants[t.stackitScope] = t
			if !so.ServiceDisabled {
				t.enable()
			}
		}
	}
	return c, nil
}

// mergeKeyDelay adds the cloud's own key delay for regions without an entry.
func (c *Stackit) mergeKeyDelay(delays map[string]Delay) map[string]Delay {
	merged := map[string]Delay{}
	for _, region := range c.ring.regions {
		merged[region] = c.options.KeyDelay
	}
	for region, d := range delays {
		merged[region] = d
	}
	return merged
}

// lateness draws delays one by one. It has a lock of its own, because the data
// plane draws while it holds a lock that Stackit.mu comes before.
type lateness struct {
	mu    sync.Mutex
	rng   *rand.Rand
	delay Delay
}

func (l *lateness) draw() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay.draw(l.rng)
}

// SetPolicyDelay replaces StackitOptions.PolicyDelay for what is written from
// then on. A malformed delay is an error and changes nothing.
func (c *Stackit) SetPolicyDelay(d Delay) error {
	if err := d.validate(); err != nil {
		return fmt.Errorf("policy delay: %w", err)
	}
	c.policies.mu.Lock()
	defer c.policies.mu.Unlock()
	c.policies.delay = d
	return nil
}

func (c *Stackit) name() string   { return CloudStackit }
func (c *Stackit) keys() *keyring { return c.ring }

// stackitTokenPath is the path of the token endpoint at the control plane's listener.
const stackitTokenPath = "/oauth/v2/token" // #nosec G101 -- a path

func (c *Stackit) endpoints() []endpoint {
	eps := []endpoint{{
		plane:     PlaneControl,
		handler:   http.HandlerFunc(c.serveAPI),
		operation: stackitOperation,
		bound: func(url string) {
			c.APIURL = url + "/"
			c.TokenURL = url + stackitTokenPath
		},
	}}
	for _, region := range c.ring.regions {
		eps = append(eps, endpoint{
			plane:     PlaneS3,
			region:    region,
			handler:   c.stores[region].Handler(region),
			operation: c.stores[region].Operation,
			bound:     func(url string) { c.Endpoints[region] = url },
		})
	}
	return eps
}

// Groups returns the credentials groups of all projects and regions, without
// any lag, sorted by project, region and id.
func (c *Stackit) Groups() []Group {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []Group{}
	for _, t := range c.tenants {
		for _, g := range t.groups {
			out = append(out, Group{
				ID: g.id, DisplayName: g.displayName, URN: g.urn,
				Project: t.project, Region: t.region, Keys: len(g.valid(now)),
			})
		}
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Region, b.Region), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Buckets returns the buckets of all projects, sorted by region and name. The
// owner's UID is the account number of the project's tenant in that region,
// which the URNs of its credentials groups name.
func (c *Stackit) Buckets() []objectstore.BucketInfo {
	var out []objectstore.BucketInfo
	for _, region := range c.ring.regions {
		out = append(out, c.stores[region].Buckets()...)
	}
	return out
}

// Inspect returns all that the buckets of all projects hold, sorted by region and
// name.
func (c *Stackit) Inspect() []objectstore.BucketState {
	var out []objectstore.BucketState
	for _, region := range c.ring.regions {
		out = append(out, c.stores[region].Inspect()...)
	}
	return out
}

// stackitState is the admin endpoint's summary.
type stackitState struct {
	APIURL           string            `json:"apiURL"`
	TokenURL         string            `json:"tokenURL"`
	Endpoints        map[string]string `json:"endpoints"`
	Domains          map[string]string `json:"domains"`
	ProjectID        string            `json:"projectID"`
	ForeignProjectID string            `json:"foreignProjectID"`
	Groups           []Group           `json:"groups"`
	Buckets          []bucketState     `json:"buckets"`
}

func (c *Stackit) state() any {
	s := stackitState{
		APIURL: c.APIURL, TokenURL: c.TokenURL, Endpoints: c.Endpoints, Domains: c.Domains,
		ProjectID: c.ProjectID, ForeignProjectID: c.ForeignProjectID,
		Groups: c.Groups(), Buckets: []bucketState{},
	}
	for _, b := range c.Buckets() {
		s.Buckets = append(s.Buckets, bucketState{b.Name, b.Region, b.OwnerUID, b.Objects, b.Bytes})
	}
	return s
}
