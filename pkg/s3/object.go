package s3

import (
	"bytes"
	"context"
	"io"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// objectLimit bounds what GetObject reads into memory.
const objectLimit = 64 << 20

// plainBody keeps minio-go from signing bodies in chunks over plain HTTP, which
// sets Content-Encoding: aws-chunked.
const plainBody = true

// PutObject stores data under the key in one request.
func (c *Client) PutObject(ctx context.Context, bucket, key string, data []byte) error {
	_, err := c.minio.Client.PutObject(ctx, bucket, key, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{DisableMultipart: true, DisableContentSha256: plainBody})
	return wrong(ctx, "PutObject", bucket, err)
}

// PutMultipart stores the reader's size bytes under the key in parts of partSize
// bytes, at least 5 MiB. On an error the parts stored so far are aborted.
func (c *Client) PutMultipart(ctx context.Context, bucket, key string, data io.Reader, size int64, partSize uint64) error {
	_, err := c.minio.Client.PutObject(ctx, bucket, key, data, size,
		minio.PutObjectOptions{PartSize: partSize, NumThreads: 1, DisableContentSha256: plainBody})
	return wrong(ctx, "PutObject (multipart)", bucket, err)
}

// GetObject reads an object of at most 64 MiB; a missing one is code NoSuchKey.
func (c *Client) GetObject(ctx context.Context, bucket, key string) ([]byte, error) {
	return c.GetObjectVersion(ctx, bucket, key, "")
}

// GetObjectVersion is GetObject for one version of the object: "null" names what
// was stored without versioning, the empty ID the current version.
func (c *Client) GetObjectVersion(ctx context.Context, bucket, key, version string) ([]byte, error) {
	const op = "GetObject"
	body, info, _, err := c.minio.GetObject(ctx, bucket, key, minio.GetObjectOptions{VersionID: version})
	if err != nil {
		return nil, wrong(ctx, op, bucket, err)
	}
	if body == nil {
		// minio-go's answer to a good status that is none of this operation's.
		return nil, &Error{Op: op, Bucket: bucket, Cause: "no usable answer: it holds no object"}
	}
	defer func() { _ = body.Close() }()
	if info.Size > objectLimit {
		return nil, &Error{Op: op, Bucket: bucket, Cause: "the object is larger than 64 MiB"}
	}
	data, err := io.ReadAll(io.LimitReader(body, objectLimit))
	if err != nil {
		return nil, wrong(ctx, op, bucket, err)
	}
	return data, nil
}

// DeleteObject deletes an object; on a versioned bucket it leaves a delete
// marker. A missing key is success.
func (c *Client) DeleteObject(ctx context.Context, bucket, key string) error {
	err := c.minio.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
	return wrong(ctx, "DeleteObject", bucket, err)
}

// ListObjects returns the keys that begin with the prefix, in lexical order.
func (c *Client) ListObjects(ctx context.Context, bucket, prefix string) ([]string, error) {
	const op = "ListObjectsV2"
	var keys []string
	for o := range c.minio.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, wrong(ctx, op, bucket, o.Err)
		}
		keys = append(keys, o.Key)
	}
	// The iterator ends without an error when the context does.
	if err := ctx.Err(); err != nil {
		return nil, wrong(ctx, op, bucket, err)
	}
	return keys, nil
}

// StartUpload begins a multipart upload and returns its ID.
func (c *Client) StartUpload(ctx context.Context, bucket, key string) (string, error) {
	id, err := c.minio.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{})
	return id, wrong(ctx, "CreateMultipartUpload", bucket, err)
}

// TagObject replaces the tags of an object.
func (c *Client) TagObject(ctx context.Context, bucket, key string, set map[string]string) error {
	const op = "PutObjectTagging"
	t, err := tags.NewTags(set, true)
	if err != nil {
		return &Error{Op: op, Bucket: bucket, Cause: err.Error()}
	}
	return wrong(ctx, op, bucket, c.minio.PutObjectTagging(ctx, bucket, key, t, minio.PutObjectTaggingOptions{}))
}

// CopyObject copies an object within the bucket, on the server.
func (c *Client) CopyObject(ctx context.Context, bucket, from, to string) error {
	_, err := c.minio.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: to},
		minio.CopySrcOptions{Bucket: bucket, Object: from})
	return wrong(ctx, "CopyObject", bucket, err)
}
