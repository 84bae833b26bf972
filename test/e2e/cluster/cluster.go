// Package cluster is a Kubernetes without nodes on loopback: etcd, the API
// server, the controller of namespaces, upstream's COSI controller and sidecar,
// and the driver as its binary, against emulated clouds in this process. What
// config holds is installed in it, and the sidecar works as the ServiceAccount
// that config/rbac makes.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// Options configures Start.
type Options struct {
	// Root is the directory of the repository.
	Root string
	// Log takes what a person wants to know during a slow start.
	Log io.Writer
	// Race builds the driver with the race detector.
	Race bool
	// QPS is how many requests a second the controller and the sidecar send to the
	// API server, by each of their two clients. 0 is the default of client-go, 5,
	// which upstream leaves as it is; a negative one is no limit.
	QPS int
	// Emulator configures the clouds.
	Emulator emulator.Options
	// CreateBucket is how long the clouds take to make a bucket. Upstream's
	// controller writes a claim's status and finalizer in that time, and loses them
	// if the bucket is faster: see docs/upstream.md.
	CreateBucket time.Duration
	// ClusterID is the cluster's ID in the configuration of the driver; empty is none.
	ClusterID string
	// NoCOSI leaves COSI out: its kinds, its controller and its sidecar.
	NoCOSI bool
	// NoPrograms leaves out COSI's programs and the driver. Their kinds and roles are
	// there.
	NoPrograms bool
	// Driver is a program to run in place of zuber, with the socket's URL as its
	// only argument.
	Driver string
}

// Cluster is a running cluster.
type Cluster struct {
	// Dir holds everything that the cluster keeps on disk. It goes with Close.
	Dir string
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Binaries are the programs, kubectl among them.
	Binaries Binaries
	// Emulator is the clouds of the driver. Its back ends are named cloudscale and
	// stackit, as the samples want.
	Emulator *emulator.Emulator

	Etcd, APIServer, ControllerManager *Process
	Controller, Sidecar, Driver        *Process

	options Options
	server  string // URL of the API server
	token   string // of the administrator
	client  *http.Client
	starter *starter
	unlock  func()
}

// Start brings everything up. The programs of the cluster are built first, if
// they are not yet; see Build. On an error nothing is left.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, err
	}
	o.Root = root
	c := &Cluster{options: o, starter: newStarter()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.Binaries, err = Build(ctx, c.options.Root, c.options.Log); err != nil {
		return err
	}
	if err := c.makeDir(ctx); err != nil {
		return err
	}
	if c.Emulator, err = emulator.Start(c.options.Emulator); err != nil { //nolint:contextcheck // the emulator ends with Close
		return err
	}
	if late := c.options.CreateBucket; late > 0 {
		c.Emulator.Inject(emulator.Fault{Operation: "CreateBucket", Latency: late})
	}
	steps := []func(context.Context) error{c.startKubernetes, c.installCOSI, c.install, c.startDriver, c.startCOSI}
	if c.options.NoCOSI {
		steps = []func(context.Context) error{c.startKubernetes, c.install, c.startDriver}
	}
	if c.options.NoPrograms {
		steps = []func(context.Context) error{c.startKubernetes, c.installCOSI, c.install}
	}
	if c.options.NoPrograms && c.options.NoCOSI {
		steps = []func(context.Context) error{c.startKubernetes, c.install}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes the directory and removes those of processes that were killed.
func (c *Cluster) makeDir(ctx context.Context) (err error) {
	const prefix = "zuber-e2e-"
	// Else another process might take a directory for one of these before it is locked.
	done, err := lockFile(ctx, filepath.Join(os.TempDir(), "zuber-e2e.lock"))
	if err != nil {
		return err
	}
	defer done()
	old, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		if unlock, err := tryLockFile(filepath.Join(dir, "lock")); err == nil {
			_ = os.RemoveAll(dir)
			unlock()
		}
	}
	if c.Dir, err = os.MkdirTemp("", prefix); err != nil {
		return err
	}
	if c.unlock, err = tryLockFile(filepath.Join(c.Dir, "lock")); err != nil {
		return err
	}
	for _, name := range []string{"logs", "run"} {
		if err := os.Mkdir(filepath.Join(c.Dir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Processes are all that run, in the order of their start.
func (c *Cluster) Processes() []*Process {
	var all []*Process
	for _, p := range []*Process{c.Etcd, c.APIServer, c.ControllerManager, c.Driver, c.Controller, c.Sidecar} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Process makes a program that ends with the cluster at the latest. It is ready
// when the function returns nil, which is asked again and again; nil is at once.
func (c *Cluster) Process(name, path string, args, env []string, ready func(context.Context) error) *Process {
	if ready == nil {
		ready = func(context.Context) error { return nil }
	}
	return &Process{
		Name: name, path: path, args: args, env: env, ready: ready,
		logPath: filepath.Join(c.Dir, "logs", name+".log"), starter: c.starter,
	}
}

// Close ends everything. What ended by itself before, or does not end in good
// order now, is an error.
func (c *Cluster) Close() error {
	var errs []error
	for _, p := range []*Process{c.Sidecar, c.Controller, c.Driver} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	for _, p := range []*Process{c.ControllerManager, c.APIServer, c.Etcd} {
		if !p.Running() {
			errs = append(errs, fmt.Errorf("%s has ended by itself\n%s", p.Name, p.Tail(20)))
		}
	}
	return errors.Join(append(errs, c.end())...)
}

// end ends everything without ceremony.
func (c *Cluster) end() (err error) {
	for _, p := range c.Processes() {
		p.Kill()
	}
	c.starter.close()
	if c.Emulator != nil {
		err = c.Emulator.Close()
	}
	if c.Dir != "" {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	if c.unlock != nil {
		c.unlock()
	}
	return err
}
