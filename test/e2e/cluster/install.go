package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// upstreamURL is where config/crd takes upstream's manifests from.
const upstreamURL = "https://github.com/kubernetes-sigs/container-object-storage-interface//?ref=v0.2.2"

// install applies config/manager, which brings config/rbac.
func (c *Cluster) install(ctx context.Context) error {
	_, err := c.Kubectl(ctx, "", "apply", "--kustomize", filepath.Join(c.options.Root, "config", "manager"))
	return err
}

// installCOSI applies config/crd, which brings upstream's controller.
func (c *Cluster) installCOSI(ctx context.Context) error {
	dir := filepath.Join(c.Dir, "crd")
	if err := LocalDefinitions(c.options.Root, c.Binaries, dir); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", "apply", "--kustomize", dir); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "--all", "customresourcedefinitions")
	return err
}

// LocalDefinitions makes a directory with config/crd and upstream's manifests
// beside it, which the kustomization names in place of their address.
func LocalDefinitions(root string, b Binaries, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "config", "crd"))); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "upstream"), os.DirFS(b.Upstream)); err != nil {
		return err
	}
	path := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	if strings.Count(string(text), "://") != 1 || !strings.Contains(string(text), upstreamURL) {
		return fmt.Errorf("%s takes something from elsewhere than %s", path, upstreamURL)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), upstreamURL, "upstream", 1)), 0o600) //nolint:gosec // a file in a directory of the caller
}
