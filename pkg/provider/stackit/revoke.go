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
	if ref.Account != "" {
		keys = append(keys, accountKey(groupName(ref.Account)))
	}
	if len(ref.Buckets) == 0 {
		// The group may be in any of them.
		for _, region := range p.config.Regions {
			byRegion[region] = nil
		}
	}
	return p.underLocks(ctx, keys, func(held []string) error {
		for region, buckets := range byRegion {
			if err := p.revokeIn(ctx, region, ref, buckets, held); err != nil {
				return fmt.Errorf("region %q: %w", region, err)
			}
		}
		return nil
	})
}

// revokeIn ends the access to the buckets of one region, or to all of the region
// that have it when none is named, and its identity if no other bucket has it.
func (p *Provider) revokeIn(ctx context.Context, region string, ref provider.AccountRef, refs []provider.BucketRef, held []string) error {
	r, err := p.recall(ctx, refs)
	if err != nil {
		return err
	}
	w, err := p.identify(ctx, region, ref, append(slices.Clone(r.buckets), r.damaged...))
	if err != nil {
		return err
	}
	if err := p.notOthers(ctx, region, w, r); err != nil {
		return err
	}
	buckets := r.buckets
	others, err := p.holders(ctx, w.search(region, refs))
	if err != nil {
		return err
	}
	if err := lockAlso(held, others); err != nil {
		return err
	}
	if len(refs) == 0 {
		buckets, others = others, nil
	}
	// Of somebody else's buckets those alone are touched that have the access.
	buckets = slices.DeleteFunc(buckets, func(b *bucket) bool { _, ok := b.find(w.name); return b.AccessOnly && !ok })
	if !slices.ContainsFunc(others, func(b *bucket) bool { return b.serves(w.name) }) {
		if err := p.end(ctx, region, w, append(buckets, others...)); err != nil {
			return err
		}
		return r.malformed
	}
	for _, b := range buckets {
		if err := p.endIn(ctx, b, w.name); err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	if r.malformed != nil {
		return r.malformed
	}
	return r.unread
}

// recalled is what the records of the buckets of a revocation say.
type recalled struct {
	buckets   []*bucket
	damaged   []*bucket // read in part
	malformed error     // of one of the damaged
	unread    error     // of one whose policy shuts the admin out
	others    string    // the driver or cluster whose mark one of them carries, in words; "" if none does
}

// recall reads the buckets. One that cannot be read holds up none of the others.
func (p *Provider) recall(ctx context.Context, refs []provider.BucketRef) (r recalled, err error) {
	for _, ref := range refs {
		b, err := p.openRecorded(ctx, ref)
		if err == nil {
			r.buckets = append(r.buckets, b)
			continue
		}
		named := fmt.Errorf("bucket %q: %w", ref.Name, err)
		switch {
		case errors.Is(err, provider.ErrNotFound):
		case errors.Is(err, provider.ErrPermissionDenied):
			// Without its key the access is nothing, whatever the bucket's policy says.
			r.unread = named
			if b != nil && b.tags[tagManagedBy] != "" && !p.inPolicy(ctx, b) {
				r.others = p.manager(b)
			}
		case b != nil && b.malformed != nil:
			r.damaged, r.malformed = append(r.damaged, b), named
		default:
			return r, named
		}
	}
	return r, nil
}

// inPolicy reports whether the policy of a bucket of another driver has statements
// of this one, which was let into it before.
func (p *Provider) inPolicy(ctx context.Context, b *bucket) bool {
	doc, err := p.policyOf(ctx, b)
	return err == nil && strings.Contains(doc, sidsOf(p.config.DriverName))
}

// notOthers refuses to revoke what may be another driver's: IDs do not name the
// driver, groups carry no mark, and one with a back end of the same name can be
// asked for it. What a ledger of this driver has is its own. ErrPermissionDenied.
func (p *Provider) notOthers(ctx context.Context, region string, w wanted, r recalled) error {
	const remedy = "give the back ends of the two drivers different names, and let the other one revoke it"
	switch {
	case w.known || r.unread == nil:
		return nil
	case r.others != "":
		return refuse(provider.ErrPermissionDenied, "the access may be one of %s, whose mark its bucket carries, and is left alone; "+remedy, r.others)
	}
	list, err := p.strangers(ctx, region)
	if err != nil {
		return err
	}
	for _, g := range list {
		if adminPattern.MatchString(g.name) {
			// The sentinel is the same.
			return fmt.Errorf("%w; the access may be one of the driver whose admin group is %s, and is left alone; "+remedy, r.unread, g.name)
		}
	}
	return nil
}

// endIn ends an access in one of its buckets; its key lives on for the others.
func (p *Provider) endIn(ctx context.Context, b *bucket, name string) error {
	if !b.AccessOnly {
		if err := p.enforce(ctx, b, name); err != nil {
			return err
		}
	}
	if err := p.amend(ctx, b, func(m *marks) { p.leave(b, m, name) }); err != nil {
		return err
	}
	// A rotation in another process may have put the policy of the ledger back that was
	// there until this moment.
	b.enforced = ""
	return p.settle(ctx, b)
}

// end ends an access in all its buckets: keys first, so that a policy that is
// written over brings back nobody who could use it, then the policies, then the
// groups, and at last the ledgers, so that a crash leaves a record of what is left
// to do.
func (p *Provider) end(ctx context.Context, region string, w wanted, buckets []*bucket) error {
	for _, id := range w.groups {
		if err := p.removeKeys(ctx, region, id); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		if b.AccessOnly {
			continue
		}
		if err := p.enforce(ctx, b, w.name); err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	for _, id := range w.groups {
		if err := p.removeGroup(ctx, region, id); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		err := p.amend(ctx, b, func(m *marks) { m.drop(w.name) })
		if err == nil {
			err = p.settle(ctx, b)
		}
		if err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	return nil
}

// wanted is an access to be revoked, as far as its buckets tell.
type wanted struct {
	name   string   // of its groups
	groups []string // IDs of all that are proved to be the account's
	known  bool     // a ledger has it
	span   []string // of those ledgers
}

// search says where else the access may be. Where no ledger that was read has it,
// such as that of a bucket that is gone, any may, unless there is no group.
func (w wanted) search(region string, refs []provider.BucketRef) search {
	s := search{region: region, names: []string{w.name}, all: !w.known && len(w.groups) > 0}
	for _, r := range refs {
		s.apart = append(s.apart, r.Name)
	}
	s.prints = beyond(w.span, s.apart)
	return s
}

// identify finds the account's groups: those in the ledgers, the one that the
// account ID carries, and those that the list shows under the name, which are what
// an attempt cut short has left.
func (p *Provider) identify(ctx context.Context, region string, ref provider.AccountRef, buckets []*bucket) (wanted, error) {
	var w wanted
	if ref.Account != "" {
		w.name = groupName(ref.Account)
	}
	pending := false
	for _, b := range buckets {
		for _, e := range b.entries {
			if e.name != w.name && (w.name != "" || b.doubtful || e.id == "" || !strings.EqualFold(e.id, ref.IdentityID)) {
				continue
			}
			if proved, err := p.proved(ctx, b, e); err != nil {
				return w, err
			} else if !proved {
				continue
			}
			w.name, w.known, w.span = e.name, true, append(w.span, e.span...)
			if pending = pending || e.pending(); !e.pending() {
				w.groups = append(w.groups, e.id)
			}
		}
	}
	id := strings.ToLower(ref.IdentityID)
	if id != "" && !slices.Contains(w.groups, id) {
		switch g, err := p.getGroup(ctx, region, id); {
		case errors.Is(err, provider.ErrNotFound):
		case err != nil:
			return w, err
		case w.name == "" || g.name != w.name:
			return w, refuse(provider.ErrPermissionDenied, "credentials group %s is not of this account; it is left alone", id)
		default:
			w.groups = append(w.groups, id)
		}
	}
	if w.name == "" {
		return w, nil
	}
	listed, err := p.groupsNamed(ctx, region, pending && len(w.groups) == 0, w.name)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return w, err
	}
	for _, g := range listed {
		if !w.known {
			// The list may still show what is gone, and buckets are searched for what is not.
			if _, err := p.getGroup(ctx, region, g.id); errors.Is(err, provider.ErrNotFound) {
				continue
			} else if err != nil {
				return w, err
			}
		}
		w.groups = append(w.groups, g.id)
	}
	slices.Sort(w.groups)
	w.groups = slices.Compact(w.groups)
	return w, nil
}
