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

// RevokeAccess implements provider.Provider. The statements of the policy go
// first, which counts at once in every region; the key of a deleted user can go
// on working for a while. The policy denies the user everything instead, until
// the next one that is written after the user is gone. A shared key stays valid
// until its bucket goes.
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
	names := map[string]bool{}
	for _, b := range ref.Buckets {
		names[b.Name] = true
		if err := p.revokeOn(ctx, b, ref); err != nil {
			return fmt.Errorf("bucket %q in region %q: %w", b.Name, b.Region, err)
		}
	}
	// Whatever carries the account's mark elsewhere, and an identity that was
	// not among those of the buckets.
	rest, err := p.elsewhereOf(ctx, ref)
	if err != nil {
		return err
	}
	for _, a := range rest {
		if names[a.bucket] && a.id != ref.IdentityID {
			continue
		}
		b := provider.BucketRef{Name: a.bucket, Region: a.region}
		if err := checkRef(b); err != nil {
			return err
		}
		only := ref
		only.IdentityID = a.id
		if err := p.revokeOn(ctx, b, only); err != nil {
			return fmt.Errorf("bucket %q in region %q: %w", a.bucket, a.region, err)
		}
	}
	return nil
}

// elsewhereOf returns the accesses that the reference means besides those to the
// buckets it names: the one of its identity, and without any bucket those of its
// account. ErrPermissionDenied if the identity is not the account's.
func (p *Provider) elsewhereOf(ctx context.Context, ref provider.AccountRef) ([]access, error) {
	if ref.IdentityID != "" {
		u, err := p.getUser(ctx, ref.IdentityID)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case u.tags[tagManagedBy] != p.config.DriverName:
			return nil, refuse(provider.ErrPermissionDenied, "objects user %s does not carry the mark of driver %s", u.id, p.config.DriverName)
		case u.tags[tagRole] == roleOwner:
			klog.FromContext(ctx).Info("The access had the key of the bucket's owner, which goes on working until the bucket is deleted",
				"account", ref.Account, "bucket", u.tags[tagBucket])
			return nil, nil
		case u.tags[tagRole] != roleAccess || ref.Account != "" && u.tags[tagAccount] != accountTag(ref.Account):
			return nil, refuse(provider.ErrPermissionDenied, "objects user %s is not of this account; it is left alone", u.id)
		}
		return []access{recordedAccess(u)}, nil
	}
	if len(ref.Buckets) > 0 || ref.Account == "" {
		return nil, nil
	}
	users, err := p.listUsers(ctx, tagAccount, accountTag(ref.Account))
	if err != nil {
		return nil, err
	}
	var found []access
	for _, u := range users {
		if p.isAccess(u, u.tags[tagBucket]) {
			found = append(found, recordedAccess(u))
		}
	}
	return found, nil
}

// revokeOn ends the account's accesses to one bucket.
func (p *Provider) revokeOn(ctx context.Context, b provider.BucketRef, ref provider.AccountRef) error {
	unlock, err := p.buckets.lock(ctx, b.Name)
	if err != nil {
		return err
	}
	defer unlock()
	users, err := p.listUsers(ctx, tagBucket, b.Name)
	if err != nil {
		return err
	}
	account := accountTag(ref.Account)
	found := slices.DeleteFunc(p.accessesOf(users, b.Name), func(a access) bool {
		return a.account != account && (ref.Account != "" || a.id != ref.IdentityID)
	})
	if len(found) == 0 {
		return p.checkOwner(ctx, b)
	}
	for i := range found {
		found[i].revoked = true
		err := p.record(ctx, found[i])
		// One that vanished meanwhile is revoked.
		if err != nil && !errors.Is(err, provider.ErrConflict) {
			return err
		}
	}
	if err := p.dropStatements(ctx, b); err != nil {
		return err
	}
	for _, a := range found {
		if err := p.removeAccess(ctx, a, ref.PurgeOwn); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner refuses a reference to a user that exists without the mark of the
// bucket's owner. Nobody of the account is let in there.
func (p *Provider) checkOwner(ctx context.Context, b provider.BucketRef) error {
	if b.OwnerID == "" {
		return nil
	}
	_, err := p.resolve(ctx, b)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// dropStatements brings the bucket's policy up to date, if it has a bucket of
// ours to be on.
func (p *Provider) dropStatements(ctx context.Context, b provider.BucketRef) error {
	o, err := p.resolve(ctx, b)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	loc, err := p.locate(ctx, &o)
	if err != nil || loc.state != statePresent {
		return err
	}
	err = p.syncPolicy(ctx, o)
	if errors.Is(err, provider.ErrNotFound) {
		// It was deleted at this moment.
		return nil
	}
	return p.doubt(o, err)
}

// removeAccess deletes the access's objects user. The API refuses that while the
// user owns buckets, which it can have made with its key.
func (p *Provider) removeAccess(ctx context.Context, a access, purge bool) error {
	err := p.deleteUser(ctx, a.id)
	if status := statusOf(err); status != http.StatusBadRequest && status != http.StatusConflict {
		return err
	}
	refusal := err
	var who s3.Identity
	home := identity{a.id, a.region, p.defaultEndpoint(a.region)}
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
		return refuse(provider.ErrPrecondition, "its key does not open the bucket any more, but objects user %s owns the buckets %s, made with that key; "+
			"delete them, or make the access from a class with ownBuckets %s", a.id, strings.Join(who.Buckets, ", "), provider.OwnBucketsPurge)
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

// removeOwn deletes a bucket that the access made for itself, wherever it lives;
// with its data only if that may be purged.
func (p *Provider) removeOwn(ctx context.Context, a *access, name string, purge bool) error {
	where := a.region
	home := identity{a.id, a.region, p.defaultEndpoint(a.region)}
	err := p.withKey(ctx, home, &a.user, func(c *s3.Client) error {
		found, err := c.BucketLocation(ctx, name)
		if err == nil && p.elsewhere(ctx, found, a.region) {
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
