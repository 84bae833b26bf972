package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

// stubName is the stub's name among COSI drivers.
const stubName = "cosi.stub.example"

// stubDriver is a COSI driver that answers at once and does nothing: what is
// left of the time is Kubernetes's and upstream's.
type stubDriver struct {
	cosiv1alpha1.UnimplementedIdentityServer
	cosiv1alpha1.UnimplementedProvisionerServer
}

func (stubDriver) DriverGetInfo(context.Context, *cosiv1alpha1.DriverGetInfoRequest) (*cosiv1alpha1.DriverGetInfoResponse, error) {
	return &cosiv1alpha1.DriverGetInfoResponse{Name: stubName}, nil
}

func (stubDriver) DriverCreateBucket(_ context.Context, r *cosiv1alpha1.DriverCreateBucketRequest) (*cosiv1alpha1.DriverCreateBucketResponse, error) {
	return &cosiv1alpha1.DriverCreateBucketResponse{BucketId: r.GetName()}, nil
}

func (stubDriver) DriverGrantBucketAccess(_ context.Context, r *cosiv1alpha1.DriverGrantBucketAccessRequest) (*cosiv1alpha1.DriverGrantBucketAccessResponse, error) {
	return &cosiv1alpha1.DriverGrantBucketAccessResponse{
		AccountId: r.GetName(),
		Credentials: map[string]*cosiv1alpha1.CredentialDetails{"s3": {Secrets: map[string]string{
			"endpoint": "http://127.0.0.1:1", "region": "stub", "accessKeyID": "stub", "accessSecretKey": "stub",
		}}},
	}, nil
}

// TestMain makes the test binary the stub driver, too: the cluster starts a
// driver with the socket's URL as its only argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if path, ok := strings.CutPrefix(os.Args[1], "unix://"); ok {
			if err := serveStub(path); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// serveStub serves the stub on a socket until SIGTERM.
func serveStub(path string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	cosiv1alpha1.RegisterIdentityServer(server, stubDriver{})
	cosiv1alpha1.RegisterProvisionerServer(server, stubDriver{})
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(listener)
}
