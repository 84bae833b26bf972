// Package crash drives the whole driver, with both adapters and over HTTP, through
// crashes and faults.
package crash

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// cloud is what the tests need of a kind of cloud.
type cloud interface {
	name() string
	region() string
	endpoint() string
	// provider makes an adapter without any memory; the cluster's ID may be empty.
	provider(driver, cluster string, rt http.RoundTripper) (provider.Provider, error)
	// stranger makes an adapter for somebody else's project.
	stranger(rt http.RoundTripper) (provider.Provider, error)
	// prepare lets the process find out what does not belong to an RPC.
	prepare(ctx context.Context, p provider.Provider) error
	// state draws the cloud as one driver sees it.
	state(driver string) snapshot
	inspect() []objectstore.BucketState
	// ordered checks that keys and policies come and go in the right order.
	ordered(r rpc) error
	// keys returns the keys that exist among those seen.
	keys(driver string, seen *secrets) []key
}

// key is an access key that exists.
type key struct {
	id, secret string
	account    string // whose access it belongs to; "" for an admin or an owner
	bucket     string // which bucket it administers, without an account; "" for all
}

const (
	// propagationWait is how long the adapters wait for what a cloud does late. The
	// emulated clouds are at least a hundred times faster.
	propagationWait = 45 * time.Second
	listingWait     = 5 * time.Millisecond
)

// rgw is the emulated cloudscale.ch.
type rgw struct {
	*emulator.Cloudscale
	wait time.Duration
}

func (c rgw) name() string     { return emulator.CloudCloudscale }
func (c rgw) region() string   { return "lpg" }
func (c rgw) endpoint() string { return c.Endpoints[c.region()] }

func (c rgw) inspect() []objectstore.BucketState { return c.Inspect() }

func (c rgw) provider(driver, cluster string, rt http.RoundTripper) (provider.Provider, error) {
	return c.with(c.Token, driver, cluster, rt)
}

func (c rgw) stranger(rt http.RoundTripper) (provider.Provider, error) {
	return c.with(c.ForeignToken, "stranger", "", rt)
}

func (c rgw) with(token, driver, cluster string, rt http.RoundTripper) (provider.Provider, error) {
	return cloudscale.New(cloudscale.Config{
		DriverName: driver, ClusterID: cluster, APIURL: c.APIURL, Endpoints: c.Endpoints, Transport: rt, KeyWait: c.wait,
		Token: func() (provider.Secret, error) { return provider.NewSecret(token), nil },
	})
}

// prepare probes the region, as a driver does once in its life.
func (c rgw) prepare(ctx context.Context, p provider.Provider) error {
	ctx = klog.NewContext(ctx, logr.Discard())
	v, err := p.(*cloudscale.Provider).ProbePolicies(ctx, c.region(), "")
	if err == nil && !v.Honoured {
		err = fmt.Errorf("the probe found no policies: %s", v.Seen)
	}
	return err
}

func (c rgw) keys(driver string, seen *secrets) []key {
	byID, _ := seen.all()
	var found []key
	for _, u := range c.Users() {
		if secret, ok := byID[u.AccessKey]; ok && u.Tags["zuber_managed_by"] == driver && u.Tags["zuber_purpose"] == "" {
			k := key{id: u.AccessKey, secret: secret, account: u.Tags["zuber_account"]}
			if k.account != "" {
				found = append(found, k)
				continue
			}
			// The owner of a bucket, or of those of a tenant.
			for _, k.bucket = range bucketsOf(u) {
				found = append(found, k)
			}
		}
	}
	return found
}

// grid is the emulated STACKIT.
type grid struct {
	*emulator.Stackit
	wait time.Duration
}

func (c grid) name() string     { return emulator.CloudStackit }
func (c grid) region() string   { return "eu01" }
func (c grid) endpoint() string { return c.Endpoints[c.region()] }

func (c grid) inspect() []objectstore.BucketState { return c.Inspect() }

func (c grid) provider(driver, cluster string, rt http.RoundTripper) (provider.Provider, error) {
	return c.with(c.ServiceAccountKey(), driver, cluster, rt)
}

func (c grid) stranger(rt http.RoundTripper) (provider.Provider, error) {
	return c.with(c.ForeignServiceAccountKey(), "stranger", "", rt)
}

func (c grid) with(account, driver, cluster string, rt http.RoundTripper) (provider.Provider, error) {
	return stackit.New(stackit.Config{
		DriverName: driver, ClusterID: cluster, APIURL: c.APIURL, Endpoints: c.Endpoints, Regions: []string{c.region()}, Transport: rt,
		PropagationWait: c.wait, ListingWait: listingWait,
		Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(account), nil }},
	})
}

func (c grid) prepare(context.Context, provider.Provider) error { return nil }

// adminPattern is the name of any driver's admin group.
var adminPattern = regexp.MustCompile(`-admin-[0-9a-f]{10}$`)

// isAdmin reports whether a group is the admin of the driver.
func isAdmin(g emulator.Group, driver string) bool {
	readable := strings.ReplaceAll(driver, ".", "-")
	return adminPattern.MatchString(g.DisplayName) && strings.HasPrefix(g.DisplayName, readable[:min(15, len(readable))])
}

func (c grid) keys(driver string, seen *secrets) []key {
	byID, holder := seen.all()
	groups := map[string]emulator.Group{}
	for _, g := range c.Groups() {
		groups[g.ID] = g
	}
	var found []key
	for id, group := range holder {
		g, exists := groups[group]
		switch {
		case !exists:
		case isAdmin(g, driver):
			found = append(found, key{id: id, secret: byID[id]})
		case accountOf(g.DisplayName) != "":
			found = append(found, key{id: id, secret: byID[id], account: accountOf(g.DisplayName)})
		}
	}
	return found
}

// accountPattern is the name of an access's group, a UUID in 32 digits.
var accountPattern = regexp.MustCompile(`^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$`)

// accountOf returns the account whose group has the name, "" if it is no access's.
func accountOf(group string) string {
	if !accountPattern.MatchString(group) {
		return ""
	}
	return accountPattern.ReplaceAllString(group, "ba-$1-$2-$3-$4-$5")
}

// The accounts, named as COSI does.
const (
	alice = "ba-6a1e3b5c-9d2f-4e7a-8b1c-0d3e5f7a9b1c"
	bob   = "ba-7b2f4c6d-0e3a-4f8b-9c2d-1e4f6a8b0c2d"
	carol = "ba-8c3a5d7e-1f4b-4a9c-8d3e-2f5a7b9c1d3e"
)
