// Package clients tells which S3 clients work with the accesses that the driver
// grants, from runs of the clients.
package clients

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

const (
	driverName = "cosi.zuber.dev"
	bucketName = "clients"
	// ownBucket is one that a client makes for itself.
	ownBucket = "clients-own"
)

// right is a set of what an access may do with the objects of its bucket.
type right uint8

const (
	list right = 1 << iota
	read
	write
	remove
)

// grant is a kind of access, as a BucketAccessClass asks for it.
type grant struct {
	title  string // of its column
	params map[string]string
	rights right
}

func mode(m provider.Mode, rights right) grant {
	return grant{string(m), map[string]string{"accessMode": string(m)}, rights}
}

// readWrite is the grant of whoever else uses the bucket.
func readWrite() grant { return mode(provider.ReadWrite, list|read|write|remove) }

// place is a cloud with the grants that it has.
type place struct {
	name, title, region string
	grid                bool // StorageGRID, which knows no checksums of the newer SDKs
	grants              []grant
}

// places are the clouds in the order of the document.
func places() []place {
	each := []grant{readWrite(), mode(provider.ReadOnly, list|read), mode(provider.WriteOnly, write)}
	return []place{
		{emulator.CloudCloudscale, "cloudscale.ch", "rma", false, each},
		{emulator.CloudStackit, "STACKIT", "eu01", true, each},
	}
}

// cloud is an emulated cloud with a bucket that the driver made. Its S3 endpoint
// is encrypted, as everywhere: clients treat checksums and signatures in another
// way where it is not.
type cloud struct {
	*emulator.Emulator
	place     place
	endpoint  string
	trusting  *http.Transport // trusts the endpoint
	authority []byte          // the certificate that signs the endpoint's, PEM
	refused   *refusals
	driver    *cosi.Client
	bucketID  string
}

// newCloud starts a cloud of its own for a test.
func newCloud(t *testing.T, p place) *cloud {
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
	c := &cloud{Emulator: e, place: p, refused: &refusals{counts: map[string]int{}}}
	if err := c.encrypt(t); err != nil {
		t.Fatal(err)
	}
	adapter, err := c.adapter()
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.New(driver.Config{Name: driverName, Backends: []driver.Backend{{Name: p.name, Kind: p.name, Provider: adapter}}})
	if err != nil {
		t.Fatal(err)
	}
	if c.driver, err = cosi.NewClient(cosi.Options{Driver: d}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	if c.bucketID, err = c.driver.CreateBucket(t.Context(), bucketName, map[string]string{"region": p.region}); err != nil {
		t.Fatal(err)
	}
	return c
}

// encrypt puts TLS before the S3 endpoint.
func (c *cloud) encrypt(t *testing.T) error {
	plain := c.Cloudscale().Endpoints[c.place.region]
	if c.place.name == emulator.CloudStackit {
		plain = c.Stackit().Endpoints[c.place.region]
	}
	target, err := url.Parse(plain)
	if err != nil {
		return err
	}
	// The host that was signed is passed on.
	front := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: c.refused.note,
	})
	t.Cleanup(front.Close)
	c.endpoint = front.URL
	c.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	known := x509.NewCertPool()
	known.AddCert(front.Certificate())
	c.trusting = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}, DisableCompression: true}
	t.Cleanup(c.trusting.CloseIdleConnections)
	return nil
}

// adapter is the driver's back end.
func (c *cloud) adapter() (provider.Provider, error) {
	endpoints := map[string]string{c.place.region: c.endpoint}
	if c.place.name == emulator.CloudStackit {
		cloud := c.Stackit()
		return stackit.New(stackit.Config{
			DriverName: driverName, APIURL: cloud.APIURL, Endpoints: endpoints, Regions: []string{c.place.region}, Transport: c.trusting,
			Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(cloud.ServiceAccountKey()), nil }},
			ListingWait: 100 * time.Millisecond,
		})
	}
	cloud := c.Cloudscale()
	return cloudscale.New(cloudscale.Config{
		DriverName: driverName, APIURL: cloud.APIURL, Endpoints: endpoints, Transport: c.trusting,
		Token: func() (provider.Secret, error) { return provider.NewSecret(cloud.Token), nil },
	})
}

// access is what a Secret tells a workload.
type access struct {
	endpoint, host, region, accessKey, secretKey string
}

// grant asks the driver for an access.
func (c *cloud) grant(t *testing.T, account string, g grant) access {
	t.Helper()
	granted, err := c.driver.GrantAccess(t.Context(), c.bucketID, account, g.params)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(granted.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return access{granted.Endpoint, u.Host, granted.Region, granted.AccessKeyID, granted.SecretAccessKey.Reveal()}
}

// s3 is a client with the access's key that never tries twice.
func (c *cloud) s3(t *testing.T, a access, signature func(id, secret, token string) *credentials.Credentials) *minio.Core {
	t.Helper()
	m, err := minio.NewCore(a.host, &minio.Options{
		Creds: signature(a.accessKey, a.secretKey, ""), Region: a.region, Secure: true, Transport: c.trusting, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
