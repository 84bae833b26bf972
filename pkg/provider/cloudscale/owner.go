package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// owner is the objects user that owns a bucket: that alone, or those of its tenant.
type owner struct {
	user
	record
	uid    string // as its endpoint calls it; set by locate
	theirs bool   // it does not carry our mark: the driver did not make the bucket
}

// isOwner reports whether the user carries our mark as the owner of the bucket.
func (p *Provider) isOwner(u user, bucket string) bool {
	return p.marksOwner(u, bucket) && !p.elsewhereMade(u)
}

// marksOwner is isOwner for the driver of any cluster.
func (p *Provider) marksOwner(u user, bucket string) bool {
	return u.tags[tagManagedBy] == p.config.DriverName && u.tags[tagRole] == roleOwner && u.tags[tagBucket] == bucket
}

// owners returns every objects user that carries our mark as the bucket's owner,
// ordered by ID.
func (p *Provider) owners(ctx context.Context, bucket string) ([]owner, error) {
	found, _, err := p.allOwners(ctx, bucket)
	return found, err
}

// allOwners returns the owners of the bucket, and those that carry the mark of the
// driver in other clusters.
func (p *Provider) allOwners(ctx context.Context, bucket string) (ours []owner, others []user, err error) {
	users, err := p.listUsers(ctx, tagBucket, bucket)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range users {
		switch {
		case !p.marksOwner(u, bucket):
			continue
		case p.elsewhereMade(u):
			others = append(others, u)
			continue
		}
		r, err := recorded(u.tags)
		if err != nil {
			return nil, nil, fmt.Errorf("objects user %s: %w", u.id, err)
		}
		ours = append(ours, owner{user: u, record: r})
	}
	slices.SortFunc(ours, func(a, b owner) int { return strings.Compare(a.id, b.id) })
	return ours, others, nil
}

// theOwner returns the owner that a bucket has of its own; ErrNotFound if there is
// none, ErrConflict with the IDs if there are several, and an otherCluster if it is
// another cluster's.
func (p *Provider) theOwner(ctx context.Context, bucket string) (owner, error) {
	found, others, err := p.allOwners(ctx, bucket)
	if err != nil {
		return owner{}, err
	}
	return p.only(bucket, found, others)
}

// only returns the one owner that was found for a bucket; the errors are those of
// theOwner.
func (p *Provider) only(bucket string, found []owner, others []user) (owner, error) {
	switch {
	case len(found) == 0 && len(others) > 0:
		return owner{}, p.otherCluster(others[0], bucket)
	case len(found) == 0:
		return owner{}, p.unowned()
	case len(found) > 1:
		return owner{}, ambiguous(found)
	}
	return found[0], nil
}

func (p *Provider) unowned() error {
	return refuse(provider.ErrNotFound, "no objects user carries the mark of driver %s for it", p.config.DriverName)
}

// recordedOwner returns the bucket's owner, its own or its tenant's; errors as of
// theOwner. A bucket with an owner of its own costs one call.
func (p *Provider) recordedOwner(ctx context.Context, bucket string) (owner, error) {
	o, err := p.theOwner(ctx, bucket)
	if errors.Is(err, provider.ErrNotFound) {
		return p.theTenant(ctx, bucket)
	}
	return o, err
}

func ambiguous(found []owner) error {
	ids := make([]string, len(found))
	for i, o := range found {
		ids[i] = o.id
	}
	return refuse(provider.ErrConflict,
		"several objects users carry its mark: %s; if this lasts, find out which one owns it and delete the others", strings.Join(ids, ", "))
}

// resolve returns the owner of the bucket that the reference names: by its ID if
// it has one, else by the mark, and with AccessOnly also one without it. Errors:
// ErrNotFound; ErrPermissionDenied if the named user lacks the mark; ErrConflict;
// ErrInvalidArgument if the reference names another region than the record.
func (p *Provider) resolve(ctx context.Context, ref provider.BucketRef) (owner, error) {
	o, err := p.resolveAnywhere(ctx, ref)
	if err != nil {
		return owner{}, err
	}
	if o.region == "" {
		// The tag can only have been removed by hand.
		o.region = ref.Region
	}
	if o.region != ref.Region {
		return owner{}, refuse(provider.ErrInvalidArgument, "its record says region %q", o.region)
	}
	return o, nil
}

