package cosi

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestOptionsFaultsAllAtOnce(t *testing.T) {
	_, err := NewServer(Options{Endpoint: "cosi.sock", RPCTimeout: -1, ShutdownTimeout: -1})
	if !errors.Is(err, provider.ErrInvalidArgument) {
		t.Fatal(err)
	}
	for _, w := range []string{"no driver", "RPC timeout", "shutdown timeout", "unix://"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	if _, err := NewClient(Options{}); !errors.Is(err, provider.ErrInvalidArgument) {
		t.Errorf("client: %v", err)
	}
}

func info(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
	resp, err := cosiv1alpha1.NewIdentityClient(conn).DriverGetInfo(ctx, &cosiv1alpha1.DriverGetInfoRequest{})
	return resp.GetName(), err
}

func TestServeAndStop(t *testing.T) {
	o, logs := options(t, newDriver(t, &fake{}))
	r := start(t, o)
	if !r.server.Ready() {
		t.Error("not ready while serving")
	}
	if name, err := info(t.Context(), dial(t, r.path)); err != nil || name != "cosi.zuber.dev" {
		t.Errorf("%q, %v", name, err)
	}
	r.stop()
	if err := within(t, "Run returns", r.done); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(r.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if r.server.Ready() {
		t.Error("ready after the end")
	}
	if err := r.server.Run(t.Context()); err == nil {
		t.Error("it ran twice")
	}
	if !strings.Contains(logs.String(), "Serving COSI") {
		t.Error("the start is not logged")
	}
}

// Somebody removed the socket of a server that runs on, and another one began
// there.
func TestStopLeavesTheSocketOfAnotherServer(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	first := start(t, o)
	if err := os.Remove(first.path); err != nil {
		t.Fatal(err)
	}
	second := start(t, o)
	first.stop()
	if err := within(t, "Run returns", first.done); err != nil {
		t.Error(err)
	}
	if name, err := info(t.Context(), dial(t, second.path)); err != nil || name != "cosi.zuber.dev" {
		t.Errorf("the second server is not reached: %q, %v", name, err)
	}
}

func TestRunRefusesLiveSocket(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	r := start(t, o)
	second, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serves it already") {
		t.Errorf("got %v", err)
	}
	if second.Ready() {
		t.Error("the refused server is ready")
	}
	if _, err := info(t.Context(), dial(t, r.path)); err != nil {
		t.Errorf("the first server was disturbed: %v", err)
	}
}

func TestRunWithEndedContext(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// blocked is a server with one create running in it.
func blocked(t *testing.T, shutdown time.Duration) (r *running, release chan struct{}, answer chan error, ended chan error) {
	t.Helper()
	arrived := make(chan struct{})
	release, answer, ended = make(chan struct{}), make(chan error, 1), make(chan error, 1)
	p := &fake{onCreate: func(ctx context.Context, _ provider.BucketSpec) error {
		close(arrived)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			ended <- ctx.Err()
			return ctx.Err()
		}
	}}
	o, _ := options(t, newDriver(t, p))
	o.ShutdownTimeout = shutdown
	r = start(t, o)
	client := cosiv1alpha1.NewProvisionerClient(dial(t, r.path))
	go func() {
		_, err := client.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{
			Name: "bucket-1", Parameters: map[string]string{"region": "rma"}})
		answer <- err
	}()
	within(t, "the call arrives", arrived)
	return r, release, answer, ended
}

// TestStopLetsRunningCallsFinish: the end of the context is SIGTERM.
func TestStopLetsRunningCallsFinish(t *testing.T) {
	r, release, answer, _ := blocked(t, time.Minute)
	r.stop()
	eventually(t, "the socket is removed while the call runs", func() bool {
		_, err := os.Lstat(r.path)
		return errors.Is(err, os.ErrNotExist)
	})
	select {
	case err := <-r.done:
		t.Fatalf("Run returned before its call: %v", err)
	case err := <-answer:
		t.Fatalf("the call was cut off: %v", err)
	default:
	}
	// A successor may already serve at the same place.
	o, _ := options(t, newDriver(t, &fake{}))
	o.Endpoint = "unix://" + r.path
	next := start(t, o)
	close(release)
	if err := within(t, "the call ends", answer); err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := within(t, "Run returns", r.done); err != nil {
		t.Error(err)
	}
	if _, err := info(t.Context(), dial(t, next.path)); err != nil {
		t.Errorf("the successor lost its socket: %v", err)
	}
}

