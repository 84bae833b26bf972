package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// webStop bounds how long scrapes may run on after the end.
const webStop = 3 * time.Second

// webServer answers /metrics, /healthz and /readyz.
type webServer struct {
	listener net.Listener // nil when it is turned off
	server   *http.Server
}

// newWebServer listens on the metrics address, if there is one.
func newWebServer(ctx context.Context, s serveSettings, gatherer prometheus.Gatherer, ready func() error) (*webServer, error) {
	if !s.metricsEnabled() {
		return &webServer{}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.MetricsAddress)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagMetricsAddress, err)
	}
	klog.FromContext(ctx).Info("Serving metrics and probes", "address", listener.Addr().String())
	return &webServer{
		listener: listener,
		server: &http.Server{
			Handler:           webHandler(gatherer, ready),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
		},
	}, nil
}

// run serves until ctx ends and after has been closed.
func (w *webServer) run(ctx context.Context, after <-chan struct{}) error {
	if w.listener == nil {
		<-after
		return nil
	}
	failed := make(chan error, 1)
	go func() { failed <- w.server.Serve(w.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve metrics: %w", err)
	case <-after:
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), webStop)
	defer cancel()
	if err := w.server.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop metrics: %w", err)
	}
	// What is still open after the bound is cut.
	return w.server.Close()
}

func webHandler(gatherer prometheus.Gatherer, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })
	return mux
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
