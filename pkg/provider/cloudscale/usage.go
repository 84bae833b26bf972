package cloudscale

import (
	"context"
	"fmt"
	"iter"
	"time"
	_ "time/tzdata" // the cloud's days are Zurich's, and the machine may have no zone data

	sdk "github.com/cloudscale-ch/cloudscale-go-sdk/v8"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var _ provider.Meter = (*Provider)(nil)

// UsageByListing implements provider.Meter.
func (p *Provider) UsageByListing() bool { return false }

// Usage implements provider.Meter with two calls, of which the one for the figures is
// slow. They are those of the last whole day, so that a bucket that was made today has
// none.
func (p *Provider) Usage(ctx context.Context, wanted func(provider.BucketRef) bool) iter.Seq2[provider.Usage, error] {
	return p.usageBefore(ctx, time.Now(), wanted)
}

func (p *Provider) usageBefore(ctx context.Context, now time.Time, wanted func(provider.BucketRef) bool) iter.Seq2[provider.Usage, error] {
	return func(yield func(provider.Usage, error) bool) {
		figures, err := p.figures(ctx, now)
		if err != nil {
			yield(provider.Usage{}, fmt.Errorf("usage: %w", err))
			return
		}
		for r, err := range p.Inventory(ctx) {
			if err != nil {
				yield(provider.Usage{}, err)
				return
			}
			usage, known := figures[r.Bucket]
			usage.BucketRef = provider.BucketRef{Name: r.Bucket, Region: r.Region}
			if r.Kind != provider.KindBucket || !known || wanted != nil && !wanted(usage.BucketRef) {
				continue
			}
			if !yield(usage, nil) {
				return
			}
		}
	}
}

// figures are those of every bucket of the project, by its name, which no other has.
// One that was deleted has zeros, beside one of that name that was made again.
func (p *Provider) figures(ctx context.Context, now time.Time) (map[string]provider.Usage, error) {
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		return nil, fmt.Errorf("time zone of the usage: %w", err)
	}
	yesterday := now.In(zurich).AddDate(0, 0, -1)
	answer, err := p.api.Metrics.GetBucketMetrics(ctx, &sdk.BucketMetricsRequest{Start: yesterday, End: yesterday})
	if err != nil {
		return nil, listError(ctx, "get bucket metrics", err)
	}
	found := map[string]provider.Usage{}
	for _, b := range answer.Data {
		for _, point := range b.TimeSeries {
			name := b.Subject.BucketName
			if had, known := found[name]; known && had.Bytes > int64(point.Usage.StorageBytes) {
				continue
			}
			found[name] = provider.Usage{Bytes: int64(point.Usage.StorageBytes), Objects: int64(point.Usage.ObjectCount), At: point.End}
		}
	}
	return found, nil
}
