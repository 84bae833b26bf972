package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
)

func newSelftest(a *app) *cobra.Command {
	var s selftestSettings
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Run the whole life of a bucket through the driver and report every step",
		Long: `Run the whole life of a bucket through the driver and report every step.

For every back end and region it makes two buckets with names of its own, uses
them, deletes them and checks that nothing is left. With --emulate it needs no account. The exit code is 0
when every step passed, 1 when one failed and 2 for a usage fault.`,
		Args: noArgs,
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.apply(a.env)
		warnUnknown(a.stderr, cmd.Root(), a.env)
		s.check(c)
		specs := s.resolve(c, a.env)
		if len(c.faults) == 0 && !s.Emulate && len(specs) == 0 {
			c.addf("no credentials: set %s, %s, %s or %s, or name a file with --%s, or use --%s, which needs no account",
				envToken, envTokenFile, envStackitKey, envStackitKeyPath, flagConfig, flagEmulate)
		}
		if err := c.err(); err != nil {
			return err
		}
		return selftest(cmd.Context(), a, s, specs)
	}
	return cmd
}

// selftest runs the steps for each back end and region. Failures of steps are
// in the report; the error is then errReported.
func selftest(ctx context.Context, a *app, s selftestSettings, specs []backendSpec) (err error) {
	if s.Emulate {
		cloud, emulated, startErr := startEmulator(s.backendSettings, !s.PathStyle) //nolint:contextcheck // the emulator ends with Close
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, cloud.Close()) }()
		specs = emulated
	}
	backends, err := openAll(specs, wiring{
		DriverName: s.DriverName, ClusterID: s.ClusterID,
		OnKeyWait: func(region string, waited time.Duration) {
			if waited < time.Second {
				return // not worth a line
			}
			_, _ = fmt.Fprintf(a.stderr, "      … waiting until %s knows the new key (%s)\n", region, seconds(waited))
		},
	})
	if err != nil {
		return err
	}
	chosen, err := choose(backends, s.Backend)
	if err != nil {
		return err
	}
	d, err := driver.New(driver.Config{Name: s.DriverName, ClusterID: s.ClusterID, Backends: backends})
	if err != nil {
		return err
	}
	logger := logr.Discard()
	if s.Verbosity > 0 {
		logger = newLogger(a.stderr, logSettings{Verbosity: s.Verbosity, Format: formatText})
	}
	// For what asks a provider without the driver.
	ctx = klog.NewContext(ctx, logger)
	client, err := cosi.NewClient(cosi.Options{Driver: d, Logger: logger, Version: readBuild().Version}) //nolint:contextcheck // it ends with Close
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	reporter := newReporter(a.stdout, s)
	passed := true
	regions := slices.Compact(slices.Sorted(slices.Values(s.Regions)))
	tested := map[string]bool{}
	for _, b := range chosen {
		t := tester{
			settings:    s,
			client:      client.Speaking(cosi.APIVersion(s.APIVersion)),
			backend:     b,
			nameBackend: len(backends) > 1,
			regions:     regions,
			mayLack:     len(chosen) > 1,
			transport:   transportOf(specs, b.Name),
			reporter:    reporter,
			notes:       a.stderr,
		}
		passed = t.run(ctx, tested) && passed
	}
	if err := reporter.err(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !passed {
		return errReported
	}
	for _, region := range regions {
		if !tested[region] {
			return fmt.Errorf("--%s %q: no back end has it", flagRegion, region)
		}
	}
	return nil
}

// choose picks the back end of that name, or all for no name.
func choose(backends []driver.Backend, name string) ([]driver.Backend, error) {
	if name == "" {
		return backends, nil
	}
	names := make([]string, 0, len(backends))
	for _, b := range backends {
		if b.Name == name {
			return []driver.Backend{b}, nil
		}
		names = append(names, b.Name)
	}
	return nil, &usageError{fmt.Errorf("--%s %q: there is no such back end: want %s", flagBackend, name, strings.Join(names, " or "))}
}

func transportOf(specs []backendSpec, name string) http.RoundTripper {
	for _, s := range specs {
		if s.Name == name {
			return s.Transport
		}
	}
	return nil
}

// tester tests one back end.
type tester struct {
	settings    selftestSettings
	client      *cosi.Client
	backend     driver.Backend
	nameBackend bool     // several back ends: the class must name one
	regions     []string // to test; none means all
	mayLack     bool     // a region to test may be that of another back end
	transport   http.RoundTripper
	reporter    reporter
	notes       io.Writer // for people, beside the report
}

// run tests the regions, notes them in tested, and reports whether all passed.
func (t tester) run(ctx context.Context, tested map[string]bool) bool {
	regions := t.regions
	if len(regions) == 0 || t.mayLack {
		offered, err := t.offered(ctx)
		if err != nil {
			r := t.newResult("")
			t.reporter.begin(r, t.settings)
			r.add(stepResult{Name: "list regions", Detail: err.Error()})
			t.reporter.step(r)
			t.reporter.end(r)
			return false
		}
		regions = slices.DeleteFunc(offered, func(region string) bool {
			return len(t.regions) > 0 && !slices.Contains(t.regions, region)
		})
	}
	passed := true
	for _, region := range regions {
		tested[region] = true
		passed = t.runRegion(ctx, region) && passed
		if ctx.Err() != nil {
			return false
		}
	}
	return passed
}

// newResult is the outcome of a test that has not begun.
func (t tester) newResult(region string) result {
	return result{Backend: t.backend.Name, Provider: t.backend.Kind, Region: region, APIVersion: t.settings.APIVersion, Steps: []stepResult{}}
}

// offered asks the back end for its regions.
func (t tester) offered(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.settings.Timeout)
	defer cancel()
	regions, err := t.backend.Provider.Regions(ctx)
	if err == nil && len(regions) == 0 {
		err = errors.New("it offers none")
	}
	if err != nil {
		return nil, fmt.Errorf("back end %s: %w", t.backend.Name, err)
	}
	return regions, nil
}

// classParameters are the parameters of the BucketClass under test.
func (t tester) classParameters(region string) map[string]string {
	params := map[string]string{"region": region}
	if t.nameBackend {
		params["backend"] = t.backend.Name
	}
	if t.settings.EndpointURL != "" {
		params["endpointURL"] = t.settings.EndpointURL
	}
	if !t.settings.PathStyle {
		params["s3PathStyle"] = "false"
	}
	return params
}
