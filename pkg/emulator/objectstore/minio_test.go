package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// minioClient is a client with default settings.
func minioClient(t *testing.T, l *lab, user string) *minio.Client {
	t.Helper()
	return minioClientWith(t, l, "rma", user, minio.Options{})
}

func minioClientWith(t *testing.T, l *lab, region, user string, o minio.Options) *minio.Client {
	t.Helper()
	u, err := url.Parse(l.urls[region])
	if err != nil {
		t.Fatal(err)
	}
	o.Creds = credentials.NewStaticV4("AK"+user, "secret-of-"+user, "")
	c, err := minio.New(u.Host, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := minio.ToErrorResponse(err).Code; err == nil || got != code {
		t.Errorf("error %v (code %q), want %s", err, got, code)
	}
}

func TestMinioObjects(t *testing.T) {
	l := newLab(t)
	c := minioClient(t, l, "A")
	ctx := t.Context()
	noError(t, c.MakeBucket(ctx, "mc-bkt", minio.MakeBucketOptions{}))
	exists, err := c.BucketExists(ctx, "mc-bkt")
	noError(t, err)
	if !exists {
		t.Error("bucket does not exist")
	}
	// Another client, because one that made a bucket believes to know its region.
	c = minioClient(t, l, "A")
	region, err := c.GetBucketLocation(ctx, "mc-bkt")
	noError(t, err)
	if region != "rma" {
		t.Errorf("location %q", region)
	}

	// A key with every kind of awkward character shows whether both sides escape alike.
	const key = "dir/a b+c&d=é~(1)!*';:@$,[x].txt"
	_, err = c.PutObject(ctx, "mc-bkt", key, strings.NewReader("hello"), 5, minio.PutObjectOptions{
		ContentType: "text/plain", UserMetadata: map[string]string{"colour": "blue"}, UserTags: map[string]string{"k": "v"},
	})
	noError(t, err)
	info, err := c.StatObject(ctx, "mc-bkt", key, minio.StatObjectOptions{})
	noError(t, err)
	if info.Size != 5 || info.ContentType != "text/plain" || info.UserMetadata["Colour"] != "blue" || info.UserTagCount != 1 {
		t.Errorf("info %+v", info)
	}
	if enc := info.Metadata.Get("Content-Encoding"); enc != "" {
		t.Errorf("the transfer's encoding %q was stored", enc)
	}
	if got := minioRead(t, c, "mc-bkt", key, minio.GetObjectOptions{}); got != "hello" {
		t.Errorf("read %q", got)
	}
	ranged := minio.GetObjectOptions{}
	noError(t, ranged.SetRange(1, 3))
	if got := minioRead(t, c, "mc-bkt", key, ranged); got != "ell" {
		t.Errorf("range read %q", got)
	}
	got, err := c.GetObjectTagging(ctx, "mc-bkt", key, minio.GetObjectTaggingOptions{})
	noError(t, err)
	if got.ToMap()["k"] != "v" {
		t.Errorf("tags %v", got.ToMap())
	}
	fresh, err := tags.MapToObjectTags(map[string]string{"other": "value"})
	noError(t, err)
	noError(t, c.PutObjectTagging(ctx, "mc-bkt", key, fresh, minio.PutObjectTaggingOptions{}))
	noError(t, c.RemoveObjectTagging(ctx, "mc-bkt", key, minio.RemoveObjectTaggingOptions{}))

	_, err = c.CopyObject(ctx, minio.CopyDestOptions{Bucket: "mc-bkt", Object: "copy of " + key},
		minio.CopySrcOptions{Bucket: "mc-bkt", Object: key})
	noError(t, err)
	var keys []string
	for o := range c.ListObjects(ctx, "mc-bkt", minio.ListObjectsOptions{Recursive: true}) {
		noError(t, o.Err)
		keys = append(keys, o.Key)
	}
	if len(keys) != 2 || keys[0] != "copy of "+key || keys[1] != key {
		t.Errorf("keys %q", keys)
	}
	var prefixes []string
	for o := range c.ListObjects(ctx, "mc-bkt", minio.ListObjectsOptions{}) {
		noError(t, o.Err)
		prefixes = append(prefixes, o.Key)
	}
	if strings.Join(prefixes, " ") != "copy of dir/ dir/" {
		t.Errorf("prefixes %q", prefixes)
	}
	_, err = c.PutObject(ctx, "mc-bkt", key, strings.NewReader("again"), 5, ifAbsent())
	wantCode(t, err, "PreconditionFailed")
	wantCode(t, c.RemoveBucket(ctx, "mc-bkt"), "BucketNotEmpty")
	for _, k := range keys {
		noError(t, c.RemoveObject(ctx, "mc-bkt", k, minio.RemoveObjectOptions{}))
	}
	noError(t, c.RemoveBucket(ctx, "mc-bkt"))
}

func ifAbsent() minio.PutObjectOptions {
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*")
	return o
}

func minioRead(t *testing.T, c *minio.Client, bucket, key string, o minio.GetObjectOptions) string {
	t.Helper()
	r, err := c.GetObject(t.Context(), bucket, key, o)
	noError(t, err)
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	noError(t, err)
	return string(data)
}

// Several parts, with every checksum that the client can send, by declared length and as a stream.
func TestMinioMultipart(t *testing.T) {
	l := newLab(t)
	c := minioClientWith(t, l, "rma", "A", minio.Options{TrailingHeaders: true})
	ctx := t.Context()
	noError(t, c.MakeBucket(ctx, "mp-bkt", minio.MakeBucketOptions{}))
	data := bytes.Repeat([]byte("0123456789abcdef"), (12<<20)/16)
	for _, sum := range []minio.ChecksumType{
		0, minio.ChecksumCRC32, minio.ChecksumCRC32C, minio.ChecksumSHA1, minio.ChecksumSHA256, minio.ChecksumCRC64NVME,
	} {
		for _, size := range []int64{int64(len(data)), -1} {
			name := fmt.Sprintf("%s-%d", sum, size)
			up, err := c.PutObject(ctx, "mp-bkt", name, bytes.NewReader(data), size, minio.PutObjectOptions{PartSize: 5 << 20, Checksum: sum})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !strings.HasSuffix(up.ETag, "-3") {
				t.Errorf("%s: ETag %q, want three parts", name, up.ETag)
			}
			if got := minioRead(t, c, "mp-bkt", name, minio.GetObjectOptions{}); got != string(data) {
				t.Errorf("%s: %d bytes came back", name, len(got))
			}
		}
	}
	for up := range c.ListIncompleteUploads(ctx, "mp-bkt", "", true) {
		noError(t, up.Err)
		t.Errorf("upload %s is left", up.Key)
	}
	core := minio.Core{Client: c}
	id, err := core.NewMultipartUpload(ctx, "mp-bkt", "unfinished", minio.PutObjectOptions{})
	noError(t, err)
	_, err = core.CopyObjectPart(ctx, "mp-bkt", "CRC32--1", "mp-bkt", "unfinished", id, 1, 0, 6<<20, nil)
	noError(t, err)
	part, err := core.PutObjectPart(ctx, "mp-bkt", "unfinished", id, 2, strings.NewReader("end"), 3, minio.PutObjectPartOptions{})
	noError(t, err)
	parts, err := core.ListObjectParts(ctx, "mp-bkt", "unfinished", id, 0, 1)
	noError(t, err)
	if len(parts.ObjectParts) != 1 || !parts.IsTruncated || parts.NextPartNumberMarker != 1 || parts.ObjectParts[0].Size != 6<<20 {
		t.Errorf("parts %+v", parts)
	}
	wrong := minio.CompletePart{PartNumber: 1, ETag: strings.Repeat("0", 32)}
	_, err = core.CompleteMultipartUpload(ctx, "mp-bkt", "unfinished", id, []minio.CompletePart{wrong}, minio.PutObjectOptions{})
	wantCode(t, err, "InvalidPart")
	done := []minio.CompletePart{{PartNumber: 1, ETag: parts.ObjectParts[0].ETag}, {PartNumber: 2, ETag: part.ETag}}
	for range 2 { // the second time repeats a request whose answer was lost
		_, err = core.CompleteMultipartUpload(ctx, "mp-bkt", "unfinished", id, done, minio.PutObjectOptions{})
		noError(t, err)
	}
	noError(t, c.RemoveIncompleteUpload(ctx, "mp-bkt", "nothing"))
}

func TestMinioVersionsAndPurge(t *testing.T) {
	l := newLab(t)
	c := minioClient(t, l, "A")
	ctx := t.Context()
	noError(t, c.MakeBucket(ctx, "ver-bkt", minio.MakeBucketOptions{}))
	noError(t, c.EnableVersioning(ctx, "ver-bkt"))
	for i := range 3 {
		for _, key := range []string{"a", "b/c", "é f"} {
			_, err := c.PutObject(ctx, "ver-bkt", key, strings.NewReader(fmt.Sprint(i)), 1, minio.PutObjectOptions{})
			noError(t, err)
		}
	}
	noError(t, c.RemoveObject(ctx, "ver-bkt", "a", minio.RemoveObjectOptions{}))
	var all []minio.ObjectInfo
	markers := 0
	for o := range c.ListObjects(ctx, "ver-bkt", minio.ListObjectsOptions{Recursive: true, WithVersions: true, MaxKeys: 2}) {
		noError(t, o.Err)
		all = append(all, o)
		if o.IsDeleteMarker {
			markers++
		}
	}
	if len(all) != 10 || markers != 1 {
		t.Fatalf("%d versions, %d markers", len(all), markers)
	}
	if got := minioRead(t, c, "ver-bkt", "a", minio.GetObjectOptions{VersionID: all[3].VersionID}); got != "0" {
		t.Errorf("oldest version of a reads %q", got)
	}
	feed := make(chan minio.ObjectInfo)
	go func() {
		defer close(feed)
		for _, o := range all {
			feed <- o
		}
	}()
	for e := range c.RemoveObjects(ctx, "ver-bkt", feed, minio.RemoveObjectsOptions{}) {
		t.Errorf("%s: %v", e.ObjectName, e.Err)
	}
	noError(t, c.RemoveBucket(ctx, "ver-bkt"))
	if left := l.store.Buckets(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestMinioPolicyAndPresign(t *testing.T) {
	l := newLab(t)
	a, b := minioClient(t, l, "A"), minioClient(t, l, "B")
	ctx := t.Context()
	noError(t, a.MakeBucket(ctx, "pol-bkt", minio.MakeBucketOptions{}))
	wantCode(t, b.MakeBucket(ctx, "pol-bkt", minio.MakeBucketOptions{}), "BucketAlreadyExists")
	_, err := a.PutObject(ctx, "pol-bkt", "k", strings.NewReader("x"), 1, minio.PutObjectOptions{})
	noError(t, err)
	text := modePolicy("RO", "pol-bkt")
	noError(t, a.SetBucketPolicy(ctx, "pol-bkt", text))
	got, err := a.GetBucketPolicy(ctx, "pol-bkt")
	noError(t, err)
	if got != text {
		t.Errorf("policy %q", got)
	}
	if got := minioRead(t, b, "pol-bkt", "k", minio.GetObjectOptions{}); got != "x" {
		t.Errorf("B reads %q", got)
	}
	_, err = b.PutObject(ctx, "pol-bkt", "n", strings.NewReader("x"), 1, minio.PutObjectOptions{})
	wantCode(t, err, "AccessDenied")
	link, err := b.PresignedGetObject(ctx, "pol-bkt", "k", time.Hour, nil)
	noError(t, err)
	if got := fetch(ctx, t, link.String()); got != "200 x" {
		t.Errorf("presigned: %s", got)
	}
	noError(t, a.SetBucketPolicy(ctx, "pol-bkt", ""))
	if got := fetch(ctx, t, link.String()); !strings.HasPrefix(got, "403") {
		t.Errorf("presigned after the policy is gone: %s", got)
	}
	// A client at the other region meets a redirect; the location call still answers.
	lpg := minioClientWith(t, l, "lpg", "A", minio.Options{Region: "us-east-1"})
	_, err = lpg.StatObject(ctx, "pol-bkt", "k", minio.StatObjectOptions{})
	var refused minio.ErrorResponse
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusMovedPermanently {
		t.Errorf("other region: %v", err)
	}
}

func fetch(ctx context.Context, t *testing.T, link string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	noError(t, err)
	res, err := http.DefaultClient.Do(r)
	noError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	noError(t, err)
	return fmt.Sprint(res.StatusCode, " ", string(body))
}
