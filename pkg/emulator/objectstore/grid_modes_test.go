package objectstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
	"github.com/minio/minio-go/v7/pkg/sse"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// fixture is what a call of the mode matrix finds: an object of two versions, an old version of it and
// an upload with one part to a fresh key and one to the object's.
type fixture struct {
	bucket, version, upload, onto string
	part                          minio.CompletePart
}

// column holds who may do what: the groups in the order of gridGroups, A for allowed.
type column struct {
	name string
	may  string
	do   func(ctx context.Context, c *minio.Core, f fixture) error
}

// gridGroups are the columns of the matrix.
func gridGroups() []string { return []string{"admin", "rw", "ro", "wo", "out"} }

func put(ctx context.Context, c *minio.Core, bucket, key string, o minio.PutObjectOptions) error {
	_, err := c.Client.PutObject(ctx, bucket, key, strings.NewReader("text"), 4, o)
	return err
}

func matrixRows() []column {
	objectTags, _ := tags.MapToObjectTags(map[string]string{"k": "v"})
	bucketTags, _ := tags.MapToBucketTags(map[string]string{"k": "v"})
	return []column{
		{"HeadBucket", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.BucketExists(ctx, f.bucket)
			return err
		}},
		{"ListObjectsV2", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.ListObjectsV2(f.bucket, "", "", "", "", 10)
			return err
		}},
		{"ListObjectVersions", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			for o := range c.Client.ListObjects(ctx, f.bucket, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
				if o.Err != nil {
					return o.Err
				}
			}
			return nil
		}},
		{"GetBucketLocation", "AAAA.", func(ctx context.Context, c *minio.Core, f fixture) error {
			// Only a client that does not know its region asks.
			key, err := c.GetCreds()
			if err != nil {
				return err
			}
			asking, err := minio.New(c.EndpointURL().Host, &minio.Options{
				Creds: credentials.NewStaticV4(key.AccessKeyID, key.SecretAccessKey, ""), MaxRetries: 1,
			})
			if err != nil {
				return err
			}
			region, err := asking.GetBucketLocation(ctx, f.bucket)
			if err == nil && region != gridRegion {
				// The client guesses a region when it is refused.
				return minio.ErrorResponse{Code: "AccessDenied"}
			}
			return err
		}},
		{"GetObject", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			body, _, _, err := c.GetObject(ctx, f.bucket, "key", minio.GetObjectOptions{})
			if err == nil {
				err = body.Close()
			}
			return err
		}},
		{"HeadObject", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.StatObject(ctx, f.bucket, "key", minio.StatObjectOptions{})
			return err
		}},
		{"GetObject, a version", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.StatObject(ctx, f.bucket, "key", minio.StatObjectOptions{VersionID: f.version})
			return err
		}},
		{"PutObject, a new key", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			return put(ctx, c, f.bucket, "fresh", minio.PutObjectOptions{})
		}},
		{"PutObject, with tags", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			return put(ctx, c, f.bucket, "fresh", minio.PutObjectOptions{UserTags: map[string]string{"k": "v"}})
		}},
		{"PutObject, over the object", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			return put(ctx, c, f.bucket, "key", minio.PutObjectOptions{})
		}},
		{"CopyObject", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: f.bucket, Object: "copy"}, minio.CopySrcOptions{Bucket: f.bucket, Object: "key"})
			return err
		}},
		{"DeleteObject", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.RemoveObject(ctx, f.bucket, "key", minio.RemoveObjectOptions{})
		}},
		{"DeleteObject, a version", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.RemoveObject(ctx, f.bucket, "key", minio.RemoveObjectOptions{VersionID: f.version})
		}},
		{"DeleteObjects", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			return removeAll(ctx, c, f.bucket, minio.ObjectInfo{Key: "key"})
		}},
		{"DeleteObjects, a version", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return removeAll(ctx, c, f.bucket, minio.ObjectInfo{Key: "key", VersionID: f.version})
		}},
		{"CreateMultipartUpload", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.NewMultipartUpload(ctx, f.bucket, "fresh", minio.PutObjectOptions{})
			return err
		}},
		{"UploadPart", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.PutObjectPart(ctx, f.bucket, "upload", f.upload, 2, strings.NewReader("part"), 4, minio.PutObjectPartOptions{})
			return err
		}},
		{"UploadPartCopy", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.CopyObjectPart(ctx, f.bucket, "key", f.bucket, "upload", f.upload, 2, 0, -1, nil)
			return err
		}},
		{"ListParts", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.ListObjectParts(ctx, f.bucket, "upload", f.upload, 0, 10)
			return err
		}},
		{"ListMultipartUploads", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.ListMultipartUploads(ctx, f.bucket, "", "", "", "", 10)
			return err
		}},
		{"CompleteMultipartUpload", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.CompleteMultipartUpload(ctx, f.bucket, "upload", f.upload, []minio.CompletePart{f.part}, minio.PutObjectOptions{})
			return err
		}},
		{"CompleteMultipartUpload, over the object", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.CompleteMultipartUpload(ctx, f.bucket, "key", f.onto, []minio.CompletePart{f.part}, minio.PutObjectOptions{})
			return err
		}},
		{"AbortMultipartUpload", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.AbortMultipartUpload(ctx, f.bucket, "upload", f.upload)
		}},
		{"GetObjectTagging", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetObjectTagging(ctx, f.bucket, "key", minio.GetObjectTaggingOptions{})
			return err
		}},
		{"GetObjectTagging, a version", "AAA..", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetObjectTagging(ctx, f.bucket, "key", minio.GetObjectTaggingOptions{VersionID: f.version})
			return err
		}},
		{"PutObjectTagging", "AA.A.", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.PutObjectTagging(ctx, f.bucket, "key", objectTags, minio.PutObjectTaggingOptions{})
		}},
		{"PutObjectTagging, a version", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.PutObjectTagging(ctx, f.bucket, "key", objectTags, minio.PutObjectTaggingOptions{VersionID: f.version})
		}},
		{"DeleteObjectTagging", "AA...", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.RemoveObjectTagging(ctx, f.bucket, "key", minio.RemoveObjectTaggingOptions{})
		}},
		{"GetObjectAcl", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetObjectACL(ctx, f.bucket, "key")
			return err
		}},
		{"GetBucketPolicy", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketPolicy(ctx, f.bucket)
			return err
		}},
		{"PutBucketPolicy", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			text, err := c.GetBucketPolicy(ctx, f.bucket)
			if err != nil {
				// Whoever may not read it tries to open the bucket.
				text = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::` + f.bucket + `"]}]}`
			}
			return c.SetBucketPolicy(ctx, f.bucket, text)
		}},
		{"DeleteBucketPolicy", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.SetBucketPolicy(ctx, f.bucket, "")
		}},
		{"GetBucketTagging", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketTagging(ctx, f.bucket)
			return err
		}},
		{"PutBucketTagging", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.SetBucketTagging(ctx, f.bucket, bucketTags)
		}},
		{"DeleteBucketTagging", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.RemoveBucketTagging(ctx, f.bucket)
		}},
		{"GetBucketVersioning", "AAAA.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketVersioning(ctx, f.bucket)
			return err
		}},
		{"PutBucketVersioning", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.SuspendVersioning(ctx, f.bucket)
		}},
		{"GetObjectLockConfiguration", "AAAA.", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, _, _, _, err := c.GetObjectLockConfig(ctx, f.bucket)
			return but(err, "ObjectLockConfigurationNotFoundError")
		}},
		{"GetBucketLifecycleConfiguration", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketLifecycle(ctx, f.bucket)
			return but(err, "NoSuchLifecycleConfiguration")
		}},
		{"PutBucketLifecycleConfiguration", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			rules := lifecycle.NewConfiguration()
			rules.Rules = []lifecycle.Rule{{ID: "r", Status: "Enabled", Expiration: lifecycle.Expiration{Days: 1}}}
			return c.SetBucketLifecycle(ctx, f.bucket, rules)
		}},
		{"GetBucketEncryption", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketEncryption(ctx, f.bucket)
			return but(err, "ServerSideEncryptionConfigurationNotFoundError")
		}},
		{"PutBucketEncryption", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return c.SetBucketEncryption(ctx, f.bucket, sse.NewConfigurationSSES3())
		}},
		{"GetBucketCors", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketCors(ctx, f.bucket)
			return err
		}},
		{"GetBucketNotificationConfiguration", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.GetBucketNotification(ctx, f.bucket)
			return err
		}},
		{"DeleteBucket", "A....", func(ctx context.Context, c *minio.Core, f fixture) error {
			return but(c.RemoveBucket(ctx, f.bucket), "BucketNotEmpty")
		}},
		// What no bucket policy governs.
		{"ListBuckets", "AAAAA", func(ctx context.Context, c *minio.Core, f fixture) error {
			_, err := c.ListBuckets(ctx)
			return err
		}},
		{"CreateBucket", "AAAAA", func(ctx context.Context, c *minio.Core, f fixture) error {
			name := f.bucket + "-of-mine"
			return errors.Join(c.MakeBucket(ctx, name, minio.MakeBucketOptions{}), c.RemoveBucket(ctx, name))
		}},
	}
}

