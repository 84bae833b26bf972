package emulator

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// parsedKey is a service account key taken apart.
type parsedKey struct {
	serviceAccountKeyBody
	private *rsa.PrivateKey
}

func parseKey(t *testing.T, text string) parsedKey {
	t.Helper()
	var k parsedKey
	decode(t, text, &k.serviceAccountKeyBody)
	block, _ := pem.Decode([]byte(k.Credentials.PrivateKey))
	if block == nil {
		t.Fatal("no private key")
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	if k.private, ok = private.(*rsa.PrivateKey); !ok {
		t.Fatalf("the private key is a %T", private)
	}
	return k
}

// sign makes an assertion by a library that is not the emulator's own.
func sign(t *testing.T, method gojwt.SigningMethod, kid string, claims gojwt.MapClaims, key any) string {
	t.Helper()
	token := gojwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tokenCall posts a form to the token endpoint.
func tokenCall(t *testing.T, c *Stackit, form url.Values) (int, string) {
	t.Helper()
	resp, body := call(t, request{method: "POST", url: c.TokenURL, contentType: "application/x-www-form-urlencoded", body: form.Encode()})
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q", got)
	}
	return resp.StatusCode, body
}

func assertion(text string) url.Values {
	return url.Values{"grant_type": {grantJWTBearer}, "assertion": {text}}
}

const invalidGrant = `{"error":"invalid_grant"}`

func TestStackitKeyFlow(t *testing.T) {
	clock := nearClock()
	_, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{})
	key := parseKey(t, c.ServiceAccountKey())
	foreign := parseKey(t, c.ForeignServiceAccountKey())
	good := func() gojwt.MapClaims {
		return gojwt.MapClaims{
			"iss": key.Credentials.Issuer, "sub": key.Credentials.Subject, "aud": key.Credentials.Audience,
			"jti": "1", "iat": clock.Now().Unix(), "exp": clock.Now().Add(time.Hour).Unix(),
		}
	}
	with := func(change gojwt.MapClaims) gojwt.MapClaims {
		claims := good()
		maps.Copy(claims, change)
		return claims
	}
	kid := key.Credentials.KeyID
	rs512 := func(claims gojwt.MapClaims) string {
		return sign(t, gojwt.SigningMethodRS512, kid, claims, key.private)
	}
	noExpiry := good()
	delete(noExpiry, "exp")
	tampered := strings.Split(rs512(good()), ".")
	tampered[1] = base64.RawURLEncoding.EncodeToString([]byte(compactJSON(t, with(gojwt.MapClaims{"jti": "2"}))))

	for _, row := range []struct {
		name, text string
		ok         bool
	}{
		{"good", rs512(good()), true},
		{"audience in a list", rs512(with(gojwt.MapClaims{"aud": []string{"x", key.Credentials.Audience}})), true},
		{"fraction of a second", rs512(with(gojwt.MapClaims{"exp": float64(clock.Now().UnixMilli()+500) / 1000})), true},
		{"expired", rs512(with(gojwt.MapClaims{"exp": clock.Now().Add(-time.Second).Unix()})), false},
		{"without expiry", rs512(noExpiry), false},
		{"wrong issuer", rs512(with(gojwt.MapClaims{"iss": foreign.Credentials.Issuer})), false},
		{"wrong subject", rs512(with(gojwt.MapClaims{"sub": foreign.Credentials.Subject})), false},
		{"wrong audience", rs512(with(gojwt.MapClaims{"aud": "https://example.com"})), false},
		{"audience of a wrong kind", rs512(with(gojwt.MapClaims{"aud": 7})), false},
		{"without kid", sign(t, gojwt.SigningMethodRS512, "", good(), key.private), false},
		{"unknown kid", sign(t, gojwt.SigningMethodRS512, unknownID, good(), key.private), false},
		{"another account's kid", sign(t, gojwt.SigningMethodRS512, foreign.Credentials.KeyID, good(), key.private), false},
		{"another account's key", sign(t, gojwt.SigningMethodRS512, kid, good(), foreign.private), false},
		{"RS256", sign(t, gojwt.SigningMethodRS256, kid, good(), key.private), false},
		{"HS512 by the public key", sign(t, gojwt.SigningMethodHS512, kid, good(), []byte(key.PublicKey)), false},
		{"no signature", sign(t, gojwt.SigningMethodNone, kid, good(), gojwt.UnsafeAllowNoneSignatureType), false},
		{"changed claims", strings.Join(tampered, "."), false},
		{"not a token", "x.y.z", false},
		{"two parts", "x.y", false},
		{"nothing", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, body := tokenCall(t, c, assertion(row.text))
			if !row.ok {
				if status != http.StatusBadRequest || body != invalidGrant {
					t.Errorf("%d %s", status, body)
				}
				return
			}
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			checkAccessToken(t, c, clock, body)
		})
	}
}

