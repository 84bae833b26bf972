// cosi-sidecar is upstream's sidecar: it calls the driver for Buckets and
// BucketAccesses.
package main

import (
	"context"
	"flag"
	"os"

	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	cosi "sigs.k8s.io/container-object-storage-interface/proto"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/bucket"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/bucketaccess"
	"sigs.k8s.io/container-object-storage-interface/sidecar/pkg/provisioner"

	"github.com/zuber-storage/zuber/test/tools/cosi/loop"
)

func main() {
	var address string
	bind := func(flags *flag.FlagSet) {
		flags.StringVar(&address, "driver-addr", "unix:///var/lib/cosi/cosi.sock", "socket of the driver")
	}
	os.Exit(loop.Main(os.Args, bind, func(ctx context.Context, o loop.Options) error { return run(ctx, o, address) }))
}

func run(ctx context.Context, o loop.Options, address string) error {
	client, err := provisioner.NewDefaultCOSIProvisionerClient(ctx, address, false)
	if err != nil {
		return err
	}
	info, err := client.DriverGetInfo(ctx, &cosi.DriverGetInfoRequest{})
	if err != nil {
		return err
	}
	l, err := loop.New(o, "cosi", info.GetName())
	if err != nil {
		return err
	}
	informers := l.Informers.Objectstorage().V1alpha1()
	if err := loop.Listen[*v1alpha1.Bucket](l, "Bucket", informers.Buckets().Informer(), bucket.NewBucketListener(info.GetName(), client)); err != nil {
		return err
	}
	accesses := bucketaccess.NewBucketAccessListener(info.GetName(), client)
	if err := loop.Listen[*v1alpha1.BucketAccess](l, "BucketAccess", informers.BucketAccesses().Informer(), accesses); err != nil {
		return err
	}
	return l.Run(ctx)
}
