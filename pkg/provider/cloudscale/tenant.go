package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The buckets of a tenant belong to one objects user, which is made with the first
// of them and goes with the last. Its tags record each bucket before that is made.
//
// The API replaces all tags at once, so that two processes can lose a record to one
// another. The key never leaves the driver: whatever bucket the user owns is of the
// driver's making, recorded or not, and the API keeps the user while it owns one.

// tenantPattern is a tenant's name, which is the value of a tag as it stands.
var tenantPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// bucketSuffix ends the keys of the tags that record one of several buckets.
func bucketSuffix(bucket string) string { return "_" + bucketKey(bucket) }

func tenantDisplayName(tenant string) string { return displayName("tenant-" + tenant) }

// isTenant reports whether the user carries our mark as the owner of a tenant's buckets.
func (p *Provider) isTenant(u user) bool { return p.marksTenant(u) && !p.elsewhereMade(u) }

// marksTenant is isTenant for the driver of any cluster.
func (p *Provider) marksTenant(u user) bool {
	return u.tags[tagManagedBy] == p.config.DriverName && u.tags[tagRole] == roleTenant && u.tags[tagTenant] != ""
}

// bucketsOfTenant returns the names of the buckets that the tags of a tenant's owner
// record, sorted.
func bucketsOfTenant(u user) []string {
	var names []string
	for key, name := range u.tags {
		if key == tagBucket+bucketSuffix(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tenantOwner returns the user as the owner of the bucket; false if its tags do not
// record that.
func (p *Provider) tenantOwner(u user, bucket string) (owner, bool, error) {
	if !p.isTenant(u) || u.tags[tagBucket+bucketSuffix(bucket)] != bucket {
		return owner{}, false, nil
	}
	r, err := readFacts(u.tags, bucketSuffix(bucket))
	if err != nil {
		return owner{}, false, fmt.Errorf("objects user %s: %w", u.id, err)
	}
	r.tenant, r.shared = u.tags[tagTenant], provider.SharedForbidden
	return owner{user: u, record: r}, true, nil
}

// tenantsAmong returns the users that record the bucket as a tenant's, ordered by ID,
// and those that do in other clusters.
func (p *Provider) tenantsAmong(users []user, bucket string) (ours []owner, others []user, err error) {
	for _, u := range users {
		if p.marksTenant(u) && p.elsewhereMade(u) {
			others = append(others, u)
			continue
		}
		o, ok, err := p.tenantOwner(u, bucket)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			ours = append(ours, o)
		}
	}
	slices.SortFunc(ours, func(a, b owner) int { return strings.Compare(a.id, b.id) })
	return ours, others, nil
}

// tenantsOf returns every tenant's owner that records the bucket, ordered by ID, and
// those that do in other clusters.
func (p *Provider) tenantsOf(ctx context.Context, bucket string) (ours []owner, others []user, err error) {
	users, err := p.speakingOf(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	return p.tenantsAmong(users, bucket)
}

// holders returns whoever is recorded as an owner of the bucket, its own and those of
// tenants, and who is in other clusters.
func (p *Provider) holders(ctx context.Context, bucket string) (ours []owner, others []user, err error) {
	own, othersOwn, err := p.allOwners(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	tenants, othersTenants, err := p.tenantsOf(ctx, bucket)
	return append(own, tenants...), append(othersOwn, othersTenants...), err
}

// theTenant returns the tenant's owner of the bucket; ErrNotFound if there is none,
// ErrConflict with the IDs if there are several, and an otherCluster if it is another
// cluster's.
func (p *Provider) theTenant(ctx context.Context, bucket string) (owner, error) {
	found, others, err := p.tenantsOf(ctx, bucket)
	if err != nil {
		return owner{}, err
	}
	return p.only(bucket, found, others)
}

// usersOfTenant returns the users that new buckets of the tenant can belong to, ordered
// by ID. There are several if processes made them at the same time. One without a
// cluster's ID is everybody's, and so would be a bucket of its.
func (p *Provider) usersOfTenant(ctx context.Context, tenant string) ([]user, error) {
	users, err := p.listUsers(ctx, tagTenant, tenant)
	users = slices.DeleteFunc(users, func(u user) bool { return !p.isTenant(u) || u.tags[tagCluster] != p.config.ClusterID })
	slices.SortFunc(users, func(a, b user) int { return strings.Compare(a.id, b.id) })
	return users, err
}

// unrecorded returns a tenant's user as the owner of a bucket that its tags do not
// record. ErrNotFound if it does not own that.
func (p *Provider) unrecorded(ctx context.Context, u user, ref provider.BucketRef) (owner, error) {
	o := unrecordedOwner(u, ref.Name, ref.Region)
	loc, err := p.locate(ctx, &o)
	switch {
	case err != nil:
		return owner{}, err
	case loc.state == stateElsewhere:
		return owner{}, refuse(provider.ErrInvalidArgument, "it lives in region %q", loc.region)
	case loc.state != statePresent:
		return owner{}, refuse(provider.ErrNotFound, "objects user %s of tenant %q has no such bucket", u.id, o.tenant)
	}
	return o, nil
}

// unrecordedOwner takes for the record what loses no data.
func unrecordedOwner(u user, bucket, region string) owner {
	return owner{user: u, record: record{
		bucket: bucket, region: region, policy: provider.DeleteIfEmpty, shared: provider.SharedForbidden, tenant: u.tags[tagTenant],
		cluster: u.tags[tagCluster],
	}}
}

// tenantByTag returns the tenant's owner of a recorded access's bucket; false if it is
// gone.
func (p *Provider) tenantByTag(ctx context.Context, m membership) (owner, bool, error) {
	// By the role, not by the bucket: its record may be lost, and who is let in must
	// be shut out nevertheless.
	users, err := p.listUsers(ctx, tagRole, roleTenant)
	for _, u := range users {
		if !p.isTenant(u) || ownerTag(u.id) != m.owner {
			continue
		}
		o, ok, err := p.tenantOwner(u, m.bucket)
		if err == nil && !ok {
			o = unrecordedOwner(u, m.bucket, m.region)
		}
		return o, err == nil, err
	}
	return owner{}, false, err
}

// enter makes the user record the bucket, and returns it as the owner, as it is
// afterwards, read back. wrote is false if it was recorded, in whatever way. The
// tenant's lock is held. ErrNotFound if the user is gone.
func (p *Provider) enter(ctx context.Context, u user, r record) (o owner, wrote bool, err error) {
	facts, err := r.facts()
	if err != nil {
		return owner{}, false, err
	}
	for range amendTries {
		if !p.isTenant(u) {
			return owner{}, false, refuse(provider.ErrPermissionDenied, "objects user %s has lost the mark of driver %s; it is left alone", u.id, p.config.DriverName)
		}
		if o, ok, err := p.tenantOwner(u, r.bucket); err != nil || ok {
			return o, wrote, err
		}
		tags := withoutBucket(u.tags, r.bucket)
		maps.Copy(tags, facts)
		if err := p.updateTags(ctx, u.id, tags); err != nil {
			return owner{}, false, crammed(err, r.tenant, len(bucketsOfTenant(u))+1)
		}
		wrote = true
		if u, err = p.getUser(ctx, u.id); err != nil {
			return owner{}, false, err
		}
	}
	return owner{}, false, refuse(provider.ErrConflict, "somebody else changes the tags of objects user %s at the same time; repeat the call", u.id)
}

// withoutBucket returns the tags without what they say of the bucket.
func withoutBucket(tags map[string]string, bucket string) map[string]string {
	rest := maps.Clone(tags)
	maps.DeleteFunc(rest, func(key, _ string) bool {
		return strings.HasPrefix(key, tagPrefix) && strings.HasSuffix(key, bucketSuffix(bucket))
	})
	return rest
}

// tenantRemedy is what to do where one objects user has too many buckets.
const tenantRemedy = "use more tenants, or a class with objectsUser perBucket"

// crammed explains a refusal of the tags: how many the API takes is not documented.
func crammed(err error, tenant string, buckets int) error {
	if buckets > 1 && statusOf(err) != 0 && (errors.Is(err, provider.ErrQuotaExceeded) || errors.Is(err, provider.ErrPrecondition)) {
		return fmt.Errorf("recording %d buckets of tenant %q in the tags of its objects user: %w; if those are too many for it, %s", buckets, tenant, err, tenantRemedy)
	}
	return err
}

// release takes a bucket that is gone, or never came, out of the record of its tenant's
// owner, and removes that with the last one.
func (p *Provider) release(ctx context.Context, o owner) error {
	unlock, err := p.tenants.lock(ctx, o.tenant)
	if err != nil {
		return err
	}
	defer unlock()
	refused := false
	for range amendTries {
		u, err := p.getUser(ctx, o.id)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return nil
		case err != nil:
			return err
		case !p.isTenant(u):
			return refuse(provider.ErrPermissionDenied, "objects user %s has lost the mark of driver %s; it is left alone", u.id, p.config.DriverName)
		}
		names := bucketsOfTenant(u)
		if !refused && !slices.ContainsFunc(names, func(name string) bool { return name != o.bucket }) {
			// Nothing is written before: who records a bucket with it at this moment is
			// not overwritten, and finds it gone. The API refuses it to whoever is too late.
			if gone, err := p.removeTenant(ctx, o); gone || err != nil {
				return err
			}
			refused = true
			continue
		}
		if !slices.Contains(names, o.bucket) {
			return nil
		}
		if err := p.updateTags(ctx, u.id, withoutBucket(u.tags, o.bucket)); err != nil {
			return absentIsFine(err)
		}
	}
	return refuse(provider.ErrConflict, "somebody else changes the tags of objects user %s at the same time; repeat the call", o.id)
}

func absentIsFine(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// removeTenant deletes a tenant's owner. It stays, without an error, while it owns a
// bucket whose record another process has written over.
func (p *Provider) removeTenant(ctx context.Context, o owner) (gone bool, err error) {
	err = p.deleteUser(ctx, o.id)
	if status := statusOf(err); status != http.StatusBadRequest && status != http.StatusConflict {
		return err == nil, err
	}
	loc, lookErr := p.locate(ctx, &o)
	switch {
	case errors.Is(lookErr, provider.ErrConflict):
		return true, nil // it vanished
	case lookErr != nil:
		return false, lookErr
	case len(loc.others) == 0:
		return false, refuse(provider.ErrUnavailable, "it is deleted, but the API does not delete the owner %s of tenant %q yet: %s; repeat the call", o.id, o.tenant, err)
	}
	return false, nil
}
