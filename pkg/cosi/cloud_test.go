package cosi

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// cloud is an emulated cloudscale.ch with drivers on it.
type cloud struct {
	*emulator.Emulator
	t testing.TB
	// transport carries out what adapters ask for; nil is their own.
	transport http.RoundTripper
}

func newCloud(t testing.TB) *cloud {
	t.Helper()
	e, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &cloud{Emulator: e, t: t}
}

// provider is an adapter of one project under one driver name.
func (c *cloud) provider(driverName, token string) provider.Provider {
	c.t.Helper()
	p, err := cloudscale.New(cloudscale.Config{
		DriverName: driverName,
		Token:      func() (provider.Secret, error) { return provider.NewSecret(token), nil },
		APIURL:     c.Cloudscale().APIURL,
		Endpoints:  c.Cloudscale().Endpoints,
		Transport:  c.transport,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// process is a driver as a fresh process would have it.
func (c *cloud) process(change ...func(*Options)) *Client {
	c.t.Helper()
	o, logs := options(c.t, newDriver(c.t, c.provider("cosi.zuber.dev", c.Cloudscale().Token)))
	for _, f := range change {
		f(&o)
	}
	c.t.Cleanup(func() {
		for _, secret := range []string{c.Cloudscale().Token, c.Cloudscale().ForeignToken} {
			if strings.Contains(logs.String(), secret) {
				c.t.Error("a token was logged")
			}
		}
	})
	return inProcess(c.t, o)
}

// left fails the test if anything of ours is left in the cloud.
func (c *cloud) left() {
	c.t.Helper()
	for _, u := range c.Cloudscale().Users() {
		if u.Tags["zuber_managed_by"] == "cosi.zuber.dev" {
			c.t.Errorf("user left: %+v", u)
		}
	}
	for _, b := range c.Cloudscale().Buckets() {
		c.t.Errorf("bucket left: %+v", b)
	}
}

// client uses a granted key as a workload does.
func (c *cloud) client(g Granted) *s3.Client {
	c.t.Helper()
	cl, err := s3.New(s3.Config{Endpoint: g.Endpoint, AccessKeyID: g.AccessKeyID, SecretAccessKey: g.SecretAccessKey.Reveal, SigningRegion: g.Region})
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}

func rma() map[string]string { return map[string]string{"region": "rma"} }

// made creates a bucket and returns its ID.
func made(t *testing.T, c *Client, name string) string {
	t.Helper()
	id, err := c.CreateBucket(t.Context(), name, rma())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// codeIs fails the test unless err is that code and says all the words.
func codeIs(t *testing.T, err error, want codes.Code, words ...string) {
	t.Helper()
	var e *RPCError
	if !errors.As(err, &e) || e.Code != want.String() {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%q does not say %q", e.Message, w)
		}
	}
}
