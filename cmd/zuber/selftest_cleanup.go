package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Bounds of the clean-up after a failed test, which runs although the test's
// own context may have ended.
const (
	cleanupLimit = 2 * time.Minute
	cleanupTries = 4
	cleanupPause = 500 * time.Millisecond // doubled with each try
)

// afterFailure removes what the test made, or says what it left.
func (r *testRun) afterFailure(ctx context.Context, res *result) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	if r.settings.Keep {
		r.tellLeftovers(bounded, "kept")
		return
	}
	s := timed("clean up", func() (string, error) { return r.cleanUp(bounded) })
	res.add(s)
	r.reporter.step(*res)
	if !s.OK {
		r.tellLeftovers(bounded, "left behind")
	}
}

// cleanUp deletes the test's buckets with their content. It asks the provider
// itself: the driver would hold accesses and the deletion policy against it,
// and the names are the test's own.
func (r *testRun) cleanUp(ctx context.Context) (string, error) {
	// One bucket's fault must not keep the other one alive, so no context is shared.
	var group errgroup.Group
	for _, name := range r.names() {
		group.Go(func() error { return r.purge(ctx, name) })
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	return r.nothingLeft(ctx)
}

// purge deletes one bucket and its owner, which may exist in part only.
func (r *testRun) purge(ctx context.Context, name string) (err error) {
	wait := cleanupPause
	for try := 1; ; try++ {
		ref := provider.BucketRef{Name: name, Region: r.region}
		err = r.backend.Provider.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true})
		if err == nil || errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		if try == cleanupTries {
			return err
		}
		if !pause(ctx, wait) {
			return err
		}
		wait *= 2
	}
}

// tellLeftovers says what is there and how to remove it, beside the report so
// that JSON output stays what it is.
func (r *testRun) tellLeftovers(ctx context.Context, how string) {
	left, err := r.leftovers(ctx)
	if err != nil {
		// What exists is unknown, so the names must do.
		left = []string{fmt.Sprintf("perhaps the buckets %s in %s and their owners (%v)", strings.Join(r.names(), ", "), r.region, err)}
	}
	if len(left) == 0 {
		return
	}
	remedy := "delete the bucket's objects and the bucket with the keys of its owner, an objects user tagged zuber_bucket=<bucket>,\n" +
		"then delete the objects user, all in the cloud's control panel"
	if r.backend.Kind == providerStackit {
		remedy = "make a key of the driver's admin credentials group (…-admin-…) in the portal, delete the bucket's objects with it,\n" +
			"then delete the key, the bucket and its other credentials groups in the portal"
	}
	_, _ = fmt.Fprintf(r.notes, "%s: %s\nto remove it: %s\n", how, strings.Join(left, "\n      "), remedy)
}
