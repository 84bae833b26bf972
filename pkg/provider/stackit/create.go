package stackit

import (
	"context"
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// CreateBucket implements provider.Provider.
func (p *Provider) CreateBucket(ctx context.Context, spec provider.BucketSpec) (provider.Bucket, error) {
	ref := provider.BucketRef{Name: spec.Name, Region: spec.Region}
	fail := func(err error) (provider.Bucket, error) {
		return provider.Bucket{}, fmt.Errorf("create bucket %q in region %q: %w", spec.Name, spec.Region, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if err := p.checkRef(ref); err != nil {
		return fail(err)
	}
	if spec.Tenant != "" {
		return fail(refuse(provider.ErrUnsupported, "tenant %q: STACKIT Object Storage has no objects users that own buckets; leave objectsUser out", spec.Tenant))
	}
	if _, err := p.recordOf(spec, p.presumed(spec.Region)); err != nil {
		return fail(err)
	}
	unlock, err := p.locks.lock(ctx, bucketKey(ref))
	if err != nil {
		return fail(err)
	}
	defer unlock()
	b, err := p.ensureBucket(ctx, ref, spec)
	if err != nil {
		return fail(err)
	}
	return b.describe(), nil
}

// presumed is the region's endpoint as far as it is known before a bucket names
// it.
func (p *Provider) presumed(region string) endpoint {
	if e, ok := p.endpoints[region]; ok {
		return e
	}
	return endpoint{scheme: "https", host: "object.storage." + region + ".onstackit.cloud", port: "443"}
}

func (p *Provider) ensureBucket(ctx context.Context, ref provider.BucketRef, spec provider.BucketSpec) (*bucket, error) {
	// The service is enabled with the admin group.
	if _, err := p.adminGroup(ctx, ref.Region, true); err != nil {
		return nil, err
	}
	regional, err := p.bucketEndpoint(ctx, ref)
	if errors.Is(err, provider.ErrNotFound) {
		regional, err = p.makeBucket(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	asked, err := p.recordOf(spec, regional)
	if err != nil {
		return nil, err
	}
	b, err := p.read(ctx, ref, regional)
	if errors.Is(err, provider.ErrPermissionDenied) {
		others, listErr := p.strangers(ctx, ref.Region)
		switch {
		case listErr != nil:
			return nil, listErr
		case len(others) == 0:
			// Nobody else has a key that could have closed it.
			return nil, err
		}
		// Text only: a bucket that the admin may not read belongs to somebody else, who
		// may let it in.
		return nil, refuse(provider.ErrPrecondition, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	if p.ours(b) {
		return b, p.adopt(ctx, b, asked)
	}
	if p.marked(b) {
		// Who starts the driver with the right ID has it.
		return nil, refuse(provider.ErrPrecondition, "the name is taken: %s", p.whose(b.tags))
	}
	announcements, err := p.claimable(ctx, b)
	if err != nil {
		return nil, err
	}
	if len(announcements) == 0 {
		return nil, refuse(provider.ErrAlreadyExists,
			"the project has a bucket of this name without the mark of driver %s; use another name", p.config.DriverName)
	}
	err = p.change(ctx, b, func(m *marks) { m.record, m.intent = asked, announcements[0] })
	if err != nil {
		return nil, err
	}
	return b, p.finish(ctx, b, announcements)
}

// adopt brings a bucket that carries the mark into the state that an undisturbed
// creation would have left.
func (p *Provider) adopt(ctx context.Context, b *bucket, asked record) error {
	if b.malformed != nil {
		return b.malformed
	}
	if err := b.differs(asked); err != nil {
		return err
	}
	var announcements []string
	if b.intent != "" {
		// A crash between the tags and the end of the creation is the only way
		// here, so duplicates by lag are worth looking for.
		found, err := p.groupsNamed(ctx, b.Region, false, p.intentNames(b.Name)...)
		if err != nil {
			return err
		}
		announcements = append(groupIDs(found), b.intent)
	}
	return p.finish(ctx, b, announcements)
}

// finish enforces the policy and removes the announcements.
func (p *Provider) finish(ctx context.Context, b *bucket, announcements []string) error {
	if err := p.enforce(ctx, b); err != nil {
		return err
	}
	if err := p.withdraw(ctx, b.BucketRef, announcements); err != nil {
		return err
	}
	if err := p.change(ctx, b, func(m *marks) { m.intent = "" }); err != nil {
		return err
	}
	return p.settle(ctx, b)
}

// makeBucket announces and makes a bucket that the project does not have, and
// returns its endpoint once the API shows it. ErrAlreadyExists when the name is
// taken outside the project.
func (p *Provider) makeBucket(ctx context.Context, ref provider.BucketRef) (endpoint, error) {
	fresh, err := p.announce(ctx, ref)
	if err != nil {
		return endpoint{}, err
	}
	err = p.createBucket(ctx, ref)
	switch {
	case errors.Is(err, provider.ErrConflict):
		e, getErr := p.bucketEndpoint(ctx, ref)
		if errors.Is(getErr, provider.ErrNotFound) && !fresh {
			// An earlier attempt may have made it, and it shows late.
			e, getErr = p.shown(ctx, ref)
		}
		switch {
		case getErr == nil && !fresh:
			// An earlier attempt may have made it, and it showed late.
			return e, nil
		case getErr == nil:
			err = refuse(provider.ErrConflict, "somebody else makes it at this moment; repeat the call")
		case errors.Is(getErr, provider.ErrNotFound) || errors.Is(getErr, provider.ErrPermissionDenied):
			err = refuse(provider.ErrAlreadyExists, "the name is taken in another project of the cloud; use another one")
		default:
			return endpoint{}, getErr
		}
		return endpoint{}, p.giveUp(ctx, ref, err)
	case refused(err):
		return endpoint{}, p.giveUp(ctx, ref, err)
	case err != nil:
		// It may have been made; the announcement stays and tells the next attempt.
		return endpoint{}, err
	}
	e, err := p.shown(ctx, ref)
	if errors.Is(err, provider.ErrNotFound) {
		err = refuse(provider.ErrUnavailable, "it was made but the API does not show it yet; repeat the call")
	}
	return e, err
}

// shown returns the bucket's endpoint once the API shows it; ErrNotFound if it does
// not in the time that its lists may lag.
func (p *Provider) shown(ctx context.Context, ref provider.BucketRef) (endpoint, error) {
	for wait := p.patience(); ; {
		e, err := p.bucketEndpoint(ctx, ref)
		if !errors.Is(err, provider.ErrNotFound) {
			return e, err
		}
		more, waitErr := wait.next(ctx)
		switch {
		case waitErr != nil:
			return endpoint{}, waitErr
		case !more:
			return endpoint{}, err
		}
	}
}

// giveUp withdraws the announcement of a bucket that will not be made, and
// returns cause: an announcement left behind would later claim a stranger's
// bucket of the name.
func (p *Provider) giveUp(ctx context.Context, ref provider.BucketRef, cause error) error {
	if err := p.withdraw(ctx, ref, p.knownIntent(ref).ids); err != nil {
		// Text only: the cause decides what the caller does.
		return fmt.Errorf("%w; its announcement could not be withdrawn: %s", cause, err.Error())
	}
	return cause
}

// GetBucket implements provider.Provider.
func (p *Provider) GetBucket(ctx context.Context, ref provider.BucketRef) (provider.Bucket, error) {
	fail := func(err error) (provider.Bucket, error) {
		return provider.Bucket{}, fmt.Errorf("get bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if err := p.checkRef(ref); err != nil {
		return fail(err)
	}
	b, err := p.open(ctx, ref)
	if err != nil {
		return fail(err)
	}
	return b.describe(), nil
}
