package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Zuber runs a command of the driver's binary with the driver's back ends, as a
// ServiceAccount of the cluster, and returns its standard output.
func (c *Cluster) Zuber(ctx context.Context, namespace, account string, args ...string) (string, error) {
	kubeconfig, err := c.serviceAccount(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	args = append(args, "--config", filepath.Join(c.Dir, "run", "zuber.yaml"))
	cmd := exec.CommandContext(ctx, filepath.Join(c.Dir, "zuber"), args...) //nolint:gosec // tests say what to run
	cmd.Env = []string{"HOME=" + c.Dir, "KUBECONFIG=" + kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("zuber %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
