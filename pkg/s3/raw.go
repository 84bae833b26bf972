package s3

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// emptySHA256 is the SHA-256 of no bytes.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// answerLimit bounds what is read of an answer; a list of 100,000 buckets fits.
const answerLimit = 16 << 20

// call sends a request without a body, which minio-go has no method for, and
// decodes the XML answer into result if that is not nil.
func (c *Client) call(ctx context.Context, op, method, bucket, query string, result any) error {
	u := c.base
	u.Path = "/" + bucket
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	if c.config.AccessKeyID != "" {
		req.Header.Set("X-Amz-Content-Sha256", emptySHA256)
		req = signer.SignV4(*req, c.config.AccessKeyID, c.config.SecretAccessKey, "", c.signing)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var answer struct{ Code string }
		// An answer without XML keeps its status, which says enough.
		_ = xml.Unmarshal(body, &answer)
		return &Error{Op: op, Bucket: bucket, StatusCode: resp.StatusCode, Code: cleanCode(answer.Code)}
	}
	if result == nil {
		return nil
	}
	if err := xml.Unmarshal(body, result); err != nil {
		return &Error{Op: op, Bucket: bucket, StatusCode: resp.StatusCode,
			Cause: fmt.Sprintf("with a body that is not the expected XML (%d bytes)", len(body))}
	}
	return nil
}
