package s3

import (
	"bytes"
	"context"
	"crypto/md5" // the header that S3 asks for with a tag set
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7/pkg/signer"
)

type tag struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

// Tags returns the bucket's tags, an empty map if it has none.
func (c *Client) Tags(ctx context.Context, bucket string) (map[string]string, error) {
	// minio-go refuses to read tags that it would not write itself.
	var answer tagging
	err := c.call(ctx, "GetBucketTagging", http.MethodGet, bucket, "tagging=", &answer)
	if code := Code(err); code == "NoSuchTagSet" || code == "NoSuchTagSetError" {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string, len(answer.Tags))
	for _, t := range answer.Tags {
		tags[t.Key] = t.Value
	}
	return tags, nil
}

// SetTags replaces all tags of the bucket; the map must not be empty. It is
// idempotent. The last writer wins: there is no precondition to send.
func (c *Client) SetTags(ctx context.Context, bucket string, tags map[string]string) error {
	const op = "PutBucketTagging"
	var doc tagging
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		doc.Tags = append(doc.Tags, tag{key, tags[key]})
	}
	body, err := xml.Marshal(doc)
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	u := c.base
	u.Path = "/" + bucket
	u.RawQuery = "tagging="
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), bytes.NewReader(body))
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	digest, hash := md5.Sum(body), sha256.Sum256(body)
	req.Header.Set("Content-Type", "application/xml")
	req.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(digest[:]))
	if c.config.AccessKeyID != "" {
		req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(hash[:]))
		req = signer.SignV4(*req, c.config.AccessKeyID, c.config.SecretAccessKey, "", c.signing)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return nil
	}
	if err != nil {
		return wrong(ctx, op, bucket, err)
	}
	var refusal struct{ Code string }
	// An answer without XML keeps its status, which says enough.
	_ = xml.Unmarshal(answer, &refusal)
	return &Error{Op: op, Bucket: bucket, StatusCode: resp.StatusCode, Code: cleanCode(refusal.Code)}
}
