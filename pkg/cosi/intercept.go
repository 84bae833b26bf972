package cosi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
)

// interceptor is what surrounds every call: from the outside in, the log line
// and the figures, the recovery from a panic, the time limit, and the
// translation of errors.
type interceptor struct {
	logger  klog.Logger
	metrics *metrics
	limit   time.Duration
	serving context.Context // ends with the server, and streams with it
}

// calledMethod is a full method name in its parts.
type calledMethod struct {
	cosi    bool       // one of COSI's services, not a health check or the like
	version APIVersion // of a COSI method
	name    string     // without the service
}

func methodOf(full string) calledMethod {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	switch {
	case strings.HasPrefix(service, "cosi.v1alpha1."):
		return calledMethod{cosi: true, version: V1alpha1, name: name}
	case strings.HasPrefix(service, "sigs.k8s.io.cosi.v1alpha2."):
		return calledMethod{cosi: true, version: V1alpha2, name: name}
	}
	return calledMethod{name: service + "/" + name}
}

// maxLogged bounds a value in the log, in bytes: anybody may have sent it.
const maxLogged = 256

// unary runs one call.
func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	m := methodOf(info.FullMethod)
	if !m.cosi {
		resp, failure, err := i.recovered(ctx, m, req, handler)
		if failure != nil {
			i.logger.Error(err, "Call panicked", "method", m.name, "panic", failure.value, "stack", failure.stack)
		}
		return resp, err
	}
	start := time.Now()
	logger := i.logger.WithValues("apiVersion", string(m.version), "method", m.name)
	logger = logger.WithValues(m.fits()...).WithValues(subject(req)...)
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), i.limit)
	defer cancel()
	resp, failure, err := i.recovered(ctx, m, req, handler)
	took := time.Since(start)
	code := status.Code(err)
	i.metrics.observe(string(m.version), m.name, code, took)
	switch {
	case failure != nil:
		logger.Error(err, "RPC panicked", "code", code.String(), "duration", took, "panic", failure.value, "stack", failure.stack)
	case err != nil:
		logger.Error(errors.New(status.Convert(err).Message()), "RPC failed", "code", code.String(), "duration", took)
	default:
		logger.Info("RPC done", "code", code.String(), "duration", took)
	}
	return resp, err
}

// panicked describes a recovered panic for the log.
type panicked struct{ value, stack string }

// recovered calls the handler, answers a panic with Internal, and turns the
// driver's errors into statuses. A panic's value may quote anything, secrets
// included, so only the run-time's own errors are repeated.
func (i *interceptor) recovered(ctx context.Context, m calledMethod, req any, handler grpc.UnaryHandler) (resp any, failure *panicked, err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		i.metrics.panics.Inc()
		failure = &panicked{value: fmt.Sprintf("%T", v), stack: string(debug.Stack())}
		if e, ok := v.(runtime.Error); ok {
			failure.value = e.Error()
		}
		resp, err = nil, status.Errorf(codes.Internal, "%s ended in a fault of the driver (panic); its log has the details", m.name)
	}()
	resp, err = handler(ctx, req)
	if err == nil || !m.cosi {
		return resp, nil, err
	}
	// The stubs of what a face lacks answer with a status of their own. Any other,
	// wrapped or not, is of a library below and says nothing about this call.
	own, ok := err.(interface{ GRPCStatus() *status.Status })
	if !ok || own.GRPCStatus().Code() != codes.Unimplemented {
		err = statusOf(ctx, m.version, i.limit, err)
	}
	return nil, nil, err
}

// stream answers a panic in a streaming call, such as reflection, with Internal, and
// ends it with the server: it would otherwise last as long as its client wants.
func (i *interceptor) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	defer context.AfterFunc(i.serving, cancel)()
	ss = endingStream{ss, ctx}
	_, failure, err := i.recovered(ctx, calledMethod{name: info.FullMethod}, nil, func(context.Context, any) (any, error) {
		return nil, handler(srv, ss)
	})
	if failure != nil {
		i.logger.Error(err, "Call panicked", "method", info.FullMethod, "panic", failure.value, "stack", failure.stack)
	}
	return err
}

// endingStream is a stream that ends with a context of the server's.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s endingStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream: when the server ends, the client has nothing
// more to say.
func (s endingStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		// What still waits ends with the call.
		return io.EOF
	}
}

// fits says on the one call that every sidecar makes first which sidecars it may
// be: all revisions of v1alpha2 go by the same name.
func (m calledMethod) fits() []any {
	if m.name != "DriverGetInfo" {
		return nil
	}
	sidecar := "objectstorage-sidecar v0.2.2"
	if m.version == V1alpha2 {
		sidecar = "objectstorage-sidecar of upstream's v1alpha2 of March 2026; none with two-phase IDs (DriverGenerateBucketId)"
	}
	return []any{"fittingSidecar", sidecar}
}

// subject says what a request is about, in keys and values for the log, and
// nothing else of it: parameters and credentials never reach the log.
func subject(req any) []any {
	var out []any
	add := func(key, value string) { out = append(out, key, oneLine(value, maxLogged)) }
	name, named := req.(interface{ GetName() string })
	switch r := req.(type) {
	case interface{ GetBucketId() string }:
		add("bucket", r.GetBucketId())
		if named {
			add("account", name.GetName())
		}
	case interface{ GetExistingBucketId() string }:
		add("bucket", r.GetExistingBucketId())
	case *v1alpha2pb.DriverGrantBucketAccessRequest:
		out = append(out, accessed(r.GetBuckets())...)
		add("account", r.GetAccountName())
	case *v1alpha2pb.DriverRevokeBucketAccessRequest:
		out = append(out, accessed(r.GetBuckets())...)
	default:
		if named {
			add("bucket", name.GetName())
		}
	}
	if r, ok := req.(interface{ GetAccountId() string }); ok {
		add("account", r.GetAccountId())
	}
	return out
}

// maxLoggedBuckets bounds how many buckets of an access are named.
const maxLoggedBuckets = 5

// accessed names the buckets of an access, of many the first ones.
func accessed[B interface{ GetBucketId() string }](buckets []B) []any {
	ids := make([]string, 0, maxLoggedBuckets)
	for _, b := range buckets[:min(len(buckets), maxLoggedBuckets)] {
		ids = append(ids, oneLine(b.GetBucketId(), maxLogged))
	}
	if len(buckets) == 1 {
		return []any{"bucket", ids[0]}
	}
	return []any{"buckets", ids, "bucketCount", len(buckets)}
}
