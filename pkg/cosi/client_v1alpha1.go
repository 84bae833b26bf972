package cosi

import (
	"context"
	"fmt"
	"maps"

	"google.golang.org/grpc"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// The parameter of a BucketAccessClass that v1alpha2 has a field for.
const paramAccessMode = "accessMode"

// v1alpha1RPCs speaks as the sidecar v0.2.2 does.
type v1alpha1RPCs struct {
	identity    cosiv1alpha1.IdentityClient
	provisioner cosiv1alpha1.ProvisionerClient
}

func newV1alpha1RPCs(conn grpc.ClientConnInterface) *v1alpha1RPCs {
	return &v1alpha1RPCs{cosiv1alpha1.NewIdentityClient(conn), cosiv1alpha1.NewProvisionerClient(conn)}
}

func (c *v1alpha1RPCs) info(ctx context.Context) (string, error) {
	resp, err := c.identity.DriverGetInfo(ctx, &cosiv1alpha1.DriverGetInfoRequest{})
	return resp.GetName(), rpcError("DriverGetInfo", err)
}

func (c *v1alpha1RPCs) create(ctx context.Context, name string, params map[string]string) (string, error) {
	resp, err := c.provisioner.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: name, Parameters: params})
	return resp.GetBucketId(), rpcError("DriverCreateBucket", err)
}

func (*v1alpha1RPCs) existing(_ context.Context, existingID string, _ map[string]string) (string, error) {
	return existingID, nil
}

func (c *v1alpha1RPCs) remove(ctx context.Context, bucketID string, params map[string]string) error {
	_, err := c.provisioner.DriverDeleteBucket(ctx, &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: bucketID, DeleteContext: params})
	return rpcError("DriverDeleteBucket", err)
}

func (c *v1alpha1RPCs) grant(ctx context.Context, account string, buckets []driver.GrantBucket, params map[string]string) (Granted, error) {
	if len(buckets) != 1 {
		return Granted{}, fmt.Errorf("access %s: %w: v1alpha1 has accesses to one bucket, not to %d", account, provider.ErrUnsupported, len(buckets))
	}
	b := buckets[0]
	if b.Mode != "" {
		params = maps.Clone(params)
		if params == nil {
			params = map[string]string{}
		}
		params[paramAccessMode] = string(b.Mode)
	}
	resp, err := c.provisioner.DriverGrantBucketAccess(ctx, &cosiv1alpha1.DriverGrantBucketAccessRequest{
		BucketId:           b.ID,
		Name:               account,
		AuthenticationType: cosiv1alpha1.AuthenticationType_Key,
		Parameters:         params,
	})
	if err != nil {
		return Granted{}, rpcError("DriverGrantBucketAccess", err)
	}
	s := resp.GetCredentials()[protocolS3].GetSecrets()
	return Granted{
		AccountID:       resp.GetAccountId(),
		Endpoint:        s[secretEndpoint],
		Region:          s[secretRegion],
		AccessKeyID:     s[secretAccessKeyID],
		SecretAccessKey: provider.NewSecret(s[secretAccessKey]),
		Buckets:         []GrantedBucket{{ID: b.ID, Endpoint: s[secretEndpoint], Region: s[secretRegion]}},
	}, nil
}

func (c *v1alpha1RPCs) revoke(ctx context.Context, accountID string, bucketIDs []string) error {
	if len(bucketIDs) != 1 {
		return fmt.Errorf("account ID %s: %w: v1alpha1 has accesses to one bucket, not to %d", accountID, provider.ErrUnsupported, len(bucketIDs))
	}
	_, err := c.provisioner.DriverRevokeBucketAccess(ctx, &cosiv1alpha1.DriverRevokeBucketAccessRequest{BucketId: bucketIDs[0], AccountId: accountID})
	return rpcError("DriverRevokeBucketAccess", err)
}
