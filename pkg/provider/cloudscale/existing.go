package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// A bucket that the driver did not make belongs to an objects user of the project
// without its mark. That user's key reads and writes the bucket's policy and does
// nothing else, and neither the user nor the bucket is ever marked: who is let in
// is recorded with the accesses.

// searchLimit is how many objects users are asked for a bucket.
const searchLimit = 500

// adoptRemedy is what to do about a bucket that is not ours.
const adoptRemedy = "to give access to it nevertheless, and to that alone, set the class parameter adoptExisting to accessOnly"

// ownerIDs remembers who owns a bucket that the driver did not make.
type ownerIDs struct {
	mu   sync.Mutex
	byID map[string]string // by bucket
}

func (c *ownerIDs) get(bucket string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[bucket]
}

// set remembers the owner; "" forgets it.
func (c *ownerIDs) set(bucket, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]string{}
	}
	if c.byID[bucket] = id; id == "" {
		delete(c.byID, bucket)
	}
}

// theirs makes the owner of a bucket that the driver did not make out of its
// user. ErrPermissionDenied if the user serves a driver already.
func (p *Provider) theirs(u user, ref provider.BucketRef) (owner, error) {
	if by := u.tags[tagManagedBy]; by != "" {
		return owner{}, refuse(provider.ErrPermissionDenied,
			"its owner %s carries the mark of driver %s for something else; it is left alone", u.id, by)
	}
	return theirsOf(u, ref), nil
}

func theirsOf(u user, ref provider.BucketRef) owner {
	return owner{user: u, theirs: true, record: record{
		bucket: ref.Name, region: ref.Region, policy: provider.DeleteIfEmpty, shared: provider.SharedForbidden,
	}}
}

// theirOwner returns the owner of a bucket that the driver did not make, found by
// asking every unmarked user of the project once. Errors: ErrNotFound if the bucket
// does not exist; ErrPermissionDenied if nobody in the project owns it.
func (p *Provider) theirOwner(ctx context.Context, ref provider.BucketRef) (owner, error) {
	if id := p.theirIDs.get(ref.Name); id != "" {
		u, err := p.getUser(ctx, id)
		if err == nil {
			return p.theirs(u, ref)
		}
		if !errors.Is(err, provider.ErrNotFound) {
			return owner{}, err
		}
		p.theirIDs.set(ref.Name, "")
	}
	// The answer to who asks without a key tells whether there is anything to find.
	if err := p.unmarked(ctx, ref); !errors.Is(err, provider.ErrPermissionDenied) {
		return owner{}, err
	}
	users, err := p.allUsers(ctx)
	if err != nil {
		return owner{}, err
	}
	users = slices.DeleteFunc(users, func(u user) bool { return u.tags[tagManagedBy] != "" })
	if len(users) > searchLimit {
		return owner{}, refuse(provider.ErrPrecondition, "%d objects users could own it, and no more than %d are asked; "+
			"name its owner in the bucket ID: <backend>/<region>/<bucket>/<ID of the objects user>", len(users), searchLimit)
	}
	u, err := p.whoOwns(ctx, ref, users)
	if err != nil {
		return owner{}, err
	}
	p.theirIDs.set(ref.Name, u.id)
	return p.theirs(u, ref)
}

// whoOwns asks the endpoint with the key of each user for the one that owns the
// bucket.
func (p *Provider) whoOwns(ctx context.Context, ref provider.BucketRef, users []user) (user, error) {
	var mu sync.Mutex
	var found user
	var unasked error // why some user was not asked
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, u := range users {
		group.Go(func() error {
			owns, err := p.owns(ctx, u, ref)
			mu.Lock()
			defer mu.Unlock()
			if owns {
				found = u
			}
			if err != nil {
				unasked = err
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in unasked
	switch {
	case found.id != "":
		return found, nil
	case ctx.Err() != nil:
		return user{}, ctx.Err()
	case unasked != nil:
		return user{}, unasked
	}
	return user{}, refuse(provider.ErrPermissionDenied, "it exists and no objects user without a driver's mark owns it in this project; "+
		"use the API token of the project that owns it")
}

// owns asks with the user's key. A user that the endpoint refuses for good owns
// nothing that could be used.
func (p *Provider) owns(ctx context.Context, u user, ref provider.BucketRef) (bool, error) {
	key, err := u.key()
	if err != nil {
		return false, err
	}
	c, err := p.client(p.defaultEndpoint(ref.Region), key)
	if err != nil {
		return false, err
	}
	who, err := c.WhoAmI(ctx)
	switch {
	case err == nil:
		return slices.Contains(who.Buckets, ref.Name), nil
	case s3.StatusCode(err) == http.StatusForbidden && s3.Code(err) != codeUnknownKey:
		return false, nil
	}
	return false, fmt.Errorf("asking whether objects user %s owns it: %w", u.id, s3Error(ctx, err))
}

// ownerOf returns the owner of the bucket of a recorded access, by the digest of
// its ID; false if the bucket can have none of the kind any more.
func (p *Provider) ownerOf(ctx context.Context, m membership) (owner, bool, error) {
	if !m.theirs {
		found, err := p.owners(ctx, m.bucket)
		for _, o := range found {
			if ownerTag(o.id) == m.owner {
				return o, true, nil
			}
		}
		if err != nil {
			return owner{}, false, err
		}
		return p.tenantByTag(ctx, m)
	}
	ref := provider.BucketRef{Name: m.bucket, Region: m.region}
	if id := p.theirIDs.get(m.bucket); id != "" && ownerTag(id) == m.owner {
		u, err := p.getUser(ctx, id)
		if !errors.Is(err, provider.ErrNotFound) {
			return theirsOf(u, ref), err == nil, err
		}
	}
	users, err := p.allUsers(ctx)
	for _, u := range users {
		if ownerTag(u.id) == m.owner {
			p.theirIDs.set(m.bucket, u.id)
			return theirsOf(u, ref), true, nil
		}
	}
	return owner{}, false, err
}
