package cosi

import (
	"context"
	"fmt"
	"iter"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2/textlogger"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// fakeSecret is the secret key that every fake grant hands out.
const fakeSecret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t"

// fake is a provider that always succeeds, unless a hook says otherwise.
type fake struct {
	onCreate func(context.Context, provider.BucketSpec) error
	onGet    func(provider.BucketRef) (provider.Bucket, error)
	onGrant  func(context.Context, provider.AccessSpec) error
	onRevoke func(provider.AccountRef) error

	virtualHosted bool // of every bucket
}

func (f *fake) CreateBucket(ctx context.Context, s provider.BucketSpec) (provider.Bucket, error) {
	if f.onCreate != nil {
		if err := f.onCreate(ctx, s); err != nil {
			return provider.Bucket{}, err
		}
	}
	return f.bucket(provider.BucketRef{Name: s.Name, Region: s.Region}), nil
}

func (f *fake) bucket(ref provider.BucketRef) provider.Bucket {
	ref.OwnerID = "owner1"
	return provider.Bucket{BucketRef: ref, Endpoint: "https://objects.example", SigningRegion: "sign-" + ref.Region, VirtualHosted: f.virtualHosted}
}

func (f *fake) GetBucket(_ context.Context, ref provider.BucketRef) (provider.Bucket, error) {
	if f.onGet != nil {
		return f.onGet(ref)
	}
	return f.bucket(ref), nil
}

func (*fake) DeleteBucket(context.Context, provider.BucketRef, provider.DeleteOptions) error {
	return nil
}

func (f *fake) GrantAccess(ctx context.Context, s provider.AccessSpec) (provider.Access, error) {
	if f.onGrant != nil {
		if err := f.onGrant(ctx, s); err != nil {
			return provider.Access{}, err
		}
	}
	a := provider.Access{Credentials: provider.Credentials{AccessKeyID: "AKID", SecretAccessKey: provider.NewSecret(fakeSecret)}}
	for _, b := range s.Buckets {
		a.Buckets = append(a.Buckets, f.bucket(b.BucketRef))
	}
	return a, nil
}

func (f *fake) RevokeAccess(_ context.Context, ref provider.AccountRef) error {
	if f.onRevoke != nil {
		return f.onRevoke(ref)
	}
	return nil
}

func (*fake) RotateAccess(context.Context, provider.AccountRef, provider.RotateOptions) (provider.Credentials, error) {
	return provider.Credentials{}, fmt.Errorf("rotate: %w", provider.ErrUnsupported)
}

func (*fake) RetireKeys(context.Context, provider.AccountRef, string) error {
	return provider.ErrUnsupported
}

func (*fake) Inventory(context.Context) iter.Seq2[provider.Resource, error] {
	return func(func(provider.Resource, error) bool) {}
}

func (*fake) Regions(context.Context) ([]string, error) { return []string{"rma"}, nil }

func (*fake) Capabilities() provider.Capabilities { return provider.Capabilities{} }

// newDriver is a driver over one back end named "cloudscale"; without a
// provider it is unconfigured.
func newDriver(t testing.TB, p provider.Provider) *driver.Driver {
	t.Helper()
	cfg := driver.Config{Name: "cosi.zuber.dev", AllowDeleteAll: true}
	if p != nil {
		cfg.Backends = []driver.Backend{{Name: "cloudscale", Kind: "cloudscale", Provider: p}}
	}
	d, err := driver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// logBuffer collects what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// options are a server's on a fresh socket, logging everything into the buffer.
func options(t testing.TB, d *driver.Driver) (Options, *logBuffer) {
	t.Helper()
	logs := &logBuffer{}
	return Options{
		Driver:          d,
		Endpoint:        "unix://" + filepath.Join(t.TempDir(), "cosi.sock"),
		RPCTimeout:      time.Minute,
		ShutdownTimeout: time.Minute,
		Logger:          textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logs), textlogger.Verbosity(10))),
		Version:         "v0.0.0-test",
	}, logs
}

// running is a server that runs until the test ends or stop is called.
type running struct {
	server *Server
	path   string
	stop   context.CancelFunc
	done   chan error // receives the result of Run once
}

// start runs a server and returns once its socket accepts.
func start(t *testing.T, o Options) *running {
	t.Helper()
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{server: s, path: s.path, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		s.grpc.Stop()
	})
	eventually(t, "the socket accepts", func() bool {
		select {
		case err := <-r.done:
			t.Fatalf("the server ended: %v", err)
		default:
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", r.path)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return r
}

// dial connects to a socket as a sidecar does.
func dial(t testing.TB, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// alpha1 is v1alpha1's own client of the same faces.
func (c *Client) alpha1() cosiv1alpha1.ProvisionerClient {
	return cosiv1alpha1.NewProvisionerClient(c.process.conn)
}

// alpha2 is v1alpha2's own client of the same faces.
func (c *Client) alpha2() v1alpha2pb.ProvisionerClient {
	return v1alpha2pb.NewProvisionerClient(c.process.conn)
}

// inProcess is a client over the same faces, closed with the test.
func inProcess(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// within receives from a channel, or fails the test.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

// untouched is a provider that no call may reach.
type untouched struct {
	fake
	t *testing.T
}

func (u *untouched) CreateBucket(context.Context, provider.BucketSpec) (provider.Bucket, error) {
	u.t.Error("a bucket was created")
	return provider.Bucket{}, nil
}

func (u *untouched) GetBucket(context.Context, provider.BucketRef) (provider.Bucket, error) {
	u.t.Error("a bucket was looked up")
	return provider.Bucket{}, nil
}

func (u *untouched) DeleteBucket(context.Context, provider.BucketRef, provider.DeleteOptions) error {
	u.t.Error("a bucket was deleted")
	return nil
}

func (u *untouched) GrantAccess(context.Context, provider.AccessSpec) (provider.Access, error) {
	u.t.Error("an access was granted")
	return provider.Access{}, nil
}

func (u *untouched) RevokeAccess(context.Context, provider.AccountRef) error {
	u.t.Error("an access was revoked")
	return nil
}
