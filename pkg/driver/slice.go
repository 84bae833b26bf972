package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// DefaultDeleteSlice is how long a call goes on deleting data when
// Config.DeleteSlice is zero.
const DefaultDeleteSlice = 20 * time.Second

// sliced runs what may delete much data, if this process may, for a while. The
// v1alpha2 sidecar sends one call at a time, so a purge must not keep all other
// buckets waiting. What is not done then is ErrUnavailable, with how far the provider
// came; a repetition goes on there.
func (d *Driver) sliced(ctx context.Context, work func(context.Context) error) error {
	if !d.allowDeleteAll {
		return work(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, d.slice)
	defer cancel()
	err := work(bounded)
	if ctx.Err() == nil && bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, provider.ErrUnavailable) {
		// The call has time left, so the deadline that ended is not to be seen.
		return fmt.Errorf("%w: not finished within %s, the repeated call goes on: %v", provider.ErrUnavailable, d.slice, err) //nolint:errorlint // see above
	}
	return err
}
