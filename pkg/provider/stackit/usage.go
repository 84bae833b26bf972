package stackit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
	"github.com/zuber-storage/zuber/pkg/s3"
)

var _ provider.Meter = (*Provider)(nil)

// UsageByListing implements provider.Meter.
func (p *Provider) UsageByListing() bool { return true }

// Usage implements provider.Meter. The cloud has no figures, so it lists the buckets,
// old versions included, one after the other.
func (p *Provider) Usage(ctx context.Context, wanted func(provider.BucketRef) bool) iter.Seq2[provider.Usage, error] {
	return func(yield func(provider.Usage, error) bool) {
		for r, err := range p.Inventory(ctx) {
			if err != nil {
				yield(provider.Usage{}, err)
				return
			}
			ref := provider.BucketRef{Name: r.Bucket, Region: r.Region}
			if r.Kind != provider.KindBucket || wanted != nil && !wanted(ref) {
				continue
			}
			usage, err := p.usageOf(ctx, ref)
			if errors.Is(err, provider.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				yield(provider.Usage{}, fmt.Errorf("usage of bucket %q in region %q: %w", r.Bucket, r.Region, err))
				return
			}
			if !yield(usage, nil) {
				return
			}
		}
	}
}

func (p *Provider) usageOf(ctx context.Context, ref provider.BucketRef) (provider.Usage, error) {
	u := provider.Usage{BucketRef: ref, At: p.config.Now()}
	b, err := p.open(ctx, ref)
	if err != nil {
		return u, err
	}
	err = p.asAdmin(ctx, ref.Region, b.regional, func(c *s3.Client) (err error) {
		u.Bytes, u.Objects, err = c.Size(ctx, ref.Name, transport.Rest)
		return err
	})
	return u, err
}
