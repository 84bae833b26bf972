package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// GrantAccess implements provider.Provider. It hands out the key of an objects
// user that is made for the account, after the policy answers for it at the
// bucket's endpoint; with CredentialsShared the key of the bucket's owner.
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
	b := spec.Buckets[0]
	grant := p.grantOwn
	if spec.Credentials == provider.CredentialsShared {
		grant = p.grantShared
	}
	a, err := grant(ctx, spec)
	if err != nil {
		return provider.Access{}, fmt.Errorf("bucket %q in region %q: %w", b.Name, b.Region, err)
	}
	return a, nil
}

// checkSpec validates what GrantAccess is asked for.
func checkSpec(spec provider.AccessSpec) error {
	switch {
	case spec.Account == "":
		return refuse(provider.ErrInvalidArgument, "the account name is empty")
	case len(spec.Buckets) == 0:
		return refuse(provider.ErrInvalidArgument, "no bucket is named")
	case len(spec.Buckets) > 1:
		return refuse(provider.ErrUnsupported,
			"one access cannot span %d buckets here, because each bucket has an owner of its own; make one access per bucket", len(spec.Buckets))
	}
	b := spec.Buckets[0]
	if b.Mode != "" && permissionsOf(b.Mode) == nil {
		return refuse(provider.ErrInvalidArgument, "bucket %q: mode %q is not one of %s, %s, %s",
			b.Name, b.Mode, provider.ReadWrite, provider.ReadOnly, provider.WriteOnly)
	}
	switch spec.OwnBuckets {
	case "", provider.OwnBucketsRefuse, provider.OwnBucketsPurge:
	default:
		return refuse(provider.ErrInvalidArgument, "ownBuckets %q is not one of %s, %s",
			spec.OwnBuckets, provider.OwnBucketsRefuse, provider.OwnBucketsPurge)
	}
	switch spec.Credentials {
	case "", provider.CredentialsPerAccess:
		return nil
	case provider.CredentialsShared:
	default:
		return refuse(provider.ErrInvalidArgument, "credentials %q is not one of %s, %s",
			spec.Credentials, provider.CredentialsPerAccess, provider.CredentialsShared)
	}
	if b.Mode == provider.ReadOnly || b.Mode == provider.WriteOnly {
		return refuse(provider.ErrUnsupported, "bucket %q: mode %s cannot be enforced with the owner's key; use %s, or credentials %s",
			b.Name, b.Mode, provider.ReadWrite, provider.CredentialsPerAccess)
	}
	return nil
}

