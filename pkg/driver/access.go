package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// GrantRequest is what GrantAccess is asked for.
type GrantRequest struct {
	Account    string // COSI's name for the access, unique in the cluster
	Buckets    []GrantBucket
	Parameters map[string]string // of the BucketAccessClass
}

// GrantBucket is one bucket of an access.
type GrantBucket struct {
	ID   string        // COSI's bucket ID
	Mode provider.Mode // empty means what the class says
}

// Grant is a granted access.
type Grant struct {
	AccountID   string
	Credentials provider.Credentials
	// Buckets holds one element for each bucket asked for, in that order and
	// under the ID it was asked for with.
	Buckets []CreatedBucket
}

// RevokeRequest names an access to end.
type RevokeRequest struct {
	AccountID string   // empty if COSI never learned it
	BucketIDs []string // at least one, unless AccountID is given
}

// GrantAccess makes sure that the account may use the buckets. A repetition
// returns the same account ID. A bucket's mode must be within what the class says.
// Besides the provider's errors it returns ErrInvalidArgument, with every fault of
// the request, and ErrPrecondition when unconfigured.
func (d *Driver) GrantAccess(ctx context.Context, req GrantRequest) (Grant, error) {
	if err := d.configured(); err != nil {
		return Grant{}, err
	}
	backend, ids, class, err := d.grantTargets(ctx, req)
	if err != nil {
		return Grant{}, err
	}
	unlock, err := d.locks.lockAll(ctx, lockKeys(ids))
	if err != nil {
		return Grant{}, err
	}
	defer unlock()

	spec := provider.AccessSpec{
		Account:     req.Account,
		Credentials: cmp.Or(class.keys, provider.CredentialsPerAccess),
		OwnBuckets:  cmp.Or(class.own, provider.OwnBucketsRefuse),
	}
	for i, id := range ids {
		mode := cmp.Or(req.Buckets[i].Mode, class.mode, provider.ReadWrite)
		ref := id.Ref()
		ref.AccessOnly = ref.AccessOnly || class.adopt == adoptAccessOnly
		spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: ref, Mode: mode})
	}
	access, err := backend.Provider.GrantAccess(ctx, spec)
	d.observer.AccessChanged(backend.Name, ChangeGrant, err)
	if err != nil {
		return Grant{}, fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	if len(access.Buckets) != len(ids) {
		return Grant{}, fmt.Errorf("back end %s: account %s: provider answered for %d of %d buckets",
			backend.Name, req.Account, len(access.Buckets), len(ids))
	}
	if access.Credentials.AccessKeyID == "" || access.Credentials.SecretAccessKey.Empty() {
		// A v1alpha1 Secret is written once and would stay without a key.
		return Grant{}, fmt.Errorf("back end %s: account %s: provider answered without a key", backend.Name, req.Account)
	}
	accountID, err := AccountID{Backend: backend.Name, Account: req.Account, IdentityID: access.IdentityID}.Format()
	if err != nil {
		return Grant{}, fmt.Errorf("back end %s: account %s: %w", backend.Name, req.Account, err)
	}
	d.deliveries.granted(deliveryKey(backend.Name, req.Account), access.Credentials.AccessKeyID, d.now())
	grant := Grant{AccountID: accountID, Credentials: access.Credentials}
	for i, id := range ids {
		grant.Buckets = append(grant.Buckets, CreatedBucket{ID: req.Buckets[i].ID, Bucket: access.Buckets[i]})
		d.live.granted(liveKey(id), req.Account)
	}
	return grant, nil
}

// grantTargets reads a request to grant access, with the parameters of its class,
// and reports all its faults.
func (d *Driver) grantTargets(ctx context.Context, req GrantRequest) (Backend, []BucketID, parameters, error) {
	p, err := parseParameters(BucketAccessClass, req.Parameters, true)
	faults := []error{checkAccountName(req.Account), err}
	if len(req.Buckets) == 0 {
		faults = append(faults, fmt.Errorf("account %s: %w: no bucket is named", quote(req.Account), provider.ErrInvalidArgument))
	}
	var backend Backend
	ids := make([]BucketID, 0, len(req.Buckets))
	for _, b := range req.Buckets {
		be, id, err := d.bucket(ctx, b.ID)
		faults = append(faults, err, checkMode(b.Mode), withinClass(b, p.mode))
		if err != nil {
			continue
		}
		if len(ids) > 0 && be.Name != backend.Name {
			faults = append(faults, fmt.Errorf("account %s: %w: its buckets are in two back ends, %s and %s, which share no identity",
				quote(req.Account), provider.ErrInvalidArgument, backend.Name, be.Name))
		}
		if slices.ContainsFunc(ids, func(o BucketID) bool { return liveKey(o) == liveKey(id) }) {
			faults = append(faults, fmt.Errorf("account %s: %w: bucket %s is named twice", quote(req.Account), provider.ErrInvalidArgument, quote(b.ID)))
		}
		backend, ids = be, append(ids, id)
	}
	if err := joined(faults...); err != nil {
		return Backend{}, nil, parameters{}, err
	}
	return backend, ids, p, nil
}

