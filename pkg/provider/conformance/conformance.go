// Package conformance is the provider contract as code: one list of checks
// that runs over every adapter in the tests, over any real endpoint, and needs
// no testing package.
package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// Check is one rule of the contract. Run returns nil when the provider keeps
// it, and an error that says what was expected and what was seen. It removes
// what it made, also when it fails. Checks are independent of one another and
// may run concurrently over one provider. They repeat calls as a sidecar would:
// on ErrConflict and ErrUnavailable, until ctx ends.
type Check struct {
	Name string
	Run  func(ctx context.Context, p provider.Provider) error
}

// Options says where the checks run.
type Options struct {
	Region        string // required; must be one of the provider's
	Endpoint      string // overrides the region's S3 endpoint
	VirtualHosted bool
	Transport     http.RoundTripper // for the S3 calls of the checks; nil means the default
	NamePrefix    string            // of the buckets made; default "zuber-check"
	Tenant        string            // of the buckets made, where no check says otherwise
	// SingleBucket leaves the checks of accesses that span buckets out: COSI
	// v1alpha1 has no such requests.
	SingleBucket bool
	// Owner returns a client that may change the shape of a bucket of the
	// provider: versioning, policy, deletion. Nil means that the granted key may
	// (Capabilities.SharedKeys); where it may not either, the checks do without
	// what only an owner can set up.
	Owner func(ctx context.Context, b provider.Bucket) (*s3.Client, error)
	// Foreign makes a bucket in Region and in the provider's project as somebody
	// else would, without the driver's mark, and returns a client that may do
	// everything with it and a function that removes it with its content; called
	// again, that does nothing. Nil leaves the checks of existing buckets out: at a
	// real endpoint nobody can make one.
	Foreign func(ctx context.Context, name string) (owner *s3.Client, remove func(context.Context) error, err error)
	// Cluster returns a provider of the same driver and project in the cluster with
	// that ID, as a new process has it; "" is none. Nil leaves the checks of several
	// clusters out.
	Cluster func(ctx context.Context, id string) (provider.Provider, error)
}

