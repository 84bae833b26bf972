package cosi

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
)

// v1alpha2Face answers sigs.k8s.io.cosi.v1alpha2. Its methods return the driver's
// errors; the interceptors turn them into statuses.
type v1alpha2Face struct {
	v1alpha2pb.UnimplementedIdentityServer
	v1alpha2pb.UnimplementedProvisionerServer
	driver *driver.Driver
}

// methodGetBucket is what upstream has renamed DriverGetExistingBucket to since the
// revision of the proto; the messages have stayed the same on the wire.
const methodGetBucket = "DriverGetBucket"

// registerV1alpha2 adds the services and returns their names.
func registerV1alpha2(s grpc.ServiceRegistrar, d *driver.Driver) []string {
	f := &v1alpha2Face{driver: d}
	v1alpha2pb.RegisterIdentityServer(s, f)
	provisioner := v1alpha2pb.Provisioner_ServiceDesc
	provisioner.Methods = append(slices.Clone(provisioner.Methods), grpc.MethodDesc{MethodName: methodGetBucket, Handler: handleGetBucket})
	s.RegisterService(&provisioner, f)
	return []string{v1alpha2pb.Identity_ServiceDesc.ServiceName, provisioner.ServiceName}
}

// handleGetBucket is for gRPC what protoc makes for the methods of the proto.
func handleGetBucket(srv any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc.MethodDesc wants this order
	req := &v1alpha2pb.DriverGetExistingBucketRequest{}
	if err := decode(req); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, req any) (any, error) {
		return srv.(*v1alpha2Face).DriverGetExistingBucket(ctx, req.(*v1alpha2pb.DriverGetExistingBucketRequest))
	}
	if through == nil {
		return handler(ctx, req)
	}
	return through(ctx, req, &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: "/" + v1alpha2pb.Provisioner_ServiceDesc.ServiceName + "/" + methodGetBucket,
	}, handler)
}

// DriverGetInfo answers also when the driver is unconfigured: the sidecar ends if it
// gets no name.
func (f *v1alpha2Face) DriverGetInfo(context.Context, *v1alpha2pb.DriverGetInfoRequest) (*v1alpha2pb.DriverGetInfoResponse, error) {
	return &v1alpha2pb.DriverGetInfoResponse{
		Name:               f.driver.Name(),
		SupportedProtocols: []*v1alpha2pb.ObjectProtocol{{Type: v1alpha2pb.ObjectProtocol_S3}},
	}, nil
}

func (f *v1alpha2Face) DriverCreateBucket(ctx context.Context, req *v1alpha2pb.DriverCreateBucketRequest) (*v1alpha2pb.DriverCreateBucketResponse, error) {
	if err := checkProtocols(req.GetProtocols()); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", quoted(req.GetName()), err)
	}
	created, err := f.driver.CreateBucket(ctx, req.GetName(), req.GetParameters())
	if err != nil {
		return nil, err
	}
	info, err := bucketInfo(created.Bucket)
	if err != nil {
		return nil, err
	}
	return &v1alpha2pb.DriverCreateBucketResponse{BucketId: created.ID, Protocols: info}, nil
}

func (f *v1alpha2Face) DriverGetExistingBucket(ctx context.Context, req *v1alpha2pb.DriverGetExistingBucketRequest) (*v1alpha2pb.DriverGetExistingBucketResponse, error) {
	if err := checkProtocols(req.GetProtocols()); err != nil {
		return nil, fmt.Errorf("existing bucket %s: %w", quoted(req.GetExistingBucketId()), err)
	}
	found, err := f.driver.GetExistingBucket(ctx, req.GetExistingBucketId(), req.GetParameters())
	if err != nil {
		return nil, err
	}
	info, err := bucketInfo(found.Bucket)
	if err != nil {
		return nil, err
	}
	return &v1alpha2pb.DriverGetExistingBucketResponse{BucketId: found.ID, Protocols: info}, nil
}

func (f *v1alpha2Face) DriverDeleteBucket(ctx context.Context, req *v1alpha2pb.DriverDeleteBucketRequest) (*v1alpha2pb.DriverDeleteBucketResponse, error) {
	if err := f.driver.DeleteBucket(ctx, req.GetBucketId(), req.GetParameters()); err != nil {
		return nil, err
	}
	return &v1alpha2pb.DriverDeleteBucketResponse{}, nil
}

func (f *v1alpha2Face) DriverGrantBucketAccess(ctx context.Context, req *v1alpha2pb.DriverGrantBucketAccessRequest) (*v1alpha2pb.DriverGrantBucketAccessResponse, error) {
	wanted, err := grantRequest(req)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", quoted(req.GetAccountName()), err)
	}
	grant, err := f.driver.GrantAccess(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return grantResponse(grant)
}

// DriverRevokeBucketAccess goes by the IDs alone. How the access was asked for does
// not matter to its end, but for a protocol that none can have been granted for.
func (f *v1alpha2Face) DriverRevokeBucketAccess(ctx context.Context, req *v1alpha2pb.DriverRevokeBucketAccessRequest) (*v1alpha2pb.DriverRevokeBucketAccessResponse, error) {
	wanted := driver.RevokeRequest{AccountID: req.GetAccountId()}
	err := checkCount(len(req.GetBuckets()))
	if t := req.GetProtocol().GetType(); err == nil && t != v1alpha2pb.ObjectProtocol_UNKNOWN {
		err = checkProtocol(t)
	}
	if err != nil {
		return nil, fmt.Errorf("account ID %s: %w", quoted(req.GetAccountId()), err)
	}
	for _, b := range req.GetBuckets() {
		wanted.BucketIDs = append(wanted.BucketIDs, b.GetBucketId())
	}
	if err := f.driver.RevokeAccess(ctx, wanted); err != nil {
		return nil, err
	}
	return &v1alpha2pb.DriverRevokeBucketAccessResponse{}, nil
}
