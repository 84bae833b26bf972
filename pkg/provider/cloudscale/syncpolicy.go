package cloudscale

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// policyTries is how often a policy is written before somebody else is said to
// write it all the time.
const policyTries = 5

// syncPolicy makes the bucket's policy say what its accesses ask for, and returns
// after it was read back under the accesses as they are then. It has no word about
// the user whose ID is leaving. Without accesses a bucket that has no policy gets
// none. The last writer of a policy wins; whoever looks later sees it and repeats.
func (p *Provider) syncPolicy(ctx context.Context, o owner, leaving string) error {
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
		current, err := c.Policy(ctx, o.bucket)
		if err != nil {
			return s3Error(ctx, err)
		}
		policy, err := o.policyFor(p.sids(), current, membersOf(found, o.bucket, leaving))
		if err != nil || current == policy {
			return err
		}
		if err := p.setPolicy(ctx, c, o, policy, current == ""); err != nil {
			return err
		}
	}
	return refuse(provider.ErrConflict, "somebody else writes its policy at the same time; repeat the call")
}

// policyFor returns the policy of the bucket: for one of ours rendered whole, for
// another one what others have in it with our statements.
func (o owner) policyFor(sids, current string, members []member) (string, error) {
	switch {
	case o.theirs:
		return merge(sids, current, o.bucket, o.uid, members)
	case current == "" && len(members) == 0:
		return "", nil
	}
	return render(o.bucket, o.uid, members)
}

// membersOf returns those whom the bucket's policy has a word about.
func membersOf(found []access, bucket, leaving string) []member {
	var members []member
	for _, a := range found {
		if m := a.buckets[bucket]; m.named() && a.id != leaving {
			members = append(members, member{id: a.id, uid: m.uid, mode: m.mode, revoked: m.stage == stageOut})
		}
	}
	return members
}

// setPolicy writes the policy. Before the first one public ACLs are switched off:
// a writer owns its objects and could publish them in more ways than a policy can
// deny. A bucket that the driver did not make may live on public ACLs.
func (p *Provider) setPolicy(ctx context.Context, c *s3.Client, o owner, policy string, first bool) error {
	if first && !o.theirs {
		err := s3Error(ctx, c.IgnorePublicACLs(ctx, o.bucket))
		// An endpoint without the switch still has the Deny of the policy.
		if err != nil && !lacks(err) {
			return err
		}
	}
	return s3Error(ctx, c.SetPolicy(ctx, o.bucket, policy))
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
			remedy := "repeat the call"
			if o.theirs {
				remedy = "a statement that others put into the policy may deny it, else repeat the call"
			}
			return refuse(provider.ErrUnavailable, "the bucket policy does not let objects user %s in after %s; %s",
				u.id, waited.Round(time.Millisecond), remedy)
		}
		if err := pause(ctx, next); err != nil {
			return fmt.Errorf("waiting for the bucket policy: %w", err)
		}
	}
}
