package emulator

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// asked is the answer of a handler to a request that need not be a sane one; nil is
// for what no client can send.
func asked(t *testing.T, h http.HandlerFunc, method, target, contentType, token, body string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/"+strings.TrimPrefix(target, "/"), strings.NewReader(body))
	if err != nil {
		return nil
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h(w, r)
	// The deletion of a key without its group is known to end so.
	known := method == http.MethodDelete && strings.Contains(r.URL.Path, "/access-key/") && !r.URL.Query().Has("credentials-group")
	if w.Code >= http.StatusInternalServerError && !known || w.Code < http.StatusOK {
		t.Errorf("%s %q: %d", method, target, w.Code)
	}
	if text := w.Body.Bytes(); len(text) > 0 && !json.Valid(text) {
		t.Errorf("%s %q: the answer is no JSON: %q", method, target, text)
	}
	return w
}

// hostile are values at limits and of forms that parsers stumble over.
func hostile() []string {
	return []string{
		"", "ab", "abc", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 2048), "bücket", "日本語", "%2e%2e", "%", "%zz", "a/b", "../..", ".",
		"a\nb", "a\r\nX: y", "a\x00b", "\xff\xfe", "192.168.1.1", "::1", `"`, "{}", "null", "-1", "1e999", "\u202e",
	}
}

// FuzzCloudscaleAPI: no request to the control plane is answered with a fault of its
// own, and none changes another project's users.
func FuzzCloudscaleAPI(f *testing.F) {
	const users, form = "v1/objects-users", "application/x-www-form-urlencoded"
	for _, v := range hostile() {
		f.Add("POST", users, "application/json", `{"display_name":"`+v+`","tags":{"`+v+`":"`+v+`"}}`)
		f.Add("POST", users, form, "display_name="+v+"&tags."+v+"="+v)
		f.Add("POST", users, "multipart/form-data; boundary="+v, "--"+v+"\r\nContent-Disposition: form-data; name=\"display_name\"\r\n\r\n"+v+"\r\n--"+v+"--\r\n")
		f.Add("GET", users+"?tag:"+v+"="+v, "", "")
		f.Add("PATCH", users+"/"+v, v, v)
		f.Add("GET", "v1/metrics/buckets?start="+v+"&end="+v+"&bucket_name="+v, "", "")
	}
	f.Fuzz(func(t *testing.T, method, target, contentType, body string) {
		c, err := newCloudscale(Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		token := c.Token
		asked(t, c.serveAPI, "POST", users, "application/json", c.ForeignToken, `{"display_name":"theirs","tags":{"k":"v"}}`)
		asked(t, c.serveAPI, "POST", users, "application/json", token, `{"display_name":"ours"}`)
		all := c.Users()
		if len(all) != 2 {
			t.Fatalf("%d users", len(all))
		}
		theirs := all[0]
		target = strings.ReplaceAll(strings.ReplaceAll(target, "OURS", all[1].ID), "THEIRS", theirs.ID)
		w := asked(t, c.serveAPI, method, target, contentType, token, body)
		if now := c.Users(); len(now) == 0 || !reflect.DeepEqual(now[0], theirs) {
			t.Errorf("%s %q changed another project's user: %+v", method, target, now)
		}
		if w != nil && w.Code == http.StatusCreated && len(c.Users()) != 3 {
			t.Errorf("201, and there are %d users", len(c.Users()))
		}
	})
}

// FuzzStackitAPI: the same of the other control plane.
func FuzzStackitAPI(f *testing.F) {
	for _, v := range hostile() {
		f.Add("POST", "/bucket/"+v, "application/json", "")
		f.Add("POST", "/credentials-group", "application/json", `{"displayName":"`+v+`"}`)
		f.Add("POST", "/access-key?credentials-group="+v, "application/json", `{"expires":"`+v+`"}`)
		f.Add("DELETE", "/access-key/"+v+"?credentials-group="+v, v, v)
		f.Add("DELETE", "/access-key/"+v, v, v)
		f.Add("PUT", "/bucket/"+v+"/default-retention", "application/json", `{"mode":"`+v+`","days":`+v+`}`)
	}
	e, err := Start(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(); err != nil {
			f.Error(err)
		}
	})
	c := e.Stackit()
	base := "v2/project/" + c.ProjectID + "/regions/eu01"
	f.Fuzz(func(t *testing.T, method, target, contentType, body string) {
		asked(t, c.serveAPI, method, base+target, contentType, c.AccessToken(c.ProjectID), body)
		asked(t, c.serveAPI, method, target, contentType, c.AccessToken(c.ProjectID), body)
		// Without a token of the project nothing is told, whatever is asked.
		w := asked(t, c.serveAPI, method, base+target, contentType, c.AccessToken(c.ForeignProjectID), body)
		if w != nil && w.Code < http.StatusBadRequest {
			t.Errorf("%s %q: %d for another project", method, target, w.Code)
		}
	})
}

