package compat

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cosi "sigs.k8s.io/container-object-storage-interface-spec"
)

const (
	repository = "../.."
	driverName = "compat.zuber.dev"
	patience   = 30 * time.Second
)

// output collects what the binary prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is a running binary.
type process struct {
	cmd    *exec.Cmd
	socket string
	logs   *output
	exited chan struct{} // closed when it has ended
	result error         // set before exited is closed
}

// serve builds the binary, runs it over the emulator and returns once its
// socket is there.
func serve(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "zuber")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/zuber")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	p := &process{socket: filepath.Join(dir, "cosi", "cosi.sock"), logs: &output{}, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve",
		"--endpoint", "unix://"+p.socket, "--driver-name", driverName, "--metrics-address", "127.0.0.1:0", "--emulate")
	p.cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		p.result = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		select {
		case <-p.exited:
		default:
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
		if t.Failed() {
			t.Logf("the binary printed:\n%s", p.logs)
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		if _, err := os.Stat(p.socket); err == nil {
			return p
		}
		select {
		case <-tick.C:
		case <-p.exited:
			t.Fatalf("the binary ended: %v", p.result)
		case <-limit:
			t.Fatal("there is no socket")
		}
	}
}

// TestOlderWire takes a bucket through its life.
func TestOlderWire(t *testing.T) {
	p := serve(t)
	conn, err := grpc.NewClient("unix://"+p.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	info, err := cosi.NewIdentityClient(conn).DriverGetInfo(ctx, &cosi.DriverGetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.GetName() != driverName {
		t.Fatalf("DriverGetInfo: %v, %v", info, err)
	}

	client := cosi.NewProvisionerClient(conn)
	create := &cosi.DriverCreateBucketRequest{Name: "bucket-compat", Parameters: map[string]string{"backend": "cloudscale", "region": "rma"}}
	bucket, err := client.DriverCreateBucket(ctx, create)
	if err != nil || bucket.GetBucketId() == "" {
		t.Fatalf("create: %v, %v", bucket, err)
	}
	if s := bucket.GetBucketInfo().GetS3(); s.GetRegion() == "" || s.GetSignatureVersion() != cosi.S3SignatureVersion_S3V4 {
		t.Errorf("bucket info: %v", bucket.GetBucketInfo())
	}
	again, err := client.DriverCreateBucket(ctx, create)
	if err != nil || again.GetBucketId() != bucket.GetBucketId() {
		t.Errorf("create again: %v, %v; first %v", again, err, bucket)
	}

	grant := &cosi.DriverGrantBucketAccessRequest{
		BucketId: bucket.GetBucketId(), Name: "ba-compat", AuthenticationType: cosi.AuthenticationType_Key}
	access, err := client.DriverGrantBucketAccess(ctx, grant)
	if err != nil || access.GetAccountId() == "" || len(access.GetCredentials()) != 1 {
		t.Fatalf("grant: account %q, %v", access.GetAccountId(), err)
	}
	secrets := access.GetCredentials()["s3"].GetSecrets()
	for _, key := range []string{"accessKeyID", "accessSecretKey", "endpoint", "region"} {
		if secrets[key] == "" {
			t.Errorf("grant: %s is missing", key)
		}
	}
	regrant, err := client.DriverGrantBucketAccess(ctx, grant)
	if err != nil || regrant.GetAccountId() != access.GetAccountId() {
		t.Errorf("grant again: account %q, %v; first %q", regrant.GetAccountId(), err, access.GetAccountId())
	}

	if _, err := client.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: bucket.GetBucketId()}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete with a live access: %v", err)
	}
	revoke := &cosi.DriverRevokeBucketAccessRequest{BucketId: bucket.GetBucketId(), AccountId: access.GetAccountId()}
	for range 2 {
		if _, err := client.DriverRevokeBucketAccess(ctx, revoke); err != nil {
			t.Errorf("revoke: %v", err)
		}
	}
	for range 2 {
		if _, err := client.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: bucket.GetBucketId()}); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if _, err := client.DriverDeleteBucket(ctx, &cosi.DriverDeleteBucketRequest{BucketId: "minio/x/y"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("delete of a foreign bucket: %v", err)
	}

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("SIGTERM does not end it")
	}
	if p.result != nil {
		t.Errorf("after SIGTERM: %v", p.result)
	}
	if _, err := os.Stat(p.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if logs := p.logs.String(); strings.Contains(logs, secrets["accessSecretKey"]) {
		t.Error("a secret key was logged")
	}
}
