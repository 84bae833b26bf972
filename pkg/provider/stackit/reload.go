package stackit

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	objectstorage "github.com/stackitcloud/stackit-sdk-go/services/objectstorage/v2api"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

const (
	// reloadEvery is how long the key in use is trusted before its source is
	// asked again.
	reloadEvery = 10 * time.Second
	// rejectedFor is how long a key that was tried and rejected is left alone.
	rejectedFor = time.Minute
	// trialTimeout bounds the trial of a new key, which one caller waits for.
	trialTimeout = 15 * time.Second
)

// control is the control plane as one set of credentials sees it.
type control struct {
	api        objectstorage.DefaultAPI
	project    string
	secret     provider.Secret // the key it was made from; empty with federation
	validUntil time.Time
}

// CredentialState says which credentials are in use.
type CredentialState struct {
	LoadedAt   time.Time // when those in use were taken
	ValidUntil time.Time // of the key in use; zero when it does not say
	// Rejected is why the newest key at the source is not in use; nil when it is.
	Rejected error
}

// credentials keeps the control plane's client, and replaces it when the key at
// its source changes and the new one works.
type credentials struct {
	source    Credentials
	project   string // configured; "" means the key's
	region    string // where a key is tried
	base      *url.URL
	tokenURL  string
	transport *transport.Transport
	userAgent string
	now       func() time.Time
	onChange  func(CredentialState)
	every     time.Duration

	mu        sync.Mutex
	current   *control
	state     CredentialState
	askedAt   time.Time
	asking    bool
	rejected  provider.Secret
	triedLast time.Time
}

// open makes the first client. It makes no call.
func (c *credentials) open() error {
	if c.source.Key == nil {
		made, err := c.make(provider.Secret{})
		if err != nil {
			return err
		}
		c.current = made
	} else {
		secret, err := c.source.Key()
		if err != nil {
			return refuse(provider.ErrInvalidArgument, "the service account key cannot be read: %s", clip(err.Error()))
		}
		if c.current, err = c.make(secret); err != nil {
			return err
		}
	}
	c.askedAt = c.now()
	c.state = CredentialState{LoadedAt: c.now(), ValidUntil: c.current.validUntil}
	return nil
}

// make builds a client from a key, or from the federation when there is none.
func (c *credentials) make(secret provider.Secret) (*control, error) {
	made := &control{project: c.project, secret: secret}
	guard := &tokenGuard{next: c.transport.As(transport.PlaneToken)}
	auth := &authenticator{next: c.transport.As(transport.PlaneControl), host: c.base.Host, now: c.now}
	if c.source.Key == nil {
		auth.newFlow = federationFlow(c.source, c.tokenURL, guard)
	} else {
		key, err := parseKey(secret)
		if err != nil {
			return nil, err
		}
		made.validUntil = key.validUntil
		if made.project == "" {
			made.project = key.project
		}
		auth.newFlow = key.keyFlow(c.tokenURL, guard)
	}
	if !uuidPattern.MatchString(made.project) {
		return nil, refuse(provider.ErrInvalidArgument, "the project ID %q is not a UUID; set it in the back end, or use a key that names it", clip(made.project))
	}
	var err error
	made.api, err = newAPI(c.base, auth, c.userAgent)
	return made, err
}

// get returns the client to use. One caller at a time looks whether the key has
// changed; the others go on with the one in use.
func (c *credentials) get(ctx context.Context) *control {
	c.mu.Lock()
	current := c.current
	due := c.source.Key != nil && !c.asking && c.now().Sub(c.askedAt) >= c.every
	if due {
		c.asking, c.askedAt = true, c.now()
	}
	c.mu.Unlock()
	if !due {
		return current
	}
	made, secret, rejection := c.look(ctx, current)
	c.mu.Lock()
	c.asking = false
	before := c.state
	switch {
	case made != nil:
		c.current = made
		c.state = CredentialState{LoadedAt: c.now(), ValidUntil: made.validUntil}
	case secret == current.secret:
		c.state.Rejected = nil
	case rejection != nil:
		c.state.Rejected, c.rejected, c.triedLast = rejection, secret, c.now()
	}
	state, now := c.state, c.current
	c.mu.Unlock()
	if c.onChange != nil && (state.LoadedAt != before.LoadedAt || text(state.Rejected) != text(before.Rejected)) {
		c.onChange(state)
	}
	return now
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// look asks the source for the key. It returns a client when there is a new key
// and it works, and otherwise why the new one is not used.
func (c *credentials) look(ctx context.Context, current *control) (*control, provider.Secret, error) {
	secret, err := c.source.Key()
	switch {
	case err != nil:
		return nil, provider.Secret{}, refuse(provider.ErrUnavailable, "the service account key cannot be read: %s", clip(err.Error()))
	case secret == current.secret:
		return nil, secret, nil
	case secret == c.rejected && c.now().Sub(c.triedLast) < rejectedFor:
		return nil, secret, nil
	}
	made, err := c.make(secret)
	if err != nil {
		return nil, secret, err
	}
	if made.project != current.project {
		return nil, secret, refuse(provider.ErrInvalidArgument,
			"the new service account key is of project %s, the one in use of %s; restart the driver to change the project", made.project, current.project)
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	if _, err := serviceStatus(ctx, made, c.region); err != nil {
		return nil, secret, refuse(sentinelOf(err), "the new service account key was tried and does not work: %s", clip(err.Error()))
	}
	return made, secret, nil
}

// sentinelOf returns the sentinel that an error wraps; ErrUnavailable when it
// wraps none.
func sentinelOf(err error) error {
	for _, s := range provider.Sentinels() {
		if errors.Is(err, s) {
			return s
		}
	}
	return provider.ErrUnavailable
}

// CredentialState returns which credentials are in use, and why a newer key is
// not. It makes no call.
func (p *Provider) CredentialState() CredentialState {
	p.credentials.mu.Lock()
	defer p.credentials.mu.Unlock()
	return p.credentials.state
}
