package objectstore

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/minio-go/v7"
)

// The AWS SDKs work at a grid only if they add no checksum of their own accord, which they do in a trailer
// where the connection is encrypted. Where S3 requires a checksum they add it all the same, in a header
// that the grid does not look at.
func TestGridAWSSDK(t *testing.T) {
	g := newGrid(t)
	server := httptest.NewTLSServer(g.store.Handler(gridRegion))
	t.Cleanup(server.Close)
	client := func(when aws.RequestChecksumCalculation) *s3.Client {
		return s3.New(s3.Options{
			Region: gridRegion, BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(), UsePathStyle: true,
			RequestChecksumCalculation: when, RetryMaxAttempts: 1,
			Credentials: awscredentials.NewStaticCredentialsProvider("AKadmin", "secret-of-admin", ""),
		})
	}
	ctx := t.Context()
	bucket, key := aws.String("aws-bkt"), aws.String("key")
	upload := func() *s3.PutObjectInput {
		return &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("text")}
	}
	c := client(aws.RequestChecksumCalculationWhenRequired)
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: gridRegion}})
	noError(t, err)
	_, err = client(aws.RequestChecksumCalculationWhenSupported).PutObject(ctx, upload())
	awsCode(t, err, "XNotImplemented")
	_, err = c.PutObject(ctx, upload())
	noError(t, err)
	if got := awsRead(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key}); got != "text" {
		t.Errorf("read %q", got)
	}
	_, err = c.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: bucket, Tagging: &types.Tagging{TagSet: []types.Tag{{Key: key, Value: key}}}})
	noError(t, err)
	_, err = c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: aws.String(gridPolicy(t, *bucket, onlyFor("admin")))})
	noError(t, err)
	out, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}}}})
	noError(t, err)
	if len(out.Deleted) != 1 || len(out.Errors) != 0 {
		t.Errorf("deleted %v, errors %v", out.Deleted, out.Errors)
	}
	_, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	noError(t, err)
}

// An upload in parts, whose last part is short.
func TestGridMultipart(t *testing.T) {
	g := newGrid(t)
	ctx := t.Context()
	c := g.minio(t, "rw")
	noError(t, c.MakeBucket(ctx, "mp-bkt", minio.MakeBucketOptions{}))
	data := bytes.Repeat([]byte("0123456789abcdef"), (11<<20)/16)
	up, err := c.Client.PutObject(ctx, "mp-bkt", "key", bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{PartSize: 5 << 20})
	noError(t, err)
	if !strings.HasSuffix(up.ETag, "-3") {
		t.Errorf("ETag %q", up.ETag)
	}
	if got := minioRead(t, c.Client, "mp-bkt", "key", minio.GetObjectOptions{}); got != string(data) {
		t.Errorf("%d bytes came back", len(got))
	}
	// Parts may come from an object of another group: the account owns both.
	id, err := c.NewMultipartUpload(ctx, "mp-bkt", "copied", minio.PutObjectOptions{})
	noError(t, err)
	other := g.minio(t, "out")
	part, err := other.CopyObjectPart(ctx, "mp-bkt", "key", "mp-bkt", "copied", id, 1, 0, 6<<20, nil)
	noError(t, err)
	_, err = other.CompleteMultipartUpload(ctx, "mp-bkt", "copied", id, []minio.CompletePart{part}, minio.PutObjectOptions{})
	noError(t, err)
}
