package stackit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// writeTries is how often a change that another writer undid is made again.
const writeTries = 4

// bucket is an existing bucket of the project and what its tags say, or, if it is
// AccessOnly, its policy. Its methods need the bucket's lock.
type bucket struct {
	provider.BucketRef
	regional  endpoint // where the driver itself talks to it
	adminURN  string
	tags      map[string]string
	marks            // of tags, or of the policy
	malformed error  // what could not be read of them
	enforced  string // the policy as last seen in place; not if AccessOnly
	written   bool   // its tags or its policy were written
	document  string // the policy as last read, only if AccessOnly
	others    string // the same without the driver's statements
	doubtful  bool   // others may have written the ledger
}

// find reads a bucket of the project and its tags, whoever's it is. ErrNotFound;
// ErrPermissionDenied when its policy shuts the admin out.
func (p *Provider) find(ctx context.Context, ref provider.BucketRef) (*bucket, error) {
	regional, err := p.bucketEndpoint(ctx, ref)
	if err != nil {
		return nil, err
	}
	return p.read(ctx, ref, regional)
}

func (p *Provider) read(ctx context.Context, ref provider.BucketRef, regional endpoint) (*bucket, error) {
	adm, err := p.adminGroup(ctx, ref.Region, true)
	if err != nil {
		return nil, err
	}
	b := &bucket{BucketRef: provider.BucketRef{Name: ref.Name, Region: ref.Region}, regional: regional, adminURN: adm.urn}
	if err := p.reread(ctx, b); err != nil {
		if errors.Is(err, provider.ErrPermissionDenied) {
			return nil, fmt.Errorf("its tags cannot be read: %w; its policy lets in another admin group than %s; "+
				"if it is this driver's, set the back end's admin group to the one that the policy names; "+
				"if it is somebody else's, let its owner give that group s3:* there, as %s", err, adm.id, adm.urn)
		}
		return nil, err
	}
	return b, nil
}

// reread reads the tags again, or the policy of a bucket that is AccessOnly.
func (p *Provider) reread(ctx context.Context, b *bucket) error {
	if b.AccessOnly {
		return p.readExisting(ctx, b)
	}
	var tags map[string]string
	err := p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) (err error) {
		tags, err = c.Tags(ctx, b.Name)
		return err
	})
	if err != nil {
		return err
	}
	b.tags = tags
	b.marks, b.malformed = decodeMarks(tags, b.adminURN)
	return nil
}

// open reads a bucket to be used: one that carries the driver's mark, or with
// AccessOnly also one without whose policy the admin may write. ErrNotFound;
// ErrPermissionDenied; ErrPrecondition when a tag or the policy is malformed.
func (p *Provider) open(ctx context.Context, ref provider.BucketRef) (*bucket, error) {
	b, err := p.find(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case p.ours(b):
		b.doubtful = ref.AccessOnly
		return b, b.malformed
	case !ref.AccessOnly:
		return nil, p.notOurs(b)
	}
	if err := p.readExisting(ctx, b); err != nil {
		return nil, err
	}
	if b.malformed != nil {
		return nil, b.malformed
	}
	return b, b.manageable()
}

// openRecorded reads a bucket whose accesses are already recorded, whether it
// carries the mark or not. Errors as of open.
func (p *Provider) openRecorded(ctx context.Context, ref provider.BucketRef) (*bucket, error) {
	b, err := p.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return b, p.recognise(ctx, b)
}

func (p *Provider) notOurs(b *bucket) error {
	if p.marked(b) {
		return p.othersMark(b)
	}
	return refuse(provider.ErrPermissionDenied,
		"it does not carry the mark of driver %s (its tags %s and %s), so it is left alone; to give access to it all the same, "+
			"set the class parameter adoptExisting to accessOnly", p.config.DriverName, tagManagedBy, tagBucket)
}

