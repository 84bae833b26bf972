package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// RevokeAccess implements provider.Provider. The statements of the policies go
// first, which counts at once in every region; the key of a deleted user can go
// on working for a while. A policy denies the user everything instead while it is
// there, and in a bucket of ours until the next one that is written. A shared key
// stays valid until its bucket goes.
func (p *Provider) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	if err := p.revokeAccess(ctx, ref); err != nil {
		return fmt.Errorf("revoke access of account %q: %w", ref.Account, err)
	}
	return nil
}

func (p *Provider) revokeAccess(ctx context.Context, ref provider.AccountRef) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, b := range ref.Buckets {
		if err := checkRef(b); err != nil {
			return err
		}
	}
	if ref.IdentityID != "" && !userIDPattern.MatchString(ref.IdentityID) {
		return refuse(provider.ErrInvalidArgument, "identity %q is malformed", ref.IdentityID)
	}
	refs := ref.Buckets
	if len(refs) == 0 {
		// The whole of every access.
		found, err := p.identitiesOf(ctx, ref)
		if err != nil {
			return err
		}
		for _, a := range found {
			refs = append(refs, everyBucket(a)...)
		}
	}
	unlock, err := p.lockBuckets(ctx, refs)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := p.endAll(ctx, ref, refs)
	if err != nil {
		return err
	}
	strange := slices.DeleteFunc(slices.Clone(refs), func(b provider.BucketRef) bool {
		// A shared key is its owner's: no policy names it.
		return b.OwnerID == ref.IdentityID || slices.ContainsFunc(found, func(a access) bool { return hasKey(a.buckets, b.Name) })
	})
	return within(each(ctx, strange, func(i int) error { return p.tidy(ctx, strange[i]) }), strange)
}

// endAll ends the access to the buckets and returns the users that had it. It looks
// until no user has, because a rotation in another process can give the account
// another user that was not seen. One that begins after the last look finds nothing
// to rotate.
func (p *Provider) endAll(ctx context.Context, ref provider.AccountRef, refs []provider.BucketRef) ([]access, error) {
	var ended []access
	look := func() ([]access, error) { return p.identitiesOf(ctx, ref) }
	for range amendTries {
		found, err := look()
		if err != nil {
			return nil, err
		}
		open := func(a access) bool {
			return slices.ContainsFunc(refs, func(b provider.BucketRef) bool { return a.buckets[b.Name].alive() })
		}
		if ended != nil && !slices.ContainsFunc(found, open) {
			return ended, nil
		}
		for _, a := range found {
			if err := p.end(ctx, a, refs, ref.PurgeOwn); err != nil {
				return nil, err
			}
		}
		if ended = append(ended, found...); len(ended) == 0 {
			return nil, nil
		}
		// What the account has left is another driver's, or made in the meantime.
		look = func() ([]access, error) {
			if ref.Account == "" {
				return p.accessesTagged(ctx, tagIdentity, ref.IdentityID)
			}
			return p.accessesOf(ctx, accountTag(ref.Account))
		}
	}
	return nil, refuse(provider.ErrConflict, "another process makes users for it at the same time; repeat the call")
}

// within names the buckets that an error of each is about.
func within(err error, refs []provider.BucketRef) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", listed(refs), err)
}

// identitiesOf returns the accesses that the reference may mean: those of its
// account, and the one of its identity. ErrPermissionDenied if the identity is not
// the account's.
func (p *Provider) identitiesOf(ctx context.Context, ref provider.AccountRef) ([]access, error) {
	var found []access
	if ref.Account != "" {
		users, err := p.listUsers(ctx, tagAccount, accountTag(ref.Account))
		if err != nil {
			return nil, err
		}
		found = p.madeHere(p.accessesAmong(users))
		if i := slices.IndexFunc(users, p.isOthersAccess); i >= 0 && len(found) == 0 {
			return nil, p.othersAccess(users[i])
		}
	}
	if ref.IdentityID == "" || slices.ContainsFunc(found, func(a access) bool { return a.identity() == ref.IdentityID || a.id == ref.IdentityID }) {
		return found, nil
	}
	if ref.Account == "" {
		rotated, err := p.accessesTagged(ctx, tagIdentity, ref.IdentityID)
		if err != nil {
			return nil, err
		}
		found = rotated
	}
	u, err := p.getUser(ctx, ref.IdentityID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return found, nil
	case err != nil:
		return nil, err
	case p.isOthersAccess(u):
		return nil, p.othersAccess(u)
	case u.tags[tagManagedBy] != p.config.DriverName:
		return nil, refuse(provider.ErrPermissionDenied, "objects user %s does not carry the mark of driver %s", u.id, p.config.DriverName)
	case u.tags[tagRole] == roleOwner:
		klog.FromContext(ctx).Info("The access had the key of the bucket's owner, which goes on working until the bucket is deleted",
			"account", ref.Account, "bucket", u.tags[tagBucket])
		return found, nil
	case !p.isAccess(u) || ref.Account != "":
		return nil, refuse(provider.ErrPermissionDenied, "objects user %s is not of this account; it is left alone", u.id)
	}
	return append(found, recordedAccess(u)), nil
}

