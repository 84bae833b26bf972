// Package s3 is a thin layer on minio-go: what Zuber does with buckets and
// objects, with errors that carry a code and never a secret. It knows nothing
// of clouds and providers.
package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// DefaultSigningRegion is the region put into signatures. Clients send a
// LocationConstraint for any other region, which a Ceph region endpoint may
// refuse; for this one they never do.
const DefaultSigningRegion = "us-east-1"

// Config configures New.
type Config struct {
	Endpoint    string // scheme://host[:port]
	AccessKeyID string // empty makes anonymous requests
	// SecretAccessKey returns the other half of the key; nil is none. As a function
	// it shows itself to no verb and no encoder.
	SecretAccessKey func() string
	SigningRegion   string // default DefaultSigningRegion
	// VirtualHosted addresses buckets as host names instead of paths. Creating a
	// bucket and reading its location always use the path.
	VirtualHosted bool
	// Transport carries the requests out and alone decides on time-outs and
	// retries; nil means minio-go's default one.
	Transport http.RoundTripper
	UserAgent string // of the product, "name/version"; may be empty
	// OnPurge is told what a step of a purge has deleted: objects, versions and
	// delete markers, and their bytes. It may be nil.
	OnPurge func(objects, bytes int64)
}

// Client speaks S3 with one key at one endpoint. It is safe for concurrent use,
// makes no call of its own accord, never looks a bucket's location up unasked
// and never repeats a request itself. All errors are of type *Error, or wrap
// ctx.Err() when the context has ended.
type Client struct {
	config  Config
	base    url.URL
	minio   minio.Core
	http    *http.Client
	signing string
}

// New makes a client. It makes no call. The error names what is malformed.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		// It may hold a password, which only a parsed one can be shown without.
		return nil, errors.New("S3 endpoint cannot be parsed, want scheme://host[:port]")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("S3 endpoint %q is not of the form scheme://host[:port]", u.Redacted())
	}
	if c.SecretAccessKey == nil {
		c.SecretAccessKey = func() string { return "" }
	}
	if (c.AccessKeyID == "") != (c.SecretAccessKey() == "") {
		return nil, errors.New("S3 key is incomplete: access key ID and secret access key go together")
	}
	if c.SigningRegion == "" {
		c.SigningRegion = DefaultSigningRegion
	}
	base := c.Transport
	if base == nil {
		if base, err = minio.DefaultTransport(u.Scheme == "https"); err != nil {
			return nil, fmt.Errorf("S3 transport: %w", err)
		}
	}
	rt := &replayable{next: base, userAgent: c.UserAgent}
	lookup := minio.BucketLookupPath
	if c.VirtualHosted {
		lookup = minio.BucketLookupDNS
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(c.AccessKeyID, c.SecretAccessKey(), ""),
		Secure:       u.Scheme == "https",
		Transport:    rt,
		Region:       c.SigningRegion,
		BucketLookup: lookup,
		// Ceph before 19.2.4 stores a trailing checksum's "aws-chunked" as the
		// object's Content-Encoding.
		TrailingHeaders: false,
		MaxRetries:      1,
	})
	if err != nil {
		return nil, fmt.Errorf("S3 endpoint %q: %s", u.Host, sanitise(err.Error()))
	}
	return &Client{
		config:  c,
		base:    url.URL{Scheme: u.Scheme, Host: u.Host},
		minio:   minio.Core{Client: client},
		signing: c.SigningRegion,
		http: &http.Client{
			Transport:     rt,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}