// checkAccessToken looks at the token endpoint's answer and uses it until it ends.
func checkAccessToken(t *testing.T, c *Stackit, clock *clock, body string) {
	t.Helper()
	begin := clock.Now()
	defer clock.Set(begin)
	var answer map[string]any
	decode(t, body, &answer)
	token, _ := answer["access_token"].(string)
	delete(answer, "access_token")
	if got := compactJSON(t, answer); got != `{"expires_in":600,"scope":"","token_type":"Bearer"}` {
		t.Errorf("the rest of the answer is %s", got)
	}
	var claims gojwt.RegisteredClaims
	if _, _, err := gojwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Fatalf("the token is no JWT: %v", err)
	}
	if claims.ExpiresAt == nil || claims.ExpiresAt.Unix() != begin.Add(10*time.Minute).Unix() {
		t.Errorf("the token expires at %v", claims.ExpiresAt)
	}
	api := c.api(t, c.ProjectID, "eu01")
	api.token = token
	api.must(http.StatusOK, "GET", "", "")
	if resp, _ := call(t, request{method: "GET", url: c.APIURL + "v2/project/" + c.ForeignProjectID + "/regions/eu01", token: token}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("the other project: %s", resp.Status)
	}
	clock.Set(claims.ExpiresAt.Add(-time.Second))
	api.must(http.StatusOK, "GET", "", "")
	clock.Set(claims.ExpiresAt.Time)
	if status, body := api.call("GET", "", ""); status != http.StatusUnauthorized {
		t.Errorf("at its end: %d %s", status, body)
	}
}

func TestStackitAccessTokensAreChecked(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	good := c.AccessToken(c.ProjectID)
	parts := strings.Split(good, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(payload), c.ProjectID, c.ForeignProjectID)
	if other == string(payload) {
		t.Fatal("the token does not name its project")
	}
	var claims gojwt.MapClaims
	decode(t, string(payload), &claims)
	for name, token := range map[string]string{
		"another project written in": parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(other)) + "." + parts[2],
		"no signature":               sign(t, gojwt.SigningMethodNone, "", claims, gojwt.UnsafeAllowNoneSignatureType),
		"another secret":             sign(t, gojwt.SigningMethodHS256, "", claims, []byte("secret")),
		"another algorithm":          sign(t, gojwt.SigningMethodHS512, "", claims, c.issuer.access),
		"a workload's token":         c.FederatedToken,
		"opaque":                     "opaque",
	} {
		for _, project := range []string{c.ProjectID, c.ForeignProjectID} {
			resp, body := call(t, request{method: "GET", url: c.APIURL + "v2/project/" + project + "/regions/eu01", token: token})
			if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: %s %s", name, resp.Status, body)
			}
		}
	}
	if c.AccessToken("x") != "" {
		t.Error("a token for an unknown project")
	}
}

func TestStackitServiceAccountKey(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	if len(c.issuer.keys) != 0 {
		t.Error("a key is made before it is asked for")
	}
	text := c.ServiceAccountKey()
	if text != c.ServiceAccountKey() {
		t.Error("the key changes")
	}
	key := parseKey(t, text)
	if key.ProjectID != c.ProjectID || key.Credentials.TokenEndpoint != c.TokenURL || key.Credentials.Issuer != c.FederationEmail ||
		key.Credentials.Audience != "https://accounts.stackit.cloud" || key.KeyAlgorithm != "RSA_2048" || !key.Active {
		t.Error("the key's members are not those of an export")
	}
	if _, err := time.Parse(time.RFC3339, key.CreatedAt); err != nil {
		t.Errorf("createdAt: %v", err)
	}
	if bits := key.private.N.BitLen(); bits != 2048 {
		t.Errorf("%d bits", bits)
	}
	if foreign := parseKey(t, c.ForeignServiceAccountKey()); foreign.ProjectID != c.ForeignProjectID || foreign.Credentials.Subject == key.Credentials.Subject {
		t.Error("the foreign key is not of another account")
	}

	second, err := c.NewServiceAccountKey(c.ProjectID)
	if err != nil {
		t.Fatal(err)
	}
	claims := gojwt.MapClaims{"iss": key.Credentials.Issuer, "sub": key.Credentials.Subject, "aud": key.Credentials.Audience, "exp": time.Now().Add(time.Hour).Unix()}
	use := func(k parsedKey) int {
		t.Helper()
		status, _ := tokenCall(t, c, assertion(sign(t, gojwt.SigningMethodRS512, k.Credentials.KeyID, claims, k.private)))
		return status
	}
	if got := use(key); got != http.StatusOK {
		t.Errorf("the older key: %d", got)
	}
	if got := use(parseKey(t, second)); got != http.StatusOK {
		t.Errorf("the newer key: %d", got)
	}
	if !c.RevokeServiceAccountKey(text) || c.RevokeServiceAccountKey(text) || c.RevokeServiceAccountKey("x") {
		t.Error("revocation reports the wrong thing")
	}
	if got := use(key); got != http.StatusBadRequest {
		t.Errorf("the revoked key: %d", got)
	}
	if got := use(parseKey(t, second)); got != http.StatusOK {
		t.Errorf("the newer key after the revocation: %d", got)
	}
	if _, err := c.NewServiceAccountKey("x"); err == nil {
		t.Error("a key for an unknown project")
	}
}