// FuzzTokenEndpoint: nothing but an assertion that the issuer signed gets a token.
func FuzzTokenEndpoint(f *testing.F) {
	for _, v := range hostile() {
		f.Add("application/x-www-form-urlencoded", "grant_type="+v+"&assertion="+v)
	}
	f.Add("application/x-www-form-urlencoded", "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c")
	f.Add("application/x-www-form-urlencoded", "grant_type=client_credentials&client_assertion=e30.e30.&client_id=x")
	e, err := Start(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, contentType, body string) {
		w := asked(t, e.Stackit().serveAPI, http.MethodPost, stackitTokenPath, contentType, "", body)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// FuzzJWT: a token that is read is signed by the key and the algorithm that it must
// be, or refused.
func FuzzJWT(f *testing.F) {
	key := []byte("key of the fuzz test")
	anybody, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	good := signHS256(key, jwtClaims{Issuer: "i", Audience: jwtAudience{"a"}, Expires: 1e10})
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	for _, seed := range append(hostile(), good, none, "..", "e30.e30.e30", parts[0]+"."+parts[1]+".AAAA", jwtPart("x")+"."+jwtPart([]int{1})+".") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		j, err := parseJWT(token)
		if err != nil {
			return
		}
		if j.verifyHS256(key) == nil && (j.header.Algorithm != "HS256" || len(j.signature) != 32) {
			t.Errorf("%q: accepted with algorithm %q", token, j.header.Algorithm)
		}
		if j.verifyHS256([]byte("another key")) == nil || j.verifyRS512(&anybody.PublicKey) == nil {
			t.Errorf("%q: accepted for another key", token)
		}
		j.claims.live(time.Now())
	})
}

// FuzzAdmin: what the admin endpoint takes is a fault or a delay that can be carried
// out.
func FuzzAdmin(f *testing.F) {
	for _, v := range hostile() {
		f.Add(`{"operation":"` + v + `","status":503,"latency":"` + v + `"}`)
		f.Add(`{"regions":{"` + v + `":{"max":"` + v + `"}}}`)
	}
	f.Add(`{"status":503,"header":{"A":["b"]},"body":"x","probability":0.5}`)
	f.Add(`{"profile":"realistic"}`)
	f.Fuzz(func(t *testing.T, body string) {
		read := func(into any) error {
			return readAdmin(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), into)
		}
		var in faultJSON
		if read(&in) == nil {
			if f := in.fault(); f.validate() == nil && (f.Status != 0 && f.Status < 200 || f.Latency < 0 || f.Times < 0) {
				t.Errorf("%q: accepted as %+v", body, f)
			}
		}
		var delay keyDelayInput
		if read(&delay) == nil {
			if all, err := delay.delays(); err == nil && delay.Profile == "" && len(all) != len(delay.Regions) {
				t.Errorf("%q: %+v", body, all)
			}
		}
	})
}
