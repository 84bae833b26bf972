package cloudscale

import (
	"context"
	"fmt"
	"iter"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Inventory implements provider.Provider with one call: an owner stands for its
// bucket, whether that exists or was never finished.
func (p *Provider) Inventory(ctx context.Context) iter.Seq2[provider.Resource, error] {
	return func(yield func(provider.Resource, error) bool) {
		users, err := p.listUsers(ctx, tagManagedBy, p.config.DriverName)
		if err != nil {
			yield(provider.Resource{}, fmt.Errorf("inventory: %w", err))
			return
		}
		for _, u := range users {
			r := provider.Resource{Kind: provider.KindOwner, ID: u.id, Bucket: u.tags[tagBucket], Region: u.tags[tagRegion]}
			if u.tags[tagRole] != roleOwner {
				r.Kind, r.Account = provider.KindAccess, u.tags[tagAccount]
			}
			if !yield(r, nil) {
				return
			}
			if r.Kind != provider.KindOwner {
				continue
			}
			b := provider.Resource{Kind: provider.KindBucket, ID: r.Bucket, Bucket: r.Bucket, Region: r.Region}
			if !yield(b, nil) {
				return
			}
		}
	}
}
