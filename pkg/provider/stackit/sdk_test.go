package stackit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var testRef = provider.BucketRef{Name: "b-1", Region: "eu01"}

const notFound = `{"detail":[{"key":"bucket.not_found","msg":"no such bucket"}]}`

// TestStatusDecides: the class of an error depends on the status and on who
// wrote the body, not on whether the SDK can decode it.
func TestStatusDecides(t *testing.T) {
	const html = "<html><head><title>403 Forbidden</title></head><body>nginx</body></html>"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
		text   string
	}{
		"the API's 404":               {saysJSON(404, notFound), provider.ErrNotFound, "no such bucket"},
		"a 404 of a validation shape": {saysJSON(404, `{"detail":[{"loc":["path"],"msg":"gone","type":"missing"}]}`), provider.ErrNotFound, "gone"},
		"404 of an unknown route":     {saysJSON(404, `{"detail":"Not Found"}`), provider.ErrUnavailable, "404"},
		"a gateway's JSON 404":        {saysJSON(404, `{"timestamp":"x","status":404,"error":"Not Found"}`), provider.ErrUnavailable, "404"},
		"a gateway's HTML 404":        {says(404, "text/html", html), provider.ErrUnavailable, "404"},
		"an empty 404":                {says(404, "application/json", ""), provider.ErrUnavailable, "404"},
		"the gateway's 403":           {saysJSON(403, `{"timestamp":"x","path":"/","status":403,"error":"Forbidden","message":"Unauthorized"}`), provider.ErrPermissionDenied, "object-storage.admin in project " + testProject},
		"a firewall's 403":            {says(403, "text/html", html), provider.ErrUnavailable, "something between"},
		"401":                         {saysJSON(401, `{"detail":[{"key":"auth","msg":"bad token"}]}`), provider.ErrUnauthenticated, "service account key"},
		"422 of the other shape":      {saysJSON(422, `{"detail":[{"key":"k","msg":"bad state"}]}`), provider.ErrPrecondition, "bad state"},
		"422 about the name":          {saysJSON(422, `{"detail":[{"loc":["path","bucketName"],"msg":"bad name","type":"value_error"}]}`), provider.ErrInvalidArgument, "bad name"},
		"422 about the name by key":   {saysJSON(422, `{"detail":[{"key":"bucket.name_invalid","msg":"bad name"}]}`), provider.ErrInvalidArgument, "bad name"},
		"422 about the region":        {saysJSON(422, `{"detail":[{"loc":["path","region"],"msg":"unknown","type":"enum"}]}`), provider.ErrInvalidArgument, "unknown"},
		"a limit":                     {saysJSON(422, `{"detail":[{"key":"k","msg":"The maximum number of buckets is reached"}]}`), provider.ErrQuotaExceeded, "ask the cloud"},
		"a limit by key":              {saysJSON(409, `{"detail":[{"key":"project.quota_exceeded","msg":"no"}]}`), provider.ErrQuotaExceeded, "ask the cloud"},
		"409":                         {saysJSON(409, `{"detail":[{"key":"k","msg":"busy"}]}`), provider.ErrConflict, "busy"},
		"message shape":               {saysJSON(409, `{"message":"busy"}`), provider.ErrConflict, "busy"},
		"rate limit":                  {says(429, "text/plain", "429 rate limit on IP level exceeded"), provider.ErrUnavailable, "429"},
		"307":                         {saysJSON(307, `{"detail":[]}`), provider.ErrUnavailable, "307"},
		"an empty success":            {says(200, "application/json", ""), provider.ErrUnavailable, "empty"},
		"a success without fields":    {saysJSON(200, `{"project":"p"}`), provider.ErrUnavailable, "cannot be read"},
		"a success in HTML":           {says(200, "text/html", html), provider.ErrUnavailable, "cannot be read"},
		"null":                        {saysJSON(200, "null"), provider.ErrUnavailable, "empty"},
		"another bucket":              {saysJSON(200, `{"project":"p","bucket":{"name":"b-2","region":"eu01","urlPathStyle":"http://h/b-2","urlVirtualHostedStyle":"http://b-2.h","objectLockEnabled":false}}`), provider.ErrUnavailable, "another bucket"},
		"no URL":                      {saysJSON(200, `{"project":"p","bucket":{"name":"b-1","region":"eu01","urlPathStyle":"","urlVirtualHostedStyle":"","objectLockEnabled":false}}`), provider.ErrUnavailable, "no URL"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /bucket/b-1", c.answer)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := f.provider(t).bucketEndpoint(ctx, testRef)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			if strings.ContainsAny(err.Error(), "\n<>") {
				t.Errorf("the text is not for people: %q", err)
			}
		})
	}
}

