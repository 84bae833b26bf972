// Package v1alpha2 plays COSI v1alpha2 on the API server of package cluster: its
// kinds, and one loop in place of upstream's controller and sidecar, which are in
// no release that can be pinned. It does what is known of those two where a driver
// or a user can see it: which RPC is called with what, which answers are refused,
// which errors are final, what stands in status and in Secrets.
package v1alpha2

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	cosi "github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

//go:embed definitions.yaml
var definitions string

const (
	group     = "/apis/objectstorage.k8s.io/v1alpha2/"
	finalizer = "objectstorage.k8s.io/protection"
	// pace is how often everything is looked at.
	pace = 50 * time.Millisecond
)

// Peer is the loop.
type Peer struct {
	cluster *cluster.Cluster
	conn    *grpc.ClientConn
	driver  string
	rpc     cosi.ProvisionerClient

	end  context.CancelFunc
	done chan struct{}

	final  map[string]bool // UIDs of objects whose error is final
	called map[string]bool // UIDs of objects that this loop has called the driver for
}

// Install makes COSI's kinds in the cluster, which must have none of them.
func Install(ctx context.Context, c *cluster.Cluster) error {
	if _, err := c.Kubectl(ctx, definitions, "apply", "-f", "-"); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "--all", "customresourcedefinitions")
	return err
}

// Start begins the loop for the driver at the cluster's socket. Starting another
// one after Close is what a restart of the sidecar is: the driver is called again
// for all that exists.
func Start(ctx context.Context, c *cluster.Cluster) (*Peer, error) {
	conn, err := grpc.NewClient(c.Socket("cosi"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	info, err := cosi.NewIdentityClient(conn).DriverGetInfo(ctx, &cosi.DriverGetInfoRequest{})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	p := &Peer{
		cluster: c, conn: conn, driver: info.GetName(), rpc: cosi.NewProvisionerClient(conn),
		done: make(chan struct{}), final: map[string]bool{}, called: map[string]bool{},
	}
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	go p.loop(ctx)
	return p, nil
}

// Close ends the loop, and waits for the RPC that runs.
func (p *Peer) Close() error {
	p.end()
	<-p.done
	return p.conn.Close()
}

func (p *Peer) loop(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		for resource, step := range map[string]func(context.Context, object) error{"bucketclaims": p.claim, "buckets": p.bucket, "bucketaccesses": p.access} {
			list, err := p.cluster.Get(ctx, group+resource)
			if err != nil {
				continue // the next round asks again
			}
			for _, o := range object(list).list("items") {
				p.one(ctx, resource, o, step)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// one does what is next for an object, and writes an error into its status.
func (p *Peer) one(ctx context.Context, resource string, o object, step func(context.Context, object) error) {
	uid, deleted := o.text("metadata", "uid"), o.at("metadata", "deletionTimestamp") != nil
	if p.final[uid] && !deleted {
		return
	}
	err := step(ctx, o)
	if err == nil || ctx.Err() != nil {
		return
	}
	switch code := status.Code(errors.Unwrap(err)); code { //nolint:exhaustive // all others are called again
	case codes.InvalidArgument, codes.AlreadyExists, codes.Unimplemented, codes.OutOfRange:
		p.final[uid] = true
	}
	_ = p.patch(ctx, resource, o, "/status", map[string]any{"status": map[string]any{
		"readyToUse": false, "error": map[string]any{"time": time.Now().UTC().Format(time.RFC3339), "message": err.Error()},
	}})
}

// patch merges into an object.
func (p *Peer) patch(ctx context.Context, resource string, o object, subresource string, body map[string]any) error {
	_, err := p.cluster.Send(ctx, http.MethodPatch, path(resource, o.text("metadata", "namespace"))+"/"+o.text("metadata", "name")+subresource, body)
	return err
}

// protect puts the finalizer on an object that lacks it.
func (p *Peer) protect(ctx context.Context, resource string, o object) error {
	if o.at("metadata", "finalizers") != nil {
		return nil
	}
	return p.patch(ctx, resource, o, "", map[string]any{"metadata": map[string]any{"finalizers": []string{finalizer}}})
}

// release takes the finalizer away.
func (p *Peer) release(ctx context.Context, resource string, o object) error {
	if o.at("metadata", "finalizers") == nil {
		return nil
	}
	return p.patch(ctx, resource, o, "", map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

func (p *Peer) get(ctx context.Context, resource, namespace, name string) (object, error) {
	o, err := p.cluster.Get(ctx, path(resource, namespace)+"/"+name)
	return o, err
}

func path(resource, namespace string) string {
	if namespace == "" {
		return group + resource
	}
	return group + "namespaces/" + namespace + "/" + resource
}

// refused marks an error of the driver's as upstream's sidecar shows it.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("COSI Sidecar error: %w", err)
}
