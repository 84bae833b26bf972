package cosi

import (
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// site is a region of an emulated cloud, for tests of what all clouds have in common.
type site struct {
	*cloud
	backend string
	region  string
	// as is a fresh adapter of a driver of that name, which remembers nothing.
	as func(driverName string) provider.Provider
}

// adapter is a fresh one of the driver.
func (s *site) adapter() provider.Provider { return s.as("cosi.zuber.dev") }

// eachCloud runs a test for every cloud, in an emulator of its own.
func eachCloud(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) { test(t, newSite(t, backend)) })
	}
}

// backends are the clouds that there are.
func backends() []string { return []string{"cloudscale", "stackit"} }

// newSite is a cloud of that name, in an emulator of its own.
func newSite(t testing.TB, backend string) *site {
	t.Helper()
	c := newCloud(t)
	if backend == "cloudscale" {
		return &site{c, backend, "rma", func(name string) provider.Provider { return c.provider(name, c.Cloudscale().Token) }}
	}
	return &site{c, backend, "eu01", func(name string) provider.Provider {
		p, err := stackit.New(stackit.Config{
			DriverName:  name,
			APIURL:      c.Stackit().APIURL,
			Regions:     []string{"eu01"},
			Endpoints:   c.Stackit().Endpoints,
			Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(c.Stackit().ServiceAccountKey()), nil }},
			ListingWait: 10 * time.Millisecond, // the emulator's lists do not lag
			Transport:   c.transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}}
}

// driver is a fresh one over the adapter, which may delete data and waits for nothing.
func (s *site) driver(p provider.Provider, change ...func(*driver.Config)) *driver.Driver {
	s.t.Helper()
	cfg := driver.Config{Name: "cosi.zuber.dev", AllowDeleteAll: true, RevokeGrace: -1,
		Backends: []driver.Backend{{Name: s.backend, Kind: s.backend, Provider: p}}}
	for _, f := range change {
		f(&cfg)
	}
	d, err := driver.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// start is a driver process in the cluster, with nothing but the cloud to remember by.
func (s *site) start(change ...func(*driver.Config)) *Client {
	s.t.Helper()
	o, _ := options(s.t, s.driver(s.adapter(), change...))
	return inProcess(s.t, o)
}

func (s *site) params() map[string]string { return map[string]string{"region": s.region} }

// empty fails the test if anything that carries the driver's mark is left, but for
// what it administers buckets with.
func (s *site) empty() {
	s.t.Helper()
	for r, err := range s.adapter().Inventory(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if r.Kind != provider.KindAdmin {
			s.t.Errorf("left: %+v", r)
		}
	}
}

// changes lists the calls to the cloud since the last reset that may have changed
// something. Creating a bucket that stands does not: the endpoint says that it is there.
func (s *site) changes() (out []emulator.Call) {
	for _, c := range s.Calls() {
		standing := c.Plane == emulator.PlaneS3 && c.Operation == "CreateBucket"
		if c.Method != "GET" && c.Method != "HEAD" && !standing {
			out = append(out, c)
		}
	}
	return out
}
