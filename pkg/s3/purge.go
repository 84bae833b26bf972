package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/minio/minio-go/v7"
)

const (
	// batchSize is the most keys one multi-object delete takes.
	batchSize = 1000
	// maxPasses bounds how often Purge lists a bucket that is written to.
	maxPasses = 10
)

// Purged is what a purge has done. It is valid beside an error too.
type Purged struct {
	Deleted int64 // objects, versions and delete markers
	Aborted int64 // unfinished uploads
	// Refused counts the versions that the server did not delete, such as those
	// under a compliance lock; RefusedKey and RefusedCode are one of them.
	Refused     int64
	RefusedKey  string
	RefusedCode string
}

// errBusy: the bucket did not become empty although deletes succeeded.
var errBusy = errors.New("the bucket is still written to")

// IsEmpty reports whether the bucket holds no object, no version and no delete
// marker. Unfinished uploads do not count.
func (c *Client) IsEmpty(ctx context.Context, bucket string) (bool, error) {
	next, stop := iter.Pull2(c.versions(ctx, bucket, 1))
	defer stop()
	_, err, found := next()
	return !found, err
}

// Purge deletes every object, version and delete marker, past governance locks,
// and then aborts the unfinished uploads. It works in batches of 1,000 and keeps
// what it has done when it ends early: repeat it. What the server refuses to
// delete is counted, not tried again, and is no error. The error is of type
// *Error, or wraps ctx.Err().
func (c *Client) Purge(ctx context.Context, bucket string) (Purged, error) {
	var p Purged
	for range maxPasses {
		before := p.Deleted
		found, err := c.purgeOnce(ctx, bucket, &p)
		if err != nil {
			return p, err
		}
		if !found || p.Refused > 0 {
			p.Aborted, err = c.AbortUploads(ctx, bucket)
			return p, err
		}
		if p.Deleted == before {
			return p, &Error{Op: "DeleteObjects", Bucket: bucket, Cause: "the server says that it deletes but does not"}
		}
	}
	return p, &Error{Op: "DeleteObjects", Bucket: bucket, Cause: errBusy.Error()}
}

// purgeOnce lists the bucket once and deletes what it finds.
func (c *Client) purgeOnce(ctx context.Context, bucket string, p *Purged) (found bool, err error) {
	batch := make([]minio.ObjectInfo, 0, batchSize)
	for o, err := range c.versions(ctx, bucket, batchSize) {
		if err != nil {
			return found, err
		}
		found = true
		if batch = append(batch, o); len(batch) < batchSize {
			continue
		}
		if err := c.deleteBatch(ctx, bucket, batch, p); err != nil {
			return found, err
		}
		batch = batch[:0]
	}
	if len(batch) == 0 {
		return found, nil
	}
	return found, c.deleteBatch(ctx, bucket, batch, p)
}

// deleteBatch deletes at most batchSize versions.
func (c *Client) deleteBatch(ctx context.Context, bucket string, batch []minio.ObjectInfo, p *Purged) error {
	const op = "DeleteObjects"
	size := make(map[[2]string]int64, len(batch))
	for _, o := range batch {
		size[[2]string{o.Key, o.VersionID}] = o.Size
	}
	var objects, bytes int64
	if c.config.OnPurge != nil {
		defer func() { c.config.OnPurge(objects, bytes) }()
	}
	results, err := c.minio.RemoveObjectsWithIter(ctx, bucket, slices.Values(batch),
		minio.RemoveObjectsOptions{GovernanceBypass: true})
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	for r := range results {
		switch {
		case r.Err == nil:
			p.Deleted++
			objects++
			bytes += size[[2]string{r.ObjectName, r.ObjectVersionID}]
		case refusedAlone(r):
			p.Refused++
			p.RefusedKey, p.RefusedCode = r.ObjectName, cleanCode(minio.ToErrorResponse(r.Err).Code)
		default:
			return wrong(ctx, op, bucket, r.Err)
		}
	}
	if err := ctx.Err(); err != nil {
		return wrong(ctx, op, bucket, err)
	}
	return nil
}

// refusedAlone tells a key's own refusal from the failure of the whole request.
// Inside a multi-object answer a refusal has no HTTP status; a key that XML
// cannot carry is deleted by a request of its own.
func refusedAlone(r minio.RemoveObjectResult) bool {
	var answer minio.ErrorResponse
	if !errors.As(r.Err, &answer) {
		return false
	}
	if answer.StatusCode == 0 {
		return answer.Code != ""
	}
	return answer.Code == "AccessDenied" && !isXML(r.ObjectName)
}

// isXML reports whether an XML document can hold the key.
func isXML(key string) bool {
	for _, r := range key {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}

// versions yields every version and delete marker, pageSize per request. The
// error comes once, as the last element.
func (c *Client) versions(ctx context.Context, bucket string, pageSize int) iter.Seq2[minio.ObjectInfo, error] {
	const op = "ListObjectVersions"
	return func(yield func(minio.ObjectInfo, error) bool) {
		for o := range c.minio.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{
			WithVersions: true, Recursive: true, MaxKeys: pageSize,
		}) {
			if o.Err != nil {
				yield(minio.ObjectInfo{}, wrong(ctx, op, bucket, o.Err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
		// minio-go's iterator ends without an error when the context does.
		if err := ctx.Err(); err != nil {
			yield(minio.ObjectInfo{}, fmt.Errorf("%s %q: %w", op, bucket, err))
		}
	}
}
