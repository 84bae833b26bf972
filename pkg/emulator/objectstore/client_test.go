package objectstore

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// lab is a realm of two regions with three users, served over loopback.
type lab struct {
	release Release
	store   *Store
	clock   *clock
	keys    *keyRing
	urls    map[string]string
}

// clock is the wall clock plus an offset that a test may move.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// keyRing knows the users of a lab. It implements Keys and Directory.
type keyRing struct {
	mu   sync.Mutex
	keys map[string]Key
}

func (k *keyRing) Lookup(_, id string) (Key, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[id]
	return key, ok
}

func (k *keyRing) User(uid string) (Identity, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.keys {
		if key.Identity.UID == uid {
			return key.Identity, true
		}
	}
	return Identity{}, false
}

func (k *keyRing) remove(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, id)
}

// newLab is a lab of the release that most was measured on.
func newLab(t testing.TB) *lab {
	t.Helper()
	return newLabOf(t, Reef)
}

// onReleases runs a test on a lab of each release.
func onReleases(t *testing.T, run func(*testing.T, *lab)) {
	t.Helper()
	for _, release := range Releases() {
		t.Run(string(release), func(t *testing.T) { run(t, newLabOf(t, release)) })
	}
}

func newLabOf(t testing.TB, release Release) *lab {
	t.Helper()
	l := &lab{release: release, clock: &clock{}, keys: &keyRing{keys: make(map[string]Key)}, urls: make(map[string]string)}
	for _, name := range []string{"A", "B", "C"} {
		l.keys.keys["AK"+name] = Key{Secret: "secret-of-" + name, Identity: Identity{UID: "uid-" + strings.ToLower(name), DisplayName: name}}
	}
	l.store = New(Options{
		Release: release, Keys: l.keys, Now: l.clock.now, MaxBuckets: 100,
		Regions: []Region{
			{Name: "rma", Domains: []string{"objects.rma.localhost"}, URL: func() string { return l.urls["rma"] }},
			{Name: "lpg", Domains: []string{"objects.lpg.localhost"}, URL: func() string { return l.urls["lpg"] }},
		},
	})
	for _, region := range []string{"rma", "lpg"} {
		server := httptest.NewServer(l.store.Handler(region))
		t.Cleanup(server.Close)
		l.urls[region] = server.URL
	}
	return l
}

// user returns a client of a user, at the master region.
func (l *lab) user(name string) *client {
	return &client{url: l.urls["rma"], accessKey: "AK" + name, secret: "secret-of-" + name, region: "any-region", clock: l.clock}
}

func (l *lab) anonymous() *client { return &client{url: l.urls["rma"], clock: l.clock} }

// inLPG returns the same client at the secondary region.
func (c client) inLPG(l *lab) *client {
	c.url = l.urls["lpg"]
	return &c
}

// client is a minimal S3 client with its own reading of signature version 4.
type client struct {
	url       string
	accessKey string // anonymous if empty
	secret    string
	region    string
	host      string // overrides the Host header
	clock     *clock
}

// answer is what the server said.
type answer struct {
	status  int
	code    string
	message string
	header  http.Header
	body    []byte
}

func (a answer) String() string {
	s := fmt.Sprint(a.status)
	if a.code != "" {
		s += " " + a.code
	}
	return s
}

// prepare builds a request without signing it. header holds names and values in turn.
func (c *client) prepare(t testing.TB, method, path string, body []byte, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if c.host != "" {
		r.Host = c.host
	}
	return r
}

// sign adds a header signature and returns it.
func (c *client) sign(r *http.Request, body []byte) string {
	if r.Header.Get("X-Amz-Content-Sha256") == "" {
		sum := sha256.Sum256(body)
		r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	}
	if r.Header.Get("X-Amz-Date") == "" {
		r.Header.Set("X-Amz-Date", c.clock.now().UTC().Format("20060102T150405Z"))
	}
	date := r.Header.Get("X-Amz-Date")
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	sort.Strings(names)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = host
		}
		headers.WriteString(name + ":" + value + "\n")
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	canonical := strings.Join([]string{
		r.Method, awsPath(r.URL.Path), query, headers.String(), strings.Join(names, ";"), r.Header.Get("X-Amz-Content-Sha256"),
	}, "\n")
	scope := date[:8] + "/" + c.region + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	signature := hex.EncodeToString(testMAC(c.signingKey(date), "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.accessKey+"/"+scope+
		", SignedHeaders="+strings.Join(names, ";")+", Signature="+signature)
	return signature
}