func (p *Provider) resolveAnywhere(ctx context.Context, ref provider.BucketRef) (owner, error) {
	if ref.OwnerID == "" {
		o, err := p.recordedOwner(ctx, ref.Name)
		if errors.Is(err, provider.ErrNotFound) && ref.AccessOnly {
			return p.theirOwner(ctx, ref)
		}
		return o, err
	}
	u, err := p.getUser(ctx, ref.OwnerID)
	switch {
	case err != nil:
		return owner{}, err
	case p.isOwner(u, ref.Name):
		r, err := recorded(u.tags)
		if err != nil {
			return owner{}, fmt.Errorf("objects user %s: %w", u.id, err)
		}
		return owner{user: u, record: r}, nil
	case p.marksOwner(u, ref.Name):
		return owner{}, p.otherCluster(u, ref.Name)
	case p.marksTenant(u) && p.elsewhereMade(u):
		return owner{}, p.otherCluster(u, ref.Name)
	case p.isTenant(u):
		o, ok, err := p.tenantOwner(u, ref.Name)
		if err != nil || ok {
			return o, err
		}
		return p.unrecorded(ctx, u, ref)
	case ref.AccessOnly:
		return p.theirs(u, ref)
	}
	return owner{}, refuse(provider.ErrPermissionDenied, "objects user %s does not carry the mark of driver %s as its owner; it is left alone; %s",
		u.id, p.config.DriverName, adoptRemedy)
}

// bucket returns what the provider tells of the owner's bucket.
func (p *Provider) bucket(o owner) provider.Bucket {
	return provider.Bucket{
		BucketRef: provider.BucketRef{Name: o.bucket, Region: o.region, OwnerID: o.id, AccessOnly: o.theirs},
		Endpoint:  p.endpointOf(o.record),
		// Any region is accepted in a signature. With this one no client sends a
		// LocationConstraint, which the endpoint of a region may refuse.
		SigningRegion:  signingRegion,
		VirtualHosted:  o.virtualHosted,
		DeletionPolicy: o.policy,
		Tenant:         o.tenant,
		Claim:          o.claim,
	}
}

// endpointOf returns the S3 endpoint of a recorded bucket.
func (p *Provider) endpointOf(r record) string {
	if r.endpoint != "" {
		return r.endpoint
	}
	return p.defaultEndpoint(r.region)
}

// removeMade deletes an owner that has no bucket, also when the call's context
// has ended. It returns cause with what keeps the owner alive, if anything does,
// or ErrUnavailable when a repetition can remove it: a caller who takes cause for
// final would leave it for ever.
func (p *Provider) removeMade(ctx context.Context, id string, cause error) error {
	return p.undo(ctx, cause, fmt.Sprintf("the objects user %s made for it", id), func(ctx context.Context) error { return p.deleteUser(ctx, id) })
}

// undo runs remove as removeMade is documented, for what is left otherwise.
func (p *Provider) undo(ctx context.Context, cause error, what string, remove func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var err error
	for try := range 3 {
		if try > 0 && pause(ctx, p.waits.after(try)) != nil {
			break
		}
		if err = remove(ctx); err == nil || !errors.Is(err, provider.ErrUnavailable) {
			break
		}
	}
	if err == nil {
		return cause
	}
	const left = "%s could not be removed again"
	if errors.Is(err, provider.ErrUnavailable) || ctx.Err() != nil {
		return refuse(provider.ErrUnavailable, "%s; "+left+": %s; repeat the call", cause, what, err)
	}
	return fmt.Errorf("%w; "+left+": %s", cause, what, err)
}

// pause waits, or returns ctx.Err() when the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
