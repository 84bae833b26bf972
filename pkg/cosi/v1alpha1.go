package cosi

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// What the v1alpha1 sidecar looks for in the answer to a grant; it drops any
// other key without a word.
const (
	protocolS3        = "s3"
	secretAccessKeyID = "accessKeyID"
	secretAccessKey   = "accessSecretKey"
	secretEndpoint    = "endpoint"
	secretRegion      = "region"
)

// v1alpha1Face answers cosi.v1alpha1. Its methods return the driver's errors;
// the interceptors turn them into statuses.
type v1alpha1Face struct {
	cosiv1alpha1.UnimplementedIdentityServer
	cosiv1alpha1.UnimplementedProvisionerServer
	driver *driver.Driver
}

// registerV1alpha1 adds the services and returns their names.
func registerV1alpha1(s grpc.ServiceRegistrar, d *driver.Driver) []string {
	f := &v1alpha1Face{driver: d}
	cosiv1alpha1.RegisterIdentityServer(s, f)
	cosiv1alpha1.RegisterProvisionerServer(s, f)
	return []string{cosiv1alpha1.Identity_ServiceDesc.ServiceName, cosiv1alpha1.Provisioner_ServiceDesc.ServiceName}
}

// DriverGetInfo answers also when the driver is unconfigured: the sidecar asks
// once, and ends if it gets no name.
func (f *v1alpha1Face) DriverGetInfo(context.Context, *cosiv1alpha1.DriverGetInfoRequest) (*cosiv1alpha1.DriverGetInfoResponse, error) {
	return &cosiv1alpha1.DriverGetInfoResponse{Name: f.driver.Name()}, nil
}

func (f *v1alpha1Face) DriverCreateBucket(ctx context.Context, req *cosiv1alpha1.DriverCreateBucketRequest) (*cosiv1alpha1.DriverCreateBucketResponse, error) {
	created, err := f.driver.CreateBucket(ctx, req.GetName(), req.GetParameters())
	if err != nil {
		return nil, err
	}
	return &cosiv1alpha1.DriverCreateBucketResponse{
		BucketId: created.ID,
		BucketInfo: &cosiv1alpha1.Protocol{Type: &cosiv1alpha1.Protocol_S3{S3: &cosiv1alpha1.S3{
			Region:           clientRegion(created.Bucket),
			SignatureVersion: cosiv1alpha1.S3SignatureVersion_S3V4,
		}}},
	}, nil
}

func (f *v1alpha1Face) DriverDeleteBucket(ctx context.Context, req *cosiv1alpha1.DriverDeleteBucketRequest) (*cosiv1alpha1.DriverDeleteBucketResponse, error) {
	if err := f.driver.DeleteBucket(ctx, req.GetBucketId(), req.GetDeleteContext()); err != nil {
		return nil, err
	}
	return &cosiv1alpha1.DriverDeleteBucketResponse{}, nil
}

func (f *v1alpha1Face) DriverGrantBucketAccess(ctx context.Context, req *cosiv1alpha1.DriverGrantBucketAccessRequest) (*cosiv1alpha1.DriverGrantBucketAccessResponse, error) {
	if err := checkAuthentication(req.GetAuthenticationType()); err != nil {
		return nil, err
	}
	grant, err := f.driver.GrantAccess(ctx, driver.GrantRequest{
		Account:    req.GetName(),
		Buckets:    []driver.GrantBucket{{ID: req.GetBucketId()}},
		Parameters: req.GetParameters(),
	})
	if err != nil {
		return nil, err
	}
	bucket := grant.Buckets[0].Bucket
	return &cosiv1alpha1.DriverGrantBucketAccessResponse{
		AccountId: grant.AccountID,
		Credentials: map[string]*cosiv1alpha1.CredentialDetails{protocolS3: {Secrets: map[string]string{
			secretAccessKeyID: grant.Credentials.AccessKeyID,
			secretAccessKey:   grant.Credentials.SecretAccessKey.Reveal(),
			secretEndpoint:    bucket.Endpoint,
			secretRegion:      clientRegion(bucket),
		}}},
	}, nil
}

func (f *v1alpha1Face) DriverRevokeBucketAccess(ctx context.Context, req *cosiv1alpha1.DriverRevokeBucketAccessRequest) (*cosiv1alpha1.DriverRevokeBucketAccessResponse, error) {
	err := f.driver.RevokeAccess(ctx, driver.RevokeRequest{
		AccountID: req.GetAccountId(),
		BucketIDs: []string{req.GetBucketId()},
	})
	if err != nil {
		return nil, err
	}
	return &cosiv1alpha1.DriverRevokeBucketAccessResponse{}, nil
}

// checkAuthentication accepts keys only. The sidecar compares the class's
// spelling exactly and sends 0 for everything it does not know, so the message
// must tell the reader about a spelling that we cannot see.
func checkAuthentication(t cosiv1alpha1.AuthenticationType) error {
	switch t {
	case cosiv1alpha1.AuthenticationType_Key:
		return nil
	case cosiv1alpha1.AuthenticationType_IAM:
		return fmt.Errorf("%w: authenticationType IAM: this driver hands out access keys; set authenticationType: Key in the BucketAccessClass",
			provider.ErrUnsupported)
	default:
		return fmt.Errorf("%w: authenticationType arrived as %d: set authenticationType: Key in the BucketAccessClass, spelled exactly so "+
			"(the sidecar sends KEY, key and every other spelling as 0)", provider.ErrInvalidArgument, int32(t))
	}
}

// clientRegion is the region that workloads sign with.
func clientRegion(b provider.Bucket) string {
	if b.SigningRegion != "" {
		return b.SigningRegion
	}
	return b.Region
}
