package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// RevokeAccess implements provider.Provider.
func (p *Provider) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	if err := p.revokeAccess(ctx, ref); err != nil {
		return fmt.Errorf("revoke account %q: %w", ref.Account, err)
	}
	return nil
}

func (p *Provider) revokeAccess(ctx context.Context, ref provider.AccountRef) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var keys []string
	byRegion := map[string][]provider.BucketRef{}
	for _, b := range ref.Buckets {
		if err := p.checkRef(b); err != nil {
			return err
		}
		keys = append(keys, bucketKey(b))
		byRegion[b.Region] = append(byRegion[b.Region], b)
	}
	if ref.IdentityID != "" && !uuidPattern.MatchString(ref.IdentityID) {
		return refuse(provider.ErrInvalidArgument, "identity ID %q is not the ID of a credentials group", clip(ref.IdentityID))
	}
	if ref.Account == "" && ref.IdentityID == "" {
		return refuse(provider.ErrInvalidArgument, "neither an account nor an identity ID is given")
	}
	if len(ref.Buckets) == 0 {
		// The group may be in any of them.
		for _, region := range p.config.Regions {
			byRegion[region] = nil
		}
	}
	unlock, err := p.locks.lock(ctx, keys...)
	if err != nil {
		return err
	}
	defer unlock()
	for region, buckets := range byRegion {
		if err := p.revokeIn(ctx, region, ref, buckets); err != nil {
			return fmt.Errorf("region %q: %w", region, err)
		}
	}
	return nil
}

// revokeIn ends the access in one region: keys first, so that a policy that is
// written over brings back nobody who could use it, then the policies, then the
// groups, and at last the ledgers, so that a crash leaves a record of what is
// left to do.
func (p *Provider) revokeIn(ctx context.Context, region string, ref provider.AccountRef, refs []provider.BucketRef) error {
	var buckets []*bucket
	for _, b := range refs {
		opened, err := p.open(ctx, b)
		switch {
		case errors.Is(err, provider.ErrNotFound):
		case errors.Is(err, provider.ErrPermissionDenied):
			// It lets nobody of ours in.
		case err != nil:
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		default:
			buckets = append(buckets, opened)
		}
	}
	name, groups, err := p.groupsOf(ctx, region, ref, buckets)
	if err != nil {
		return err
	}
	for _, id := range groups {
		if err := p.removeKeys(ctx, region, id); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		if err := p.enforce(ctx, b, name); err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	for _, id := range groups {
		if err := p.removeGroup(ctx, region, id); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		err := p.change(ctx, b, func(m *marks) { m.drop(name) })
		if err == nil {
			err = p.settle(ctx, b)
		}
		if err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	return nil
}

// groupsOf returns the name that the account's groups have, and the IDs of all
// that are proved to be the account's: those in the ledgers, the one that the
// account ID carries, and those that the list shows under the name, which are
// what an attempt cut short has left.
func (p *Provider) groupsOf(ctx context.Context, region string, ref provider.AccountRef, buckets []*bucket) (string, []string, error) {
	name := ""
	if ref.Account != "" {
		name = groupName(ref.Account)
	}
	var groups []string
	pending := false
	for _, b := range buckets {
		for _, e := range b.entries {
			if e.name != name && (name != "" || e.id == "" || !strings.EqualFold(e.id, ref.IdentityID)) {
				continue
			}
			name = e.name
			if pending = pending || e.pending(); !e.pending() {
				groups = append(groups, e.id)
			}
		}
	}
	id := strings.ToLower(ref.IdentityID)
	if id != "" && !slices.Contains(groups, id) {
		switch g, err := p.getGroup(ctx, region, id); {
		case errors.Is(err, provider.ErrNotFound):
		case err != nil:
			return "", nil, err
		case name == "" || g.name != name:
			return "", nil, refuse(provider.ErrPermissionDenied, "credentials group %s is not of this account; it is left alone", id)
		default:
			groups = append(groups, id)
		}
	}
	if name == "" {
		return "", groups, nil
	}
	listed, err := p.groupsNamed(ctx, region, name, pending && len(groups) == 0)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return "", nil, err
	}
	groups = append(groups, groupIDs(listed)...)
	slices.Sort(groups)
	return name, slices.Compact(groups), nil
}
