package emulator

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// startStackit runs an emulator of both clouds for the length of a test.
func startStackit(t *testing.T, o Options, so StackitOptions) (*Emulator, *Stackit) {
	t.Helper()
	o.Stackit = so
	e := start(t, o)
	return e, e.Stackit()
}

// stackitAPI calls one project's control plane in one region.
type stackitAPI struct {
	t     *testing.T
	base  string
	token string
}

func (c *Stackit) api(t *testing.T, project, region string) stackitAPI {
	t.Helper()
	return stackitAPI{t, c.APIURL + "v2/project/" + project + "/regions/" + region, c.AccessToken(project)}
}

// call returns the status and the body.
func (a stackitAPI) call(method, path, body string) (int, string) {
	a.t.Helper()
	resp, answer := call(a.t, request{method: method, url: a.base + path, token: a.token, body: body})
	return resp.StatusCode, answer
}

// must is call with a status that must be.
func (a stackitAPI) must(status int, method, path, body string) string {
	a.t.Helper()
	got, answer := a.call(method, path, body)
	if got != status {
		a.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, answer)
	}
	return answer
}

// group makes a credentials group.
func (a stackitAPI) group(name string) groupBody {
	a.t.Helper()
	var g struct {
		Group groupBody `json:"credentialsGroup"`
	}
	decode(a.t, a.must(http.StatusCreated, "POST", "/credentials-group", `{"displayName":"`+name+`"}`), &g)
	return g.Group
}

// createdKey is a new access key as a client reads it.
type createdKey struct {
	ID        string  `json:"keyId"`
	Name      string  `json:"displayName"`
	Expires   *string `json:"expires"`
	AccessKey string  `json:"accessKey"`
	Secret    string  `json:"secretAccessKey"`
}

// key makes an access key; the zero time is never.
func (a stackitAPI) key(group string, expires time.Time) createdKey {
	a.t.Helper()
	body := `{}`
	if !expires.IsZero() {
		body = `{"expires":"` + expires.Format(time.RFC3339Nano) + `"}`
	}
	var k createdKey
	decode(a.t, a.must(http.StatusCreated, "POST", "/access-key?credentials-group="+group, body), &k)
	return k
}

// stackitS3 is a client of one region that never tries twice.
func stackitS3(t *testing.T, c *Stackit, region, accessKey, secret string) *minio.Client {
	t.Helper()
	endpoint, err := url.Parse(c.Endpoints[region])
	if err != nil {
		t.Fatal(err)
	}
	s3, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secret, ""), Region: region,
		Transport: client(t).Transport, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s3
}

// stackitRoot is an S3 client with a key of the own project's account in eu01
// itself, which no customer of the cloud holds: it may do everything in every bucket.
func stackitRoot(t *testing.T, c *Stackit) *minio.Client {
	t.Helper()
	const region = stackitEU01
	c.mu.Lock()
	account := c.tenants[stackitScope{c.ProjectID, region}].account
	c.mu.Unlock()
	accessKey, secret := randomString(accessKeySet, 20), randomString(alphanumeric, 40)
	c.s3Keys.add(region, accessKey, time.Time{}, objectstore.Key{Secret: secret, Identity: objectstore.Identity{
		UID: "urn:sgws:identity::" + account + ":root", Account: objectstore.Account{ID: account, Name: c.ProjectID},
	}})
	return stackitS3(t, c, region, accessKey, secret)
}

// s3Code is how S3 answers a key: "" if it knows it.
func s3Code(t *testing.T, s3 *minio.Client) string {
	t.Helper()
	_, err := s3.ListBuckets(t.Context())
	if err == nil {
		return ""
	}
	code := minio.ToErrorResponse(err).Code
	if code == "" {
		t.Fatalf("not an answer of S3: %v", err)
	}
	return code
}

// nearClock is a hand-driven clock that begins at the real time, which the
// signatures of real clients carry.
func nearClock() *clock {
	c := newClock()
	c.Set(time.Now().Truncate(time.Millisecond))
	return c
}

// names returns what stands behind a JSON member in a list, in order.
func names(list, member string) string {
	var out []string
	for _, part := range strings.Split(list, `"`+member+`":"`)[1:] {
		out = append(out, part[:strings.Index(part, `"`)])
	}
	return strings.Join(out, " ")
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func compactJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
