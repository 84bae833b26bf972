package emulator

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// The regions of cloudscale.ch, the metadata master first.
const (
	cloudscaleMaster    = "rma"
	cloudscaleSecondary = "lpg"
)

// The two projects of the emulated cloudscale.ch. They share the S3 realm.
const (
	ownProject     = "own"
	foreignProject = "foreign"
)

// RealisticKeyDelay is what was measured on an RGW realm laid out like
// cloudscale.ch's: the master region knows a key within 0.1 s, the other one
// mostly at its next metadata poll, 11 to 20 s later, and sometimes at once.
func RealisticKeyDelay() map[string]Delay {
	return map[string]Delay{
		cloudscaleMaster: {Min: 10 * time.Millisecond, Max: 110 * time.Millisecond},
		cloudscaleSecondary: {
			Min: 11 * time.Second, Max: 20 * time.Second,
			Quick: 150 * time.Millisecond, QuickShare: 0.25,
		},
	}
}

// Cloudscale is the emulated cloudscale.ch: the objects users of two projects
// and one S3 realm with an endpoint per region. Its fields do not change after
// Start; its methods are safe for concurrent use.
type Cloudscale struct {
	// APIURL is the control plane's base URL, with a trailing slash and without
	// the version, as the Go SDK wants it.
	APIURL string
	// Token may read and write; ReadOnlyToken may read and sees no secret key.
	Token, ReadOnlyToken string
	// ForeignToken reads and writes another project of the same S3 realm.
	ForeignToken string
	// Endpoints are the S3 base URLs by region, without a trailing slash. They
	// take path-style requests, and virtual-hosted ones under Domains.
	Endpoints map[string]string
	// Domains are, by region, the host suffix of virtual-hosted requests:
	// <bucket>.<domain>, to be connected to the host and port of Endpoints.
	Domains map[string]string
	// Release is the release of the S3 gateway.
	Release objectstore.Release

	now    func() time.Time
	zurich *time.Location
	tokens map[string]cloudscaleGrant
	ring   *keyring
	store  *objectstore.Store

	mu       sync.Mutex
	users    []*cloudscaleUser            // in the order of their creation
	projects map[string]string            // project by user id, also of removed users
	seen     map[metricsSubject]time.Time // when a bucket was first seen, also of deleted ones
}

// cloudscaleGrant is what a token opens.
type cloudscaleGrant struct {
	project  string
	readOnly bool
}

type cloudscaleUser struct {
	id, displayName      string
	accessKey, secretKey string
	tags                 map[string]string
	project              string
}

// User is an objects user, for assertions and summaries; it holds no secret.
type User struct {
	ID          string            `json:"id"`
	DisplayName string            `json:"displayName"`
	AccessKey   string            `json:"accessKey"`
	Tags        map[string]string `json:"tags"`
	Project     string            `json:"project"` // "own" or "foreign"
}

// tokenPattern is what cloudscale's own clients accept as a token.
var tokenPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

func newCloudscale(o Options) (*Cloudscale, error) {
	if o.Token == "" {
		o.Token = randomString(alphanumeric, 32)
	}
	if !tokenPattern.MatchString(o.Token) {
		return nil, fmt.Errorf("the token holds characters other than letters, digits, %q", "-._")
	}
	if o.RGWRelease == "" {
		o.RGWRelease = objectstore.Reef
	}
	if known := objectstore.Releases(); !slices.Contains(known, o.RGWRelease) {
		return nil, fmt.Errorf("unknown RGW release %q, there are %q", o.RGWRelease, known)
	}
	zurich, err := loadZurich()
	if err != nil {
		return nil, err
	}
	c := &Cloudscale{
		Token:         o.Token,
		ReadOnlyToken: o.Token + "-read-only",
		ForeignToken:  o.Token + "-foreign",
		Endpoints:     map[string]string{},
		Domains:       map[string]string{},
		Release:       o.RGWRelease,
		now:           o.Now,
		zurich:        zurich,
		projects:      map[string]string{},
		seen:          map[metricsSubject]time.Time{},
	}
	c.tokens = map[string]cloudscaleGrant{
		c.Token:         {project: ownProject},
		c.ReadOnlyToken: {project: ownProject, readOnly: true},
		c.ForeignToken:  {project: foreignProject},
	}
	c.ring = newKeyring(o.Seed, o.Now, []string{cloudscaleMaster, cloudscaleSecondary})
	var regions []objectstore.Region
	for _, name := range c.ring.regions {
		c.Domains[name] = "objects." + name + ".localhost"
		regions = append(regions, objectstore.Region{
			Name: name,
			// The real name lets a client whose dialer is redirected speak as to the cloud.
			Domains: []string{c.Domains[name], "objects." + name + ".cloudscale.ch"},
			URL:     func() string { return c.Endpoints[name] },
		})
	}
	c.store = objectstore.New(objectstore.Options{
		Profile: objectstore.RGW, Release: c.Release, Keys: c.ring, Now: o.Now, Regions: regions,
	})
	return c, nil
}

func (c *Cloudscale) name() string   { return CloudCloudscale }
func (c *Cloudscale) keys() *keyring { return c.ring }

