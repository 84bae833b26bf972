package driver

import "time"

// Change is something that is done to an access.
type Change string

// The changes.
const (
	ChangeGrant  Change = "grant"
	ChangeRevoke Change = "revoke"
	ChangeRotate Change = "rotate" // it gets a new key
	ChangeRetire Change = "retire" // its other keys end
)

// Changes lists every change, for tables that must be complete.
func Changes() []Change { return []Change{ChangeGrant, ChangeRevoke, ChangeRotate, ChangeRetire} }

// Observer is told what the driver does. Its methods must be safe for concurrent
// use, return quickly and not call the driver.
type Observer interface {
	// AccessChanged tells what a back end made of a change. The error is nil or wraps a
	// sentinel of package provider or the context's.
	AccessChanged(backend string, change Change, err error)
	// LockTaken tells how long a call waited for the lock of a bucket that it has got.
	LockTaken(waited time.Duration)
	// LockGivenUp tells how long a call waited for a lock in vain.
	LockGivenUp(waited time.Duration)
	// LockFreed follows each LockTaken.
	LockFreed()
}

// unobserved is an Observer to whom nothing matters.
type unobserved struct{}

func (unobserved) AccessChanged(string, Change, error) {}
func (unobserved) LockTaken(time.Duration)             {}
func (unobserved) LockGivenUp(time.Duration)           {}
func (unobserved) LockFreed()                          {}
