package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// atOnce is how many buckets of one access are worked on at the same time.
const atOnce = 8

// each runs f for every bucket, several at a time, all of them whatever fails. A
// single bucket's error is its own; of several buckets, the error names those that
// failed and wraps what the first one's wraps, or the context's when that ended.
func each(ctx context.Context, refs []provider.BucketRef, f func(i int) error) error {
	errs := make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range refs {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = f(i)
			}
			return nil
		})
	}
	_ = group.Wait() // every error is in errs
	if len(refs) == 1 {
		return errs[0]
	}
	return failed(ctx, refs, errs)
}

// failed joins the errors of several buckets.
func failed(ctx context.Context, refs []provider.BucketRef, errs []error) error {
	const most = 4 // in full; an event has room for no more
	var first error
	var texts []string
	for i, err := range errs {
		switch {
		case err == nil:
			continue
		case first == nil, ctx.Err() != nil && !errors.Is(first, ctx.Err()) && errors.Is(err, ctx.Err()):
			first = err
		}
		text := fmt.Sprintf("%q", refs[i].Name)
		if len(texts) < most {
			text += ": " + err.Error()
		}
		texts = append(texts, text)
	}
	if first == nil {
		return nil
	}
	return &severalError{text: fmt.Sprintf("%d of %d buckets failed: %s", len(texts), len(refs), strings.Join(texts, "; ")), cause: first}
}

// severalError tells what failed on several buckets, and is one of it.
type severalError struct {
	text  string
	cause error
}

// Error implements error.
func (e *severalError) Error() string { return e.text }

// Unwrap returns the error that stands for all.
func (e *severalError) Unwrap() error { return e.cause }

// lockBuckets takes the locks of the buckets, in the order of their names, so
// that no two calls wait for one another. An account's lock is taken after them.
func (p *Provider) lockBuckets(ctx context.Context, refs []provider.BucketRef) (unlock func(), err error) {
	var names []string
	for _, r := range refs {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	var held []func()
	unlock = func() {
		for _, free := range held {
			free()
		}
	}
	for _, name := range slices.Compact(names) {
		free, err := p.buckets.lock(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, free)
	}
	return unlock, nil
}
