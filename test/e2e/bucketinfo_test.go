package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// bucketInfo is what the Secret of a BucketAccess holds under BucketInfo.
type bucketInfo struct {
	Metadata struct {
		Name              string  `json:"name"`
		CreationTimestamp *string `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		BucketName         string    `json:"bucketName"`
		AuthenticationType string    `json:"authenticationType"`
		SecretS3           *secretS3 `json:"secretS3"`
		SecretAzure        any       `json:"secretAzure"`
		Protocols          []string  `json:"protocols"`
	} `json:"spec"`
}

type secretS3 struct {
	Endpoint        string `json:"endpoint"`
	Region          string `json:"region"`
	AccessKeyID     string `json:"accessKeyID"`
	AccessSecretKey string `json:"accessSecretKey"`
}

// bucketInfo waits for the Secret of a BucketAccess and reads it. A field that
// this package does not know is an error.
func (s *story) bucketInfo(access object) bucketInfo {
	s.Helper()
	data, _ := s.secret(access).at("data").(map[string]any)
	text, _ := data["BucketInfo"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) != 1 {
		s.Fatalf("the Secret has %d keys, want BucketInfo alone; %v", len(data), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var info bucketInfo
	if err := decoder.Decode(&info); err != nil {
		s.Fatalf("BucketInfo: %v", err) // never with the text, which is a secret
	}
	if info.Spec.SecretS3 == nil {
		s.Fatal("BucketInfo has no secretS3")
	}
	return info
}

// bucketClient uses one bucket with the credentials of a Secret.
type bucketClient struct {
	*s3.Client
	bucket string
}

// s3 makes a client of what the Secret holds and of nothing else.
func (i bucketInfo) s3() bucketClient {
	return bucketClient{bucket: i.Spec.BucketName, Client: s3.New(s3.Options{
		BaseEndpoint:     aws.String(i.Spec.SecretS3.Endpoint),
		Region:           i.Spec.SecretS3.Region,
		Credentials:      credentials.NewStaticCredentialsProvider(i.Spec.SecretS3.AccessKeyID, i.Spec.SecretS3.AccessSecretKey, ""),
		UsePathStyle:     true,
		RetryMaxAttempts: 1,
	})}
}

func (c bucketClient) put(ctx context.Context, key, content string) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &c.bucket, Key: &key, Body: strings.NewReader(content)})
	return err
}

func (c bucketClient) read(ctx context.Context, key string) (string, error) {
	got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return "", err
	}
	defer func() { _ = got.Body.Close() }()
	content, err := io.ReadAll(got.Body)
	return string(content), err
}

func (c bucketClient) remove(ctx context.Context, key string) error {
	_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &c.bucket, Key: &key})
	return err
}

// refused reports whether the cloud refused a call: the key does not exist, or
// may not do it.
func refused(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	var response interface{ HTTPStatusCode() int }
	return errors.As(err, &response) && response.HTTPStatusCode() == http.StatusForbidden
}

// wantUsable writes, reads and removes an object.
func (s *story) wantUsable(c bucketClient) {
	s.Helper()
	const key, content = "greeting.txt", "hello"
	if err := c.put(s.Context(), key, content); err != nil {
		s.Fatalf("write: %v", err)
	}
	if got, err := c.read(s.Context(), key); err != nil || got != content {
		s.Fatalf("read: %q, %v", got, err)
	}
	if err := c.remove(s.Context(), key); err != nil {
		s.Fatalf("remove: %v", err)
	}
}
