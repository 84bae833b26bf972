// Package cosi serves the driver to the COSI sidecar: one gRPC server, one
// face per API version, and the only place that knows gRPC.
package cosi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// The bounds that apply where Options leaves them zero.
const (
	// DefaultRPCTimeout bounds every call: no sidecar does.
	DefaultRPCTimeout = 90 * time.Second
	// DefaultShutdownTimeout fits into the 30 s that Kubernetes gives a pod.
	DefaultShutdownTimeout = 25 * time.Second
)

// Options is what a server or an in-process client needs.
type Options struct {
	Driver   *driver.Driver
	Endpoint string // unix:///absolute/path of the socket; unused by NewClient
	// RPCTimeout bounds every call; zero means DefaultRPCTimeout.
	RPCTimeout time.Duration
	// ShutdownTimeout is how long Run waits for running calls after its context
	// has ended; zero means DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	Registerer      prometheus.Registerer // nil keeps the figures private
	Logger          klog.Logger
	Version         string // of the program, for zuber_build_info
}

// Server serves COSI on a unix socket, together with gRPC's health service and
// reflection. The sidecars use neither; they are for people and probes. The
// health of "" says that the process serves; the health of a COSI service also
// says that the driver has a back end.
type Server struct {
	path     string
	shutdown time.Duration
	logger   klog.Logger
	grpc     *grpc.Server
	health   *health.Server
	// endStreams ends all streams: they have no end of their own.
	endStreams context.CancelFunc
	used       atomic.Bool
	serving    atomic.Bool
	driver     *driver.Driver
}

// NewServer checks the options, reporting all their faults at once. It touches
// no socket.
func NewServer(o Options) (*Server, error) {
	path, pathErr := socketPath(o.Endpoint)
	if err := errors.Join(o.check(), pathErr); err != nil {
		return nil, err
	}
	s := &Server{path: path, shutdown: o.ShutdownTimeout, logger: o.Logger, driver: o.Driver}
	if s.shutdown == 0 {
		s.shutdown = DefaultShutdownTimeout
	}
	var err error
	serving, end := context.WithCancel(context.Background())
	s.endStreams = end
	s.grpc, s.health, err = newGRPC(serving, o)
	return s, err
}

func (o Options) check() error {
	var faults []error
	if o.Driver == nil {
		faults = append(faults, fmt.Errorf("%w: no driver", provider.ErrInvalidArgument))
	}
	if o.RPCTimeout < 0 {
		faults = append(faults, fmt.Errorf("%w: RPC timeout %s is negative", provider.ErrInvalidArgument, o.RPCTimeout))
	}
	if o.ShutdownTimeout < 0 {
		faults = append(faults, fmt.Errorf("%w: shutdown timeout %s is negative", provider.ErrInvalidArgument, o.ShutdownTimeout))
	}
	return errors.Join(faults...)
}

// newGRPC builds what server and in-process client have in common. Streams end with
// the context.
func newGRPC(serving context.Context, o Options) (*grpc.Server, *health.Server, error) {
	m, err := newMetrics(o.Registerer, o.Version, o.Driver.Unconfigured())
	if err != nil {
		return nil, nil, err
	}
	limit := o.RPCTimeout
	if limit == 0 {
		limit = DefaultRPCTimeout
	}
	i := &interceptor{logger: o.Logger, metrics: m, limit: limit, serving: serving}
	srv := grpc.NewServer(grpc.UnaryInterceptor(i.unary), grpc.StreamInterceptor(i.stream))

	h := health.NewServer() // knows "" as serving
	ready := healthpb.HealthCheckResponse_SERVING
	if o.Driver.Unconfigured() {
		ready = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range append(registerV1alpha1(srv, o.Driver), registerV1alpha2(srv, o.Driver)...) {
		h.SetServingStatus(name, ready)
	}
	healthpb.RegisterHealthServer(srv, h)
	reflection.Register(srv)
	return srv, h, nil
}

// Run takes the socket and serves until ctx ends. Then it removes the socket,
// lets running calls finish within the bound, cancels what is left and returns
// nil. A socket that another process serves is an error. Run may be called once.
func (s *Server) Run(ctx context.Context) error {
	if s.used.Swap(true) {
		return errors.New("a server runs once")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := listen(ctx, s.path)
	if err != nil {
		return err
	}
	mine, err := os.Lstat(s.path)
	if err != nil {
		return errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(l) }()
	s.serving.Store(true)
	s.logger.Info("Serving COSI", "socket", s.path, "driver", s.driver.Name(), "configured", !s.driver.Unconfigured())

	select {
	case err = <-served:
		s.endStreams()
		s.serving.Store(false)
		s.removeSocket(mine)
		return fmt.Errorf("serve %s: %w", s.path, err)
	case <-ctx.Done():
	}
	s.serving.Store(false)
	s.health.Shutdown()
	s.endStreams()
	// The file goes while we still listen: afterwards a successor may put its own
	// there.
	s.removeSocket(mine)
	s.stop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve %s: %w", s.path, err)
	}
	return nil
}

// stop ends the calls, kindly within the bound and then by force.
func (s *Server) stop() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	bound := time.NewTimer(s.shutdown)
	defer bound.Stop()
	select {
	case <-done:
	case <-bound.C:
		s.logger.Info("Running calls did not finish in time and are cancelled", "timeout", s.shutdown)
		s.grpc.Stop()
		<-done
	}
}

// removeSocket removes the file unless another server has its own there: somebody
// may have removed ours while we served. Its number is not used again before we
// close it.
func (s *Server) removeSocket(mine os.FileInfo) {
	if there, err := os.Lstat(s.path); err == nil && !os.SameFile(there, mine) {
		s.logger.Info("The socket is another server's and is left alone", "socket", s.path)
		return
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.logger.Error(err, "Socket is left behind", "socket", s.path)
	}
}

// Ready reports whether the server serves and its driver has a back end.
func (s *Server) Ready() bool { return s.serving.Load() && !s.driver.Unconfigured() }
