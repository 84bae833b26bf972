package cloudscale

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// GrantAccess implements provider.Provider. It hands out the key of an objects
// user that is made for the account, after the policies answer for it at the
// endpoints of its buckets; with CredentialsShared the key of the bucket's owner.
func (p *Provider) GrantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	a, err := p.grantAccess(ctx, spec)
	if err != nil {
		return provider.Access{}, fmt.Errorf("grant access to account %q: %w", spec.Account, err)
	}
	return a, nil
}

func (p *Provider) grantAccess(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	if err := ctx.Err(); err != nil {
		return provider.Access{}, err
	}
	if err := checkSpec(spec); err != nil {
		return provider.Access{}, err
	}
	refs := refsOf(spec)
	grant := p.grantOwn
	if spec.Credentials == provider.CredentialsShared {
		grant = p.grantShared
	}
	a, err := grant(ctx, spec, refs)
	if err != nil {
		return provider.Access{}, fmt.Errorf("%s: %w", listed(refs), err)
	}
	return a, nil
}

func refsOf(spec provider.AccessSpec) []provider.BucketRef {
	refs := make([]provider.BucketRef, len(spec.Buckets))
	for i, b := range spec.Buckets {
		refs[i] = b.BucketRef
	}
	return refs
}

// listed names buckets in an error.
func listed(refs []provider.BucketRef) string {
	const most = 16
	texts := make([]string, 0, most+1)
	for i, r := range refs {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(refs)-most))
			break
		}
		texts = append(texts, fmt.Sprintf("%q in region %q", r.Name, r.Region))
	}
	if len(refs) == 1 {
		return "bucket " + texts[0]
	}
	return "buckets " + strings.Join(texts, ", ")
}

// checkSpec validates what GrantAccess is asked for.
func checkSpec(spec provider.AccessSpec) error {
	switch {
	case spec.Account == "":
		return refuse(provider.ErrInvalidArgument, "the account name is empty")
	case len(spec.Buckets) == 0:
		return refuse(provider.ErrInvalidArgument, "no bucket is named")
	}
	seen := map[string]bool{}
	for _, b := range spec.Buckets {
		if err := checkRef(b.BucketRef); err != nil {
			return err
		}
		if b.Mode != "" && permissionsOf(b.Mode) == nil {
			return refuse(provider.ErrInvalidArgument, "bucket %q: mode %q is not one of %s, %s, %s",
				b.Name, b.Mode, provider.ReadWrite, provider.ReadOnly, provider.WriteOnly)
		}
		if seen[b.Name] {
			return refuse(provider.ErrInvalidArgument, "bucket %q is named twice", b.Name)
		}
		seen[b.Name] = true
	}
	switch spec.OwnBuckets {
	case "", provider.OwnBucketsRefuse, provider.OwnBucketsPurge:
	default:
		return refuse(provider.ErrInvalidArgument, "ownBuckets %q is not one of %s, %s",
			spec.OwnBuckets, provider.OwnBucketsRefuse, provider.OwnBucketsPurge)
	}
	return checkCredentials(spec)
}

func checkCredentials(spec provider.AccessSpec) error {
	switch spec.Credentials {
	case "", provider.CredentialsPerAccess:
		return nil
	case provider.CredentialsShared:
	default:
		return refuse(provider.ErrInvalidArgument, "credentials %q is not one of %s, %s",
			spec.Credentials, provider.CredentialsPerAccess, provider.CredentialsShared)
	}
	if len(spec.Buckets) > 1 {
		return refuse(provider.ErrInvalidArgument, "%s: each has an owner with a key of its own, so that no shared key opens them all; "+
			"make one access for each, or use credentials %s", listed(refsOf(spec)), provider.CredentialsPerAccess)
	}
	if b := spec.Buckets[0]; b.Mode == provider.ReadOnly || b.Mode == provider.WriteOnly {
		return refuse(provider.ErrUnsupported, "bucket %q: mode %s cannot be enforced with the owner's key; use %s, or credentials %s",
			b.Name, b.Mode, provider.ReadWrite, provider.CredentialsPerAccess)
	}
	return nil
}

// grantShared returns the owner's key as the access.
func (p *Provider) grantShared(ctx context.Context, spec provider.AccessSpec, refs []provider.BucketRef) (provider.Access, error) {
	o, err := p.present(ctx, refs[0])
	if err != nil {
		return provider.Access{}, err
	}
	if o.theirs {
		return provider.Access{}, refuse(provider.ErrPrecondition,
			"the driver did not make it and never hands out the key of its owner; use credentials %s", provider.CredentialsPerAccess)
	}
	if o.tenant != "" {
		return provider.Access{}, refuse(provider.ErrPrecondition, "its owner has other buckets of tenant %q, which the key would open, too; use credentials %s",
			o.tenant, provider.CredentialsPerAccess)
	}
	if o.shared == provider.SharedForbidden {
		return provider.Access{}, refuse(provider.ErrPrecondition,
			"its class forbids shared credentials (sharedCredentials %s); use credentials %s", o.shared, provider.CredentialsPerAccess)
	}
	key, err := o.key()
	if err != nil {
		return provider.Access{}, err
	}
	klog.FromContext(ctx).Info("Granted the key of the bucket's owner: revoking the access cannot cut it off",
		"account", spec.Account, "bucket", o.bucket, "region", o.region)
	return provider.Access{
		IdentityID:  o.id,
		Credentials: provider.Credentials{AccessKeyID: key.id, SecretAccessKey: key.secret},
		Buckets:     []provider.Bucket{p.bucket(o)},
	}, nil
}

