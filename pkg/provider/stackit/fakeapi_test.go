package stackit

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const (
	testProject = "11111111-2222-4333-8444-555555555555"
	testGroup   = "aaaaaaaa-2222-4333-8444-555555555555"
)

// fakeAPI is a control plane that answers what a test tells it to, for the
// answers that no emulator gives. Its token endpoint is /token.
type fakeAPI struct {
	*httptest.Server
	mu     sync.Mutex
	routes map[string]http.HandlerFunc // "GET /path" or "/token"
	calls  map[string]int
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{routes: map[string]http.HandlerFunc{}, calls: map[string]int{}}
	f.on("/token", func(w http.ResponseWriter, _ *http.Request) { writeToken(w, testJWT(time.Now().Add(10*time.Minute))) })
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v2/project/"+testProject+"/regions/eu01")
		if r.URL.Path == "/token" {
			key = "/token"
		}
		f.mu.Lock()
		f.calls[key]++
		handler := f.routes[key]
		f.mu.Unlock()
		if handler == nil {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAPI) on(route string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routes[route] = h
}

func (f *fakeAPI) count(route string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[route]
}

// says answers with a status and a body of a content type.
func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func saysJSON(status int, body string) http.HandlerFunc {
	return says(status, "application/json", body)
}

func writeToken(w http.ResponseWriter, token string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "expires_in": 600, "token_type": "Bearer"})
}

// testJWT is an access token with the expiry; without one if it is zero.
func testJWT(expires time.Time) string {
	claims := map[string]any{"sub": "x"}
	if !expires.IsZero() {
		claims["exp"] = expires.Unix()
	}
	payload, _ := json.Marshal(claims)
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"RS512","typ":"JWT"}`)) + "." + enc(payload) + "." + enc([]byte("signature"))
}

// testPrivateKey is one RSA key for all tests of the process.
var testPrivateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err.Error()
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

// testKey is a service account key as the portal exports it.
func testKey(tokenURL, project string) string {
	private, _ := json.Marshal(testPrivateKey())
	return fmt.Sprintf(`{"id":"99999999-2222-4333-8444-555555555555","publicKey":"x","createdAt":"2026-01-02T03:04:05.000+00:00",
		"keyType":"USER_MANAGED","keyOrigin":"USER_PROVIDED","keyAlgorithm":"RSA_2048","active":true,"validUntil":"2030-01-02T03:04:05Z","projectId":%q,
		"credentials":{"kid":"kid-1","iss":"sa@sa.stackit.cloud","sub":"88888888-2222-4333-8444-555555555555","aud":"https://accounts.stackit.cloud",
		"tokenEndpoint":%q,"privateKey":%s}}`, project, tokenURL, private)
}

// provider is a provider over the fake, with waits short enough for tests.
func (f *fakeAPI) provider(t *testing.T, change ...func(*Config)) *Provider {
	t.Helper()
	c := Config{
		DriverName: "cosi.zuber.dev", APIURL: f.URL, Regions: []string{"eu01"},
		Credentials: Credentials{Key: func() (provider.Secret, error) {
			return provider.NewSecret(testKey(f.URL+"/token", testProject)), nil
		}},
		PropagationWait: 200 * time.Millisecond, ListingWait: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.waits = backoff{time.Millisecond, 20 * time.Millisecond}
	return p
}
