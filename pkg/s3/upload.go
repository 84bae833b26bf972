package s3

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// Upload is an unfinished multipart upload.
type Upload struct{ Key, ID string }

// ListUploads returns the unfinished multipart uploads of the bucket.
func (c *Client) ListUploads(ctx context.Context, bucket string) ([]Upload, error) {
	var all []Upload
	var keyMarker, idMarker string
	for {
		page, err := c.uploadPage(ctx, bucket, keyMarker, idMarker)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			all = append(all, Upload{Key: u.Key, ID: u.UploadID})
		}
		moved := page.NextKeyMarker != keyMarker || page.NextUploadIDMarker != idMarker
		if !page.IsTruncated || !moved {
			return all, nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// AbortUploads aborts the unfinished multipart uploads of the bucket and returns
// how many it aborted, also beside an error. It is idempotent.
func (c *Client) AbortUploads(ctx context.Context, bucket string) (int64, error) {
	var aborted int64
	for {
		// Aborted uploads leave the listing, so the first page is always next.
		page, err := c.uploadPage(ctx, bucket, "", "")
		if err != nil || len(page.Uploads) == 0 {
			return aborted, err
		}
		before := aborted
		for _, u := range page.Uploads {
			err := wrong(ctx, "AbortMultipartUpload", bucket, c.minio.AbortMultipartUpload(ctx, bucket, u.Key, u.UploadID))
			switch {
			case err == nil:
				aborted++
			case Code(err) != "NoSuchUpload":
				return aborted, err
			}
		}
		// A listing that shows only what is gone has nothing more to tell.
		if !page.IsTruncated || aborted == before {
			return aborted, nil
		}
	}
}

func (c *Client) uploadPage(ctx context.Context, bucket, keyMarker, idMarker string) (minio.ListMultipartUploadsResult, error) {
	page, err := c.minio.ListMultipartUploads(ctx, bucket, "", keyMarker, idMarker, "", batchSize)
	return page, wrong(ctx, "ListMultipartUploads", bucket, err)
}