func TestStackitFederation(t *testing.T) {
	clock := nearClock()
	_, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{})
	form := func(change url.Values) url.Values {
		v := url.Values{
			"grant_type": {grantClientCredentials}, "client_id": {c.FederationEmail},
			"client_assertion_type": {assertionWorkloadJWT}, "client_assertion": {c.FederatedToken},
		}
		maps.Copy(v, change)
		return v
	}
	status, body := tokenCall(t, c, form(nil))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	checkAccessToken(t, c, clock, body)
	if len(c.issuer.keys) != 0 {
		t.Error("federation made a service account key")
	}
	short := c.NewFederatedToken(time.Minute)
	if status, _ := tokenCall(t, c, form(url.Values{"client_assertion": {short}})); status != http.StatusOK {
		t.Errorf("a fresh workload token: %d", status)
	}
	clock.Advance(time.Minute)
	for name, change := range map[string]url.Values{
		"expired":           {"client_assertion": {short}},
		"another account":   {"client_id": {c.issuer.accounts[1].email}},
		"no account":        {"client_id": {""}},
		"assertion type":    {"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}},
		"access token":      {"client_assertion": {c.AccessToken(c.ProjectID)}},
		"not a token":       {"client_assertion": {"x"}},
		"another algorithm": {"client_assertion": {sign(t, gojwt.SigningMethodNone, "", gojwt.MapClaims{"exp": clock.Now().Add(time.Hour).Unix()}, gojwt.UnsafeAllowNoneSignatureType)}},
	} {
		if status, body := tokenCall(t, c, form(change)); status != http.StatusBadRequest || body != invalidGrant {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestStackitTokenEndpointForm(t *testing.T) {
	em, c := startStackit(t, Options{}, StackitOptions{})
	const ctype = "application/x-www-form-urlencoded"
	for _, row := range []struct {
		name, method, query, ctype, body string
		status                           int
		want                             string
	}{
		{"GET", "GET", "", "", "", 405, `{"error":"invalid_request"}`},
		{"no body", "POST", "", ctype, "", 400, `{"error":"invalid_request"}`},
		{"JSON", "POST", "", "application/json", `{"grant_type":"client_credentials"}`, 400, `{"error":"invalid_request"}`},
		{"bad form", "POST", "", ctype, "grant_type=%zz", 400, `{"error":"invalid_request"}`},
		{"too large", "POST", "", ctype, "x=" + strings.Repeat("x", maxInput), 400, `{"error":"invalid_request"}`},
		{"in the query", "POST", "?grant_type=password", ctype, "", 400, `{"error":"invalid_request"}`},
		{"refresh token", "POST", "", ctype, "grant_type=refresh_token&refresh_token=x", 400, `{"error":"unsupported_grant_type"}`},
		{"no assertion", "POST", "", ctype + "; charset=UTF-8", "grant_type=" + url.QueryEscape(grantJWTBearer), 400, invalidGrant},
	} {
		resp, body := call(t, request{method: row.method, url: c.TokenURL + row.query, contentType: row.ctype, body: row.body})
		if resp.StatusCode != row.status || body != row.want {
			t.Errorf("%s: %s %s", row.name, resp.Status, body)
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%s: not JSON", row.name)
		}
	}
	for _, call := range em.Calls() {
		if call.Plane != PlaneControl || call.Operation != "Token" {
			t.Errorf("recorded as %q on %q", call.Operation, call.Plane)
		}
	}
}
