package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// awsClient is a client with default settings, which send a checksum with every upload.
func awsClient(l *lab, user string) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(l.urls["rma"]), UsePathStyle: true,
		Credentials: awscredentials.NewStaticCredentialsProvider("AK"+user, "secret-of-"+user, ""),
	})
}

func awsCode(t *testing.T, err error, code string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code {
		t.Errorf("error %v, want %s", err, code)
	}
}

func awsRead(t *testing.T, c *s3.Client, in *s3.GetObjectInput) string {
	t.Helper()
	out, err := c.GetObject(t.Context(), in)
	noError(t, err)
	defer func() { _ = out.Body.Close() }()
	data, err := io.ReadAll(out.Body)
	noError(t, err)
	return string(data)
}

func TestAWSObjects(t *testing.T) {
	l := newLab(t)
	c := awsClient(l, "A")
	ctx := t.Context()
	bucket := aws.String("aws-bkt")
	key := aws.String("dir/a b+c&d=é~(1)!*';:@$,[x].txt")
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	noError(t, err)
	_, err = c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
	noError(t, err)
	for _, algorithm := range append(types.ChecksumAlgorithm("").Values(), "") {
		switch algorithm {
		case "", types.ChecksumAlgorithmCrc32, types.ChecksumAlgorithmCrc32c, types.ChecksumAlgorithmSha1,
			types.ChecksumAlgorithmSha256, types.ChecksumAlgorithmCrc64nvme:
		default:
			continue // not among those that the endpoint verifies
		}
		body := "data under " + string(algorithm)
		_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader(body), ChecksumAlgorithm: algorithm,
			ContentType: aws.String("text/plain"), ContentEncoding: aws.String("identity"), Metadata: map[string]string{"colour": "blue"},
			Tagging: aws.String("k=v")})
		if err != nil {
			t.Fatalf("checksum %q: %v", algorithm, err)
		}
		if got := awsRead(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key}); got != body {
			t.Errorf("checksum %q: read %q", algorithm, got)
		}
	}
	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	noError(t, err)
	if head.Metadata["colour"] != "blue" || aws.ToString(head.ContentEncoding) != "identity" || aws.ToString(head.ContentType) != "text/plain" {
		t.Errorf("head %+v", head)
	}
	if got := awsRead(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key, Range: aws.String("bytes=-5")}); len(got) != 5 {
		t.Errorf("suffix range read %q", got)
	}
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")})
	awsCode(t, err, "PreconditionFailed")
	_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("none")})
	var missing *types.NoSuchKey
	if !errors.As(err, &missing) {
		t.Errorf("error %v, want NoSuchKey", err)
	}
	source := aws.String("aws-bkt/" + strings.ReplaceAll(awsPath(*key), "*", "%2A"))
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy"), CopySource: source})
	noError(t, err)
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("copy2"), CopySource: source,
		MetadataDirective: types.MetadataDirectiveReplace, Metadata: map[string]string{"colour": "red"}})
	noError(t, err)
	head, err = c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("copy2")})
	noError(t, err)
	if head.Metadata["colour"] != "red" || aws.ToString(head.ContentType) != defaultContentType {
		t.Errorf("copy with replaced metadata: %+v", head)
	}
	tagging, err := c.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: aws.String("copy")})
	noError(t, err)
	if len(tagging.TagSet) != 1 || aws.ToString(tagging.TagSet[0].Key) != "k" {
		t.Errorf("tags of the copy: %+v", tagging.TagSet)
	}

	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: bucket, MaxKeys: aws.Int32(1)})
	var keys []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		noError(t, err)
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	if strings.Join(keys, "|") != "copy|copy2|"+*key {
		t.Errorf("keys %q", keys)
	}
	presigned, err := s3.NewPresignClient(c).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key}, s3.WithPresignExpires(time.Minute))
	noError(t, err)
	if got := fetch(ctx, t, presigned.URL); got != "200 data under " {
		t.Errorf("presigned: %s", got)
	}
	l.clock.advance(2 * time.Minute)
	if got := fetch(ctx, t, presigned.URL); !strings.HasPrefix(got, "403") {
		t.Errorf("expired: %s", got)
	}
}

