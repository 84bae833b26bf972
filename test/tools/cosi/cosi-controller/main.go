// cosi-controller is upstream's controller: it makes Buckets of BucketClaims.
package main

import (
	"context"
	"flag"
	"os"

	"sigs.k8s.io/container-object-storage-interface/client/apis/objectstorage/v1alpha1"
	"sigs.k8s.io/container-object-storage-interface/controller/pkg/bucketclaim"

	"github.com/zuber-storage/zuber/test/tools/cosi/loop"
)

func main() {
	os.Exit(loop.Main(os.Args, func(*flag.FlagSet) {}, run))
}

func run(ctx context.Context, o loop.Options) error {
	l, err := loop.New(o, "cosi-controller-manager", "leader-lock")
	if err != nil {
		return err
	}
	claims := l.Informers.Objectstorage().V1alpha1().BucketClaims().Informer()
	if err := loop.Listen[*v1alpha1.BucketClaim](l, "BucketClaim", claims, bucketclaim.NewBucketClaimListener()); err != nil {
		return err
	}
	return l.Run(ctx)
}
