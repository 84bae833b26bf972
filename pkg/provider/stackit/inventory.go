package stackit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Inventory implements provider.Provider. It reads the tags of every bucket of
// the project, and the policy of those without the mark, one call each, because no
// list shows them. A credentials group that no ledger names carries nobody's mark
// and is left out, such as one whose bucket somebody else has deleted.
func (p *Provider) Inventory(ctx context.Context) iter.Seq2[provider.Resource, error] {
	return func(yield func(provider.Resource, error) bool) {
		for _, region := range p.config.Regions {
			err := p.inventoryOf(ctx, region, func(r provider.Resource) bool { return yield(r, nil) })
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(provider.Resource{}, fmt.Errorf("inventory of region %q: %w", region, err))
				return
			}
		}
	}
}

// errStopped: the caller wants no more.
var errStopped = errors.New("stopped")

func (p *Provider) inventoryOf(ctx context.Context, region string, yield func(provider.Resource) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	groups, err := p.listGroups(ctx, region)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	adm, err := p.adminGroup(ctx, region, false)
	if errors.Is(err, provider.ErrNotFound) {
		// Without an admin group no bucket was ever marked.
		return nil
	}
	if err != nil {
		return err
	}
	if !yield(provider.Resource{Kind: provider.KindAdmin, ID: adm.id, Region: region}) {
		return errStopped
	}
	names, err := p.listBuckets(ctx, region)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	announced := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, intent := range p.intentNames(name) {
			announced[intent] = name
		}
		if err := p.inventoryBucket(ctx, provider.BucketRef{Name: name, Region: region}, names[name], yield); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if !p.announces(g.name) {
			continue
		}
		// An announcement whose bucket does not exist tells no name.
		if !yield(provider.Resource{Kind: provider.KindOwner, ID: g.id, Bucket: announced[g.name], Region: region, Name: g.name}) {
			return errStopped
		}
	}
	return nil
}

func (p *Provider) inventoryBucket(ctx context.Context, ref provider.BucketRef, regional endpoint, yield func(provider.Resource) bool) error {
	b, err := p.read(ctx, ref, regional)
	if err == nil && !p.ours(b) {
		err = p.readExisting(ctx, b)
	}
	switch {
	case errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrPermissionDenied):
		// Deleted meanwhile, or somebody else's.
		return nil
	case err != nil:
		return fmt.Errorf("bucket %q: %w", ref.Name, err)
	}
	if !b.AccessOnly && !yield(provider.Resource{Kind: provider.KindBucket, ID: b.Name, Bucket: b.Name, Region: b.Region}) {
		return errStopped
	}
	for _, e := range b.entries {
		r := provider.Resource{Kind: provider.KindAccess, ID: e.id, Bucket: b.Name, Region: b.Region, Account: accountOf(e.name)}
		if !yield(r) {
			return errStopped
		}
	}
	return nil
}