// grantOwn makes one objects user for the account and lets it into every bucket.
// The user is marked in the call that makes it, its uids are recorded when its key
// works, and only what has a uid gets into a policy: an access that is cut short
// anywhere opens nothing beyond its modes and is found by its account.
func (p *Provider) grantOwn(ctx context.Context, spec provider.AccessSpec, refs []provider.BucketRef) (provider.Access, error) {
	unlock, err := p.lockBuckets(ctx, refs)
	if err != nil {
		return provider.Access{}, err
	}
	defer unlock()
	owners := make([]owner, len(refs))
	// Nothing is made for an access that one of the buckets does not take.
	err = each(ctx, refs, func(i int) (err error) {
		if owners[i], err = p.present(ctx, refs[i]); err != nil {
			return err
		}
		return p.honours(ctx, owners[i])
	})
	if err != nil {
		return provider.Access{}, err
	}
	want := access{account: accountTag(spec.Account), own: spec.OwnBuckets, buckets: map[string]membership{}}
	for i, o := range owners {
		want.buckets[o.bucket] = membership{
			bucket: o.bucket, region: o.region, owner: ownerTag(o.id), theirs: o.theirs,
			mode: cmp.Or(spec.Buckets[i].Mode, provider.ReadWrite), stage: stageNew,
		}
	}
	a, credentials, err := p.letIn(ctx, want, owners, refs)
	if err != nil {
		return provider.Access{}, err
	}
	granted := provider.Access{IdentityID: a.identity(), Credentials: credentials}
	for _, o := range owners {
		granted.Buckets = append(granted.Buckets, p.bucket(o))
	}
	return granted, nil
}

// letIn makes sure that there is a user as wanted and that it may use the buckets,
// whose locks are held. It returns a key that works in each of them.
func (p *Provider) letIn(ctx context.Context, want access, owners []owner, refs []provider.BucketRef) (access, provider.Credentials, error) {
	none := provider.Credentials{}
	a, err := p.ensureAccess(ctx, want)
	if err == nil {
		a, err = p.admit(ctx, a, want, owners)
	}
	if err != nil {
		return access{}, none, err
	}
	holders := make([]user, len(owners))
	err = each(ctx, refs, func(i int) error {
		if err := p.syncPolicy(ctx, owners[i], ""); err != nil {
			return p.doubt(owners[i], err)
		}
		holders[i] = a.user
		return p.awaitPolicy(ctx, owners[i], &holders[i])
	})
	if err != nil {
		return access{}, none, err
	}
	key, err := holders[len(holders)-1].key()
	return a, provider.Credentials{AccessKeyID: key.id, SecretAccessKey: key.secret}, err
}

// admit waits until the access's key works at every endpoint of its buckets,
// learns its uid from each and records it with everything else.
func (p *Provider) admit(ctx context.Context, a, want access, owners []owner) (access, error) {
	var doors []identity // one for each endpoint, so that its buckets share the wait
	var regions []provider.BucketRef
	index := map[string]int{}
	for _, o := range owners {
		if endpoint := p.endpointOf(o.record); !hasKey(index, endpoint) {
			index[endpoint] = len(doors)
			doors = append(doors, identity{a.id, o.region, endpoint})
			regions = append(regions, provider.BucketRef{Name: o.bucket, Region: o.region})
		}
	}
	uids := make([]string, len(doors))
	err := each(ctx, regions, func(i int) (err error) {
		u := a.user
		uids[i], err = p.uidOf(ctx, doors[i], &u)
		return err
	})
	if err != nil {
		return access{}, err
	}
	a, err = p.amend(ctx, a, func(a *access) {
		a.own = want.own
		for _, o := range owners {
			m := want.buckets[o.bucket]
			m.stage, m.uid = stageIn, uids[index[p.endpointOf(o.record)]]
			a.buckets[o.bucket] = m
		}
	})
	return a, tooMany(vanished(err, a.id), len(owners))
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

// uidOf returns what the endpoint calls the user, after its key works.
func (p *Provider) uidOf(ctx context.Context, who identity, u *user) (uid string, err error) {
	err = p.withKey(ctx, who, u, func(c *s3.Client) error {
		who, err := c.WhoAmI(ctx)
		uid = who.ID
		return err
	})
	if err != nil {
		return "", sorted(ctx, err)
	}
	return uid, checkUID(uid)
}
