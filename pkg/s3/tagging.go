package s3

import (
	"context"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
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
	err := c.call(ctx, "GetBucketTagging", bucket, "tagging=", &answer)
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
	_, _, err = c.send(ctx, op, http.MethodPut, bucket, "tagging=", body)
	return err
}
