package stackit

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// tokenLeeway is how long before its expiry a token is replaced.
	tokenLeeway = 30 * time.Second
	// tokenPatience is how old a token must be before the API's 401 discards it,
	// so that a service account without rights does not ask for one per call.
	tokenPatience = time.Minute
)

// flow gets access tokens. The SDK's flows are used for their assertions alone:
// their requests ignore the caller's context, several callers make several
// requests, and their background refresh never rests with short-lived tokens.
type flow interface {
	GetAccessToken() (string, error)
}

// authenticator puts the access token into each request to the API.
type authenticator struct {
	next    http.RoundTripper
	host    string // the only one that may see the token
	newFlow func() (flow, error)
	now     func() time.Time

	mu      sync.Mutex
	flow    flow
	token   string
	expires time.Time
	gotAt   time.Time
	running *tokenCall // nil when no token is being fetched
}

// tokenCall is one fetch of a token; token and err are set before done closes.
type tokenCall struct {
	done  chan struct{}
	token string
	err   error
}

// RoundTrip implements http.RoundTripper.
func (a *authenticator) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.get(req.Context())
	if err == nil && req.URL.Host != a.host {
		err = &tokenError{cause: "the request goes to a host that must not see the access token"}
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	resp, err := a.next.RoundTrip(out)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		a.discard(token)
	}
	return resp, err
}

// get returns a valid token. All callers share one fetch, and each stops waiting
// for it when its own context ends.
func (a *authenticator) get(ctx context.Context) (string, error) {
	a.mu.Lock()
	if a.token != "" && a.now().Before(a.expires.Add(-tokenLeeway)) {
		defer a.mu.Unlock()
		return a.token, nil
	}
	call := a.running
	if call == nil {
		call = &tokenCall{done: make(chan struct{})}
		a.running = call
		go a.fetch(call)
	}
	a.mu.Unlock()
	select {
	case <-call.done:
		return call.token, call.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// fetch gets a token. It outlives the request that asked for it and is bounded
// by the time-out of the flow's HTTP client.
func (a *authenticator) fetch(call *tokenCall) {
	token, err := a.ask()
	expires, ok := expiryOf(token)
	if err == nil && !ok {
		err = &tokenError{cause: "the access token does not say when it expires"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.token, a.expires, a.gotAt = token, expires, a.now()
	} else {
		token = ""
	}
	call.token, call.err = token, err
	a.running = nil
	close(call.done)
}

// ask runs the SDK's flow. It runs on a goroutine of its own, where a panic of
// the SDK would end the process.
func (a *authenticator) ask() (token string, err error) {
	defer func() {
		if recover() != nil {
			err = &tokenError{cause: "the authentication library failed"}
		}
	}()
	a.mu.Lock()
	f := a.flow
	a.mu.Unlock()
	if f == nil {
		if f, err = a.newFlow(); err != nil {
			var own *tokenError
			if !errors.As(err, &own) {
				own = &tokenError{cause: "the credentials cannot be used"}
			}
			return "", own
		}
		a.mu.Lock()
		a.flow = f
		a.mu.Unlock()
	}
	if token, err = f.GetAccessToken(); err != nil {
		return "", asTokenError(err)
	}
	return token, nil
}

// discard forgets a token that the API does not accept, together with the flow
// that keeps it.
func (a *authenticator) discard(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token && a.now().Sub(a.gotAt) >= tokenPatience {
		a.token, a.flow = "", nil
	}
}