// isOthersAccess reports whether the user is an access of another driver or
// cluster. IDs do not name them, so one with a back end of the same name can be
// asked to revoke it, and "absent" would have everybody forget a key that works.
func (p *Provider) isOthersAccess(u user) bool {
	by := u.tags[tagManagedBy]
	return by != "" && u.tags[tagRole] == roleAccess && (by != p.config.DriverName || p.elsewhereMade(u))
}

func (p *Provider) othersAccess(u user) error {
	if u.tags[tagManagedBy] == p.config.DriverName {
		return p.otherCluster(u, "")
	}
	return refuse(provider.ErrPermissionDenied, "objects user %s carries the mark of driver %s and not of %s, and is left alone; "+
		"give the back ends of the two drivers different names, and let the former revoke it", u.id, u.tags[tagManagedBy], p.config.DriverName)
}

// end takes the buckets out of an access. With the last one that it opens its
// identity goes. Where they lie is as recorded: names are unique over all regions.
func (p *Provider) end(ctx context.Context, a access, refs []provider.BucketRef, purgeOwn bool) error {
	a, err := p.amend(ctx, a, func(a *access) {
		for _, b := range refs {
			if m, ok := a.buckets[b.Name]; ok {
				a.buckets[b.Name] = m.revoked()
			}
		}
	})
	if errors.Is(err, provider.ErrNotFound) {
		return nil // one that vanished meanwhile is revoked
	}
	if err != nil {
		return err
	}
	if !a.opens("") {
		// With the identity goes the record of whom policies still name: another process
		// may have ended the rest and not have come to its policies.
		refs = everyBucket(a)
	}
	refs = slices.DeleteFunc(slices.Clone(refs), func(b provider.BucketRef) bool { return !hasKey(a.buckets, b.Name) })
	err = each(ctx, refs, func(i int) error { return p.syncRecorded(ctx, a.buckets[refs[i].Name], "") })
	if err != nil {
		return within(err, refs)
	}
	if a.opens("") {
		return nil
	}
	return p.removeIdentity(ctx, a, "", purgeOwn)
}

// syncRecorded brings the policy of an access's bucket up to date, if the bucket
// is there and still the one that the access was made for.
func (p *Provider) syncRecorded(ctx context.Context, m membership, leaving string) error {
	o, ok, err := p.ownerOf(ctx, m)
	if err != nil || !ok {
		return err
	}
	if o.region == "" {
		o.region = m.region
	}
	return p.doubt(o, p.syncIfPresent(ctx, o, leaving))
}

func (p *Provider) syncIfPresent(ctx context.Context, o owner, leaving string) error {
	loc, err := p.locate(ctx, &o)
	if errors.Is(err, provider.ErrConflict) {
		// A user that owns a bucket cannot be deleted, and its owner was.
		return nil
	}
	if err != nil || loc.state != statePresent {
		return err
	}
	err = p.syncPolicy(ctx, o, leaving)
	if errors.Is(err, provider.ErrNotFound) {
		// It was deleted at this moment.
		return nil
	}
	return err
}

// tidy takes whoever is gone out of the policy of a bucket that no access of the
// account knows: its user may have been deleted by hand, or another process have
// written over the record. Nobody is asked who owns it. ErrPermissionDenied for a
// reference to a user that exists without the mark of the bucket's owner.
func (p *Provider) tidy(ctx context.Context, b provider.BucketRef) error {
	if b.OwnerID == "" && b.AccessOnly {
		return nil
	}
	o, err := p.resolveAnywhere(ctx, b)
	if o.region == "" {
		o.region = b.Region
	}
	switch {
	case errors.Is(err, provider.ErrNotFound), errors.Is(err, provider.ErrConflict) && b.OwnerID == "":
		return nil
	case err != nil:
		return err
	case o.theirs != b.AccessOnly:
		return nil
	}
	err = p.syncIfPresent(ctx, o, "")
	if lacks(err) {
		return nil // an endpoint without policies names nobody
	}
	return err
}

