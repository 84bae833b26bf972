package stackit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// tokenBodyLimit bounds what is read of a token endpoint's answer.
const tokenBodyLimit = 64 << 10

// tokenError is a request that was not sent for want of an access token. It is a
// type of its own, so that a 404 of the token endpoint is never taken for one of
// the API.
type tokenError struct {
	status  int    // of the token endpoint; 0 when it did not answer
	code    string // its error code, "invalid_grant"
	cause   string // what is wrong, when it is not the status
	decided bool   // the endpoint itself refused us
}

// Error implements error.
func (e *tokenError) Error() string {
	text := "no access token: "
	if e.status != 0 {
		text += fmt.Sprintf("the token endpoint answered %d %s", e.status, http.StatusText(e.status))
	}
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	if e.cause != "" {
		text = strings.TrimSuffix(text+"; "+e.cause, ": ; ")
	}
	if e.decided {
		text += "; the service account key may be revoked or expired, or the federation not set up: make a new key or check its setup"
	}
	return strings.Replace(text, ": ; ", ": ", 1)
}

// Unwrap returns the sentinel.
func (e *tokenError) Unwrap() error {
	if e.decided {
		return provider.ErrUnauthenticated
	}
	return provider.ErrUnavailable
}

// asTokenError makes a tokenError of whatever the SDK's flow returned. Its own
// texts may repeat assertions and are dropped.
func asTokenError(err error) *tokenError {
	var own *tokenError
	if errors.As(err, &own) {
		return own
	}
	return &tokenError{cause: "the token endpoint did not answer"}
}

// tokenGuard lets the SDK see only answers of the token endpoint that it can
// live with: it dereferences a missing expiry, keeps an opaque token that it
// cannot read on the next call, and prefers a refresh token to a new assertion.
type tokenGuard struct{ next http.RoundTripper }

var codePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// RoundTrip implements http.RoundTripper.
func (g *tokenGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, &tokenError{cause: "the token endpoint " + req.URL.Host + " did not answer: " + clip(err.Error())}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, tokenBodyLimit))
	_ = resp.Body.Close()
	if err != nil {
		return nil, &tokenError{cause: "the token endpoint's answer broke off"}
	}
	if resp.StatusCode != http.StatusOK {
		e := &tokenError{status: resp.StatusCode}
		var refusal struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(body, &refusal) == nil && codePattern.MatchString(refusal.Error) {
			e.code = refusal.Error
			e.decided = resp.StatusCode >= 400 && resp.StatusCode <= 403
		}
		return nil, e
	}
	var good struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &good); err != nil || good.AccessToken == "" {
		return nil, &tokenError{cause: "the token endpoint's answer holds no access token; check the token endpoint's address"}
	}
	expires, ok := expiryOf(good.AccessToken)
	if !ok {
		return nil, &tokenError{cause: "the access token does not say when it expires"}
	}
	clean, err := json.Marshal(map[string]any{"access_token": good.AccessToken, "token_type": "Bearer", "expires_in": expires.Unix()})
	if err != nil {
		return nil, &tokenError{cause: "the access token cannot be passed on"}
	}
	resp.Body = io.NopCloser(bytes.NewReader(clean))
	resp.ContentLength = int64(len(clean))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// expiryOf reads the expiry of a JWT without judging it.
func expiryOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Expires), 0), true
}
