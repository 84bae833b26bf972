package provider

import (
	"context"
	"time"
)

// Reclaimer is what a provider offers, beside DeleteBucket and RevokeAccess, to
// somebody who removes what nobody needs any more. The rules of Provider hold.
type Reclaimer interface {
	// Created says when a resource that Inventory yielded was made; the zero time
	// where the cloud does not tell. Errors: ErrNotFound when it is gone.
	Created(ctx context.Context, r Resource) (time.Time, error)

	// Announces reports whether a resource of KindOwner that Inventory yielded
	// without a bucket stands for a bucket of that name which does not exist yet. It
	// makes no call.
	Announces(r Resource, bucket string) bool

	// Reclaim removes a resource of KindOwner that Inventory yielded without a
	// bucket. Absent is success. Errors: ErrPermissionDenied when it does not carry
	// the mark, or is of another kind; ErrPrecondition when it has come into use.
	Reclaim(ctx context.Context, r Resource) error
}
