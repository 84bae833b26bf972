package clients

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// question is what clients ask on the way, often before they do any work.
type question struct {
	name string
	ask  func(ctx context.Context, s *session, c *minio.Core) (string, error)
}

// done is the answer of a call that tells by its error alone.
func done(err error) (string, error) { return "yes", err }

func questions() []question {
	put := func(ctx context.Context, c *minio.Core, key string, o minio.PutObjectOptions) error {
		_, err := c.Client.PutObject(ctx, bucketName, key, bytes.NewReader(content(smallSize)), smallSize, o)
		return err
	}
	return []question{
		{"`ListBuckets`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			all, err := c.ListBuckets(ctx)
			return fmt.Sprintf("%d of 2 buckets", len(all)), err
		}},
		{"`CreateBucket` of the bucket that it uses", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			return done(c.MakeBucket(ctx, bucketName, minio.MakeBucketOptions{}))
		}},
		{"`GetBucketLocation`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			_, err := c.GetBucketLocation(ctx, bucketName)
			return done(err)
		}},
		{"`GetBucketVersioning`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			_, err := c.GetBucketVersioning(ctx, bucketName)
			return done(err)
		}},
		{"`GetBucketPolicy`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			_, err := c.GetBucketPolicy(ctx, bucketName)
			return done(err)
		}},
		{"`PutBucketVersioning`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			return done(c.EnableVersioning(ctx, bucketName))
		}},
		{"`GetBucketLifecycle`", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			_, err := c.GetBucketLifecycle(ctx, bucketName)
			return done(err)
		}},
		{"`HeadBucket`, signed with version 2", func(ctx context.Context, s *session, _ *minio.Core) (string, error) {
			_, err := s.cloud.s3(s.t, s.key, credentials.NewStaticV2).BucketExists(ctx, bucketName)
			return done(err)
		}},
		{"`PutObject`, signed with version 2", func(ctx context.Context, s *session, _ *minio.Core) (string, error) {
			return done(put(ctx, s.cloud.s3(s.t, s.key, credentials.NewStaticV2), "mine/v2", minio.PutObjectOptions{}))
		}},
		{"`PutObject` over another's object", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			return done(put(ctx, c, "theirs/small.txt", minio.PutObjectOptions{}))
		}},
		{"`PutObject` with `If-None-Match: *` over an object", func(ctx context.Context, _ *session, c *minio.Core) (string, error) {
			o := minio.PutObjectOptions{}
			o.SetMatchETagExcept("*")
			err := put(ctx, c, "theirs/small.txt", o)
			return "ignored: it is overwritten", err
		}},
		{"`PutObject` with `x-amz-acl: public-read`, read by everybody", func(ctx context.Context, s *session, c *minio.Core) (string, error) {
			if err := put(ctx, c, "mine/public", minio.PutObjectOptions{UserMetadata: map[string]string{"x-amz-acl": "public-read"}}); err != nil {
				return "", err
			}
			if s.fetch(s.key.endpoint+"/"+bucketName+"/mine/public", "mine/public") == nil {
				return "**public**", nil
			}
			return "stored, not public", nil
		}},
	}
}

// TestAnswers asks with every kind of access and compares the answers with the
// document.
func TestAnswers(t *testing.T) {
	header, rule := "| Request |", "|---|"
	rows := map[string]string{}
	for _, p := range places() {
		grants := p.grants
		if p.name == emulator.CloudCloudscale {
			shared := map[string]string{"credentials": string(provider.CredentialsShared)}
			grants = append(slices.Clone(grants), grant{"shared key", shared, readWrite().rights})
		}
		for i, g := range grants {
			title := g.title
			if i == 0 {
				title = p.title + ": " + title
			}
			header, rule = header+" "+title+" |", rule+"---|"
			s := newSession(t, p, g, "")
			if _, err := s.cloud.driver.CreateBucket(t.Context(), "not-granted", map[string]string{"region": p.region}); err != nil {
				t.Fatal(err)
			}
			c := s.cloud.s3(t, s.key, credentials.NewStaticV4)
			for _, q := range questions() {
				answer, err := q.ask(t.Context(), s, c)
				if err != nil {
					answer = answerOf(t, q.name, err)
				}
				rows[q.name] += " " + answer + " |"
			}
		}
	}
	text := header + "\n" + rule + "\n"
	for _, q := range questions() {
		text += "| " + q.name + " |" + rows[q.name] + "\n"
	}
	settle(t, map[string]string{"answers": text})
}

// answerOf fails the test if the endpoint did not answer at all.
func answerOf(t *testing.T, question string, err error) string {
	t.Helper()
	e := minio.ToErrorResponse(err)
	if e.StatusCode == http.StatusNotFound && slices.Contains([]string{"NoSuchLifecycleConfiguration", "NoSuchBucketPolicy"}, e.Code) {
		return "yes"
	}
	if e.StatusCode == 0 {
		t.Errorf("%s: not an answer: %v", question, err)
	}
	return fmt.Sprintf("%d %s", e.StatusCode, e.Code)
}