// Checks returns the list for one region.
func Checks(o Options) []Check {
	if o.NamePrefix == "" {
		o.NamePrefix = "zuber-check"
	}
	type rule struct {
		name string
		run  func(context.Context, *session) error
	}
	all := []rule{
		{"create is idempotent", createIdempotent},
		{"create adopts what carries our mark", createAdopts},
		{"create refuses a bucket that is not ours and leaves it untouched", createRefusesForeign},
		{"create with other parameters is refused", createOtherParameters},
		{"the regions are listed and hold this one", regionsHoldThisOne},
		{"create refuses malformed names and unknown regions", createRefusesMalformed},
		{"concurrent creates of one name end in one bucket", createConcurrently},
		{"get of a missing bucket is not found", getMissing},
		{"grant returns a key that works, and the same key again", grantWorks},
		{"grant of a missing bucket is not found", grantMissing},
		{"a key is refused on another bucket, in every mode", keysAreIsolated},
		{"each mode may do what it says and nothing else", modesHold},
		{"a mode that is not enforced is refused", unenforcedModeRefused},
		{"revoke ends the key", revokeEndsKey},
		{"a policy edited by hand is restored by the next grant", policyRestored},
		{"revoke is idempotent", revokeIdempotent},
		{"delete of a non-empty bucket is refused and loses nothing", deleteNonEmpty},
		{"delete counts old versions and delete markers as content", deleteVersions},
		{"delete drops unfinished uploads of an empty bucket", deleteUploads},
		{"purge empties versions, delete markers and unfinished uploads", deletePurges},
		{"delete is idempotent", deleteIdempotent},
		{"nothing that carries our mark remains after delete", nothingRemains},
		{"an audit finds nothing in what is right, and repairs a policy that was removed", auditRepairs},
		{"a bucket has an age, and what is in use is not reclaimed", reclaimHolds},
		{"the buckets of a tenant share an owner, which goes with the last", tenantShares},
		{"an access to one bucket of a tenant opens no other", tenantIsolates},
		{"a bucket stays with its tenant", tenantIsKept},
		{"buckets of a tenant come and go at the same time", tenantConcurrently},
		{"every method returns at once when its context has ended", cancelledReturns},
	}
	if !o.SingleBucket {
		all = append(all,
			rule{"one key spans several buckets, each in its mode, in any order", spansHold},
			rule{"a grant completes one that failed on a bucket, and adds buckets", spanIsCompleted},
			rule{"an access goes on without a bucket that is deleted, and ends with its last", spanLosesADeletedBucket},
			rule{"revoke ends an access bucket by bucket", spanEndsByBucket},
			rule{"a bucket's own key does not span buckets", sharedKeyDoesNotSpan},
			rule{"rotation keeps the key that is named until it is retired", rotationKeepsOne},
			rule{"rotation ends the keys before it, in every mode", rotationEndsKeys},
			rule{"rotation spans the buckets of an access", rotationSpans},
		)
	}
	if o.Foreign != nil {
		all = append(all,
			rule{"an existing bucket that is not ours is refused and stays untouched", existingIsRefused},
			rule{"access to an existing bucket leaves what others put into its policy", existingIsShared},
			rule{"an existing bucket that is not ours is never deleted", existingIsNeverDeleted},
			rule{"one key opens an existing bucket and one of ours", existingInASpan},
		)
	}
	if o.Cluster != nil {
		all = append(all,
			rule{"a bucket that is named after a claim is that claim's alone", claimHolds},
			rule{"a bucket of another cluster is refused and stays untouched", clustersAreApart},
			rule{"what names no cluster is everybody's", unnamedIsShared},
			rule{"a lost cluster's bucket is adopted with its data, and its accesses are found", clusterIsRecovered},
		)
	}
	checks := make([]Check, 0, len(all))
	for _, c := range all {
		checks = append(checks, Check{Name: c.name, Run: func(ctx context.Context, p provider.Provider) (err error) {
			s := &session{Provider: patient{p}, o: o}
			defer func() { err = errors.Join(err, s.cleanup(ctx)) }()
			return c.run(ctx, s)
		}})
	}
	return checks
}

// cleanupTimeout bounds the removal of what a check made; it covers the
// back-off of a few deletes against a faulty cloud.
const cleanupTimeout = 2 * time.Minute

// session is one run of one check: the provider, and what to remove at the end.
type session struct {
	provider.Provider
	o     Options
	after []func(context.Context) error
}

// later registers a clean-up; the last one registered runs first.
func (s *session) later(f func(context.Context) error) { s.after = append(s.after, f) }

func (s *session) cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for i := len(s.after) - 1; i >= 0; i-- {
		if err := s.after[i](ctx); err != nil {
			errs = append(errs, fmt.Errorf("clean-up: %w", err))
		}
	}
	return errors.Join(errs...)
}

// name returns a fresh bucket name.
func (s *session) name() string {
	return s.o.NamePrefix + "-" + strings.ToLower(rand.Text()[:12])
}

func (s *session) spec(name string) provider.BucketSpec {
	return provider.BucketSpec{Name: name, Region: s.o.Region, Endpoint: s.o.Endpoint, VirtualHosted: s.o.VirtualHosted, Tenant: s.o.Tenant}
}

// create makes a bucket and registers its removal.
func (s *session) create(ctx context.Context, name string) (provider.Bucket, error) {
	s.later(func(ctx context.Context) error {
		return s.DeleteBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region}, provider.DeleteOptions{Purge: true})
	})
	b, err := s.CreateBucket(ctx, s.spec(name))
	if err != nil {
		return b, fmt.Errorf("CreateBucket %q: %w", name, err)
	}
	return b, nil
}

