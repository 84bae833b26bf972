package s3_test

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/s3"
)

// tagServer keeps the tag set of one bucket as the XML it was sent.
type tagServer struct {
	mu     sync.Mutex
	stored string
	answer func(w http.ResponseWriter) bool // true when it has answered
	header http.Header
}

func (s *tagServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.URL.Query().Has("tagging") || r.URL.Path != "/bucket" || (s.answer != nil && s.answer(w)) {
		return
	}
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.stored, s.header = string(body), r.Header
		return
	}
	if s.stored == "" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchTagSet</Code></Error>"))
		return
	}
	_, _ = w.Write([]byte(s.stored))
}

func taggingClient(t *testing.T, s *tagServer) *s3.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := s3.New(s3.Config{Endpoint: server.URL, AccessKeyID: "AK", SecretAccessKey: static("SK")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTags: also those that minio-go would refuse to read.
func TestTags(t *testing.T) {
	s := &tagServer{}
	c := taggingClient(t, s)
	if got, err := c.Tags(t.Context(), "bucket"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("no tags: %v, %v", got, err)
	}
	want := map[string]string{"zuber_bucket": "bucket", "NTAP-SG-ILM-BUCKET-TAG": "gold", "Ä & <ö>": "a\"b;c", "empty": ""}
	if err := c.SetTags(t.Context(), "bucket", want); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Tags(t.Context(), "bucket"); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	digest := md5.Sum([]byte(s.stored))
	if s.header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(digest[:]) || !strings.HasPrefix(s.header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		t.Errorf("headers %v", s.header)
	}
	first := s.stored
	if err := c.SetTags(t.Context(), "bucket", want); err != nil || s.stored != first {
		t.Errorf("the same tags are another document: %v", err)
	}
}

func TestTagErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		code   string
	}{
		"denied":  {403, "<Error><Code>AccessDenied</Code><Message>SK</Message></Error>", "AccessDenied"},
		"missing": {404, "<Error><Code>NoSuchBucket</Code></Error>", "NoSuchBucket"},
		"page":    {503, "<html>busy</html>", ""},
	} {
		s := &tagServer{answer: func(w http.ResponseWriter) bool {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
			return true
		}}
		client := taggingClient(t, s)
		_, get := client.Tags(t.Context(), "bucket")
		for op, err := range map[string]error{"get": get, "set": client.SetTags(t.Context(), "bucket", map[string]string{"k": "v"})} {
			if s3.StatusCode(err) != c.status || s3.Code(err) != c.code || strings.Contains(err.Error(), "SK") {
				t.Errorf("%s, %s: %v", name, op, err)
			}
		}
	}
	client := taggingClient(t, &tagServer{answer: func(w http.ResponseWriter) bool {
		_, _ = w.Write([]byte("no XML"))
		return true
	}})
	if got, err := client.Tags(t.Context(), "bucket"); err == nil {
		t.Errorf("rubbish reads as %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.SetTags(ctx, "bucket", map[string]string{"k": "v"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
