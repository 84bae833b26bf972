package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// MinRotateEvery is the shortest time between two scheduled rotations.
const MinRotateEvery = time.Hour

// ParseRotateEvery reads the value of the BucketAccessClass parameter rotateEvery.
func ParseRotateEvery(value string) (time.Duration, error) {
	every, err := time.ParseDuration(value)
	if err != nil || every < MinRotateEvery {
		return 0, errors.New("want a duration of at least 1h, for example 720h for thirty days")
	}
	return every, nil
}

// RotateRequest names a granted access whose key is to be replaced.
type RotateRequest struct {
	AccountID string   // as COSI has it
	BucketIDs []string // all buckets of the access
	// KeepAccessKeyID is the key that goes on working besides the new one; empty is
	// none.
	KeepAccessKeyID string
}

// RotateAccess gives a granted access a new key and returns it once it works. The
// account ID stays. A repetition with the same key to keep leaves no third key
// behind. Besides the provider's errors it returns ErrInvalidArgument for an ID
// that is not this driver's, ErrPrecondition when unconfigured, and ErrConflict for some
// time after a grant that returned another key than the one to keep.
func (d *Driver) RotateAccess(ctx context.Context, req RotateRequest) (provider.Credentials, error) {
	backend, ref, unlock, err := d.accountOf(ctx, req.AccountID, req.BucketIDs)
	if err != nil {
		return provider.Credentials{}, err
	}
	defer unlock()
	to := deliveryKey(backend.Name, ref.Account)
	if req.KeepAccessKeyID != "" {
		if err := d.deliveries.spares(to, req.KeepAccessKeyID, d.now()); err != nil {
			return provider.Credentials{}, err
		}
	}
	key, err := backend.Provider.RotateAccess(ctx, ref, provider.RotateOptions{KeepAccessKeyID: req.KeepAccessKeyID})
	d.observer.AccessChanged(backend.Name, ChangeRotate, err)
	if err != nil {
		return provider.Credentials{}, fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	d.deliveries.arrived(to)
	return key, nil
}

// RetireKeys ends all keys of a granted access but req.KeepAccessKeyID, which must
// be one of them: else it ends none and returns ErrNotFound. It ends none, either, and
// returns ErrConflict, for some time after a grant that returned another key.
func (d *Driver) RetireKeys(ctx context.Context, req RotateRequest) error {
	backend, ref, unlock, err := d.accountOf(ctx, req.AccountID, req.BucketIDs)
	if err != nil {
		return err
	}
	defer unlock()
	to := deliveryKey(backend.Name, ref.Account)
	if err := d.deliveries.spares(to, req.KeepAccessKeyID, d.now()); err != nil {
		return err
	}
	err = backend.Provider.RetireKeys(ctx, ref, req.KeepAccessKeyID)
	d.observer.AccessChanged(backend.Name, ChangeRetire, err)
	if err != nil {
		return fmt.Errorf("back end %s: %w", backend.Name, err)
	}
	d.deliveries.arrived(to)
	return nil
}

// accountOf resolves a granted access and takes the locks of its buckets.
func (d *Driver) accountOf(ctx context.Context, accountID string, bucketIDs []string) (Backend, provider.AccountRef, func(), error) {
	if err := d.configured(); err != nil {
		return Backend{}, provider.AccountRef{}, nil, err
	}
	backend, account, ids, err := d.revokeTargets(ctx, RevokeRequest{AccountID: accountID, BucketIDs: bucketIDs})
	if err == nil && (account.Account == "" || len(ids) == 0) {
		err = fmt.Errorf("account ID %s: %w: an account ID and its buckets are needed", quote(accountID), provider.ErrInvalidArgument)
	}
	if err != nil {
		return Backend{}, provider.AccountRef{}, nil, err
	}
	ref := provider.AccountRef{Account: account.Account, IdentityID: account.IdentityID}
	for _, id := range ids {
		ref.Buckets = append(ref.Buckets, id.Ref())
	}
	unlock, err := d.locks.lockAll(ctx, lockKeys(ids))
	return backend, ref, unlock, err
}