// but takes an answer that only those get who are let in for success.
func but(err error, code string) error {
	if err != nil && minio.ToErrorResponse(err).Code == code {
		return nil
	}
	return err
}

func removeAll(ctx context.Context, c *minio.Core, bucket string, o minio.ObjectInfo) error {
	list := make(chan minio.ObjectInfo, 1)
	list <- o
	close(list)
	var err error
	for r := range c.RemoveObjects(ctx, bucket, list, minio.RemoveObjectsOptions{}) {
		err = r.Err
	}
	return err
}

// setUp fills a bucket for one call.
func (g *gridLab) setUp(t *testing.T, bucket string) fixture {
	t.Helper()
	ctx := t.Context()
	admin := g.minio(t, "admin")
	noError(t, admin.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}))
	noError(t, admin.EnableVersioning(ctx, bucket))
	bucketTags, err := tags.MapToBucketTags(map[string]string{"mark": "mine"})
	noError(t, err)
	noError(t, admin.SetBucketTagging(ctx, bucket, bucketTags))
	old, err := admin.Client.PutObject(ctx, bucket, "key", strings.NewReader("old"), 3, minio.PutObjectOptions{})
	noError(t, err)
	noError(t, put(ctx, admin, bucket, "key", minio.PutObjectOptions{}))
	f := fixture{bucket: bucket, version: old.VersionID}
	for key, id := range map[string]*string{"upload": &f.upload, "key": &f.onto} {
		*id, err = admin.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{})
		noError(t, err)
		part, err := admin.PutObjectPart(ctx, bucket, key, *id, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{})
		noError(t, err)
		f.part = minio.CompletePart{PartNumber: 1, ETag: part.ETag}
	}
	return f
}