// removeIdentity deletes the objects user of an access that opens nothing any
// more. A bucket that the driver did not make gets back the policy that others left
// it before, because the record of who is in it goes with the user, and is looked at
// once more after: the user may have stayed, or another process may have written.
// Those buckets are not locked, being no part of the call.
func (p *Provider) removeIdentity(ctx context.Context, a access, besides string, purgeOwn bool) error {
	var refs []provider.BucketRef
	for _, name := range a.names() {
		if m := a.buckets[name]; m.theirs {
			refs = append(refs, provider.BucketRef{Name: name, Region: m.region})
		}
	}
	sync := func(leaving string) error {
		return within(each(ctx, refs, func(i int) error { return p.syncRecorded(ctx, a.buckets[refs[i].Name], leaving) }), refs)
	}
	if err := sync(a.id); err != nil {
		return err
	}
	err := p.removeAccess(ctx, a, besides, purgeOwn)
	return cmpError(err, sync(""))
}

// deleteUnlessOpen deletes the access's objects user, but not when a grant has let it
// into a bucket besides the one named since its record was read. A grant that comes
// later misses the user and is repeated.
func (p *Provider) deleteUnlessOpen(ctx context.Context, a access, besides string) error {
	unlock, err := p.accounts.lock(ctx, a.account)
	if err != nil {
		return err
	}
	defer unlock()
	u, err := p.getUser(ctx, a.id)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case p.isAccess(u) && recordedAccess(u).opens(besides):
		return nil
	}
	return p.deleteUser(ctx, a.id)
}

// removeAccess deletes the access's objects user. The API refuses that while the
// user owns buckets, which it can have made with its key.
func (p *Provider) removeAccess(ctx context.Context, a access, besides string, purge bool) error {
	err := p.deleteUnlessOpen(ctx, a, besides)
	if status := statusOf(err); status != http.StatusBadRequest && status != http.StatusConflict {
		return err
	}
	refusal := err
	var who s3.Identity
	home, err := p.homeOf(ctx, a)
	if err != nil {
		return err
	}
	err = p.withKey(ctx, home, &a.user, func(c *s3.Client) (err error) {
		who, err = c.WhoAmI(ctx)
		return err
	})
	switch {
	case errors.Is(err, provider.ErrConflict):
		return nil // the user vanished
	case err != nil:
		return sorted(ctx, err)
	case len(who.Buckets) == 0:
		return refuse(provider.ErrUnavailable, "the API does not delete objects user %s yet: %s; repeat the call", a.id, refusal)
	case a.own != provider.OwnBucketsPurge:
		return refuse(provider.ErrPrecondition, "its key does not open %s any more, but objects user %s owns the buckets %s, made with that key; "+
			"delete them, or make the access from a class with ownBuckets %s", strings.Join(a.names(), ", "), a.id, strings.Join(who.Buckets, ", "), provider.OwnBucketsPurge)
	}
	for _, name := range who.Buckets {
		if err := p.removeOwn(ctx, &a, name, purge); err != nil {
			return fmt.Errorf("bucket %q, made with the key of objects user %s: %w", name, a.id, err)
		}
	}
	err = p.deleteUser(ctx, a.id)
	if status := statusOf(err); status == http.StatusBadRequest || status == http.StatusConflict {
		return refuse(provider.ErrUnavailable, "the API does not delete objects user %s yet: %s; repeat the call", a.id, err)
	}
	return err
}

// homeOf returns the user of the access at an endpoint that should know its key.
func (p *Provider) homeOf(ctx context.Context, a access) (identity, error) {
	for _, name := range a.names() {
		region := a.buckets[name].region
		return identity{a.id, region, p.defaultEndpoint(region)}, nil
	}
	// The record can only have been edited by hand.
	regions, err := p.Regions(ctx)
	if err != nil {
		return identity{}, err
	}
	return identity{a.id, regions[0], p.defaultEndpoint(regions[0])}, nil
}

// removeOwn deletes a bucket that the access made for itself, wherever it lives;
// with its data only if that may be purged.
func (p *Provider) removeOwn(ctx context.Context, a *access, name string, purge bool) error {
	home, err := p.homeOf(ctx, *a)
	if err != nil {
		return err
	}
	where := home.region
	err = p.withKey(ctx, home, &a.user, func(c *s3.Client) error {
		found, err := c.BucketLocation(ctx, name)
		if err == nil && p.elsewhere(ctx, found, home.region) {
			where = found
		}
		return err
	})
	switch {
	case s3.Code(err) == codeMissing:
		return nil
	case err != nil:
		return sorted(ctx, err)
	}
	there := identity{a.id, where, p.defaultEndpoint(where)}
	err = p.withKey(ctx, there, &a.user, func(c *s3.Client) error {
		// A key that is not known there yet is waited for here.
		if _, err := c.WhoAmI(ctx); err != nil {
			return err
		}
		err := p.removeContent(ctx, c, name, purge)
		if errors.Is(err, provider.ErrNotEmpty) {
			return refuse(provider.ErrPrecondition,
				"it holds data, and this driver may not delete data: start it with --allow-delete-all, or empty the bucket")
		}
		return err
	})
	return sorted(ctx, err)
}
