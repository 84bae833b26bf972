package s3_test

import (
	"bytes"
	"net/url"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zuber-storage/zuber/pkg/s3"
)

// Purge passes governance locks, reports compliance locks, and does not try the
// latter twice.
func TestPurgeMeetsObjectLock(t *testing.T) {
	var endpoint string
	rec := &recorder{}
	c := newStore(t, func(c *s3.Config) { endpoint, c.Transport = c.Endpoint, rec })
	u, err := url.Parse(endpoint)
	must(t, err)
	m, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(testKey, testSecret, ""), Region: "us-east-1"})
	must(t, err)
	ctx := t.Context()
	must(t, m.MakeBucket(ctx, "locked", minio.MakeBucketOptions{ObjectLocking: true}))
	for key, mode := range map[string]minio.RetentionMode{"governed": minio.Governance, "compliant": minio.Compliance, "free": ""} {
		options := minio.PutObjectOptions{Mode: mode, SendContentMd5: true}
		if mode != "" {
			options.RetainUntilDate = time.Now().Add(time.Hour)
		}
		_, err := m.PutObject(ctx, "locked", key, bytes.NewReader([]byte("x")), 1, options)
		must(t, err)
	}
	done, err := c.Purge(ctx, "locked")
	must(t, err)
	want := s3.Purged{Deleted: 2, Refused: 1, RefusedKey: "compliant", RefusedCode: "AccessDenied"}
	if done != want {
		t.Errorf("purged %+v, want %+v", done, want)
	}
	deletes := 0
	for _, req := range rec.seen {
		if req.Method == "POST" {
			deletes++
		}
	}
	if deletes != 1 {
		t.Errorf("%d calls of DeleteObjects, want 1", deletes)
	}
	if empty, err := c.IsEmpty(ctx, "locked"); empty || err != nil {
		t.Errorf("IsEmpty is %t, %v", empty, err)
	}
}
