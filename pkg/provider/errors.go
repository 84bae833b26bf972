package provider

import "errors"

// The sentinels. Wrap one with its cause: fmt.Errorf("…: %w: %w", sentinel, cause).
var (
	// ErrInvalidArgument: the request is malformed and no retry can help.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrNotFound: the thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: the name is taken by someone else, or by us with other
	// parameters.
	ErrAlreadyExists = errors.New("already exists")
	// ErrNotEmpty: the bucket holds data and may not be purged.
	ErrNotEmpty = errors.New("not empty")
	// ErrPrecondition: somebody must change a state first; the text says which.
	ErrPrecondition = errors.New("precondition failed")
	// ErrPermissionDenied: the cloud, or the mark rule, forbids it.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrUnauthenticated: the cloud does not accept our credentials.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrQuotaExceeded: a limit of the cloud is reached.
	ErrQuotaExceeded = errors.New("quota exceeded")
	// ErrConflict: somebody else works on the same thing; repeat the call.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: the cloud does not answer properly; repeat the call later.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnsupported: this back end cannot do it.
	ErrUnsupported = errors.New("unsupported")
)

// Sentinels lists every sentinel, for tables that must be complete.
func Sentinels() []error {
	return []error{
		ErrInvalidArgument, ErrNotFound, ErrAlreadyExists, ErrNotEmpty, ErrPrecondition,
		ErrPermissionDenied, ErrUnauthenticated, ErrQuotaExceeded, ErrConflict,
		ErrUnavailable, ErrUnsupported,
	}
}
