package s3_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/zuber-storage/zuber/pkg/s3"
)

// wire is an endpoint that answers every request alike, or keeps what was last put.
type wire struct {
	status int
	header http.Header
	body   string
	keep   bool
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if w.keep && req.Method == http.MethodPut {
			w.body = string(body)
		}
	}
	return &http.Response{
		StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header.Clone(),
		Body: io.NopCloser(strings.NewReader(w.body)), ContentLength: int64(len(w.body)), Request: req,
	}, nil
}

func over(t *testing.T, w *wire) *s3.Client {
	t.Helper()
	c, err := s3.New(s3.Config{Endpoint: "http://127.0.0.1:1", AccessKeyID: testKey, SecretAccessKey: static(testSecret), Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// FuzzAnswers: whatever an endpoint answers, its own credentials included, what comes
// of it is a result or one line of an *Error without the secret.
func FuzzAnswers(f *testing.F) {
	for _, status := range []int{200, 204, 307, 404, 503} {
		for _, body := range []string{
			"", "SECRET", "<Error><Code>SECRET</Code><Message>SECRET</Message></Error>", "<Error><Code>NoSuchBucket</Code></Error>", "<Error><Code>a\nb</Code></Error>",
			"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>", "{}", "\xff\xfe", "<a", "<!DOCTYPE x [<!ENTITY a \"b\">]><Tagging>&a;</Tagging>",
			"<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>", strings.Repeat("x", 4096), "bücket\u202e%2f../\r\n",
		} {
			f.Add(status, "application/xml", "x", body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, contentType, value, body string) {
		if status < 200 || status > 599 {
			return // net/http gives no other to its callers
		}
		header := http.Header{"Content-Type": {contentType}, "Etag": {value}, "Location": {"http://127.0.0.1:1/?" + testSecret}, "Server": {value}, "X-Amz-Request-Id": {value}}
		c := over(t, &wire{status: status, header: header, body: strings.ReplaceAll(body, "SECRET", testSecret)})
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"tags":     func() error { _, err := c.Tags(ctx, "bucket"); return err },
			"set tags": func() error { return c.SetTags(ctx, "bucket", map[string]string{"k": "v"}) },
			"policy":   func() error { _, err := c.Policy(ctx, "bucket"); return err },
			"create":   func() error { return c.CreateBucket(ctx, "bucket") },
			"delete":   func() error { return c.DeleteBucket(ctx, "bucket") },
			"put":      func() error { return c.PutObject(ctx, "bucket", "key", []byte("data")) },
			"get":      func() error { _, err := c.GetObject(ctx, "bucket", "key"); return err },
			"who":      func() error { _, err := c.WhoAmI(ctx); return err },
			"location": func() error { _, err := c.BucketLocation(ctx, "bucket"); return err },
		} {
			err := call()
			if err == nil {
				continue
			}
			var own *s3.Error
			if !errors.As(err, &own) {
				t.Errorf("%s: %T: %v", name, err, err)
			}
			if text := err.Error(); strings.Contains(text, testSecret) || strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) || len(text) > 600 {
				t.Errorf("%s: %q", name, text)
			}
		}
	})
}

// FuzzTags: tags come back as they were set.
func FuzzTags(f *testing.F) {
	for _, v := range []string{"", "a", "a b", "<&>\"'", "ä日\U0001F4E6", "a\nb\tc\rd", "%2f/..", "\x00", "\xff", strings.Repeat("v", 256)} {
		f.Add("k"+v, v)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		for _, r := range key + value {
			// XML has no word for the others.
			if r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\n\r", r) || r >= 0xD800 && r <= 0xDFFF || r == 0xFFFE || r == 0xFFFF {
				return
			}
		}
		c, want := over(t, &wire{status: 200, keep: true}), map[string]string{key: value}
		if err := c.SetTags(t.Context(), "bucket", want); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Tags(t.Context(), "bucket"); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q came back as %q, %v", want, got, err)
		}
	})
}
