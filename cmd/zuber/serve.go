package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/companion"
	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
)

func newServe(a *app) *cobra.Command {
	var s serveSettings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve COSI on a unix socket, for the sidecar",
		Long: `Serve COSI v1alpha1 on a unix socket, for the sidecar.

Without credentials the driver serves unconfigured: it answers every call with
the remedy and reports itself as not ready. A signal ends it gracefully, a
second one at once.`,
		Args: noArgs,
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.apply(a.env)
		warnUnknown(a.stderr, cmd.Root(), a.env)
		s.check(c, a.env)
		specs := s.resolve(c, a.env)
		if err := c.err(); err != nil {
			return err
		}
		logger := newLogger(a.stderr, s.logSettings)
		return serve(klog.NewContext(cmd.Context(), logger), s, specs)
	}
	return cmd
}

// serve runs the driver until ctx ends, which is no error.
func serve(ctx context.Context, s serveSettings, specs []backendSpec) (err error) {
	logger := klog.FromContext(ctx)
	build := readBuild()
	logger.Info("Starting zuber", "version", build.Version, "commit", build.Commit, "go", build.Go)

	if s.Emulate {
		cloud, emulated, startErr := startEmulator(s.backendSettings, false) //nolint:contextcheck // the emulator ends with Close
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, cloud.Close()) }()
		specs = emulated
		s.AllowDeleteAll = true
		for _, spec := range specs {
			logger.Info("Emulating a cloud in this process: nothing is kept", "backend", spec.Name, "apiURL", spec.APIURL, "endpoints", spec.Endpoints)
		}
	}
	for _, target := range withoutTLS(specs) {
		logger.Info("Warning: credentials travel without TLS", "url", target)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	backends, err := openAll(specs, wiring{
		DriverName: s.DriverName, ClusterID: s.ClusterID, MaxConcurrent: s.MaxConcurrentRequests,
		Reloads: newReloads(registry, logger), OnProbe: newVerdicts(registry).found, Endpoints: newEndpoints(registry, logger), Clouds: newClouds(registry),
	})
	if err != nil {
		return err
	}
	work := newChanges(registry)
	for _, b := range backends {
		work.known(b.Name)
		logger.Info("Back end configured", "backend", b.Name, "provider", b.Kind)
	}
	objects := companion.NewMetrics()
	registry.MustRegister(objects)
	beside := newCompanion(ctx, s, objects)
	config := driver.Config{
		Name:           s.DriverName,
		ClusterID:      s.ClusterID,
		Backends:       backends,
		AllowDeleteAll: s.AllowDeleteAll,
		RevokeGrace:    graceOf(s),
		Observer:       work,
	}
	if beside != nil {
		config.WipeOnDelete, config.Claims = beside.WipeOnDelete, beside
	}
	d, err := driver.New(config)
	if err != nil {
		return err
	}
	if d.Unconfigured() {
		logger.Info("Warning: no credentials, serving unconfigured: every call is refused until the driver is restarted with "+
			envToken+", "+envTokenFile+", "+envStackitKeyPath+" or --"+flagConfig, "driver", d.Name())
	}
	server, err := cosi.NewServer(cosi.Options{ //nolint:contextcheck // it ends with Serve
		Driver:          d,
		Endpoint:        s.Endpoint,
		RPCTimeout:      s.RPCTimeout,
		ShutdownTimeout: s.ShutdownTimeout,
		Registerer:      registry,
		Logger:          logger,
		Version:         build.Version,
	})
	if err != nil {
		return err
	}
	watch := newMonitor(backends, registry, logger)
	audits := newPatrol(backends, s, registry, logger)
	amounts := newUsage(backends, s, registry, logger)
	ready := func() error { return readiness(server, d, watch) }
	return runAll(ctx, s, server, parts{watch: watch, audits: audits, amounts: amounts, driver: d, beside: beside, gatherer: registry, ready: ready})
}

// graceOf turns the flag's "0 is none" into the driver's "negative is none".
func graceOf(s serveSettings) time.Duration {
	if s.RevokeGrace == 0 {
		return -1
	}
	return s.RevokeGrace
}

// parts are what runs around the server.
type parts struct {
	watch    *monitor
	audits   *patrol
	amounts  *usage
	driver   *driver.Driver
	beside   *companion.Companion // may be nil
	gatherer prometheus.Gatherer
	ready    func() error
}

// runAll runs the parts of the server until ctx ends or one of them fails. The
// HTTP side outlives the COSI side, so that a probe during the shutdown hears
// "not ready" instead of nothing.
func runAll(ctx context.Context, s serveSettings, server *cosi.Server, p parts) error {
	logger := klog.FromContext(ctx)
	web, err := newWebServer(ctx, s, p.gatherer, p.ready)
	if err != nil {
		return err
	}
	served := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(served)
		// A signal that arrives before the socket is open is no failure either.
		if err := server.Run(groupCtx); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	group.Go(func() error { return web.run(groupCtx, served) })
	group.Go(func() error {
		p.watch.run(groupCtx)
		return nil
	})
	group.Go(func() error {
		p.audits.run(groupCtx)
		return nil
	})
	group.Go(func() error {
		p.amounts.run(groupCtx)
		return nil
	})
	if p.beside != nil {
		group.Go(func() error {
			p.beside.Run(groupCtx, p.driver)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	logger.Info("Stopped")
	return nil
}

// readiness says why the driver cannot do its work. An outage of a cloud is no
// reason: the next call may succeed, and a restart would help nothing.
func readiness(server *cosi.Server, d *driver.Driver, watch *monitor) error {
	var reasons []string
	switch {
	case d.Unconfigured():
		reasons = append(reasons, "unconfigured: no credentials were given")
	case !server.Ready():
		reasons = append(reasons, "the COSI socket is not served")
	}
	for name, doubt := range watch.doubts() {
		reasons = append(reasons, fmt.Sprintf("back end %s: %v", name, doubt))
	}
	if len(reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(reasons, "\n"))
}
