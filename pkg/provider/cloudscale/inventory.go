package cloudscale

import (
	"context"
	"fmt"
	"iter"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Inventory implements provider.Provider with one call: an owner stands for its
// bucket, whether that exists or was never finished, and an access for as many
// resources as it has buckets.
func (p *Provider) Inventory(ctx context.Context) iter.Seq2[provider.Resource, error] {
	return func(yield func(provider.Resource, error) bool) {
		users, err := p.listUsers(ctx, tagManagedBy, p.config.DriverName)
		if err != nil {
			yield(provider.Resource{}, fmt.Errorf("inventory: %w", err))
			return
		}
		for _, u := range users {
			if p.elsewhereMade(u) {
				continue
			}
			for _, r := range resourcesOf(u) {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// resourcesOf returns what a marked user stands for: an owner for itself and its
// bucket, an access for each of its buckets.
func resourcesOf(u user) []provider.Resource {
	if u.tags[tagRole] == roleOwner {
		b := provider.Resource{Kind: provider.KindOwner, ID: u.id, Bucket: u.tags[tagBucket], Region: u.tags[tagRegion]}
		return []provider.Resource{b, {Kind: provider.KindBucket, ID: b.Bucket, Bucket: b.Bucket, Region: b.Region}}
	}
	a := recordedAccess(u)
	if len(a.buckets) == 0 {
		return []provider.Resource{{Kind: provider.KindAccess, ID: u.id, Account: a.account}}
	}
	var all []provider.Resource
	for _, name := range a.names() {
		all = append(all, provider.Resource{Kind: provider.KindAccess, ID: u.id, Bucket: name, Region: a.buckets[name].region, Account: a.account})
	}
	return all
}