// check runs a call as every group and compares who is let in.
func (g *gridLab) check(t *testing.T, row column, may string, policy func(bucket string) string) {
	t.Helper()
	for i, group := range gridGroups() {
		f := g.setUp(t, "m-bkt")
		if policy != nil {
			noError(t, g.minio(t, "admin").SetBucketPolicy(t.Context(), f.bucket, policy(f.bucket)))
		}
		err := row.do(t.Context(), g.minio(t, group), f)
		switch code := minio.ToErrorResponse(err).Code; {
		case may[i] == 'A' && err != nil:
			t.Errorf("%s is refused: %v", group, err)
		case may[i] != 'A' && code != "AccessDenied":
			t.Errorf("%s is not refused: %v", group, err)
		}
		g.forget(f.bucket)
	}
}

// forget removes a bucket with all that is in it, whatever its policy.
func (g *gridLab) forget(bucket string) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	delete(g.store.buckets, bucket)
}

// The three modes and the outsider, on every call, over HTTP.
func TestGridModes(t *testing.T) {
	g := newGrid(t)
	for _, row := range matrixRows() {
		t.Run(row.name, func(t *testing.T) {
			g.check(t, row, row.may, func(bucket string) string { return modesPolicy(t, bucket) })
		})
	}
}

// Without a policy every group of the project may do everything.
func TestGridIsOpenByDefault(t *testing.T) {
	g := newGrid(t)
	for _, row := range matrixRows() {
		// Policies change what is tested here.
		if !strings.HasSuffix(row.name, "BucketPolicy") {
			t.Run(row.name, func(t *testing.T) { g.check(t, row, "AAAAA", nil) })
		}
	}
}