// TestSentinelsAreSingle: an error wraps exactly one.
func TestSentinelsAreSingle(t *testing.T) {
	for status := 300; status < 600; status++ {
		for _, a := range []answer{{}, {json: true}, {json: true, structured: true}} {
			err := fmt.Errorf("op: %w", error(&statusError{status: status, answer: a}))
			n := 0
			for _, s := range provider.Sentinels() {
				if errors.Is(err, s) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("status %d, %+v: %d sentinels", status, a, n)
			}
		}
	}
}

// TestDeletesNeedNoBody: what was carried out is done, whatever the body.
func TestDeletesNeedNoBody(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"empty": says(200, "application/json", ""), "short": saysJSON(200, `{"project":"p"}`), "no type": says(204, "", ""), "with charset": says(200, "application/json; charset=utf-8", "{}"), "gone": saysJSON(404, notFound),
	} {
		f := newFakeAPI(t)
		for _, route := range []string{"DELETE /bucket/b-1", "DELETE /credentials-group/" + testGroup, "DELETE /access-key/k_-="} {
			f.on(route, answer)
		}
		p := f.provider(t)
		if err := errors.Join(p.deleteBucket(t.Context(), testRef), p.deleteGroup(t.Context(), "eu01", testGroup),
			p.deleteKey(t.Context(), "eu01", testGroup, "k_-=")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAlienSuccessIsNotBelieved: a page that something in front of the API answers
// with must not pass for a deletion.
func TestAlienSuccessIsNotBelieved(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page": says(200, "text/html", "<html>Welcome</html>"), "an empty page": says(200, "text/html", ""),
		"text": says(200, "text/plain", "ok"), "no type": says(200, "", ""), "created": says(201, "text/html", "x"),
	} {
		f := newFakeAPI(t)
		for _, route := range []string{"DELETE /bucket/b-1", "DELETE /credentials-group/" + testGroup, "DELETE /access-key/k", "POST /bucket/b-1", "POST "} {
			f.on(route, answer)
		}
		p := f.provider(t)
		for _, err := range []error{
			p.deleteBucket(t.Context(), testRef), p.deleteGroup(t.Context(), "eu01", testGroup), p.deleteKey(t.Context(), "eu01", testGroup, "k"),
			p.createBucket(t.Context(), testRef), p.enableService(t.Context(), "eu01"),
		} {
			if !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestNotEmptyHasTwoStatuses(t *testing.T) {
	for _, status := range []int{http.StatusConflict, http.StatusUnprocessableEntity} {
		f := newFakeAPI(t)
		f.on("DELETE /bucket/b-1", saysJSON(status, `{"detail":[{"key":"bucket.not_empty","msg":"x"}]}`))
		f.on("DELETE /credentials-group/"+testGroup, saysJSON(status, `{"detail":[{"key":"group.has_keys","msg":"x"}]}`))
		p := f.provider(t)
		if err := p.deleteBucket(t.Context(), testRef); !errors.Is(err, provider.ErrNotEmpty) {
			t.Errorf("%d: %v", status, err)
		}
		if err := p.deleteGroup(t.Context(), "eu01", testGroup); !errors.Is(err, provider.ErrNotEmpty) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestSecretsStayOutOfErrors: the SDK puts the body of an answer that it cannot
// decode into its error, and a new key's secret is in such a body.
func TestSecretsStayOutOfErrors(t *testing.T) {
	const secret = "abcABC+123456789012345678901234567890123"
	for name, body := range map[string]string{
		"no expires": `{"project":"p","keyId":"k","displayName":"*","accessKey":"AK","secretAccessKey":"` + secret + `"}`,
		"cut":        `{"project":"p","secretAccessKey":"` + secret + `"`,
		"no ID":      `{"project":"p","keyId":"","displayName":"*","expires":null,"accessKey":"AK","secretAccessKey":"` + secret + `"}`,
	} {
		f := newFakeAPI(t)
		f.on("POST /access-key", saysJSON(201, body))
		_, err := f.provider(t).mintKey(t.Context(), "eu01", testGroup, 0)
		if !errors.Is(err, provider.ErrUnavailable) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := newFakeAPI(t)
	f.on("/token", saysJSON(400, `{"error":"invalid_grant","error_description":"assertion eyJsecret is revoked"}`))
	_, err := f.provider(t).bucketEndpoint(t.Context(), testRef)
	if !errors.Is(err, provider.ErrUnauthenticated) || strings.Contains(err.Error(), "eyJ") || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a revoked key: %v", err)
	}
}

// TestRetriesAreOurs: the SDK has none. Reads are repeated, writes are not.
func TestRetriesAreOurs(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /bucket/b-1", saysJSON(503, `{"detail":[{"key":"k","msg":"m"}]}`))
	f.on("POST /access-key", saysJSON(503, `{"detail":[{"key":"k","msg":"m"}]}`))
	p := f.provider(t)
	if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrUnavailable) || f.count("GET /bucket/b-1") != 3 {
		t.Errorf("%d calls, %v", f.count("GET /bucket/b-1"), err)
	}
	if _, err := p.mintKey(t.Context(), "eu01", testGroup, 0); !errors.Is(err, provider.ErrUnavailable) || f.count("POST /access-key") != 1 {
		t.Errorf("%d calls, %v", f.count("POST /access-key"), err)
	}
}

// TestTokensAreShared: any number of calls ask for one token, and a short-lived
// one does not set off a storm.
func TestTokensAreShared(t *testing.T) {
	f := newFakeAPI(t)
	release := make(chan struct{})
	f.on("/token", func(w http.ResponseWriter, _ *http.Request) {
		<-release
		writeToken(w, testJWT(time.Now().Add(10*time.Minute)))
	})
	f.on("GET /bucket/b-1", saysJSON(404, notFound))
	p := f.provider(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	close(release)
	wg.Wait()
	if n := f.count("/token"); n != 1 {
		t.Errorf("%d token requests", n)
	}
}

// TestTokenRequestObeysTheContext: the SDK's token request knows no context.
func TestTokenRequestObeysTheContext(t *testing.T) {
	f := newFakeAPI(t)
	release := make(chan struct{})
	asked := make(chan struct{}, 1)
	f.on("/token", func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	p := f.provider(t)
	go func() {
		_, err := p.bucketEndpoint(ctx, testRef)
		done <- err
	}()
	<-asked
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a hanging token endpoint holds the call")
	}
}

// TestBadTokens: answers of the token endpoint that the SDK panics over, or
// chokes on with the next call.
func TestBadTokens(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
		text   string
	}{
		"no expiry":    {func(w http.ResponseWriter, _ *http.Request) { writeToken(w, testJWT(time.Time{})) }, provider.ErrUnavailable, "expires"},
		"opaque":       {func(w http.ResponseWriter, _ *http.Request) { writeToken(w, "opaque-token") }, provider.ErrUnavailable, "expires"},
		"no token":     {saysJSON(200, `{}`), provider.ErrUnavailable, "no access token"},
		"HTML":         {says(200, "text/html", "<html/>"), provider.ErrUnavailable, "no access token"},
		"revoked":      {saysJSON(400, `{"error":"invalid_grant"}`), provider.ErrUnauthenticated, "make a new key"},
		"API-like 404": {saysJSON(404, notFound), provider.ErrUnavailable, "token endpoint answered 404"},
		"503":          {saysJSON(503, `{}`), provider.ErrUnavailable, "503"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, provider.ErrUnavailable, "307"},
	} {
		f := newFakeAPI(t)
		f.on("/token", c.answer)
		f.on("GET /bucket/b-1", saysJSON(404, notFound))
		p := f.provider(t)
		for range 2 {
			_, err := p.bucketEndpoint(t.Context(), testRef)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if f.count("GET /bucket/b-1") != 0 || f.count("POST /elsewhere") != 0 {
			t.Errorf("%s: something was asked without a token", name)
		}
	}
}

// TestRefreshTokensAreIgnored: the SDK would prefer one to a new assertion.
func TestRefreshTokensAreIgnored(t *testing.T) {
	f := newFakeAPI(t)
	var grants []string
	f.on("/token", func(w http.ResponseWriter, r *http.Request) {
		grants = append(grants, r.FormValue("grant_type"))
		// Expired from the start, so that each call needs a new one.
		saysJSON(200, fmt.Sprintf(`{"access_token":%q,"refresh_token":%q}`, testJWT(time.Now().Add(time.Second)), testJWT(time.Now().Add(time.Hour))))(w, r)
	})
	f.on("GET /bucket/b-1", saysJSON(404, notFound))
	p := f.provider(t)
	for range 2 {
		if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if len(grants) != 2 || grants[0] != "urn:ietf:params:oauth:grant-type:jwt-bearer" || grants[1] != grants[0] {
		t.Errorf("grants %q", grants)
	}
}

// TestRejectedTokenIsReplaced: the SDK keeps a token that the API refuses until
// it expires. It is dropped, but not with every refused call.
func TestRejectedTokenIsReplaced(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /bucket/b-1", saysJSON(401, `{"detail":[{"key":"k","msg":"m"}]}`))
	var mu sync.Mutex
	now := time.Now()
	p := f.provider(t, func(c *Config) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	for i, want := range []int{1, 1, 1, 2} {
		if i == 2 {
			mu.Lock()
			now = now.Add(2 * tokenPatience)
			mu.Unlock()
		}
		if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrUnauthenticated) {
			t.Fatal(err)
		}
		if n := f.count("/token"); n != want {
			t.Errorf("call %d: %d token requests, want %d", i, n, want)
		}
	}
}

// TestTokenStaysWithTheAPI: a redirect is an answer, not a way for the token to
// another host.
func TestTokenStaysWithTheAPI(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the stranger was asked, Authorization %t", r.Header.Get("Authorization") != "")
	}))
	defer stranger.Close()
	f := newFakeAPI(t)
	f.on("DELETE /access-key/k", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
	})
	if err := f.provider(t).deleteKey(t.Context(), "eu01", testGroup, "k"); !errors.Is(err, provider.ErrUnavailable) {
		t.Error(err)
	}
}

// recordingTransport counts what it carries.
type recordingTransport struct{ calls int }

func (r *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r.calls++
	return http.DefaultTransport.RoundTrip(req)
}

// TestTransportIsNotWrittenTo: the SDK overwrites the transport of the client it
// is given; two providers over one transport must not find each other's auth.
func TestTransportIsNotWrittenTo(t *testing.T) {
	shared := &recordingTransport{}
	for range 2 {
		f := newFakeAPI(t)
		f.on("GET /bucket/b-1", func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Values("Authorization"); len(got) != 1 || !strings.HasPrefix(got[0], "Bearer eyJ") {
				t.Errorf("Authorization %d times", len(got))
			}
			saysJSON(404, notFound)(w, r)
		})
		p := f.provider(t, func(c *Config) { c.Transport = shared })
		if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
			t.Error(err)
		}
	}
	if shared.calls != 4 {
		t.Errorf("%d calls, want a token and a bucket each", shared.calls)
	}
	if http.DefaultClient.Transport != nil {
		t.Error("the default client was changed")
	}
}

// TestEnvironmentHasNoSay: the SDK would read all of these.
func TestEnvironmentHasNoSay(t *testing.T) {
	for _, name := range []string{"STACKIT_PRIVATE_KEY", "STACKIT_SERVICE_ACCOUNT_TOKEN", "STACKIT_SERVICE_ACCOUNT_KEY", "STACKIT_REGION"} {
		t.Setenv(name, "nonsense")
	}
	t.Setenv("STACKIT_TOKEN_BASEURL", "http://127.0.0.1:1/")
	t.Setenv("STACKIT_IDP_TOKEN_ENDPOINT", "http://127.0.0.1:1/")
	t.Setenv("HOME", t.TempDir())
	f := newFakeAPI(t)
	f.on("GET /bucket/b-1", saysJSON(404, notFound))
	if _, err := f.provider(t).bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
		t.Error(err)
	}
}

func TestFederation(t *testing.T) {
	f := newFakeAPI(t)
	f.on("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "sa@sa.stackit.cloud" || !strings.HasPrefix(r.FormValue("client_assertion"), "eyJ") {
			t.Errorf("asked for %s", r.FormValue("client_id"))
		}
		writeToken(w, testJWT(time.Now().Add(10*time.Minute)))
	})
	f.on("GET /bucket/b-1", saysJSON(404, notFound))
	file := filepath.Join(t.TempDir(), "token")
	p := f.provider(t, func(c *Config) {
		c.Credentials = Credentials{FederationEmail: "sa@sa.stackit.cloud", FederatedTokenFile: file}
		c.ProjectID, c.TokenURL = testProject, f.URL+"/token"
	})
	if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), file) {
		t.Errorf("no token file: %v", err)
	}
	if err := os.WriteFile(file, []byte(testJWT(time.Now().Add(time.Hour))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.bucketEndpoint(t.Context(), testRef); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("with a token file: %v", err)
	}
}
