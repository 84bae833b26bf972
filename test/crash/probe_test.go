package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// client speaks S3 with a key.
func (w *world) client(k key) (*s3.Client, error) {
	return s3.New(s3.Config{Endpoint: w.endpoint(), AccessKeyID: k.id, SecretAccessKey: func() string { return k.secret }, Transport: w.transport})
}

// admin speaks S3 with a key that may do everything in the bucket.
func (w *world) admin(bucket string) (*s3.Client, error) {
	for _, k := range w.keys(w.driver, w.seen) {
		if k.account == "" && (k.bucket == "" || k.bucket == bucket) {
			return w.client(k)
		}
	}
	return nil, fmt.Errorf("no key administers bucket %q", bucket)
}

// attempt is something that a key can try in a bucket.
type attempt struct {
	name    string
	changes bool            // it leaves versions in a bucket that has versioning
	modes   []provider.Mode // which may
	run     func(ctx context.Context, c *s3.Client, bucket string) error
}

const (
	tried   = "tried"
	writing = "write"
)

// attempts are few, because they are made at every crash point; the conformance
// list has the whole matrix. They leave the bucket as it was, but for an object
// that a writer left.
func attempts() []attempt {
	rw, ro, wo := provider.ReadWrite, provider.ReadOnly, provider.WriteOnly
	return []attempt{
		{writing, true, []provider.Mode{rw, wo}, func(ctx context.Context, c *s3.Client, b string) error {
			return c.PutObject(ctx, b, tried, []byte("x"))
		}},
		{"list", false, []provider.Mode{rw, ro}, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.ListObjects(ctx, b, "")
			return err
		}},
		{"read", false, []provider.Mode{rw, ro}, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.GetObject(ctx, b, tried)
			return err
		}},
		{"delete", true, []provider.Mode{rw}, func(ctx context.Context, c *s3.Client, b string) error {
			return c.DeleteObject(ctx, b, tried)
		}},
		{"read the policy", false, nil, func(ctx context.Context, c *s3.Client, b string) error {
			_, err := c.Policy(ctx, b)
			return err
		}},
	}
}

// try makes the attempts on the bucket, or those that leave it as it is where it has
// versions, and removes what they leave. It tells f what came of each; the errors
// that f returns are joined.
func (l *life) try(ctx context.Context, k key, bucket string, f func(a attempt, open bool) error) error {
	c, err := l.client(k)
	if err != nil {
		return err
	}
	var faults []error
	left := false
	for _, a := range attempts() {
		if a.changes && l.full[bucket] {
			continue
		}
		open, err := a.opens(ctx, c, bucket)
		if err == nil {
			err = f(a, open)
		}
		faults = append(faults, err)
		if a.changes && open {
			left = a.name == writing
		}
	}
	if left {
		faults = append(faults, l.tidy(ctx, bucket))
	}
	return errors.Join(faults...)
}

// opens reports whether the attempt gets through. What is not there is not
// closed.
func (a attempt) opens(ctx context.Context, c *s3.Client, bucket string) (bool, error) {
	err := a.run(ctx, c, bucket)
	switch {
	case err == nil, s3.StatusCode(err) == http.StatusNotFound:
		return true, nil
	case s3.StatusCode(err) == http.StatusForbidden:
		return false, nil
	}
	return false, fmt.Errorf("%s: %w", a.name, err)
}

// allowed reports whether the rights have the attempt.
func (r rights) allowed(a attempt, account, bucket string) bool {
	mode, ok := r[[2]string{account, bucket}]
	return ok && slices.Contains(a.modes, mode)
}

// watch tries every key that exists on every bucket of this driver, and reports
// each that opens one beyond all of the rights.
func (l *life) watch(ctx context.Context, all ...rights) error {
	var faults []error
	for _, k := range l.keys(l.driver, l.seen) {
		if k.account == "" || k.account == l.sharedBy() {
			continue
		}
		for bucket := range l.bucketIDs {
			if !l.holds(bucket) {
				continue
			}
			err := l.try(ctx, k, bucket, func(a attempt, open bool) error {
				if open && !slices.ContainsFunc(all, func(r rights) bool { return r.allowed(a, k.account, bucket) }) {
					return fmt.Errorf("it may %s", a.name)
				}
				return nil
			})
			if err != nil {
				faults = append(faults, fmt.Errorf("a key of %s on bucket %s: %w", k.account, bucket, err))
			}
		}
	}
	return errors.Join(faults...)
}

// holds reports whether the cloud has the bucket with a policy. Before it has one
// there is no access to it.
func (l *life) holds(bucket string) bool {
	for _, b := range l.inspect() {
		if b.Name == bucket && b.Region == l.region() {
			return true
		}
	}
	return false
}

// tidy removes what an attempt left.
func (l *life) tidy(ctx context.Context, bucket string) error {
	c, err := l.admin(bucket)
	if err != nil {
		return err
	}
	return c.DeleteObject(ctx, bucket, tried)
}

// sharedBy returns the account that was given an owner's key, "" if none was.
func (l *life) sharedBy() string {
	for _, h := range l.handed {
		if h.shared {
			return h.account
		}
	}
	return ""
}

// serves checks that every key that was handed out does what its access may, in
// every bucket, and nothing else.
func (l *life) serves(ctx context.Context) error {
	var faults []error
	for i, h := range l.handed {
		for bucket := range l.bucketIDs {
			if h.shared || !l.holds(bucket) {
				continue
			}
			err := l.try(ctx, h.key(), bucket, func(a attempt, open bool) error {
				if may := l.may.allowed(a, h.account, bucket) && !h.gone; open != may {
					return fmt.Errorf("it may %s: %t, want %t", a.name, open, may)
				}
				return nil
			})
			if err != nil {
				faults = append(faults, fmt.Errorf("key %d, of %s, on bucket %s: %w", i+1, h.account, bucket, err))
			}
		}
	}
	return errors.Join(faults...)
}
