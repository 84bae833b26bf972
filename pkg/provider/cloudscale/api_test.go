package cloudscale

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

const testToken = "secret-token.0123456789"

// stub is a provider whose control plane is the handler.
func stub(t *testing.T, h http.HandlerFunc, change ...func(*Config)) *Provider {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	config := Config{DriverName: testDriver, Token: fixedToken(testToken), APIURL: server.URL, Endpoints: map[string]string{"rma": server.URL}}
	for _, f := range change {
		f(&config)
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	// Bodies are under test, not retries.
	p.api = newAPI(p.api.BaseURL, http.DefaultTransport, config)
	return p
}

func TestErrorBodies(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   error
		text   string
	}{
		{"flat", 400, "application/json", `{"detail":"At most one tag: clause"}`, provider.ErrPrecondition, "At most one tag: clause"},
		{"field", 400, "application/json", `{"name":"This field may not be blank."}`, provider.ErrPrecondition, "name: This field"},
		{"lists", 400, "application/json", `{"name":["one","two"],"a":{"b":1}}`, provider.ErrPrecondition, "a.b: 1; name: one; name: two"},
		{"array", 409, "application/json", `["busy"]`, provider.ErrConflict, "busy"},
		{"null", 500, "application/json", `null`, provider.ErrUnavailable, "500"},
		{"empty", 503, "", ``, provider.ErrUnavailable, "503"},
		{"empty 401", 401, "", ``, provider.ErrUnauthenticated, "401"},
		{"page", 502, "text/html", "<html><title>502 Bad\n Gateway</title><p>nginx", provider.ErrUnavailable, "502 Bad Gateway (502 Bad Gateway)"},
		{"plain", 429, "text/plain; charset=utf-8", "slow\x00 down\n", provider.ErrUnavailable, "slow down"},
		{"binary", 500, "application/octet-stream", "\xff\xfe", provider.ErrUnavailable, "500"},
		{"cut short", 400, "application/json", `{"detail":"a`, provider.ErrPrecondition, "400"},
		{"huge", 500, "text/plain", strings.Repeat("x", 1<<20), provider.ErrUnavailable, "xxx…"},
		{"echo of the token", 403, "application/json", `{"detail":"Bearer ` + testToken + `"}`, provider.ErrPermissionDenied, "[redacted]"},
		{"redirect", 302, "text/html", "", provider.ErrUnavailable, "302"},
		{"limit", 400, "application/json", `{"detail":"You have reached the maximum of 100 objects users."}`, provider.ErrQuotaExceeded, "ask cloudscale.ch"},
		{"limit as 403", 403, "application/json", `{"detail":"Quota exceeded."}`, provider.ErrQuotaExceeded, "Quota exceeded"},
		{"too large", 413, "text/html", "<title>413 Request Entity Too Large</title>", provider.ErrQuotaExceeded, "413"},
		{"limit of calls", 429, "application/json", `{"detail":"rate limit exceeded"}`, provider.ErrUnavailable, "429"},
		{"teapot", 418, "application/json", `{"detail":"x"}`, provider.ErrPrecondition, "418"},
		{"not found", 404, "application/json", `{"detail":"Not found."}`, provider.ErrNotFound, "Not found."},
		{"a gateway's not found", 404, "application/json", `{"message":"no Route matched with those values"}`, provider.ErrUnavailable, "check the API URL"},
		{"a proxy's not found", 404, "text/html", "<title>404 Not Found</title>", provider.ErrUnavailable, "check the API URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := stub(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.kind != "" {
					w.Header().Set("Content-Type", tc.kind)
				}
				if tc.status == 302 {
					w.Header().Set("Location", "https://example.com/login")
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			_, err := p.getUser(t.Context(), "0123")
			if !errors.Is(err, tc.want) || sentinels(err) != 1 || statusOf(err) != tc.status {
				t.Fatalf("got %v with status %d, want %v alone with %d", err, statusOf(err), tc.want, tc.status)
			}
			text := err.Error()
			if !strings.Contains(text, tc.text) || strings.Contains(text, testToken) || len(text) > 600 || strings.ContainsAny(text, "\n\x00") {
				t.Errorf("the text is %q, want one short line with %q", text, tc.text)
			}
		})
	}
}

func TestGoodStatusWithABadBody(t *testing.T) {
	for name, body := range map[string]string{
		"page": "<html>login</html>", "empty": "", "cut short": `[{"id":"0`, "wrong shape": `{"id":7}`, "another user": `{"id":"9999"}`,
	} {
		p := stub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		_, getErr := p.getUser(t.Context(), "0123")
		_, listErr := p.owners(t.Context(), "abc")
		for _, err := range []error{getErr, listErr} {
			if !errors.Is(err, provider.ErrUnavailable) || sentinels(err) != 1 {
				t.Errorf("%s: got %v, want ErrUnavailable", name, err)
			}
		}
	}
}