// grantShared returns the owner's key as the access.
func (p *Provider) grantShared(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	o, err := p.present(ctx, spec.Buckets[0].BucketRef)
	if err != nil {
		return provider.Access{}, err
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

// grantOwn makes an objects user for the account and lets it in. The user is
// marked in the call that makes it, its uid is recorded when its key works, and
// only what has a uid gets into the policy: an access that is cut short anywhere
// opens nothing and is found by its account.
func (p *Provider) grantOwn(ctx context.Context, spec provider.AccessSpec) (provider.Access, error) {
	ref := spec.Buckets[0].BucketRef
	if err := checkRef(ref); err != nil {
		return provider.Access{}, err
	}
	unlock, err := p.buckets.lock(ctx, ref.Name)
	if err != nil {
		return provider.Access{}, err
	}
	defer unlock()
	o, err := p.present(ctx, ref)
	if err != nil {
		return provider.Access{}, err
	}
	if err := p.honours(ctx, o); err != nil {
		return provider.Access{}, err
	}
	want := access{
		bucket: o.bucket, region: o.region, account: accountTag(spec.Account), owner: ownerTag(o.id),
		mode: spec.Buckets[0].Mode, own: spec.OwnBuckets,
	}
	if want.mode == "" {
		want.mode = provider.ReadWrite
	}
	a, err := p.ensureAccess(ctx, o, want)
	if err != nil {
		return provider.Access{}, err
	}
	want.user = a.user
	if err := p.admit(ctx, o, &want); err != nil {
		return provider.Access{}, err
	}
	if err := p.syncPolicy(ctx, o); err != nil {
		return provider.Access{}, p.doubt(o, err)
	}
	if err := p.awaitPolicy(ctx, o, &want.user); err != nil {
		return provider.Access{}, err
	}
	key, err := want.key()
	if err != nil {
		return provider.Access{}, err
	}
	return provider.Access{
		IdentityID:  want.id,
		Credentials: provider.Credentials{AccessKeyID: key.id, SecretAccessKey: key.secret},
		Buckets:     []provider.Bucket{p.bucket(o)},
	}, nil
}

// admit waits until the access's key works, learns its uid from the endpoint and
// records it with everything else.
func (p *Provider) admit(ctx context.Context, o owner, a *access) error {
	uid, err := p.uidOf(ctx, o, &a.user)
	if err != nil {
		return err
	}
	a.uid = uid
	return p.record(ctx, *a)
}

// uidOf returns what the owner's endpoint calls the user, after its key works.
func (p *Provider) uidOf(ctx context.Context, o owner, u *user) (uid string, err error) {
	err = p.withKey(ctx, identity{u.id, o.region, p.endpointOf(o.record)}, u, func(c *s3.Client) error {
		who, err := c.WhoAmI(ctx)
		uid = who.ID
		return err
	})
	if err != nil {
		return "", sorted(ctx, err)
	}
	return uid, checkUID(uid)
}

// awaitPolicy waits until the endpoint lets the user's key into the bucket.
func (p *Provider) awaitPolicy(ctx context.Context, o owner, u *user) error {
	began := time.Now()
	who := identity{u.id, o.region, p.endpointOf(o.record)}
	for n := 1; ; n++ {
		// Every mode may ask for the location.
		err := p.withKey(ctx, who, u, func(c *s3.Client) error {
			_, err := c.BucketLocation(ctx, o.bucket)
			return err
		})
		if err == nil || s3.StatusCode(err) != http.StatusForbidden {
			return sorted(ctx, err)
		}
		next := p.waits.after(n)
		if waited := time.Since(began); waited+next > p.config.KeyWait {
			return refuse(provider.ErrUnavailable, "the bucket policy does not let objects user %s in after %s; repeat the call",
				u.id, waited.Round(time.Millisecond))
		}
		if err := pause(ctx, next); err != nil {
			return fmt.Errorf("waiting for the bucket policy: %w", err)
		}
	}
}

// policyTries is how often a policy is written before somebody else is said to
// write it all the time.
const policyTries = 5

// syncPolicy makes the bucket's policy the one that its accesses ask for, and
// returns after it was read back under the accesses as they are then. Without
// accesses a bucket that has no policy gets none. The last writer of a policy
// wins; whoever looks later sees it and repeats.
func (p *Provider) syncPolicy(ctx context.Context, o owner) error {
	key, err := o.key()
	if err != nil {
		return err
	}
	c, err := p.client(p.endpointOf(o.record), key)
	if err != nil {
		return err
	}
	for range policyTries {
		found, err := p.accesses(ctx, o)
		if err != nil {
			return err
		}
		members := membersOf(found)
		current, err := c.Policy(ctx, o.bucket)
		if err != nil {
			return s3Error(ctx, err)
		}
		if current == "" && len(members) == 0 {
			return nil
		}
		policy, err := render(o.bucket, o.uid, members)
		if err != nil || current == policy {
			return err
		}
		if err := p.setPolicy(ctx, c, o.bucket, policy, current == ""); err != nil {
			return err
		}
	}
	return refuse(provider.ErrConflict, "somebody else writes its policy at the same time; repeat the call")
}

// membersOf returns those whom the policy has a word about.
func membersOf(found []access) []member {
	var members []member
	for _, a := range found {
		if a.uid != "" && (a.revoked || permissionsOf(a.mode) != nil) {
			members = append(members, member{id: a.id, uid: a.uid, mode: a.mode, revoked: a.revoked})
		}
	}
	return members
}

// setPolicy writes the policy. Before the first one public ACLs are switched off:
// a writer owns its objects and could publish them in more ways than a policy can
// deny.
func (p *Provider) setPolicy(ctx context.Context, c *s3.Client, bucket, policy string, first bool) error {
	if first {
		err := s3Error(ctx, c.IgnorePublicACLs(ctx, bucket))
		// An endpoint without the switch still has the Deny of the policy.
		if err != nil && !errors.Is(err, provider.ErrUnsupported) {
			return err
		}
	}
	return s3Error(ctx, c.SetPolicy(ctx, bucket, policy))
}

// RotateAccess implements provider.Provider: an objects user has exactly one key,
// and the API cannot replace it.
func (p *Provider) RotateAccess(ctx context.Context, ref provider.AccountRef, _ provider.RotateOptions) (provider.Credentials, error) {
	if err := ctx.Err(); err != nil {
		return provider.Credentials{}, err
	}
	return provider.Credentials{}, refuse(provider.ErrUnsupported,
		"rotate access of account %q: cloudscale.ch cannot replace the key of an objects user; make a new access", ref.Account)
}