// access is a granted key together with a client that uses it.
type access struct {
	provider.Access
	client *s3.Client
	ref    provider.AccountRef
}

// grant gives a fresh account access to the bucket.
func (s *session) grant(ctx context.Context, b provider.Bucket, mode provider.Mode) (access, error) {
	id, err := uuid()
	if err != nil {
		return access{}, err
	}
	return s.grantAccount(ctx, b, "ba-"+id, mode)
}

// uuid returns a random UUID, since COSI's account names end in one.
func uuid() (string, error) {
	var u [16]byte
	if _, err := rand.Read(u[:]); err != nil {
		return "", err
	}
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

func (s *session) grantAccount(ctx context.Context, b provider.Bucket, account string, mode provider.Mode) (access, error) {
	g, err := s.GrantAccess(ctx, provider.AccessSpec{
		Account: account,
		Buckets: []provider.BucketAccess{{BucketRef: b.BucketRef, Mode: mode}},
	})
	if err != nil {
		return access{}, fmt.Errorf("GrantAccess to %q: %w", b.Name, err)
	}
	if len(g.Buckets) != 1 || g.Buckets[0].Name != b.Name {
		return access{}, fmt.Errorf("GrantAccess to %q: the answer does not hold exactly that bucket", b.Name)
	}
	client, err := s3.New(s3.Config{
		Endpoint: g.Buckets[0].Endpoint, AccessKeyID: g.Credentials.AccessKeyID,
		SecretAccessKey: g.Credentials.SecretAccessKey.Reveal, SigningRegion: g.Buckets[0].SigningRegion,
		VirtualHosted: s.o.VirtualHosted, Transport: s.o.Transport,
	})
	if err != nil {
		return access{}, fmt.Errorf("S3 client for %q: %w", b.Name, err)
	}
	return access{
		Access: g, client: client,
		ref: provider.AccountRef{Account: account, IdentityID: g.IdentityID, Buckets: []provider.BucketRef{b.BucketRef}},
	}, nil
}

// bucket makes a bucket under a fresh name and an access to it.
func (s *session) bucket(ctx context.Context) (provider.Bucket, access, error) {
	b, err := s.create(ctx, s.name())
	if err != nil {
		return b, access{}, err
	}
	a, err := s.grant(ctx, b, provider.ReadWrite)
	return b, a, err
}

// owner returns a client that may change the bucket's shape, nil if there is
// none.
func (s *session) owner(ctx context.Context, b provider.Bucket, a access) (*s3.Client, error) {
	switch {
	case s.o.Owner != nil:
		return s.o.Owner(ctx, b)
	case s.Capabilities().SharedKeys:
		return a.client, nil
	}
	return nil, nil
}

// holds says that the object should be there with this content.
func holds(ctx context.Context, c *s3.Client, bucket, key, data string) error {
	got, err := c.GetObject(ctx, bucket, key)
	if err != nil {
		return fmt.Errorf("get of %q in %q: %w", key, bucket, err)
	}
	if string(got) != data {
		return fmt.Errorf("object %q in %q holds %q, want %q", key, bucket, got, data)
	}
	return nil
}

// lists says that exactly these keys should be listed.
func lists(ctx context.Context, c *s3.Client, bucket string, keys ...string) error {
	got, err := c.ListObjects(ctx, bucket, "")
	if err != nil {
		return fmt.Errorf("list of %q: %w", bucket, err)
	}
	if !slices.Equal(got, keys) {
		return fmt.Errorf("bucket %q lists %q, want %q", bucket, got, keys)
	}
	return nil
}

// want says that err should have been target.
func want(what string, err, target error) error {
	switch {
	case errors.Is(err, target):
		return nil
	case err == nil:
		return fmt.Errorf("%s: succeeded, want an error that is %q", what, target.Error())
	}
	return fmt.Errorf("%s: want an error that is %q, got: %w", what, target.Error(), err)
}