func (c *client) signingKey(date string) []byte {
	key := testMAC([]byte("AWS4"+c.secret), date[:8])
	for _, part := range []string{c.region, "s3", "aws4_request"} {
		key = testMAC(key, part)
	}
	return key
}

func testMAC(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// awsPath escapes a path segment by segment.
func awsPath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// send sends a finished request. Redirects are not followed.
func (c *client) send(t testing.TB, r *http.Request) answer {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", r.Method, r.URL, err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: body}
	if a.status >= 300 && len(body) > 0 {
		var e struct {
			Code    string
			Message string
		}
		if err := xml.Unmarshal(body, &e); err != nil {
			t.Fatalf("%s %s: error document %q: %v", r.Method, r.URL, body, err)
		}
		a.code, a.message = e.Code, e.Message
	}
	return a
}

// call signs and sends one request; path may hold a query.
func (c *client) call(t testing.TB, method, path, body string, header ...string) answer {
	t.Helper()
	r := c.prepare(t, method, path, []byte(body), header...)
	if c.accessKey != "" {
		c.sign(r, []byte(body))
	}
	return c.send(t, r)
}

// must is call for steps that only prepare the ground.
func (c *client) must(t testing.TB, method, path, body string, header ...string) answer {
	t.Helper()
	a := c.call(t, method, path, body, header...)
	if a.status >= 300 {
		t.Fatalf("%s %s: %v %s", method, path, a, a.message)
	}
	return a
}

// row is one row of the measurements: a call and its answer.
type row struct {
	log    string // the row's text in the log
	by     *client
	call   string // method and path
	body   string
	header []string
	do     func() answer // instead of call, where the request depends on an earlier answer
	want   string        // "status [code] [| message]", on Reef and on a grid
	then   func(*testing.T, answer)

	// tentacle is the answer of Tentacle, and thenTentacle its check in place of then, where they are others.
	tentacle     string
	thenTentacle func(*testing.T, answer)

	// notKept is what was answered under conditions that are not emulated, and why says why it is not kept.
	notKept string
	why     string

	// unconfirmed says what neither a measurement nor the vendor's documentation tells, so that the answer
	// is a reading of both. Run with -v to have such rows listed.
	unconfirmed string
}

// golden plays rows in order. The rows build on each other, so they are no subtests.
func (l *lab) golden(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		if r.tentacle == r.want {
			t.Errorf("%s: the releases answer alike, so one answer is enough", r.log)
		}
		if l.release == Tentacle {
			r.want = cmp.Or(r.tentacle, r.want)
			if r.thenTentacle != nil {
				r.then = r.thenTentacle
			}
		}
		if (r.notKept == "") != (r.why == "") || r.notKept == r.want {
			t.Errorf("%s: a row that is not kept needs another answer and a reason", r.log)
		}
		if r.unconfirmed != "" {
			t.Logf("%s: %s, unconfirmed: %s", r.log, r.want, r.unconfirmed)
		}
		var a answer
		if r.do != nil {
			a = r.do()
		} else {
			method, path, _ := strings.Cut(r.call, " ")
			a = r.by.call(t, method, path, r.body, r.header...)
		}
		want, message, withMessage := strings.Cut(r.want, " | ")
		if a.String() != want || (withMessage && a.message != message) {
			t.Errorf("%s: got %v | %s, want %s", r.log, a, a.message, r.want)
			continue
		}
		if r.then != nil {
			r.then(t, a)
		}
	}
}

// parse reads the document of an answer.
func parse[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := xml.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%q: %v", a.body, err)
	}
	return v
}

// statement renders one policy statement; principals are user IDs, or "*".
func statement(effect, principal, actions, resources, extra string) string {
	quote := func(words, prefix string) string {
		var out []string
		for w := range strings.FieldsSeq(words) {
			out = append(out, `"`+prefix+w+`"`)
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	return `{"Effect":"` + effect + `","Principal":{"AWS":` + quote(principal, "arn:aws:iam:::user/") + `},"Action":` +
		quote(actions, "s3:") + `,"Resource":` + quote(resources, "arn:aws:s3:::") + extra + `}`
}

func policyOf(statements ...string) string {
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}