// awsMultipart uploads data in parts of the given sizes.
func awsMultipart(ctx context.Context, c *s3.Client, bucket, key string, parts ...[]byte) (*s3.CompleteMultipartUploadOutput, error) {
	created, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	var done types.CompletedMultipartUpload
	for i, data := range parts {
		n := aws.Int32(int32(i + 1))
		out, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId, PartNumber: n, Body: bytes.NewReader(data)})
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i+1, err)
		}
		done.Parts = append(done.Parts, types.CompletedPart{PartNumber: n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32})
	}
	return c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId, MultipartUpload: &done})
}

func TestAWSMultipart(t *testing.T) {
	l := newLab(t)
	c := awsClient(l, "A")
	ctx := t.Context()
	bucket := aws.String("aws-mp")
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	noError(t, err)
	big := bytes.Repeat([]byte("abcdefgh"), minPartSize/8)
	out, err := awsMultipart(ctx, c, *bucket, "big", big, big, []byte("tail"))
	noError(t, err)
	if !strings.HasSuffix(aws.ToString(out.ETag), `-3"`) {
		t.Errorf("ETag %s", aws.ToString(out.ETag))
	}
	if got := awsRead(t, c, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("big")}); got != string(big)+string(big)+"tail" {
		t.Errorf("%d bytes came back", len(got))
	}
	_, err = awsMultipart(ctx, c, *bucket, "small", []byte("too small"), []byte("tail"))
	awsCode(t, err, "EntityTooSmall")

	for i := range 3 {
		_, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String(fmt.Sprintf("dir/u%d", i))})
		noError(t, err)
	}
	pages := s3.NewListMultipartUploadsPaginator(c, &s3.ListMultipartUploadsInput{Bucket: bucket, MaxUploads: aws.Int32(1)})
	aborted := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		noError(t, err)
		for _, u := range page.Uploads {
			_, err := c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: bucket, Key: u.Key, UploadId: u.UploadId})
			noError(t, err)
			aborted++
		}
	}
	if aborted != 4 {
		t.Errorf("%d uploads aborted, want 4", aborted)
	}
	left, err := c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: bucket})
	noError(t, err)
	if len(left.Uploads) != 0 {
		t.Errorf("left: %+v", left.Uploads)
	}
}

func TestAWSVersionsPolicyDelete(t *testing.T) {
	l := newLab(t)
	a, b := awsClient(l, "A"), awsClient(l, "B")
	ctx := t.Context()
	bucket := aws.String("aws-ver")
	_, err := a.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	noError(t, err)
	_, err = a.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	noError(t, err)
	text := modePolicy("RW", *bucket)
	_, err = a.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: &text})
	noError(t, err)
	got, err := a.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: bucket})
	noError(t, err)
	if aws.ToString(got.Policy) != text {
		t.Errorf("policy %q", aws.ToString(got.Policy))
	}
	for range 2 {
		_, err = b.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("k"), Body: strings.NewReader("x")})
		noError(t, err)
	}
	_, err = b.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("k")})
	noError(t, err)
	_, err = a.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: bucket,
		Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("owner"), Value: aws.String("zuber")}}}})
	noError(t, err)
	_, err = a.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{Bucket: bucket,
		PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{IgnorePublicAcls: aws.Bool(true)}})
	noError(t, err)
	block, err := a.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: bucket})
	noError(t, err)
	if !aws.ToBool(block.PublicAccessBlockConfiguration.IgnorePublicAcls) || aws.ToBool(block.PublicAccessBlockConfiguration.BlockPublicAcls) {
		t.Errorf("public access block %+v", block.PublicAccessBlockConfiguration)
	}

	pages := s3.NewListObjectVersionsPaginator(a, &s3.ListObjectVersionsInput{Bucket: bucket, MaxKeys: aws.Int32(2)})
	var batch []types.ObjectIdentifier
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		noError(t, err)
		for _, v := range page.Versions {
			batch = append(batch, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, v := range page.DeleteMarkers {
			batch = append(batch, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
	}
	if len(batch) != 3 {
		t.Fatalf("versions and markers: %+v", batch)
	}
	_, err = b.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: batch}})
	awsCode(t, err, "AccessDenied") // the policy lacks DeleteObject on the bucket
	deleted, err := a.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: batch}})
	noError(t, err)
	if len(deleted.Deleted) != 3 || len(deleted.Errors) != 0 {
		t.Errorf("deleted %+v", deleted)
	}
	_, err = a.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	noError(t, err)
	_, err = a.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
	awsCode(t, err, "NotFound")
}
