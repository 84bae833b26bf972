package v1alpha2

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	cosi "github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// claim is the controller's part: a claim gets a Bucket, or binds to one that
// names it, and is ready with it.
func (p *Peer) claim(ctx context.Context, claim object) error {
	if claim.deleted() {
		return p.claimGoes(ctx, claim)
	}
	if err := p.protect(ctx, "bucketclaims", claim); err != nil {
		return err
	}
	name := claim.text("status", "boundBucketName")
	if name == "" {
		return p.bind(ctx, claim)
	}
	bucket, err := p.get(ctx, "buckets", "", name)
	if err != nil || bucket.ready() == claim.ready() {
		return err
	}
	return p.patch(ctx, "bucketclaims", claim, "/status", map[string]any{"status": map[string]any{
		"readyToUse": bucket.ready(), "protocols": bucket.at("status", "protocols"), "error": nil,
	}})
}

func (p *Peer) bind(ctx context.Context, claim object) error {
	name := claim.text("spec", "existingBucketName")
	if name == "" {
		name = "bc-" + claim.text("metadata", "uid")
		class, err := p.get(ctx, "bucketclasses", "", claim.text("spec", "bucketClassName"))
		if err != nil {
			return err
		}
		_, err = p.get(ctx, "buckets", "", name)
		if errors.Is(err, cluster.ErrNotFound) {
			_, err = p.cluster.Send(ctx, http.MethodPost, group+"buckets", map[string]any{
				"apiVersion": "objectstorage.k8s.io/v1alpha2", "kind": "Bucket", "metadata": map[string]any{"name": name},
				"spec": map[string]any{
					"driverName": class.text("spec", "driverName"), "deletionPolicy": class.text("spec", "deletionPolicy"),
					"parameters": class.parameters("spec", "parameters"), "protocols": claim.at("spec", "protocols"),
					"bucketClaimRef": map[string]any{"name": claim.text("metadata", "name"), "namespace": claim.text("metadata", "namespace"), "uid": claim.text("metadata", "uid")},
				},
			})
		}
		if err != nil {
			return err
		}
	}
	bucket, err := p.get(ctx, "buckets", "", name)
	if err != nil {
		return err
	}
	if bucket.text("spec", "bucketClaimRef", "name") != claim.text("metadata", "name") || bucket.text("spec", "bucketClaimRef", "namespace") != claim.text("metadata", "namespace") {
		return fmt.Errorf("Bucket %s is for another claim", name) //nolint:staticcheck // as Kubernetes writes a kind
	}
	return p.patch(ctx, "bucketclaims", claim, "/status", map[string]any{"status": map[string]any{"boundBucketName": name}})
}

// claimGoes waits for the accesses, then for the Bucket if it goes, too.
func (p *Peer) claimGoes(ctx context.Context, claim object) error {
	accesses, err := p.cluster.Get(ctx, path("bucketaccesses", claim.text("metadata", "namespace")))
	if err != nil {
		return err
	}
	for _, access := range object(accesses).list("items") {
		for _, one := range access.list("spec", "bucketClaims") {
			if one.text("bucketClaimName") == claim.text("metadata", "name") {
				return nil
			}
		}
	}
	if name := claim.text("status", "boundBucketName"); name != "" {
		bucket, err := p.get(ctx, "buckets", "", name)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
		case err != nil:
			return err
		case bucket.text("spec", "deletionPolicy") == "Delete":
			if !bucket.deleted() {
				_, err = p.cluster.Send(ctx, http.MethodDelete, group+"buckets/"+name, nil)
			}
			return err
		}
	}
	return p.release(ctx, "bucketclaims", claim)
}

// bucket is the sidecar's part: a Bucket of the driver is made, or found, and
// deleted.
func (p *Peer) bucket(ctx context.Context, bucket object) error {
	if bucket.text("spec", "driverName") != p.driver {
		return nil
	}
	id, uid := bucket.text("status", "bucketID"), bucket.text("metadata", "uid")
	if bucket.deleted() {
		if id != "" && bucket.text("spec", "deletionPolicy") == "Delete" && bucket.at("metadata", "finalizers") != nil {
			if _, err := p.rpc.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: id, Parameters: bucket.parameters("spec", "parameters")}); err != nil {
				return refused(err)
			}
		}
		return p.release(ctx, "buckets", bucket)
	}
	if p.called[uid] && bucket.ready() {
		return nil
	}
	if err := p.protect(ctx, "buckets", bucket); err != nil {
		return err
	}
	got, info, err := p.provision(ctx, bucket)
	if err != nil {
		return refused(err)
	}
	if !identifier.MatchString(got) || id != "" && id != got || info.GetS3() == nil {
		return fmt.Errorf("the driver's answer for %s does not hold: ID %q, was %q, S3 %v", bucket.text("metadata", "name"), got, id, info.GetS3())
	}
	p.called[uid] = true
	return p.patch(ctx, "buckets", bucket, "/status", map[string]any{"status": map[string]any{
		"bucketID": got, "readyToUse": true, "protocols": []string{"S3"}, "error": nil,
		"bucketInfo": map[string]string{"COSI_S3_BUCKET_ID": info.GetS3().GetBucketId(), "COSI_S3_ENDPOINT": info.GetS3().GetEndpoint(), "COSI_S3_REGION": info.GetS3().GetRegion()},
	}})
}

func (p *Peer) provision(ctx context.Context, bucket object) (id string, info *cosi.ObjectProtocolAndBucketInfo, err error) {
	s3 := []*cosi.ObjectProtocol{{Type: cosi.ObjectProtocol_S3}}
	parameters := bucket.parameters("spec", "parameters")
	if existing := bucket.text("spec", "existingBucketID"); existing != "" {
		r, err := p.rpc.DriverGetExistingBucket(ctx, &cosi.DriverGetExistingBucketRequest{ExistingBucketId: existing, Protocols: s3, Parameters: parameters})
		return r.GetBucketId(), r.GetProtocols(), err
	}
	r, err := p.rpc.DriverCreateBucket(ctx, &cosi.DriverCreateBucketRequest{Name: bucket.text("metadata", "name"), Protocols: s3, Parameters: parameters})
	return r.GetBucketId(), r.GetProtocols(), err
}
