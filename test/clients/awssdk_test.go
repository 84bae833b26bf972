package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// awsSDK stands for the AWS SDKs of all languages, which add checksums alike.
func awsSDK() client {
	with := func(step func(context.Context, *session, *s3.Client) error) func(*session) error {
		return func(s *session) error { return step(s.t.Context(), s, s.sdk()) }
	}
	bucket := aws.String(bucketName)
	get := func(key string, size int) func(*session) error {
		return with(func(ctx context.Context, _ *session, c *s3.Client) error {
			out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
			if err != nil {
				return err
			}
			defer func() { _ = out.Body.Close() }()
			b, err := io.ReadAll(out.Body)
			return errors.Join(err, same(key, b, size))
		})
	}
	copyParts := func(from string) func(*session) error {
		return with(func(ctx context.Context, s *session, c *s3.Client) error {
			return s.multipart(ctx, c, "mine/copied.bin", func(up *string, number int32, first, last int) (types.CompletedPart, error) {
				out, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
					Bucket: bucket, Key: aws.String("mine/copied.bin"), UploadId: up, PartNumber: &number,
					CopySource: aws.String(bucketName + "/" + from), CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", first, last-1)),
				})
				if err != nil {
					return types.CompletedPart{}, err
				}
				return types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: &number}, nil
			})
		})
	}
	return client{
		name:    "aws-sdk-go-v2",
		prepare: func(s *session) error { s.checksums = true; return nil },
		ladder: func(place, grant) []settings {
			return []settings{{}, {"`RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired`", func(s *session) { s.checksums = false }}}
		},
		operations: []operation{
			{name: "`PutObject`", needs: write, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("mine/small.txt"), Body: bytes.NewReader(content(smallSize))})
				if err != nil {
					return err
				}
				return s.stored("mine/small.txt", smallSize)
			})},
			{name: "`UploadPart`", needs: write, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				return s.multipart(ctx, c, "mine/big.bin", func(up *string, number int32, first, last int) (types.CompletedPart, error) {
					out, err := c.UploadPart(ctx, &s3.UploadPartInput{
						Bucket: bucket, Key: aws.String("mine/big.bin"), UploadId: up, PartNumber: &number, Body: bytes.NewReader(content(bigSize)[first:last]),
					})
					if err != nil {
						return types.CompletedPart{}, err
					}
					return types.CompletedPart{
						ETag: out.ETag, PartNumber: &number, ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC64NVME: out.ChecksumCRC64NVME,
					}, nil
				})
			})},
			{name: "`HeadBucket`", needs: list, run: with(func(ctx context.Context, _ *session, c *s3.Client) error {
				_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
				return err
			})},
			{name: "`ListObjectsV2`", needs: list, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				out, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket})
				if err != nil {
					return err
				}
				for _, o := range out.Contents {
					if s.printed = aws.ToString(o.Key); s.printed == hidden {
						return nil
					}
				}
				return fmt.Errorf("%s is not in the list", hidden)
			})},
			{name: "`HeadObject`", needs: read, run: with(func(ctx context.Context, _ *session, c *s3.Client) error {
				out, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("theirs/small.txt")})
				if err == nil && aws.ToInt64(out.ContentLength) != smallSize {
					return fmt.Errorf("size %d", aws.ToInt64(out.ContentLength))
				}
				return err
			})},
			{name: "`GetObject`", needs: read, run: get("theirs/small.txt", smallSize)},
			{name: "`GetObject` of what it wrote", needs: read, own: true, run: get("mine/small.txt", smallSize)},
			{name: "`GetObject`, 6 MiB", needs: read, run: get("theirs/big.bin", bigSize)},
			{name: "`PresignGetObject`", needs: read, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				u, err := s3.NewPresignClient(c).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("theirs/small.txt")})
				if err != nil {
					return err
				}
				return s.fetch(u.URL, "theirs/small.txt")
			})},
			{name: "`CopyObject`", needs: read | write, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: aws.String("mine/copy"), CopySource: aws.String(bucketName + "/theirs/big.bin")})
				if err != nil {
					return err
				}
				return s.stored("mine/copy", bigSize)
			})},
			{name: "`UploadPartCopy` of its own object", needs: read | write, own: true, run: copyParts("mine/big.bin")},
			{name: "`UploadPartCopy` of another's object", needs: read | write, caveat: true, run: copyParts("theirs/big.bin")},
			{name: "`DeleteObject`", needs: remove, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("delete/one/1")}); err != nil {
					return err
				}
				return s.gone("delete/one/1")
			})},
			{name: "`DeleteObjects`", needs: remove, run: with(func(ctx context.Context, s *session, c *s3.Client) error {
				var ids []types.ObjectIdentifier
				for _, k := range doomed("delete/batch/") {
					ids = append(ids, types.ObjectIdentifier{Key: &k})
				}
				if _, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: ids}}); err != nil {
					return err
				}
				return s.gone(doomed("delete/batch/")...)
			})},
		},
	}
}

// sdk is a client with the session's key that never tries twice.
func (s *session) sdk() *s3.Client {
	o := s3.Options{
		Region: s.key.region, BaseEndpoint: &s.key.endpoint, UsePathStyle: true, RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: s.cloud.trusting},
		// What config.LoadDefaultConfig sets where nobody has said anything.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		Credentials: awscredentials.NewStaticCredentialsProvider(s.key.accessKey, s.key.secretKey, ""),
	}
	if !s.checksums {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
	return s3.New(o)
}

// multipart uploads an object of bigSize in parts that the caller makes.
func (s *session) multipart(ctx context.Context, c *s3.Client, key string, part func(up *string, number int32, first, last int) (types.CompletedPart, error)) error {
	bucket := aws.String(bucketName)
	up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: &key})
	if err != nil {
		return err
	}
	var parts []types.CompletedPart
	for first := 0; first < bigSize; first += partSize {
		done, err := part(up.UploadId, int32(len(parts)+1), first, min(first+partSize, bigSize))
		if err != nil {
			return err
		}
		parts = append(parts, done)
	}
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: bucket, Key: &key, UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return err
	}
	return s.stored(key, bigSize)
}
