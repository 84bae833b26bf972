package stackit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// listingPolls is how often the list is read while its lag is waited out.
const listingPolls = 5

// groupsNamed returns the groups that the list shows under the names, ordered by
// ID. If lagging is true it waits out the lag before it says that there are none.
func (p *Provider) groupsNamed(ctx context.Context, region string, lagging bool, names ...string) ([]group, error) {
	for poll := 0; ; poll++ {
		list, err := p.listGroups(ctx, region)
		if err != nil {
			return nil, err
		}
		found := named(list, names...)
		if len(found) > 0 || !lagging || poll == listingPolls {
			return found, nil
		}
		if err := pause(ctx, p.config.ListingWait/listingPolls); err != nil {
			return nil, err
		}
	}
}

// named returns the usable groups of that name, ordered by ID.
func named(list []group, names ...string) []group {
	var found []group
	for _, g := range list {
		if slices.Contains(names, g.name) && uuidPattern.MatchString(g.id) && g.urn != "" {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b group) int { return strings.Compare(a.id, b.id) })
	return found
}

func groupIDs(groups []group) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.id)
	}
	return all
}

// strangers returns the groups of the project that can have a key of somebody else:
// all but the admin and what drivers make for accesses and announcements, which
// cannot write a policy.
func (p *Provider) strangers(ctx context.Context, region string) ([]group, error) {
	adm, err := p.adminGroup(ctx, region, true)
	if err != nil {
		return nil, err
	}
	list, err := p.listGroups(ctx, region)
	return slices.DeleteFunc(list, func(g group) bool {
		return g.id == adm.id || namePattern.MatchString(g.name) || strings.HasPrefix(g.name, intentPrefix)
	}), err
}

// removeKeys deletes all keys of a group; a group that is gone is success. The
// admin's are never touched.
func (p *Provider) removeKeys(ctx context.Context, region, id string) error {
	adm, err := p.adminGroup(ctx, region, false)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	if strings.EqualFold(id, adm.id) {
		return refuse(provider.ErrPermissionDenied, "credentials group %s is the driver's admin; it is left alone", id)
	}
	keys, err := p.listKeys(ctx, region, id)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := p.deleteKey(ctx, region, id, k.id); err != nil {
			return err
		}
	}
	p.forgetKey(id)
	return nil
}

// removeGroup deletes a group and whatever keys it has got meanwhile; absent is
// success.
func (p *Provider) removeGroup(ctx context.Context, region, id string) error {
	for try := 1; ; try++ {
		err := p.deleteGroup(ctx, region, id)
		switch {
		case err == nil:
			p.forgetGroup(id)
			return nil
		case !errors.Is(err, provider.ErrNotEmpty):
			return err
		case try == writeTries:
			return refuse(provider.ErrConflict, "another process makes keys in credentials group %s at the same time; repeat the call", id)
		}
		if err := p.removeKeys(ctx, region, id); err != nil {
			return err
		}
	}
}
