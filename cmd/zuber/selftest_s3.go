package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// objectStore is one bucket as a workload sees it: with the endpoint and the
// key from its Secret and nothing else.
type objectStore struct {
	client *s3.Client
	bucket string
}

// openObjects makes no call.
func (r *testRun) openObjects(bucket string, granted cosi.Granted) (objectStore, error) {
	client, err := s3.New(s3.Config{
		Endpoint:        granted.Endpoint,
		AccessKeyID:     granted.AccessKeyID,
		SecretAccessKey: granted.SecretAccessKey.Reveal,
		SigningRegion:   granted.Region,
		VirtualHosted:   !r.settings.PathStyle,
		Transport:       transport.New(transport.Options{Base: r.transport}),
		UserAgent:       "zuber/" + readBuild().Version,
	})
	if err != nil {
		return objectStore{}, fmt.Errorf("the granted access cannot be used: %w", err)
	}
	return objectStore{client: client, bucket: bucket}, nil
}

func (o objectStore) put(ctx context.Context, key string, body []byte) error {
	return named(key, o.client.PutObject(ctx, o.bucket, key, body))
}

func (o objectStore) putMultipart(ctx context.Context, key string, body []byte, partSize uint64) error {
	return named(key, o.client.PutMultipart(ctx, o.bucket, key, bytes.NewReader(body), int64(len(body)), partSize))
}

func (o objectStore) get(ctx context.Context, key string) ([]byte, error) {
	body, err := o.client.GetObject(ctx, o.bucket, key)
	return body, named(key, err)
}

func (o objectStore) delete(ctx context.Context, key string) error {
	return named(key, o.client.DeleteObject(ctx, o.bucket, key))
}

func (o objectStore) list(ctx context.Context) ([]string, error) {
	keys, err := o.client.ListObjects(ctx, o.bucket, "")
	return keys, named("", err)
}

// named says in an error that S3 refused, not an RPC, and which key it was about.
func named(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case key == "":
		return fmt.Errorf("S3: %w", err)
	}
	return fmt.Errorf("S3: %s: %w", key, err)
}

// accessDenied tells a refusal of a key that the endpoint knows from every
// other fault.
func accessDenied(err error) bool {
	return s3.StatusCode(err) == http.StatusForbidden && s3.Code(err) == "AccessDenied"
}
