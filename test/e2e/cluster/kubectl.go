package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl as the administrator, with a text as its standard input,
// and returns its standard output.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Binaries.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...) //nolint:gosec // tests say what to run
	cmd.Env = append(cmd.Environ(), "HOME="+c.Dir)                                                                  // its cache of what the server offers
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

// writeKubeconfig writes the kubeconfig of a user with a token.
func (c *Cluster) writeKubeconfig(user, token string) (path string, err error) {
	authority, err := os.ReadFile(filepath.Join(c.Dir, "certificates", "apiserver.crt"))
	if err != nil {
		return "", err
	}
	// JSON is YAML, too.
	raw, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "zuber",
		"clusters": []any{map[string]any{"name": "zuber", "cluster": map[string]any{"server": c.server, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": user, "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "zuber", "context": map[string]any{"cluster": "zuber", "user": user}}},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(c.Dir, user+".kubeconfig")
	return path, os.WriteFile(path, raw, 0o600)
}

// serviceAccount writes the kubeconfig of a ServiceAccount, with a token that
// the API server issues.
func (c *Cluster) serviceAccount(ctx context.Context, namespace, name string) (path string, err error) {
	token, err := c.Kubectl(ctx, "", "create", "token", name, "--namespace", namespace, "--duration", "24h")
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(name, strings.TrimSpace(token))
}
