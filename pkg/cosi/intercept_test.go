package cosi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func rpcFailure(t *testing.T, err error) *RPCError {
	t.Helper()
	var e *RPCError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an RPCError", err)
	}
	return e
}

// TestPanicIsInternal: a panic is an error of its own call and of no other.
func TestPanicIsInternal(t *testing.T) {
	for name, value := range map[string]any{"text": "token=" + fakeSecret, "error": errors.New(fakeSecret), "run-time": nil} {
		t.Run(name, func(t *testing.T) {
			p := &fake{onCreate: func(context.Context, provider.BucketSpec) error {
				if value == nil {
					var m map[string]int
					m["x"] = 1 //nolint:staticcheck // the panic of the run-time is what is tested
				}
				panic(value)
			}}
			o, logs := options(t, newDriver(t, p))
			registry := prometheus.NewRegistry()
			o.Registerer = registry
			c := inProcess(t, o)
			_, err := c.CreateBucket(t.Context(), "bucket-1", map[string]string{"region": "rma"})
			e := rpcFailure(t, err)
			if e.Code != codes.Internal.String() || !strings.Contains(e.Message, "panic") {
				t.Errorf("got %v", e)
			}
			if got := logs.String(); strings.Contains(got, fakeSecret) || !strings.Contains(got, "intercept.go") || strings.Count(got, "RPC panicked") != 1 {
				t.Errorf("logged %s", got)
			}
			if n, err := testutil.GatherAndCount(registry, "zuber_rpc_panics_total"); err != nil || n != 1 {
				t.Errorf("%d, %v", n, err)
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(
				"# HELP zuber_rpc_panics_total Calls that ended in a panic and were answered with Internal.\n"+
					"# TYPE zuber_rpc_panics_total counter\nzuber_rpc_panics_total 1\n"), "zuber_rpc_panics_total"); err != nil {
				t.Error(err)
			}
			if name, err := c.Info(t.Context()); err != nil || name != "cosi.zuber.dev" {
				t.Errorf("after the panic: %q, %v", name, err)
			}
			// The bucket's lock is free again.
			p.onCreate = nil
			if _, err := c.CreateBucket(t.Context(), "bucket-1", map[string]string{"region": "rma"}); err != nil {
				t.Errorf("after the panic: %v", err)
			}
		})
	}
}

// TestStatusOfALibrary: a status that some library below made does not become the
// answer, wrapped or not.
func TestStatusOfALibrary(t *testing.T) {
	below := status.Error(codes.AlreadyExists, "of another service")
	for name, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"with a sentinel": {fmt.Errorf("create: %w: %w", provider.ErrUnavailable, below), codes.Unavailable},
		"wrapped":         {fmt.Errorf("create: %w", below), codes.Internal},
		"bare":            {below, codes.Internal},
	} {
		o, _ := options(t, newDriver(t, &fake{}))
		m, err := newMetrics(nil, o.Version, false)
		if err != nil {
			t.Fatal(err)
		}
		i := &interceptor{logger: o.Logger, metrics: m, limit: time.Minute, serving: t.Context()}
		_, err = i.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: cosiv1alpha1.Provisioner_DriverCreateBucket_FullMethodName},
			func(context.Context, any) (any, error) { return nil, c.err })
		if status.Code(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestMethodThatAFaceLacks: the stub's own answer passes.
func TestMethodThatAFaceLacks(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	m, err := newMetrics(nil, o.Version, false)
	if err != nil {
		t.Fatal(err)
	}
	i := &interceptor{logger: o.Logger, metrics: m, limit: time.Minute, serving: t.Context()}
	_, err = i.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: cosiv1alpha1.Provisioner_DriverCreateBucket_FullMethodName},
		func(ctx context.Context, _ any) (any, error) {
			return cosiv1alpha1.UnimplementedProvisionerServer{}.DriverCreateBucket(ctx, nil)
		})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

