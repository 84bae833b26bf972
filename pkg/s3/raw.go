package s3

import (
	"bytes"
	"context"
	"crypto/md5" // the header that S3 asks for with some bodies
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// answerLimit bounds what is read of an answer; a list of 100,000 buckets fits.
const answerLimit = 16 << 20

// call reads with a request that minio-go has no method for and decodes the XML
// answer into result.
func (c *Client) call(ctx context.Context, op, bucket, query string, result any) error {
	body, status, err := c.send(ctx, op, http.MethodGet, bucket, query, nil)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(body, result); err != nil {
		return &Error{Op: op, Bucket: bucket, StatusCode: status,
			Cause: fmt.Sprintf("with a body that is not the expected XML (%d bytes)", len(body))}
	}
	return nil
}

// send signs and sends a request with an XML body, if any, and returns the body
// and the status of a good answer.
func (c *Client) send(ctx context.Context, op, method, bucket, query string, content []byte) (body []byte, status int, err error) {
	u := c.base
	u.Path = "/" + bucket
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(content))
	if err != nil {
		return nil, 0, wrong(ctx, op, bucket, err)
	}
	if len(content) > 0 {
		digest := md5.Sum(content)
		req.Header.Set("Content-Type", "application/xml")
		req.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(digest[:]))
	}
	if c.config.AccessKeyID != "" {
		hash := sha256.Sum256(content)
		req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(hash[:]))
		req = signer.SignV4(*req, c.config.AccessKeyID, c.config.SecretAccessKey(), "", c.signing)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, wrong(ctx, op, bucket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, answerLimit)); err != nil {
		return nil, 0, wrong(ctx, op, bucket, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var answer struct{ Code string }
		// An answer without XML keeps its status, which says enough.
		_ = xml.Unmarshal(body, &answer)
		return nil, 0, &Error{Op: op, Bucket: bucket, StatusCode: resp.StatusCode, Code: cleanCode(answer.Code)}
	}
	return body, resp.StatusCode, nil
}
