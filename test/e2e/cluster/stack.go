package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// startDriver builds and starts zuber, or starts what stands in for it.
func (c *Cluster) startDriver(ctx context.Context) error {
	socket := c.Socket("cosi")
	if c.options.Driver != "" {
		c.Driver = c.Process("driver", c.options.Driver, []string{socket}, nil, nil)
		return c.Driver.Start(ctx)
	}
	binary := filepath.Join(c.Dir, "zuber")
	if err := c.buildDriver(ctx, binary); err != nil {
		return err
	}
	config, err := c.writeDriverConfig()
	if err != nil {
		return err
	}
	kubeconfig, err := c.installCompanion(ctx)
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + ports[0]
	args := []string{"serve", "--config", config, "--endpoint", socket, "--metrics-address", address, "--log-format", "json", "--companion", "on", "--kubeconfig", kubeconfig}
	c.Driver = c.Process("zuber", binary, args, []string{"HOME=" + c.Dir, "POD_NAMESPACE=zuber-system"}, func(ctx context.Context) error {
		return healthy(ctx, http.DefaultClient, "http://"+address+"/readyz", "")
	})
	return c.Driver.Start(ctx)
}

// Socket is the URL of a driver's socket in a directory of its own.
func (c *Cluster) Socket(name string) string {
	return "unix://" + filepath.Join(c.Dir, "run", name, "cosi.sock")
}

func (c *Cluster) buildDriver(ctx context.Context, binary string) error {
	args := []string{"build", "-buildvcs=false", "-o", binary, "./cmd/zuber"}
	environment := "CGO_ENABLED=0"
	if c.options.Race {
		args, environment = append([]string{args[0], "-race"}, args[1:]...), "CGO_ENABLED=1"
	}
	_, err := goTool(ctx, c.options.Root, environment, args...)
	return err
}

// writeDriverConfig lists a back end for each emulated cloud.
func (c *Cluster) writeDriverConfig() (path string, err error) {
	cloud, stackit := c.Emulator.Cloudscale(), c.Emulator.Stackit()
	raw, err := json.Marshal(map[string]any{"clusterID": c.options.ClusterID, "backends": []map[string]any{
		{"name": "cloudscale", "provider": "cloudscale", "tokenFile": "token", "apiURL": cloud.APIURL, "endpoints": cloud.Endpoints},
		{"name": "stackit", "provider": "stackit", "keyFile": "key.json", "apiURL": stackit.APIURL, "regions": []string{"eu01"}},
	}})
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.Dir, "run")
	path = filepath.Join(dir, "zuber.yaml")
	for name, text := range map[string]string{path: string(raw), filepath.Join(dir, "token"): cloud.Token, filepath.Join(dir, "key.json"): stackit.ServiceAccountKey()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return path, nil
}

// startCOSI starts upstream's controller, as the ServiceAccount of upstream's
// manifests, and upstream's sidecar, as that of config/rbac.
func (c *Cluster) startCOSI(ctx context.Context) error {
	const namespace = "container-object-storage-system"
	kubeconfig, err := c.serviceAccount(ctx, namespace, "container-object-storage-controller-sa")
	if err != nil {
		return err
	}
	c.Controller = c.upstream("cosi-controller", c.Binaries.COSIController, namespace, kubeconfig)
	if kubeconfig, err = c.serviceAccount(ctx, "zuber-system", "zuber"); err != nil {
		return err
	}
	c.Sidecar = c.NewSidecar("cosi-sidecar", c.Socket("cosi"), kubeconfig)
	for _, p := range []*Process{c.Controller, c.Sidecar} {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NewSidecar makes a sidecar for the driver at a socket.
func (c *Cluster) NewSidecar(name, socket, kubeconfig string) *Process {
	return c.upstream(name, c.Binaries.COSISidecar, "zuber-system", kubeconfig, "--driver-addr="+socket)
}

// upstream makes a process of one of upstream's two programs.
func (c *Cluster) upstream(name, path, namespace, kubeconfig string, args ...string) *Process {
	args = append(args, "--kubeconfig="+kubeconfig, "--v=4")
	if qps := c.options.QPS; qps != 0 {
		args = append(args, "--kube-api-qps="+strconv.Itoa(qps), "--kube-api-burst="+strconv.Itoa(2*qps))
	}
	p := c.Process(name, path, args, []string{"POD_NAMESPACE=" + namespace}, nil)
	p.ready = p.logged(`"Working"`)
	return p
}