// change makes the tags, or the statements of a bucket that is AccessOnly, say what
// f makes of the marks, writing only if that is a difference, and reads them back.
// f may run several times. What is of others stays.
func (p *Provider) change(ctx context.Context, b *bucket, f func(*marks)) error {
	if b.AccessOnly {
		return p.changeExisting(ctx, b, f)
	}
	for try := 1; ; try++ {
		wanted := b.marks
		wanted.entries = append([]entry(nil), b.entries...)
		f(&wanted)
		tags, err := wanted.encode(p.config.DriverName, b.Name, b.adminURN)
		if err != nil {
			return err
		}
		if maps.Equal(tags, b.tags) {
			b.marks = wanted
			return nil
		}
		if try > writeTries {
			return refuse(provider.ErrConflict, "another process writes its tags at the same time; repeat the call")
		}
		if try > 1 {
			if err := pause(ctx, p.waits.after(try-1)); err != nil {
				return err
			}
		}
		b.written = true
		err = p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) error { return c.SetTags(ctx, b.Name, tags) })
		if err != nil {
			return err
		}
		if err := p.reread(ctx, b); err != nil {
			return err
		}
		if !p.ours(b) {
			return refuse(provider.ErrConflict, "another program replaces its tags; find out which and stop it")
		}
		if b.malformed != nil {
			return b.malformed
		}
	}
}

// amend is change for a bucket that was read some calls ago. Its tags are read again
// first: what others wrote since then would be lost.
func (p *Provider) amend(ctx context.Context, b *bucket, f func(*marks)) error {
	if b.AccessOnly {
		// change reads its policy anyway.
		return p.change(ctx, b, f)
	}
	if err := p.reread(ctx, b); err != nil {
		return err
	}
	if !p.ours(b) {
		return refuse(provider.ErrConflict, "its mark was removed at this moment; repeat the call")
	}
	if b.malformed != nil {
		return b.malformed
	}
	return p.change(ctx, b, f)
}

// enforce makes the bucket's policy the one of its ledger, without the entries of
// the names left out. It writes only if that is a difference, and reads back. In a
// bucket that is AccessOnly the statements are the ledger too: what is left out
// stays in them until change drops it.
func (p *Provider) enforce(ctx context.Context, b *bucket, leftOut ...string) error {
	if b.AccessOnly {
		return p.changeExisting(ctx, b, func(*marks) {})
	}
	m := b.marks
	for _, name := range leftOut {
		m.drop(name)
	}
	members := m.members()
	wanted := render(b.Name, b.adminURN, members)
	if err := checkPolicySize(wanted, len(members)); err != nil {
		return err
	}
	for try := 1; ; try++ {
		current, err := p.policyOf(ctx, b)
		if err != nil {
			return err
		}
		if samePolicy(current, wanted) {
			b.enforced = wanted
			return nil
		}
		if try > writeTries {
			return refuse(provider.ErrConflict, "another program replaces its policy; find out which and stop it")
		}
		if try > 1 {
			if err := pause(ctx, p.waits.after(try-1)); err != nil {
				return err
			}
		}
		b.written = true
		err = p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) error { return c.SetPolicy(ctx, b.Name, wanted) })
		if err != nil {
			return err
		}
	}
}

// settle enforces the policy again while the tags, as last read, say something
// else than what it was rendered from. Every writer does so when it is done, and
// reads the tags after each policy it writes, so the last one leaves the policy
// of everybody's entries.
func (p *Provider) settle(ctx context.Context, b *bucket) error {
	if b.AccessOnly {
		// What was recorded is in force.
		return nil
	}
	for range writeTries {
		if render(b.Name, b.adminURN, b.members()) == b.enforced {
			return nil
		}
		if err := p.enforce(ctx, b); err != nil {
			return err
		}
		if err := p.reread(ctx, b); err != nil {
			return err
		}
	}
	return refuse(provider.ErrConflict, "other processes grant and revoke accesses all the time; repeat the call")
}

// policyOf reads the bucket's policy, "" if it has none.
func (p *Provider) policyOf(ctx context.Context, b *bucket) (doc string, err error) {
	err = p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) (err error) {
		doc, err = c.Policy(ctx, b.Name)
		return err
	})
	return doc, err
}

// describe returns what the provider tells of the bucket.
func (b *bucket) describe() provider.Bucket {
	where := b.endpoint
	if where == "" {
		where = b.regional.String()
	}
	namespace, claim, _ := strings.Cut(b.claim, "/")
	return provider.Bucket{
		Claim:     provider.ClaimRef{Namespace: namespace, Name: claim},
		BucketRef: b.BucketRef, Endpoint: where, SigningRegion: b.Region,
		VirtualHosted: b.virtualHosted, DeletionPolicy: b.policy,
	}
}
