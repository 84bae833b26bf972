package cloudscale

import (
	"context"
	"fmt"
	"iter"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Inventory implements provider.Provider with one call: an owner stands for its
// bucket, whether that exists or was never finished, and the owner of a tenant and an
// access for as many resources as they have buckets.
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
// bucket, or each of its tenant's, an access for each of its buckets.
func resourcesOf(u user) []provider.Resource {
	switch u.tags[tagRole] {
	case roleOwner:
		return ownerAndBucket(u.id, u.tags[tagBucket], u.tags[tagRegion])
	case roleTenant:
		names := bucketsOfTenant(u)
		if len(names) == 0 {
			return []provider.Resource{{Kind: provider.KindOwner, ID: u.id, Name: tenantDisplayName(u.tags[tagTenant])}}
		}
		var all []provider.Resource
		for _, name := range names {
			all = append(all, ownerAndBucket(u.id, name, u.tags[tagRegion+bucketSuffix(name)])...)
		}
		return all
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

func ownerAndBucket(id, bucket, region string) []provider.Resource {
	return []provider.Resource{
		{Kind: provider.KindOwner, ID: id, Bucket: bucket, Region: region},
		{Kind: provider.KindBucket, ID: bucket, Bucket: bucket, Region: region},
	}
}
