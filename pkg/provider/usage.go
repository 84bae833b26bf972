package provider

import (
	"context"
	"iter"
	"time"
)

// Usage is what a bucket holds.
type Usage struct {
	BucketRef
	Bytes   int64
	Objects int64
	At      time.Time // when that was so
}

// Meter is a provider that can tell how much its buckets hold. The rules of Provider
// hold.
type Meter interface {
	// Usage yields what each bucket that carries the driver's mark holds, as far as that
	// is known. A wanted that is not nil chooses among them by name and region, and
	// nothing is listed for the others. It may take minutes: a budget of the context
	// (transport.WithBudget) bounds its calls. The error comes once, as the last element.
	Usage(ctx context.Context, wanted func(BucketRef) bool) iter.Seq2[Usage, error]
	// UsageByListing says that Usage lists every object, which costs a call for each
	// thousand of them.
	UsageByListing() bool
}