// Without PutOverwriteObject a write-only access may add and not change. A Deny that does not know
// the action has that effect on any mode.
func TestGridAppendOnly(t *testing.T) {
	g := newGrid(t)
	kept := map[string]bool{}
	for _, row := range matrixRows() {
		switch row.name {
		case "PutObject, over the object", "CompleteMultipartUpload, over the object", "PutObjectTagging":
			kept[row.name] = false
		case "PutObject, a new key", "CompleteMultipartUpload", "UploadPart":
			kept[row.name] = true
		default:
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			may := "A...."
			if kept[row.name] {
				may = "A..A."
			}
			g.check(t, row, may, func(bucket string) string {
				return gridPolicy(t, bucket, onlyFor("admin", "wo"),
					nothingBut("wo", "s3:PutObject", "s3:PutObjectTagging", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"))
			})
		})
	}
	if len(kept) != 6 {
		t.Errorf("rows %v", kept)
	}
}

// The key of one bucket opens nothing of another, in either direction; what is left open is named.
func TestGridIsolation(t *testing.T) {
	g := newGrid(t)
	ctx := t.Context()
	admin := g.minio(t, "admin")
	buckets := map[string]string{"rw": "bucket-a", "ro": "bucket-b"}
	for owner, bucket := range buckets {
		noError(t, admin.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}))
		noError(t, admin.SetBucketPolicy(ctx, bucket, gridPolicy(t, bucket, onlyFor("admin", owner), nothingBut(owner, gridModes()["rw"]...))))
		noError(t, put(ctx, g.minio(t, owner), bucket, "key", minio.PutObjectOptions{}))
	}
	for owner, bucket := range buckets {
		for other := range buckets {
			c := g.minio(t, other)
			_, err := c.StatObject(ctx, bucket, "key", minio.StatObjectOptions{})
			if other == owner {
				noError(t, err)
				continue
			}
			wantCode(t, err, "AccessDenied")
			wantCode(t, put(ctx, c, bucket, "key", minio.PutObjectOptions{}), "AccessDenied")
			_, err = c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: buckets[other], Object: "stolen"}, minio.CopySrcOptions{Bucket: bucket, Object: "key"})
			wantCode(t, err, "AccessDenied")
			_, err = c.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "planted"}, minio.CopySrcOptions{Bucket: buckets[other], Object: "key"})
			wantCode(t, err, "AccessDenied")
			names, err := c.ListBuckets(ctx)
			noError(t, err)
			if len(names) != 2 {
				t.Errorf("%s sees the buckets %v", other, names)
			}
		}
	}
	// A bucket without a policy is open to the keys of the others.
	noError(t, admin.MakeBucket(ctx, "forgotten", minio.MakeBucketOptions{}))
	noError(t, put(ctx, g.minio(t, "ro"), "forgotten", "key", minio.PutObjectOptions{}))
}
