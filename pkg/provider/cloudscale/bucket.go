package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// signingRegion is what clients put into their signatures.
const signingRegion = s3.DefaultSigningRegion

// displayName is what the control panel shows of a bucket's owner. The cloud's
// limit is not documented; this is the longest known name of anything.
func displayName(bucket string) string {
	const limit = 63
	name := "zuber-" + bucket
	return name[:min(len(name), limit)]
}

// CreateBucket implements provider.Provider. The owner is made first, with all
// tags in the same call, and the bucket with the owner's key; a repetition after
// a crash finds the owner by its tags.
func (p *Provider) CreateBucket(ctx context.Context, spec provider.BucketSpec) (provider.Bucket, error) {
	b, err := p.createBucket(ctx, spec)
	if err != nil {
		return provider.Bucket{}, fmt.Errorf("create bucket %q in region %q: %w", spec.Name, spec.Region, err)
	}
	return b, nil
}

func (p *Provider) createBucket(ctx context.Context, spec provider.BucketSpec) (provider.Bucket, error) {
	if err := ctx.Err(); err != nil {
		return provider.Bucket{}, err
	}
	if err := checkRef(provider.BucketRef{Name: spec.Name, Region: spec.Region}); err != nil {
		return provider.Bucket{}, err
	}
	asked, err := p.recordOf(spec)
	if err != nil {
		return provider.Bucket{}, err
	}
	if err := p.checkRegion(ctx, spec.Region); err != nil {
		return provider.Bucket{}, err
	}
	ensure, settle := p.ensureOwner, p.settle
	if asked.tenant != "" {
		ensure, settle = p.ensureTenant, p.settleMade
	}
	o, made, crowded, err := ensure(ctx, asked)
	if err != nil {
		return provider.Bucket{}, err
	}
	useless, err := p.ensureBucket(ctx, o)
	if err == nil {
		if err := p.standing(ctx, o); err != nil {
			return provider.Bucket{}, err
		}
		if crowded {
			if o, err = settle(ctx, o.bucket); err != nil {
				return provider.Bucket{}, err
			}
		}
		return p.bucket(o), nil
	}
	// An owner found is as useless as one just made: a call that ended early left
	// it.
	if !useless && (!made || !definite(err)) {
		return provider.Bucket{}, err
	}
	if errors.Is(err, provider.ErrAlreadyExists) {
		err = p.raced(ctx, o, asked, err)
	}
	return provider.Bucket{}, p.giveUp(ctx, o, err)
}

