// playground leaves the cluster of the e2e tests running for a person to try:
// no cloud, no container, no node.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

func main() {
	root := flag.String("root", ".", "directory of the repository")
	build := flag.Bool("build", false, "build the programs of the cluster, and start nothing")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *root, *build, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, build bool, out io.Writer) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	if build {
		_, err := cluster.Build(ctx, root, out)
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Root: root, Log: out, QPS: -1, CreateBucket: time.Second})
	if err != nil {
		return err
	}
	samples := filepath.Join(root, "config", "samples")
	for _, name := range []string{"cloudscale", "stackit"} {
		if _, err := c.Kubectl(ctx, "", "apply", "-f", filepath.Join(samples, name, "v1alpha1", "classes.yaml")); err != nil {
			return closed(c, err)
		}
	}
	if err := sheet(out, c, samples); err != nil {
		return closed(c, err)
	}
	<-ctx.Done()
	_, _ = fmt.Fprintln(out, "\nending")
	return c.Close()
}

// closed ends the cluster after a failure.
func closed(c *cluster.Cluster, err error) error {
	if also := c.Close(); also != nil {
		return fmt.Errorf("%w\n%w", err, also)
	}
	return err
}

// sheet prints what to try, line by line for a shell.
func sheet(out io.Writer, c *cluster.Cluster, samples string) error {
	_, err := fmt.Fprintf(out, `
In another shell:

  export KUBECONFIG=%[1]s PATH=%[2]s:$PATH

A bucket and its Secret, on each emulated cloud:

  kubectl apply -f %[3]s/cloudscale/v1alpha1/claim.yaml
  kubectl apply -f %[3]s/stackit/v1alpha1/claim.yaml
  kubectl wait --for=jsonpath='{.status.accessGranted}'=true --timeout=60s bucketaccesses --all
  kubectl get bucketclaims,bucketaccesses
  kubectl get buckets -o wide
  kubectl get secret photos-credentials -o jsonpath='{.data.BucketInfo}' | base64 -d

What went wrong: the events of a Bucket are in the namespace default.

  kubectl events -n default
  tail -n 5 %[4]s/logs/zuber.log %[4]s/logs/cosi-sidecar.log

What the clouds have, and how to disturb them:

  curl -sS %[5]s_emulator/

Away with it, the access first:

  kubectl delete bucketaccesses --all
  kubectl delete bucketclaims --all

Interrupt (Ctrl-C) ends it.
`, c.Kubeconfig, filepath.Dir(c.Binaries.Kubectl), samples, c.Dir, c.Emulator.Cloudscale().APIURL)
	return err
}
