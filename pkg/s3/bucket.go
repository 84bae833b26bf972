package s3

import (
	"context"
	"encoding/xml"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Identity is who a key belongs to, as the endpoint sees it.
type Identity struct {
	ID      string   // the owner ID of all its buckets
	Buckets []string // names of the buckets it owns
}

// WhoAmI lists the key's own buckets. It is the cheapest way to learn whether the
// endpoint knows the key: an unknown one is code InvalidAccessKeyId.
func (c *Client) WhoAmI(ctx context.Context) (Identity, error) {
	var answer struct {
		XMLName xml.Name
		Owner   struct{ ID string }
		Buckets struct {
			Bucket []struct{ Name string }
		}
	}
	const op = "ListBuckets"
	if err := c.call(ctx, op, "", "", &answer); err != nil {
		return Identity{}, err
	}
	if answer.XMLName.Local != "ListAllMyBucketsResult" {
		return Identity{}, &Error{Op: op, StatusCode: http.StatusOK, Cause: "with a body that is no list of buckets"}
	}
	who := Identity{ID: answer.Owner.ID}
	for _, b := range answer.Buckets.Bucket {
		who.Buckets = append(who.Buckets, b.Name)
	}
	return who, nil
}

// CreateBucket creates the bucket at the endpoint's own region: the request has
// no body and thus no LocationConstraint. Whether a repetition by the owner
// succeeds or is code BucketAlreadyOwnedByYou depends on the server.
func (c *Client) CreateBucket(ctx context.Context, bucket string) error {
	// minio-go sends a LocationConstraint for any other region.
	err := c.minio.MakeBucket(ctx, bucket, minio.MakeBucketOptions{Region: DefaultSigningRegion})
	return wrong(ctx, "CreateBucket", bucket, err)
}

// DeleteBucket deletes an empty bucket. A bucket that is gone is an error with
// code NoSuchBucket.
func (c *Client) DeleteBucket(ctx context.Context, bucket string) error {
	return wrong(ctx, "DeleteBucket", bucket, c.minio.RemoveBucket(ctx, bucket))
}

// BucketLocation returns the region the bucket lives in, as the server spells
// it; it may be empty for a server's default region.
func (c *Client) BucketLocation(ctx context.Context, bucket string) (string, error) {
	var answer struct {
		XMLName  xml.Name
		Location string `xml:",chardata"`
	}
	if err := c.call(ctx, "GetBucketLocation", bucket, "location=", &answer); err != nil {
		return "", err
	}
	return strings.TrimSpace(answer.Location), nil
}

// SetVersioning turns the versioning of the bucket on or suspends it.
func (c *Client) SetVersioning(ctx context.Context, bucket string, on bool) error {
	status := minio.Suspended
	if on {
		status = minio.Enabled
	}
	err := c.minio.SetBucketVersioning(ctx, bucket, minio.BucketVersioningConfiguration{Status: status})
	return wrong(ctx, "PutBucketVersioning", bucket, err)
}

// Policy returns the bucket's policy document, "" if there is none.
func (c *Client) Policy(ctx context.Context, bucket string) (string, error) {
	doc, err := c.minio.GetBucketPolicy(ctx, bucket)
	if err = wrong(ctx, "GetBucketPolicy", bucket, err); Code(err) == "NoSuchBucketPolicy" {
		return "", nil
	}
	return doc, err
}

// SetPolicy replaces the bucket's policy document; "" deletes it.
func (c *Client) SetPolicy(ctx context.Context, bucket, doc string) error {
	if doc != "" {
		return wrong(ctx, "PutBucketPolicy", bucket, c.minio.PutBucketPolicy(ctx, bucket, doc))
	}
	err := wrong(ctx, "DeleteBucketPolicy", bucket, c.minio.SetBucketPolicy(ctx, bucket, ""))
	if StatusCode(err) == http.StatusOK {
		// Ceph answers 200 where minio-go expects 204.
		return nil
	}
	return err
}

// IgnorePublicACLs makes the bucket and its objects private whatever ACLs they
// have or get. It replaces the bucket's public access block and is idempotent.
func (c *Client) IgnorePublicACLs(ctx context.Context, bucket string) error {
	// The other switches are left off: releases of Ceph refuse every policy or
	// every upload under them.
	const body = `<PublicAccessBlockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
		`<BlockPublicAcls>false</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls>` +
		`<BlockPublicPolicy>false</BlockPublicPolicy><RestrictPublicBuckets>false</RestrictPublicBuckets>` +
		`</PublicAccessBlockConfiguration>`
	_, _, err := c.send(ctx, "PutPublicAccessBlock", http.MethodPut, bucket, "publicAccessBlock=", []byte(body))
	return err
}

// Created returns when the buckets that the key owns were made, by their names.
func (c *Client) Created(ctx context.Context) (map[string]time.Time, error) {
	const op = "ListBuckets"
	var answer struct {
		XMLName xml.Name
		Buckets struct {
			Bucket []struct {
				Name         string
				CreationDate time.Time
			}
		}
	}
	if err := c.call(ctx, op, "", "", &answer); err != nil {
		return nil, err
	}
	if answer.XMLName.Local != "ListAllMyBucketsResult" {
		return nil, &Error{Op: op, StatusCode: http.StatusOK, Cause: "with a body that is no list of buckets"}
	}
	made := map[string]time.Time{}
	for _, b := range answer.Buckets.Bucket {
		made[b.Name] = b.CreationDate
	}
	return made, nil
}

// IgnoresPublicACLs reports whether the bucket's public access block is the one that
// IgnorePublicACLs sets.
func (c *Client) IgnoresPublicACLs(ctx context.Context, bucket string) (bool, error) {
	var answer struct {
		XMLName                                                                     xml.Name
		BlockPublicAcls, IgnorePublicAcls, BlockPublicPolicy, RestrictPublicBuckets bool
	}
	err := c.call(ctx, "GetPublicAccessBlock", bucket, "publicAccessBlock=", &answer)
	if Code(err) == "NoSuchPublicAccessBlockConfiguration" {
		return false, nil
	}
	return answer.IgnorePublicAcls && !answer.BlockPublicAcls && !answer.BlockPublicPolicy && !answer.RestrictPublicBuckets, err
}
