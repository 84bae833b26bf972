package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

// otherDriver is the COSI driver of another vendor, without a cloud. It
// remembers what it is asked for.
type otherDriver struct {
	cosiv1alpha1.UnimplementedIdentityServer
	cosiv1alpha1.UnimplementedProvisionerServer

	mu    sync.Mutex
	calls []string // the RPC and the ID or name
}

const (
	otherName   = "cosi.other.example"
	otherPrefix = "other-"
)

func (d *otherDriver) note(rpc, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, rpc+" "+id)
}

// called reports whether the driver was asked for it.
func (d *otherDriver) called(rpc, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.calls, rpc+" "+id)
}

func (d *otherDriver) DriverGetInfo(context.Context, *cosiv1alpha1.DriverGetInfoRequest) (*cosiv1alpha1.DriverGetInfoResponse, error) {
	return &cosiv1alpha1.DriverGetInfoResponse{Name: otherName}, nil
}

func (d *otherDriver) DriverCreateBucket(_ context.Context, r *cosiv1alpha1.DriverCreateBucketRequest) (*cosiv1alpha1.DriverCreateBucketResponse, error) {
	d.note("create", r.GetName())
	return &cosiv1alpha1.DriverCreateBucketResponse{BucketId: otherPrefix + r.GetName()}, nil
}

func (d *otherDriver) DriverDeleteBucket(_ context.Context, r *cosiv1alpha1.DriverDeleteBucketRequest) (*cosiv1alpha1.DriverDeleteBucketResponse, error) {
	d.note("delete", r.GetBucketId())
	return &cosiv1alpha1.DriverDeleteBucketResponse{}, foreignID(r.GetBucketId())
}

func (d *otherDriver) DriverGrantBucketAccess(_ context.Context, r *cosiv1alpha1.DriverGrantBucketAccessRequest) (*cosiv1alpha1.DriverGrantBucketAccessResponse, error) {
	d.note("grant", r.GetName())
	return &cosiv1alpha1.DriverGrantBucketAccessResponse{
		AccountId: otherPrefix + r.GetName(),
		Credentials: map[string]*cosiv1alpha1.CredentialDetails{"s3": {Secrets: map[string]string{
			"endpoint": "http://127.0.0.1:1", "region": "other", "accessKeyID": "other", "accessSecretKey": "other",
		}}},
	}, nil
}

func (d *otherDriver) DriverRevokeBucketAccess(_ context.Context, r *cosiv1alpha1.DriverRevokeBucketAccessRequest) (*cosiv1alpha1.DriverRevokeBucketAccessResponse, error) {
	d.note("revoke", r.GetAccountId())
	return &cosiv1alpha1.DriverRevokeBucketAccessResponse{}, foreignID(r.GetAccountId())
}

// foreignID refuses what the driver has not made, as a good driver does.
func foreignID(id string) error {
	if strings.HasPrefix(id, otherPrefix) {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "%q is not of this driver", id)
}

// startOther starts the driver with a sidecar of its own, until the story ends.
func (s *story) startOther() *otherDriver {
	s.Helper()
	socket := s.Socket("other")
	path := strings.TrimPrefix(socket, "unix://")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "unix", path)
	if err != nil {
		s.Fatal(err)
	}
	d, server := &otherDriver{}, grpc.NewServer()
	cosiv1alpha1.RegisterIdentityServer(server, d)
	cosiv1alpha1.RegisterProvisionerServer(server, d)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	sidecar := s.NewSidecar("other-sidecar", socket, s.Kubeconfig)
	s.Cleanup(func() {
		if err := sidecar.Stop(); err != nil {
			s.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.Error(err)
		}
	})
	s.start(sidecar)
	return d
}