// definite reports whether an error tells that the bucket was not made and will
// not be by a mere repetition. After anything else the owner stays, and the
// repetition adopts it.
func definite(err error) bool {
	for _, sentinel := range []error{
		provider.ErrInvalidArgument, provider.ErrAlreadyExists, provider.ErrQuotaExceeded, provider.ErrPermissionDenied,
		provider.ErrPrecondition,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// raced turns "taken" into ErrConflict when the other one carries our mark too,
// because another call made both at the same time: a repetition adopts it. One that
// is another tenant's, or none's, differs for good.
func (p *Provider) raced(ctx context.Context, mine owner, asked record, taken error) error {
	found, others, err := p.holders(ctx, mine.bucket)
	if err != nil {
		return fmt.Errorf("who has the name is not known: %w", err)
	}
	if len(others) > 0 {
		return takenBy(p.otherCluster(others[0], mine.bucket))
	}
	found = slices.DeleteFunc(found, func(o owner) bool { return o.id == mine.id })
	for _, o := range found {
		if o.tenant != asked.tenant && o.differs(asked) != nil {
			return o.differs(asked)
		}
	}
	if len(found) > 0 || p.tenantHas(ctx, mine) {
		return refuse(provider.ErrConflict, "another call makes it at this moment; repeat the call")
	}
	return taken
}

// tenantHas reports whether another objects user of the tenant has the bucket, whose
// record another process can have written over. The repetition adopts it.
func (p *Provider) tenantHas(ctx context.Context, mine owner) bool {
	if mine.tenant == "" {
		return false
	}
	users, err := p.usersOfTenant(ctx, mine.tenant)
	return err == nil && slices.ContainsFunc(users, func(u user) bool {
		if u.id == mine.id {
			return false
		}
		owned, err := p.owned(ctx, unrecordedOwner(u, mine.bucket, mine.region))
		return err == nil && slices.Contains(owned, mine.bucket)
	})
}

// ensureOwner finds the bucket's owner or makes it. When calls at the same time made
// several, it is crowded: all of them go on with the same one, and the endpoint
// decides if they differ. None is removed before one has the bucket: whoever has
// found it may be about to make the bucket with a key that works on for a while,
// and without its owner nobody could delete that bucket.
func (p *Provider) ensureOwner(ctx context.Context, asked record) (o owner, made, crowded bool, err error) {
	o, err = p.theOwner(ctx, asked.bucket)
	if errors.Is(err, provider.ErrConflict) {
		o, err = p.settle(ctx, asked.bucket)
		var open *noneHolds
		if errors.As(err, &open) {
			return elected(open.found, asked)
		}
	}
	if err == nil {
		o, err = p.agreed(ctx, o, asked)
		return o, false, false, err
	}
	if !errors.Is(err, provider.ErrNotFound) {
		return owner{}, false, false, takenBy(err)
	}
	tags, err := asked.tags(p.config.DriverName)
	if err != nil {
		return owner{}, false, false, err
	}
	u, err := p.createUser(ctx, displayName(asked.bucket), tags)
	if err != nil {
		return owner{}, false, false, err
	}
	if _, err := u.key(); err != nil {
		return owner{}, false, false, p.removeMade(ctx, u.id, err)
	}
	found, err := p.owners(ctx, asked.bucket)
	switch {
	case err != nil:
		return owner{}, false, false, err
	case !slices.ContainsFunc(found, func(o owner) bool { return o.id == u.id }):
		return owner{}, false, false, refuse(provider.ErrConflict, "its owner %s was removed as soon as it was made; repeat the call", u.id)
	case found[0].id != u.id:
		return elected(found, asked)
	}
	return owner{user: u, record: asked}, true, len(found) > 1, nil
}

// takenBy makes ErrPrecondition of an otherClusterError: who starts the driver with the
// right ID has it. Other errors stay.
func takenBy(err error) error {
	var other *otherClusterError
	if errors.As(err, &other) {
		return refuse(provider.ErrPrecondition, "the name is taken: %s", err.Error())
	}
	return err
}

// elected returns the one of several owners, ordered by ID, that all calls go on
// with while none has the bucket. ErrConflict if that is for other parameters: who
// gets the bucket is open.
func elected(found []owner, asked record) (o owner, made, crowded bool, err error) {
	if err := found[0].differs(asked); err != nil {
		return owner{}, false, false, refuse(provider.ErrConflict, "another call makes it with other parameters at this moment; repeat the call")
	}
	return found[0], false, true, nil
}

// ensureBucket creates the bucket with the owner's key or finds that the owner
// has it already. With an error it reports whether the owner has no bucket and
// gets none by a repetition: the name is somebody else's, or the endpoint is not
// the region's.
func (p *Provider) ensureBucket(ctx context.Context, o owner) (useless bool, err error) {
	var loc location
	err = p.withKey(ctx, p.identityOf(o), &o.user, func(c *s3.Client) error {
		err := c.CreateBucket(ctx, o.bucket)
		taken := s3.StatusCode(err) == http.StatusConflict || s3.StatusCode(err) == http.StatusMovedPermanently
		if err == nil {
			useless, err = p.landed(ctx, c, o)
		}
		if !taken {
			return err
		}
		// The endpoint says the same of a bucket whose ACL the owner changed, of
		// one in another region and of somebody else's.
		var lookErr error
		if loc, lookErr = p.look(ctx, c, o.record); lookErr != nil {
			return lookErr
		}
		if loc.state == stateAbsent {
			return refuse(provider.ErrConflict, "the endpoint says that the name is taken (%s) and then that there is no such bucket, "+
				"as while another call makes or removes it; repeat the call", err)
		}
		return nil
	})
	if err != nil {
		return useless, sorted(ctx, err)
	}
	switch loc.state {
	case stateElsewhere:
		return false, refuse(provider.ErrAlreadyExists, "a bucket of that name lives in region %q; names are unique over all regions", loc.region)
	case stateForeign:
		return true, refuse(provider.ErrAlreadyExists, "the name is taken by somebody else's bucket, which is left alone; use another name")
	case stateAbsent, statePresent:
	}
	return false, nil
}

// landed checks that a bucket which the endpoint says it made is where it was
// asked for. One in another region could be neither granted nor deleted later, so
// it is taken back if it is empty; removed reports that.
func (p *Provider) landed(ctx context.Context, c *s3.Client, o owner) (removed bool, err error) {
	where, err := c.BucketLocation(ctx, o.bucket)
	switch {
	case s3.Code(err) == codeDenied:
		// An older bucket, with a policy that closes this call to its owner.
		return false, nil
	case s3.Code(err) == codeMissing:
		return false, refuse(provider.ErrUnavailable, "the endpoint %s says that it made the bucket and then that there is none; check the endpoint",
			p.endpointOf(o.record))
	case err != nil:
		return false, err
	case !p.elsewhere(ctx, where, o.region):
		return false, nil
	}
	const text = "the endpoint %s makes buckets in region %q; use an endpoint of region %q"
	wrong := provider.ErrInvalidArgument // in the class
	if o.endpoint == "" {
		wrong = provider.ErrPrecondition // in the back end's configuration
	}
	empty, err := c.IsEmpty(ctx, o.bucket)
	if err == nil && !empty {
		return false, refuse(wrong, text+" (the bucket there holds data and is left alone)", p.endpointOf(o.record), where, o.region)
	}
	if err == nil {
		err = c.DeleteBucket(ctx, o.bucket)
	}
	if err != nil && s3.Code(err) != codeMissing {
		return false, err
	}
	return true, refuse(wrong, text, p.endpointOf(o.record), where, o.region)
}

// GetBucket implements provider.Provider.
func (p *Provider) GetBucket(ctx context.Context, ref provider.BucketRef) (provider.Bucket, error) {
	o, err := p.present(ctx, ref)
	if err != nil {
		return provider.Bucket{}, fmt.Errorf("get bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	return p.bucket(o), nil
}

// present returns the owner of a bucket that exists, carries our mark, unless the
// reference says AccessOnly, and answers to the owner's key. Errors: ErrNotFound, ErrPermissionDenied, ErrConflict.
func (p *Provider) present(ctx context.Context, ref provider.BucketRef) (owner, error) {
	if err := ctx.Err(); err != nil {
		return owner{}, err
	}
	if err := checkRef(ref); err != nil {
		return owner{}, err
	}
	o, err := p.resolve(ctx, ref)
	if errors.Is(err, provider.ErrNotFound) && ref.OwnerID == "" && !ref.AccessOnly {
		return owner{}, p.unmarked(ctx, ref)
	}
	if err != nil {
		return owner{}, err
	}
	loc, err := p.locateOrUnmade(ctx, &o)
	if err != nil {
		return owner{}, err
	}
	switch loc.state {
	case stateAbsent:
		return owner{}, refuse(provider.ErrNotFound, "its owner %s stands but it does not exist", o.id)
	case stateForeign:
		return owner{}, refuse(provider.ErrPermissionDenied, "it belongs to somebody else than its owner %s and is left alone", o.id)
	case stateElsewhere:
		return owner{}, refuse(provider.ErrInvalidArgument, "it lives in region %q", loc.region)
	case statePresent:
	}
	return o, nil
}
