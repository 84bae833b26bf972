package objectstore

import (
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// root tells whether an identity is the account itself rather than somebody in it.
func (i Identity) root() bool {
	return i.Account.ID != "" && strings.HasSuffix(i.UID, ":"+i.Account.ID+":root")
}

// username is what aws:username stands for in a policy.
func (i Identity) username() string {
	if _, name, found := strings.Cut(i.UID, ":user/"); found {
		return name
	}
	return i.UID
}

// allowAccount authorises an action the way a grid does whose every group has full access: an identity of
// the bucket's account is let in unless the policy denies it, everybody else only if the policy allows it.
// The policy itself is never another account's business, and never denied to the account's root.
func (q *request) allowAccount(b *bucket, action, resource string) *apiError {
	own := !q.caller.anonymous && q.caller.Account.ID == b.owner.UID
	ofPolicy := strings.HasSuffix(action, "BucketPolicy")
	if own && ofPolicy && q.caller.root() {
		return nil
	}
	decision := q.evaluate(b, action, resource)
	switch {
	case decision == policy.Deny, decision == policy.NoMatch && !own:
		return errAccessDenied()
	case ofPolicy && !own:
		return errMethodNotAllowed()
	}
	return nil
}

// allowOverwrite refuses to write over the data, metadata or tags of what the request's key holds, where
// the policy says so. The action is a grid's own; it takes away and never gives.
func (q *request) allowOverwrite() *apiError {
	if q.bucket.find(q.target.key, q.query.Get("versionId")) == nil {
		return nil
	}
	if q.evaluate(q.bucket, "s3:PutOverwriteObject", q.bucket.arn(q.target.key)) == policy.Deny {
		return errAccessDenied()
	}
	return nil
}

// policyChange is a write of a bucket's policy; nil removes it. Requests are judged by it from a time on.
type policyChange struct {
	policy *bucketPolicy
	from   time.Time
}

// setPolicy writes the bucket's policy. Reading it shows the write at once, its effect may lag.
func (q *request) setPolicy(p *bucketPolicy) {
	c := policyChange{policy: p}
	if q.store.policyDelay != nil {
		if d := q.store.policyDelay(); d > 0 {
			c.from = q.now.Add(d)
		}
	}
	q.bucket.policy = p
	q.bucket.changes = append(q.bucket.changes, c)
}

// enforced is the policy that requests are judged by: the latest write that has taken effect.
func (b *bucket) enforced(now time.Time) *bucketPolicy {
	for i := len(b.changes) - 1; i >= 0; i-- {
		if c := b.changes[i]; !now.Before(c.from) {
			// What was written before has been overtaken.
			b.changes = b.changes[i:]
			return c.policy
		}
	}
	return nil
}
