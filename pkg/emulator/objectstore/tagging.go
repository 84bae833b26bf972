package objectstore

import (
	"encoding/xml"
	"net/http"
	"net/url"
)

const storageClass = "STANDARD"

func xmlName(local string) xml.Name { return xml.Name{Local: local} }

// tagsFromHeader reads the tags of a write, which come as a query string.
func tagsFromHeader(header string) ([]tag, *apiError) {
	if header == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(header)
	if err != nil {
		return nil, errInvalidArgument("")
	}
	var tags []tag
	for _, key := range sortedKeys(values) {
		for _, value := range values[key] {
			tags = append(tags, tag{Key: key, Value: value})
		}
	}
	return tags, checkTags(tags, maxObjectTags)
}

func (q *request) getObjectTagging() (*reply, *apiError) {
	v, err := q.object(q.versioned("s3:GetObjectTagging", "s3:GetObjectVersionTagging"))
	if err != nil {
		return nil, err
	}
	out := taggingXML{NS: xmlns}
	out.TagSet.Tags = v.tags
	res, err := document(out)
	if err == nil && q.bucket.versioning != "" {
		res.header.Set("X-Amz-Version-Id", v.id)
	}
	return res, err
}

func (q *request) putObjectTagging() (*reply, *apiError) {
	v, err := q.object(q.versioned("s3:PutObjectTagging", "s3:PutObjectVersionTagging"))
	if err != nil {
		return nil, err
	}
	if err := q.allowOverwrite(); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	tags, err := parseTagging(q.body, maxObjectTags)
	if err != nil {
		return nil, err
	}
	v.tags = tags
	return empty(http.StatusOK), nil
}

func (q *request) deleteObjectTagging() (*reply, *apiError) {
	v, err := q.object(q.versioned("s3:DeleteObjectTagging", "s3:DeleteObjectVersionTagging"))
	if err != nil {
		return nil, err
	}
	if err := q.allowOverwrite(); err != nil {
		return nil, err
	}
	v.tags = nil
	return empty(http.StatusNoContent), nil
}