// TestStopEndsStreams: a watcher of the health, or somebody who looks at the
// services, does not hold the end up.
func TestStopEndsStreams(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	o.ShutdownTimeout = time.Hour // so that nothing but the end of the streams lets Run return
	r := start(t, o)
	conn := dial(t, r.path)
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := watch.Recv(); err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatal(resp, err)
	}
	look, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = look.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := look.Recv(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := within(t, "Run returns", r.done); err != nil {
		t.Error(err)
	}
	for {
		resp, err := watch.Recv()
		if err != nil {
			break
		}
		if resp.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			t.Error("the health is good after the end")
		}
	}
	if _, err := look.Recv(); err == nil {
		t.Error("the services are shown after the end")
	}
}

// TestStopIsBounded: what does not finish in time is cancelled.
func TestStopIsBounded(t *testing.T) {
	r, _, answer, ended := blocked(t, 50*time.Millisecond)
	r.stop()
	if err := within(t, "Run returns", r.done); err != nil {
		t.Error(err)
	}
	if err := within(t, "the call ends", answer); err == nil {
		t.Error("the call succeeded")
	}
	if err := within(t, "the work ends", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the work ended with %v", err)
	}
}

func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		p    provider.Provider
		want healthpb.HealthCheckResponse_ServingStatus
	}{
		"configured":   {&fake{}, healthpb.HealthCheckResponse_SERVING},
		"unconfigured": {nil, healthpb.HealthCheckResponse_NOT_SERVING},
	} {
		t.Run(name, func(t *testing.T) {
			o, logs := options(t, newDriver(t, c.p))
			r := start(t, o)
			client := healthpb.NewHealthClient(dial(t, r.path))
			for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
				"": healthpb.HealthCheckResponse_SERVING, "cosi.v1alpha1.Identity": c.want, "cosi.v1alpha1.Provisioner": c.want,
				"sigs.k8s.io.cosi.v1alpha2.Identity": c.want, "sigs.k8s.io.cosi.v1alpha2.Provisioner": c.want,
			} {
				resp, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
				if err != nil || resp.GetStatus() != want {
					t.Errorf("%q: %v, %v; want %v", service, resp.GetStatus(), err, want)
				}
			}
			if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
				t.Errorf("an unknown service: %v", err)
			}
			if r.server.Ready() != (c.p != nil) {
				t.Error("readiness differs from health")
			}
			if strings.Contains(logs.String(), "RPC done") {
				t.Error("health checks are logged like calls")
			}
		})
	}
}

// TestReflection lists the services, and describes those of both versions.
func TestReflection(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	r := start(t, o)
	stream, err := reflectionpb.NewServerReflectionClient(dial(t, r.path)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	found := map[string]bool{}
	for _, s := range ask(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		found[s.GetName()] = true
	}
	for _, want := range []string{
		"cosi.v1alpha1.Identity", "cosi.v1alpha1.Provisioner", "grpc.health.v1.Health",
		"sigs.k8s.io.cosi.v1alpha2.Identity", "sigs.k8s.io.cosi.v1alpha2.Provisioner",
	} {
		if !found[want] {
			t.Errorf("%s is not listed in %v", want, found)
		}
		files := ask(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: want}}).GetFileDescriptorResponse()
		if len(files.GetFileDescriptorProto()) == 0 {
			t.Errorf("%s is not described", want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

// TestPanicInStream is an error of that stream alone.
func TestPanicInStream(t *testing.T) {
	o, logs := options(t, newDriver(t, &fake{}))
	m, err := newMetrics(nil, o.Version, false)
	if err != nil {
		t.Fatal(err)
	}
	i := &interceptor{logger: o.Logger, metrics: m, limit: time.Second, serving: t.Context()}
	err = i.stream(nil, contextStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/x/Y"},
		func(any, grpc.ServerStream) error { panic(fakeSecret) })
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), fakeSecret) || strings.Contains(logs.String(), fakeSecret) {
		t.Errorf("got %v", err)
	}
}

// contextStream is a server stream that has nothing but a context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s contextStream) Context() context.Context { return s.ctx }