func (c *Cloudscale) endpoints() []endpoint {
	eps := []endpoint{{
		plane:     PlaneControl,
		handler:   http.HandlerFunc(c.serveAPI),
		operation: cloudscaleOperation,
		bound:     func(url string) { c.APIURL = url + "/" },
	}}
	for _, region := range c.ring.regions {
		eps = append(eps, endpoint{
			plane:     PlaneS3,
			region:    region,
			handler:   c.watchBuckets(c.store.Handler(region)),
			operation: c.store.Operation,
			bound:     func(url string) { c.Endpoints[region] = url },
		})
	}
	return eps
}

// Users returns the objects users of all projects in the order of their creation.
func (c *Cloudscale) Users() []User {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]User, len(c.users))
	for i, u := range c.users {
		out[i] = User{
			ID: u.id, DisplayName: u.displayName, AccessKey: u.accessKey,
			Tags: maps.Clone(u.tags), Project: u.project,
		}
	}
	return out
}

// Buckets returns the buckets of all regions and projects.
func (c *Cloudscale) Buckets() []objectstore.BucketInfo { return c.store.Buckets() }

// Inspect returns all that the buckets of all regions and projects hold, sorted by
// name.
func (c *Cloudscale) Inspect() []objectstore.BucketState { return c.store.Inspect() }

// cloudscaleState is the admin endpoint's summary.
type cloudscaleState struct {
	APIURL    string            `json:"apiURL"`
	Endpoints map[string]string `json:"endpoints"`
	Domains   map[string]string `json:"domains"`
	Release   string            `json:"release"`
	Users     []User            `json:"users"`
	Buckets   []bucketState     `json:"buckets"`
}

type bucketState struct {
	Name     string `json:"name"`
	Region   string `json:"region"`
	OwnerUID string `json:"ownerUID"`
	Objects  int64  `json:"objects"`
	Bytes    int64  `json:"bytes"`
}

func (c *Cloudscale) state() any {
	s := cloudscaleState{
		APIURL: c.APIURL, Endpoints: c.Endpoints, Domains: c.Domains, Release: string(c.Release),
		Users: c.Users(), Buckets: []bucketState{},
	}
	for _, b := range c.store.Buckets() {
		s.Buckets = append(s.Buckets, bucketState{b.Name, b.Region, b.OwnerUID, b.Objects, b.Bytes})
	}
	slices.SortFunc(s.Buckets, func(a, b bucketState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Region, b.Region))
	})
	return s
}

const cloudscaleDescription = `cloudscale.ch, emulated

  control plane    %[1]s
  S3 in %[2]s        %[3]s   (metadata master)
  S3 in %[4]s        %[5]s
  S3 server        Ceph RGW %[9]s
  token            %[6]s
  read-only token  %[7]s   (sees no secret keys)
  foreign token    %[8]s   (another project)

Make an objects user and take its keys into the shell:

  export AWS_DEFAULT_REGION=us-east-1
  eval "$(curl -sS -H 'Authorization: Bearer %[6]s' -d display_name=demo %[1]sv1/objects-users |
    sed -n 's/.*"access_key":"\([^"]*\)","secret_key":"\([^"]*\)".*/export AWS_ACCESS_KEY_ID=\1 AWS_SECRET_ACCESS_KEY=\2/p')"

aws cli:

  aws --endpoint-url %[3]s s3 mb s3://demo
  echo hello | aws --endpoint-url %[3]s s3 cp - s3://demo/hello.txt
  aws --endpoint-url %[3]s s3 ls s3://demo

rclone (its older releases fail while AWS_CA_BUNDLE is set: unset it):

  export RCLONE_S3_PROVIDER=Ceph RCLONE_S3_ENV_AUTH=true RCLONE_S3_ENDPOINT=%[3]s
  rclone mkdir :s3:demo
  echo hello | rclone rcat :s3:demo/hello.txt
  rclone ls :s3:demo

Faults, calls and state; the second line makes the next PutObject fail, the third takes that back:

  curl -sS %[1]s_emulator/
  curl -sS -d '{"plane":"s3","operation":"PutObject","times":1,"status":503}' %[1]s_emulator/faults
  curl -sS -X DELETE %[1]s_emulator/faults
`

func (c *Cloudscale) describe(w io.Writer) error {
	_, err := fmt.Fprintf(w, cloudscaleDescription, c.APIURL,
		cloudscaleMaster, c.Endpoints[cloudscaleMaster], cloudscaleSecondary, c.Endpoints[cloudscaleSecondary],
		c.Token, c.ReadOnlyToken, c.ForeignToken, c.Release.Version())
	return err
}

const (
	alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	accessKeySet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// newCloudscaleUser makes a user with an id and keys of the cloud's own shape.
func newCloudscaleUser(project, displayName string, tags map[string]string) *cloudscaleUser {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	return &cloudscaleUser{
		id:          hex.EncodeToString(id),
		displayName: displayName,
		accessKey:   randomString(accessKeySet, 20),
		secretKey:   randomString(alphanumeric, 40),
		tags:        tags,
		project:     project,
	}
}

func randomString(set string, n int) string {
	b := make([]byte, n)
	size := big.NewInt(int64(len(set)))
	for i := range b {
		j, err := rand.Int(rand.Reader, size)
		if err != nil {
			// rand.Reader never fails; the first character keeps the length right.
			j = new(big.Int)
		}
		b[i] = set[j.Int64()]
	}
	return string(b)
}