// A list that is not found must not read as "no such owner".
func TestMissingAPIIsNotAMissingBucket(t *testing.T) {
	for name, kind := range map[string]string{`{"detail":"Not found."}`: "application/json", "<title>404</title>": "text/html"} {
		var writes atomic.Int32
		p := stub(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(name))
		})
		ref := provider.BucketRef{Name: "abc", Region: "rma"}
		if err := p.DeleteBucket(t.Context(), ref, purge); !errors.Is(err, provider.ErrUnavailable) {
			t.Errorf("DeleteBucket: got %v, want ErrUnavailable", err)
		}
		if _, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "rma"}); !errors.Is(err, provider.ErrUnavailable) {
			t.Errorf("CreateBucket: got %v, want ErrUnavailable", err)
		}
		if writes.Load() != 0 {
			t.Errorf("made %d writing calls", writes.Load())
		}
	}
}

func TestSecretKeyThatIsHidden(t *testing.T) {
	for name, keys := range map[string]string{
		"absent": `[{"access_key":"AK"}]`, "null": `[{"access_key":"AK","secret_key":null}]`,
		"empty": `[{"access_key":"AK","secret_key":""}]`, "no key": `[]`, "no member": `null`,
	} {
		t.Run(name, func(t *testing.T) {
			p := stub(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/regions") {
					_, _ = w.Write([]byte(`[{"slug":"rma"}]`))
					return
				}
				_, _ = fmt.Fprintf(w, `[{"id":"0123","keys":%s,"tags":{"zuber_managed_by":%q,"zuber_bucket":"abc","zuber_role":"owner","zuber_region":"rma"}}]`,
					keys, testDriver)
			})
			ref := provider.BucketRef{Name: "abc", Region: "rma"}
			_, createErr := p.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "rma"})
			_, grantErr := p.GrantAccess(t.Context(), accessTo(ref))
			for what, err := range map[string]error{
				"Check": p.Check(t.Context()), "CreateBucket": createErr, "GrantAccess": grantErr,
				"DeleteBucket": p.DeleteBucket(t.Context(), ref, purge),
			} {
				if !errors.Is(err, provider.ErrPermissionDenied) || !strings.Contains(err.Error(), "read-write API token") {
					t.Errorf("%s: got %v, want ErrPermissionDenied with the remedy", what, err)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	const remedy = "read-write API token"
	for _, users := range []string{"none", "one"} {
		if users == "one" {
			c.make(provider.BucketSpec{Name: "abc", Region: "rma"})
		}
		before := len(c.cs.Users())
		c.must(c.Check(t.Context()))
		c.want(c.provider(withToken(c.cs.ReadOnlyToken)).Check(t.Context()), provider.ErrPermissionDenied, remedy)
		c.want(c.provider(withToken("wrong")).Check(t.Context()), provider.ErrUnauthenticated, "check the API token")
		if len(c.cs.Users()) != before {
			t.Error("a check changed the users")
		}
	}
	ro := c.provider(withToken(c.cs.ReadOnlyToken))
	_, err := ro.CreateBucket(t.Context(), provider.BucketSpec{Name: "new", Region: "rma"})
	c.want(err, provider.ErrPermissionDenied, remedy)
	_, err = ro.CreateBucket(t.Context(), provider.BucketSpec{Name: "abc", Region: "rma"})
	c.want(err, provider.ErrPermissionDenied, remedy)
	_, err = ro.GrantAccess(t.Context(), accessTo(provider.BucketRef{Name: "abc", Region: "rma"}))
	c.want(err, provider.ErrPermissionDenied, remedy)
	c.want(ro.DeleteBucket(t.Context(), provider.BucketRef{Name: "abc", Region: "rma"}, purge), provider.ErrPermissionDenied, remedy)
	c.wantLeft("abc")
	c.Inject(emulator.Fault{Plane: emulator.PlaneControl, Status: 503})
	c.want(c.Check(t.Context()), provider.ErrUnavailable)
}

// One user without a key is no reason to take the whole back end out of service.
func TestCheckOfAUserWithoutAKey(t *testing.T) {
	for keys, want := range map[string]error{`[{"access_key":"AK","secret_key":"SK"}]`: nil, `[{"access_key":"AK"}]`: provider.ErrPermissionDenied} {
		p := stub(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"detail":"Not found."}`))
				return
			}
			const mark = `"tags":{"zuber_managed_by":"` + testDriver + `"}`
			_, _ = fmt.Fprintf(w, `[{"id":"01","keys":%s,%s},{"id":"02","keys":[],%s}]`, keys, mark, mark)
		})
		if err := p.Check(t.Context()); !errors.Is(err, want) {
			t.Errorf("keys %s: got %v, want %v", keys, err, want)
		}
	}
}

func TestTokenIsReadForEveryRequest(t *testing.T) {
	var seen []string
	p := stub(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("[]"))
	})
	n := 0
	rotating := func(c *Config) {
		c.Token = func() (provider.Secret, error) {
			n++
			return provider.NewSecret(fmt.Sprintf(" token-%d\n", n)), nil
		}
	}
	rotating(&p.config)
	p.api = newAPI(p.api.BaseURL, http.DefaultTransport, p.config)
	for range 2 {
		if _, err := p.owners(t.Context(), "abc"); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(seen) != "[Bearer token-1 Bearer token-2]" {
		t.Errorf("saw %q", seen)
	}
}

func TestTokenThatCannotBeUsed(t *testing.T) {
	for name, token := range map[string]func() (provider.Secret, error){
		"unreadable": func() (provider.Secret, error) { return provider.Secret{}, errors.New("permission denied on the file") },
		"empty":      fixedToken(" \n"),
		"malformed":  fixedToken("top secret\nvalue"),
	} {
		var calls atomic.Int32
		p := stub(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) }, func(c *Config) { c.Token = token })
		_, err := p.owners(t.Context(), "abc")
		if !errors.Is(err, provider.ErrUnauthenticated) || sentinels(err) != 1 || !strings.Contains(err.Error(), "API token") {
			t.Errorf("%s: got %v, want ErrUnauthenticated", name, err)
		}
		if strings.Contains(err.Error(), "top secret") || calls.Load() != 0 {
			t.Errorf("%s: the token is in %q, or one of %d calls was sent", name, err, calls.Load())
		}
	}
}

func TestTokenDoesNotFollowARedirect(t *testing.T) {
	var leaked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer other.Close()
	p := stub(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, err := p.owners(t.Context(), "abc")
	if !errors.Is(err, provider.ErrUnavailable) || leaked.Load() != 0 {
		t.Errorf("got %v and %d calls elsewhere, want ErrUnavailable and none", err, leaked.Load())
	}
}

func TestNewReportsAllFaultsAtOnce(t *testing.T) {
	_, err := New(Config{DriverName: "Bad Name", APIURL: "ftp://x", KeyWait: -1, Endpoints: map[string]string{"rma": "objects", "lpg": "http://x/y"}})
	if !errors.Is(err, provider.ErrInvalidArgument) {
		t.Fatalf("got %v, want ErrInvalidArgument", err)
	}
	for _, text := range []string{"Bad Name", "API token", "API URL", "negative", `"rma"`, `"lpg"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if _, err := New(Config{DriverName: testDriver, Token: fixedToken("x"), APIURL: "https://api.example.com/v1/"}); err == nil ||
		!strings.Contains(err.Error(), "without") {
		t.Errorf("a base with v1 gave %v", err)
	}
}

func TestEnvironmentHasNoSay(t *testing.T) {
	t.Setenv("CLOUDSCALE_API_URL", "https://elsewhere.example/")
	p, err := New(Config{DriverName: testDriver, Token: fixedToken("x")})
	if err != nil || p.api.BaseURL.String() != DefaultAPIURL {
		t.Fatalf("the base is %v (%v), want %s", p.api.BaseURL, err, DefaultAPIURL)
	}
	for in, want := range map[string]string{
		"https://host": "https://host/", "https://host/base": "https://host/base/", "http://host:1/base/": "http://host:1/base/",
	} {
		if u, err := parseAPIURL(in); err != nil || u.String() != want {
			t.Errorf("API URL %q becomes %v (%v), want %q", in, u, err, want)
		}
	}
	if e := p.defaultEndpoint("lpg"); e != "https://objects.lpg.cloudscale.ch" {
		t.Errorf("the endpoint is %q", e)
	}
}

func TestEndpointTag(t *testing.T) {
	for in, want := range map[string]string{
		"https://objects.rma.cloudscale.ch":     "https.443.objects.rma.cloudscale.ch",
		"https://objects.rma.cloudscale.ch:443": "https.443.objects.rma.cloudscale.ch",
		"http://127.0.0.1:8080/":                "http.8080.127.0.0.1",
		"http://Host":                           "http.80.host",
	} {
		e, err := parseEndpoint(in)
		if err != nil {
			t.Fatal(err)
		}
		tag, err := e.tag()
		if err != nil || tag != want {
			t.Errorf("tag of %q is %q (%v), want %q", in, tag, err, want)
		}
		if back, err := parseEndpointTag(tag); err != nil || back != e {
			t.Errorf("tag %q reads back as %v (%v)", tag, back, err)
		}
	}
	for _, bad := range []string{"", "https", "https.443", "ftp.21.host", "https.x.host", "https.70000.host"} {
		if _, err := parseEndpointTag(bad); !errors.Is(err, provider.ErrPrecondition) {
			t.Errorf("tag %q: got %v, want ErrPrecondition", bad, err)
		}
	}
}