// TestHungBackEnd: no sidecar sets a deadline, so the driver does.
func TestHungBackEnd(t *testing.T) {
	p := &fake{onCreate: func(ctx context.Context, s provider.BucketSpec) error {
		<-ctx.Done()
		return fmt.Errorf("create bucket %s: %w: %w", s.Name, provider.ErrUnavailable, ctx.Err())
	}}
	o, _ := options(t, newDriver(t, p))
	o.RPCTimeout = 50 * time.Millisecond
	c := inProcess(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // so that an unbounded driver fails, not hangs
	defer cancel()
	_, err := c.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"})
	e := rpcFailure(t, err)
	if e.Code != codes.DeadlineExceeded.String() || !strings.Contains(e.Message, "not finished within 50ms") || !strings.Contains(e.Message, "bucket-1") {
		t.Errorf("got %v", e)
	}
}

// TestCallersDeadlineIsKept: a shorter deadline of the caller's ends the work.
func TestCallersDeadlineIsKept(t *testing.T) {
	ended := make(chan error, 1)
	p := &fake{onCreate: func(ctx context.Context, _ provider.BucketSpec) error {
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	o, _ := options(t, newDriver(t, p))
	c := inProcess(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"}); err == nil {
		t.Error("no error")
	}
	if err := within(t, "the work ends", ended); err == nil {
		t.Error("no cause")
	}
}

// TestOneLinePerRPC, with no secret and no parameter in it.
func TestOneLinePerRPC(t *testing.T) {
	const parameterSecret = "hunter2hunter2"
	p := &fake{}
	o, logs := options(t, newDriver(t, p))
	c := inProcess(t, o)
	ctx := t.Context()
	id, err := c.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma"})
	if err != nil {
		t.Fatal(err)
	}
	granted, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil || granted.SecretAccessKey.Reveal() != fakeSecret {
		t.Fatalf("%v, %v", granted, err)
	}
	if err := c.RevokeAccess(ctx, id, granted.AccountID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteBucket(ctx, id, map[string]string{"region": "rma"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateBucket(ctx, "bucket-2", map[string]string{"region": "rma", "apiToken": parameterSecret})
	if e := rpcFailure(t, err); e.Code != codes.InvalidArgument.String() || strings.Contains(e.Message, parameterSecret) {
		t.Error(e)
	}
	if _, err := c.GrantAccess(ctx, strings.Repeat("x", 100_000), "ba-1", nil); err == nil {
		t.Error("granted")
	}
	if _, err := c.CreateBucket(ctx, "a\nfaked line", nil); err == nil {
		t.Error("created")
	}
	got := logs.String()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 7 {
		t.Errorf("7 calls made %d lines:\n%s", len(lines), got)
	}
	for i, want := range []string{
		`method="DriverCreateBucket" bucket="bucket-1" code="OK" duration=`, `method="DriverGrantBucketAccess" bucket="` + id + `" account="ba-1" code="OK"`,
		`account="` + granted.AccountID + `"`, `method="DriverDeleteBucket"`, `code="InvalidArgument"`, `err=`,
	} {
		if i < len(lines) && !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %s:\n%s", i, want, lines[i])
		}
	}
	for _, secret := range []string{fakeSecret, parameterSecret} {
		if strings.Contains(got, secret) {
			t.Errorf("%q was logged", secret)
		}
	}
	if len(got) > 8000 {
		t.Errorf("an oversized ID was logged whole: %d bytes", len(got))
	}
}

// TestMetricNames compares with the committed list, which dashboards rely on.
func TestMetricNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	o, _ := options(t, newDriver(t, nil))
	o.Registerer = registry
	c := inProcess(t, o)
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateBucket(t.Context(), "bucket-1", nil); err == nil {
		t.Fatal("created")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		labels := map[string]bool{}
		var names []string
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !labels[l.GetName()] {
					labels[l.GetName()] = true
					names = append(names, l.GetName())
				}
			}
		}
		fmt.Fprintf(&got, "%s %s {%s} %s\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(names, ","), f.GetHelp())
	}
	want, err := os.ReadFile(filepath.Join("testdata", "metrics.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	for text, metric := range map[string]string{
		"# HELP zuber_unconfigured 1 while the driver has no back end and refuses every call, else 0.\n# TYPE zuber_unconfigured gauge\nzuber_unconfigured 1\n": "zuber_unconfigured",
	} {
		if err := testutil.GatherAndCompare(registry, strings.NewReader(text), metric); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoServersShareARegisterer: serve and selftest may live in one process.
func TestTwoServersShareARegisterer(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		o, _ := options(t, newDriver(t, &fake{}))
		o.Registerer = registry
		if _, err := inProcess(t, o).Info(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := testutil.GatherAndCount(registry, "zuber_rpc_duration_seconds"); err != nil || n != 1 {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestEightyConcurrentRPCs is the most that a v1alpha1 sidecar sends.
func TestEightyConcurrentRPCs(t *testing.T) {
	arrived := make(chan struct{}, 80)
	release := make(chan struct{})
	p := &fake{onCreate: func(ctx context.Context, _ provider.BucketSpec) error {
		arrived <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	o, _ := options(t, newDriver(t, p))
	r := start(t, o)
	client := cosiv1alpha1.NewProvisionerClient(dial(t, r.path))
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			_, err := client.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{
				Name: fmt.Sprintf("bucket-%d", i), Parameters: map[string]string{"region": "rma"}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 80 {
		within(t, "all calls run at the same time", arrived)
	}
	close(release)
	wg.Wait()
}

// TestUnknownMethod is answered by gRPC itself and harms nothing.
func TestUnknownMethod(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	r := start(t, o)
	conn := dial(t, r.path)
	for _, method := range []string{
		"/cosi.v1alpha1.Provisioner/Nope", "/cosi.v1alpha1.Provisioner/DriverGetBucket", "/sigs.k8s.io.cosi.v9.Provisioner/DriverCreateBucket",
		"/sigs.k8s.io.cosi.v1alpha2.Provisioner/DriverGenerateBucketId",
	} {
		err := conn.Invoke(t.Context(), method, &cosiv1alpha1.DriverGetInfoRequest{}, &cosiv1alpha1.DriverGetInfoResponse{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
}