func checkMode(m provider.Mode) error {
	if m == "" || slices.Contains(modes(), string(m)) {
		return nil
	}
	return fmt.Errorf("mode %s: %w: want %s%s", quote(string(m)), provider.ErrInvalidArgument, listed(modes()), DidYouMean(string(m), modes()))
}

// withinClass refuses a mode that a user asks for beyond what the administrator has
// written into the class.
func withinClass(b GrantBucket, class provider.Mode) error {
	if b.Mode == "" || class == "" || class == provider.ReadWrite || b.Mode == class {
		return nil
	}
	return fmt.Errorf("bucket %s: %w: mode %s is asked for, and accessMode of the %s allows %s alone; ask for that, or use another class",
		quote(b.ID), provider.ErrInvalidArgument, quote(string(b.Mode)), BucketAccessClass, class)
}

// RevokeAccess ends the account's access to the buckets. An account, identity
// or bucket that is gone is success, and so is an empty account ID for a bucket
// of this driver: nothing was handed out under it. IDs that are not this
// driver's, and an account of another back end than the bucket's, are
// ErrInvalidArgument.
func (d *Driver) RevokeAccess(ctx context.Context, req RevokeRequest) error {
	if err := d.configured(); err != nil {
		return err
	}
	backend, account, ids, err := d.revokeTargets(ctx, req)
	if err != nil {
		return err
	}
	if req.AccountID == "" {
		return d.known(ctx, req.BucketIDs, ids)
	}
	unlock, err := d.locks.lockAll(ctx, lockKeys(ids))
	if err != nil {
		return err
	}
	defer unlock()

	ref := provider.AccountRef{Account: account.Account, IdentityID: account.IdentityID, PurgeOwn: d.allowDeleteAll}
	for _, id := range ids {
		ref.Buckets = append(ref.Buckets, id.Ref())
	}
	err = d.sliced(ctx, func(ctx context.Context) error { return backend.Provider.RevokeAccess(ctx, ref) })
	d.observer.AccessChanged(backend.Name, ChangeRevoke, err)
	if err != nil {
		return fmt.Errorf("back end %s: %w", backend.Name, notGone(err))
	}
	for _, id := range ids {
		d.live.revoked(liveKey(id), account.Account)
	}
	d.deliveries.arrived(deliveryKey(backend.Name, account.Account))
	return nil
}

// known refuses short bucket IDs of buckets that are not there: without an account
// ID nothing else tells them from those of another driver, and the v1alpha1 sidecar
// takes success as leave to remove that driver's objects.
func (d *Driver) known(ctx context.Context, given []string, ids []BucketID) error {
	for i, id := range ids {
		if strings.Count(given[i], "/") != 1 {
			continue
		}
		ref := id.Ref()
		ref.AccessOnly = true
		if _, err := d.byName[id.Backend].Provider.GetBucket(ctx, ref); err != nil {
			return fmt.Errorf("bucket ID %s: %w: no account ID is given, and the bucket cannot be seen to be this driver's: %s",
				quote(given[i]), provider.ErrPrecondition, err.Error())
		}
	}
	return nil
}

// revokeTargets reads a request to revoke access and reports all its faults.
func (d *Driver) revokeTargets(ctx context.Context, req RevokeRequest) (backend Backend, account AccountID, ids []BucketID, err error) {
	var faults []error
	if req.AccountID != "" {
		account, err = ParseAccountID(req.AccountID)
		if err == nil {
			backend, err = d.ours("account ID", req.AccountID, account.Backend)
		}
		faults = append(faults, err)
	} else if len(req.BucketIDs) == 0 {
		faults = append(faults, fmt.Errorf("%w: neither an account ID nor a bucket ID is given", provider.ErrInvalidArgument))
	}
	for _, s := range req.BucketIDs {
		be, id, err := d.bucket(ctx, s)
		faults = append(faults, err)
		if err != nil {
			continue
		}
		ids = append(ids, id)
		if account.Account != "" && be.Name != account.Backend {
			faults = append(faults, fmt.Errorf("account ID %s: %w: it is of back end %s, bucket %s is of back end %s",
				quote(req.AccountID), provider.ErrInvalidArgument, quote(account.Backend), id.Bucket, be.Name))
		}
	}
	return backend, account, ids, joined(faults...)
}

func lockKeys(ids []BucketID) []string {
	keys := make([]string, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, lockKey(id.Backend, id.Bucket))
	}
	return keys
}
