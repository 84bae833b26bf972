package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// minioGo is the library that restic, K8up, Velero and many others are built on.
func minioGo() client {
	// with wraps a step into a session's client.
	with := func(step func(context.Context, *session, *minio.Core) error) func(*session) error {
		return func(s *session) error { return step(s.t.Context(), s, s.cloud.s3(s.t, s.key, credentials.NewStaticV4)) }
	}
	put := func(key string, size int) func(*session) error {
		return with(func(ctx context.Context, s *session, c *minio.Core) error {
			_, err := c.Client.PutObject(ctx, bucketName, key, bytes.NewReader(content(size)), int64(size), minio.PutObjectOptions{PartSize: partSize})
			if err != nil {
				return err
			}
			return s.stored(key, size)
		})
	}
	get := func(key string, size int) func(*session) error {
		return with(func(ctx context.Context, _ *session, c *minio.Core) error {
			o, err := c.Client.GetObject(ctx, bucketName, key, minio.GetObjectOptions{})
			if err != nil {
				return err
			}
			b, err := io.ReadAll(o)
			return errors.Join(err, same(key, b, size))
		})
	}
	compose := func(from string) func(*session) error {
		return with(func(ctx context.Context, s *session, c *minio.Core) error {
			// A range makes it copy in parts.
			source := minio.CopySrcOptions{Bucket: bucketName, Object: from, MatchRange: true, Start: 0, End: bigSize - 1}
			if _, err := c.ComposeObject(ctx, minio.CopyDestOptions{Bucket: bucketName, Object: "mine/composed"}, source); err != nil {
				return err
			}
			return then(func() error { return s.called("UploadPartCopy") }, func() error { return s.stored("mine/composed", bigSize) })
		})
	}
	return client{
		name:    "minio-go",
		prepare: func(*session) error { return nil },
		operations: []operation{
			{name: "`PutObject`", needs: write, run: put("mine/small.txt", smallSize)},
			{name: "`PutObject` in parts", needs: write, run: func(s *session) error {
				return then(func() error { return put("mine/big.bin", bigSize)(s) }, func() error { return s.called("CreateMultipartUpload") })
			}},
			{name: "`BucketExists`", needs: list, run: with(func(ctx context.Context, _ *session, c *minio.Core) error {
				ok, err := c.BucketExists(ctx, bucketName)
				if err == nil && !ok {
					return errors.New("it says that there is no bucket")
				}
				return err
			})},
			{name: "`ListObjects`", needs: list, run: with(func(ctx context.Context, s *session, c *minio.Core) error {
				for o := range c.Client.ListObjects(ctx, bucketName, minio.ListObjectsOptions{Recursive: true}) {
					if o.Err != nil {
						return o.Err
					}
					if s.printed = o.Key; o.Key == hidden {
						return nil
					}
				}
				return fmt.Errorf("%s is not in the list", hidden)
			})},
			{name: "`StatObject`", needs: read, run: with(func(ctx context.Context, _ *session, c *minio.Core) error {
				i, err := c.StatObject(ctx, bucketName, "theirs/small.txt", minio.StatObjectOptions{})
				if err == nil && i.Size != smallSize {
					return fmt.Errorf("size %d", i.Size)
				}
				return err
			})},
			{name: "`GetObject`", needs: read, run: get("theirs/small.txt", smallSize)},
			{name: "`GetObject` of what it wrote", needs: read, own: true, run: get("mine/small.txt", smallSize)},
			{name: "`GetObject`, 6 MiB", needs: read, run: get("theirs/big.bin", bigSize)},
			{name: "`PresignedGetObject`", needs: read, run: with(func(ctx context.Context, s *session, c *minio.Core) error {
				u, err := c.PresignedGetObject(ctx, bucketName, "theirs/small.txt", time.Minute, nil)
				if err != nil {
					return err
				}
				return s.fetch(u.String(), "theirs/small.txt")
			})},
			{name: "`CopyObject`", needs: read | write, run: with(func(ctx context.Context, s *session, c *minio.Core) error {
				_, err := c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucketName, Object: "mine/copy"},
					minio.CopySrcOptions{Bucket: bucketName, Object: "theirs/big.bin"})
				if err != nil {
					return err
				}
				return s.stored("mine/copy", bigSize)
			})},
			{name: "`ComposeObject` in parts, of its own object", needs: read | write, own: true, run: compose("mine/big.bin")},
			{name: "`ComposeObject` in parts, of another's object", needs: read | write, caveat: true, run: compose("theirs/big.bin")},
			{name: "`RemoveObject`", needs: remove, run: with(func(ctx context.Context, s *session, c *minio.Core) error {
				if err := c.RemoveObject(ctx, bucketName, "delete/one/1", minio.RemoveObjectOptions{}); err != nil {
					return err
				}
				return s.gone("delete/one/1")
			})},
			{name: "`RemoveObjects`", needs: remove, run: with(func(ctx context.Context, s *session, c *minio.Core) error {
				keys := make(chan minio.ObjectInfo, len(doomed("")))
				for _, k := range doomed("delete/batch/") {
					keys <- minio.ObjectInfo{Key: k}
				}
				close(keys)
				var faults []error
				for e := range c.RemoveObjects(ctx, bucketName, keys, minio.RemoveObjectsOptions{}) {
					faults = append(faults, e.Err)
				}
				return errors.Join(errors.Join(faults...), s.gone(doomed("delete/batch/")...))
			})},
		},
	}
}

// fetch reads a small object by its URL as a browser does.
func (s *session) fetch(url, key string) error {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := s.cloud.trusting.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	b, err := io.ReadAll(resp.Body)
	return errors.Join(err, same(key, b, smallSize))
}
