package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// companionAccount is the ServiceAccount of the driver's companion. Where there
// are nodes it is that of the whole Pod; here it has nothing but the companion's
// roles, so that they alone must do.
const companionAccount = "zuber-companion"

// installCompanion applies config/companion for that account and returns its
// kubeconfig.
func (c *Cluster) installCompanion(ctx context.Context) (kubeconfig string, err error) {
	manifests, err := c.Kubectl(ctx, "", "kustomize", filepath.Join(c.options.Root, "config", "companion"))
	if err != nil {
		return "", err
	}
	const pod = "  name: zuber\n  namespace: zuber-system\n"
	if n := strings.Count(manifests, pod); n != strings.Count(manifests, "subjects:\n") {
		return "", fmt.Errorf("config/companion names the ServiceAccount of the Pod %d times, and its subjects are more", n)
	}
	manifests = strings.ReplaceAll(manifests, pod, "  name: "+companionAccount+"\n  namespace: zuber-system\n")
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + companionAccount + ", namespace: zuber-system}\n"
	if _, err := c.Kubectl(ctx, manifests+"\n---\n"+account, "apply", "--filename", "-"); err != nil {
		return "", err
	}
	return c.serviceAccount(ctx, "zuber-system", companionAccount)
}
