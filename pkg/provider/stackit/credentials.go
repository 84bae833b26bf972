package stackit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"github.com/stackitcloud/stackit-sdk-go/core/config"
	objectstorage "github.com/stackitcloud/stackit-sdk-go/services/objectstorage/v2api"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The cloud's own addresses.
const (
	DefaultAPIURL             = "https://object-storage.api.stackit.cloud"
	DefaultFederationURL      = "https://accounts.stackit.cloud/oauth/v2/token"
	DefaultFederatedTokenFile = "/var/run/secrets/stackit.cloud/serviceaccount/token" //nolint:gosec // a path, not a token
)

// apiTimeout bounds one call of the control plane with its retries; the SDK has
// no bound of its own.
const apiTimeout = 3 * time.Minute

// federatedTokenLimit bounds the token file; a JWT is a few kilobytes.
const federatedTokenLimit = 64 << 10

// Credentials says how the driver authenticates. Exactly one of Key and
// FederationEmail must be set.
type Credentials struct {
	// Key returns the service account key, the JSON that the portal exports. It
	// is asked again while the driver runs; a new key that works replaces the old
	// one.
	Key func() (provider.Secret, error)
	// FederationEmail is the service account of workload identity federation.
	FederationEmail string
	// FederatedTokenFile holds the workload's token, read anew for each access
	// token; "" means DefaultFederatedTokenFile.
	FederatedTokenFile string
}

// serviceKey is a parsed service account key.
type serviceKey struct {
	project    string // "" if the key does not name one
	validUntil time.Time
	response   clients.ServiceAccountKeyResponse
	private    string
}

// parseKey reads a service account key. Its errors, ErrInvalidArgument, say what
// is wrong and repeat nothing of the key.
func parseKey(secret provider.Secret) (serviceKey, error) {
	bad := func(what string) (serviceKey, error) {
		return serviceKey{}, refuse(provider.ErrInvalidArgument, "the service account key %s; use the JSON that the portal exports, unchanged", what)
	}
	text := strings.TrimSpace(secret.Reveal())
	switch {
	case text == "":
		return bad("is empty")
	case strings.HasPrefix(text, "-----BEGIN"):
		return bad("is a bare private key")
	}
	var k serviceKey
	var extra struct {
		ProjectID string `json:"projectId"`
	}
	if json.Unmarshal([]byte(text), &k.response) != nil || json.Unmarshal([]byte(text), &extra) != nil {
		return bad("is not JSON of the expected form")
	}
	c := k.response.Credentials
	switch {
	case c == nil:
		return bad("has no credentials")
	case c.PrivateKey == nil || *c.PrivateKey == "":
		return bad("has no private key, because it was made with a public key of yours; put the private key into credentials.privateKey")
	case c.Kid == "" || c.Iss == "" || c.Aud == "":
		return bad("lacks kid, iss or aud")
	case extra.ProjectID != "" && !uuidPattern.MatchString(extra.ProjectID):
		return bad("has a projectId that is not a UUID")
	}
	if c.TokenEndpoint != "" {
		if _, err := parseURL(c.TokenEndpoint); err != nil {
			return bad("has a tokenEndpoint that is not a URL")
		}
	}
	k.project, k.private = extra.ProjectID, *c.PrivateKey
	if k.response.ValidUntil != nil {
		k.validUntil = *k.response.ValidUntil
	}
	// Reads the private key and makes no call.
	if err := new(clients.KeyFlow).Init(k.flowConfig("", http.DefaultTransport)); err != nil {
		return bad("has a private key that cannot be read")
	}
	return k, nil
}

func (k serviceKey) flowConfig(tokenURL string, rt http.RoundTripper) *clients.KeyFlowConfig {
	response := k.response
	return &clients.KeyFlowConfig{ServiceAccountKey: &response, PrivateKey: k.private, TokenUrl: tokenURL, HTTPTransport: rt}
}

// keyFlow returns the constructor of the key's flow. The SDK is given everything
// explicitly, because it would look into the environment and the home directory
// for what is missing.
func (k serviceKey) keyFlow(tokenURL string, rt http.RoundTripper) func() (flow, error) {
	return func() (flow, error) {
		f := new(clients.KeyFlow)
		if err := f.Init(k.flowConfig(tokenURL, rt)); err != nil {
			return nil, &tokenError{cause: "the service account key cannot be used"}
		}
		return f, nil
	}
}

// federationFlow returns the constructor of the federation's flow.
func federationFlow(c Credentials, tokenURL string, rt http.RoundTripper) func() (flow, error) {
	return func() (flow, error) {
		f := new(clients.WorkloadIdentityFederationFlow)
		// Init reads the token file and makes no call.
		err := f.Init(&clients.WorkloadIdentityFederationFlowConfig{
			TokenUrl: tokenURL, ClientID: c.FederationEmail, HTTPTransport: rt,
			FederatedTokenFunction: func(context.Context) (string, error) { return readTokenFile(c.FederatedTokenFile) },
		})
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

func readTokenFile(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the path is configuration
	if err != nil {
		return "", unreadable(path, err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, federatedTokenLimit))
	if err != nil {
		return "", unreadable(path, err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", unreadable(path, errors.New("it is empty"))
	}
	return token, nil
}

func unreadable(path string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &tokenError{cause: fmt.Sprintf("the federated token file %s cannot be read: %s", path, clip(err.Error()))}
}

// newAPI makes an SDK client with an http.Client of its own: the SDK writes into
// the one it is given.
func newAPI(base *url.URL, auth http.RoundTripper, userAgent string) (objectstorage.DefaultAPI, error) {
	opts := []config.ConfigurationOption{
		config.WithHTTPClient(&http.Client{
			Timeout: apiTimeout,
			// The token must not follow a redirect; its answer is an error.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		config.WithEndpoint(strings.TrimSuffix(base.String(), "/")),
		config.WithCustomAuth(ownAnswers{auth}),
	}
	if userAgent != "" {
		opts = append(opts, config.WithUserAgent(userAgent+" stackit-sdk-go/objectstorage"))
	}
	client, err := objectstorage.NewAPIClient(opts...)
	if err != nil {
		return nil, refuse(provider.ErrInvalidArgument, "the SDK's client cannot be made: %s", clip(err.Error()))
	}
	return client.DefaultAPI, nil
}

// parseURL reads the base of an API.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("it is not of the form https://host[:port][/path]")
	}
	return u, nil
}
