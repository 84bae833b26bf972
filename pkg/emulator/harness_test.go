package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// start runs an emulator for the length of a test.
func start(t *testing.T, o Options) *Emulator {
	t.Helper()
	e, err := Start(o)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// client is an HTTP client of its own, so that no connection outlives the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport,
		Timeout:   30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// request is one call of a test. contentType defaults to JSON if there is a body.
type request struct {
	method, url, token, contentType, body string
}

func (in request) build(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, in.method, in.url, strings.NewReader(in.body))
	if err != nil {
		return nil, err
	}
	if in.token != "" {
		req.Header.Set("Authorization", "Bearer "+in.token)
	}
	switch {
	case in.contentType != "":
		req.Header.Set("Content-Type", in.contentType)
	case in.body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// response is the head of an answer.
type response struct {
	Status     string
	StatusCode int
	Header     http.Header
}

// send returns the answer with its body read; err is also an error of the body.
func send(ctx context.Context, c *http.Client, in request) (resp *response, body string, err error) {
	req, err := in.build(ctx)
	if err != nil {
		return nil, "", err
	}
	return do(c, req)
}

func do(c *http.Client, req *http.Request) (resp *response, body string, err error) {
	answer, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	return &response{answer.Status, answer.StatusCode, answer.Header}, string(b), err
}

// call is send that must be answered.
func call(t *testing.T, in request) (*response, string) {
	t.Helper()
	resp, body, err := send(t.Context(), client(t), in)
	if err != nil {
		t.Fatalf("%s %s: %v", in.method, in.url, err)
	}
	return resp, body
}

// createUser makes a user with a token and returns it as the API shows it.
func createUser(t *testing.T, e *Emulator, token, body string) userBody {
	t.Helper()
	resp, answer := call(t, request{method: http.MethodPost, url: e.Cloudscale().APIURL + "v1/objects-users", token: token, body: body})
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("create user: %s: %s", resp.Status, answer)
	}
	var u userBody
	if err := json.Unmarshal([]byte(answer), &u); err != nil {
		t.Fatalf("create user: %v", err)
	}
	return u
}

// s3 is a client of one region that never tries twice.
func s3(t *testing.T, e *Emulator, region string, u userBody) *minio.Client {
	t.Helper()
	endpoint, err := url.Parse(e.Cloudscale().Endpoints[region])
	if err != nil {
		t.Fatal(err)
	}
	c, err := minio.New(endpoint.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(u.Keys[0].AccessKey, u.Keys[0].SecretKey, ""),
		Region:     "us-east-1",
		Transport:  client(t).Transport,
		MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func makeBucket(t *testing.T, c *minio.Client, name string) {
	t.Helper()
	if err := c.MakeBucket(t.Context(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatalf("make bucket %s: %v", name, err)
	}
}

func putObject(t *testing.T, c *minio.Client, bucket, key, content string) {
	t.Helper()
	_, err := c.PutObject(t.Context(), bucket, key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
	if err != nil {
		t.Fatalf("put %s/%s: %v", bucket, key, err)
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// clock is a hand-driven clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// compact drops the white space of JSON, for comparisons.
func compact(t *testing.T, s string) string {
	t.Helper()
	if s == "" {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		t.Fatalf("not JSON: %v in %q", err, s)
	}
	return b.String()
}
