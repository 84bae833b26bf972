package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// whole is an access with all its buckets. What is done with one is done with all,
// so that their ledgers agree.
type whole struct {
	name    string
	region  string
	targets []target // those asked for first
	span    []string // as the ledgers shall record it
	known   bool     // a ledger has the access
	found   []group  // if none has: what may be its group all the same
}

// whole finds the other buckets of an access to the targets. Where no ledger of
// theirs has it, a group of its name says that others may.
func (p *Provider) whole(ctx context.Context, name string, targets []target, held []string) (whole, error) {
	w := whole{name: name, region: targets[0].Region, targets: targets}
	s := search{region: w.region, names: []string{name}}
	var recorded []string
	for _, t := range targets {
		s.apart = append(s.apart, t.Name)
		if e, ok := t.find(name); ok {
			w.known, recorded = true, append(recorded, e.span...)
		}
	}
	if !w.known {
		var err error
		if w.found, err = p.madeBefore(ctx, w.region, name, false); err != nil {
			return w, err
		}
		s.all = len(w.found) > 0
	}
	s.prints = beyond(recorded, s.apart)
	others, err := p.holders(ctx, s)
	if err != nil {
		return w, err
	}
	if err := lockAlso(held, others); err != nil {
		return w, err
	}
	for _, b := range others {
		e, _ := b.find(name)
		w.known, recorded = true, append(recorded, e.span...)
		w.targets = append(w.targets, target{b, e.mode})
	}
	names := append(s.apart, bucketNamesOf(others)...)
	w.span = spanOf(recorded, names)
	if len(names) > 1 {
		p.rememberPrints(w.region, names)
	}
	for i, a := range names {
		for _, b := range names[:i] {
			if printOf(a) == printOf(b) {
				return w, refuse(provider.ErrUnsupported, "the ledger cannot tell the buckets %q and %q apart; use one access for each", a, b)
			}
		}
	}
	return w, nil
}

// on returns the entry as the ledger of the target shall hold it.
func (e entry) on(t target) entry {
	e.mode = t.mode
	return e
}

// room checks, before anything is made, that a complete entry fits into the
// target's ledger and policy.
func (p *Provider) room(t target, e entry) error {
	m := t.marks
	m.drop(e.name)
	if e.pending() {
		// A group's URN has the admin's length, or nearly.
		e.id, e.urn = dashed(strings.Repeat("0", 32)), t.adminURN+"-"
	}
	m.put(e.on(t))
	if t.AccessOnly {
		return p.roomExisting(t.bucket, m)
	}
	if _, err := m.encode(p.config.DriverName, t.Name, t.adminURN); err != nil {
		return err
	}
	members := m.members()
	return checkPolicySize(render(t.Name, t.adminURN, members), len(members))
}

// ensureGroup makes sure that the access has a credentials group, and that it
// stands in the ledger of every bucket before it is made. It returns the entry,
// with the keys that any of the ledgers records, and the group's live keys if it
// had to look.
func (p *Provider) ensureGroup(ctx context.Context, w whole) (e entry, live []accessKey, err error) {
	e, live, gone, err := p.recordedGroup(ctx, w, false)
	if err != nil {
		return entry{}, nil, err
	}
	if !e.pending() {
		return e, live, p.spread(ctx, w, e)
	}
	// There is none, or somebody has deleted it and a new one takes its place.
	if err := p.spread(ctx, w, e, gone...); err != nil {
		return entry{}, nil, err
	}
	found := w.found
	if w.known {
		if found, err = p.madeBefore(ctx, w.region, w.name, true); err != nil {
			return entry{}, nil, err
		}
	}
	for _, g := range found {
		live, err = p.listKeys(ctx, w.region, g.id)
		if errors.Is(err, provider.ErrNotFound) {
			// The list still shows what is gone.
			continue
		}
		e.id, e.urn = g.id, g.urn
		return e, live, err
	}
	made, err := p.createGroup(ctx, w.region, w.name)
	if err != nil {
		if refused(err) && !errors.Is(err, provider.ErrConflict) {
			p.unannounce(ctx, w)
		}
		return entry{}, nil, err
	}
	p.rememberGroup(w.region, made)
	e.id, e.urn = made.id, made.urn
	return e, nil, nil
}

// recordedGroup returns the entry of the group that the ledgers name, with the keys
// of all of them and its live keys; pending if none of those that they name exists,
// with the IDs of those that are gone. A group of which this process holds a key
// is taken to exist, without its live keys, unless they are wanted.
func (p *Provider) recordedGroup(ctx context.Context, w whole, wantKeys bool) (e entry, live []accessKey, gone []string, err error) {
	byID := map[string]entry{}
	var ids []string
	for _, t := range w.targets {
		found, ok := t.find(w.name)
		if !ok || found.pending() {
			continue
		}
		proved, err := p.proved(ctx, t.bucket, found)
		if err != nil {
			return entry{}, nil, nil, err
		}
		if !proved {
			return entry{}, nil, nil, refuse(provider.ErrPrecondition, "bucket %q: it records credentials group %s for the access, which is not its own: "+
				"somebody else has written that; remove the statements whose Sid begins with %s from its policy, or the tags that begin with %s",
				t.Name, found.id, sidsOf(p.config.DriverName), tagAccess)
		}
		merged, seen := byID[found.id]
		if !seen {
			merged, ids = found, append(ids, found.id)
		}
		for _, k := range found.keys {
			if !slices.Contains(merged.keys, k) {
				merged.keys = append(slices.Clone(merged.keys), k)
			}
		}
		merged.span = w.span
		byID[found.id] = merged
	}
	slices.Sort(ids)
	e = entry{name: w.name, span: w.span}
	if len(ids) == 1 && !wantKeys {
		if _, cached := p.knownKey(ids[0]); cached {
			return byID[ids[0]], nil, nil, nil
		}
	}
	for _, id := range ids {
		keys, err := p.listKeys(ctx, w.region, id)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			gone = append(gone, id)
		case err != nil:
			return entry{}, nil, nil, err
		case !e.pending():
			return entry{}, nil, nil, refuse(provider.ErrPrecondition, "it has two credentials groups, %s and %s, since two processes made one each; "+
				"revoke it and grant it anew", e.id, id)
		default:
			e, live = byID[id], keys
		}
	}
	return e, live, gone, nil
}

// spread writes the entry into the ledgers: first that the access has these buckets
// into those that have it, then the entry into those that lack it. It replaces an
// entry that is pending or of a group that is gone, and no other.
func (p *Provider) spread(ctx context.Context, w whole, e entry, gone ...string) error {
	for _, t := range w.targets {
		var err error
		if there, ok := t.find(e.name); !ok || there.id != e.id {
			full := e
			full.keys = slices.Repeat([]string{fingerprint("")}, maxKeys)
			err = p.room(t, full)
		} else if !slices.Equal(there.span, e.span) {
			err = p.room(t, e)
		}
		if err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	for _, t := range w.targets {
		if there, ok := t.find(e.name); !ok || slices.Equal(there.span, e.span) {
			continue
		}
		err := p.amend(ctx, t.bucket, func(m *marks) {
			if there, ok := m.find(e.name); ok {
				there.span = e.span
				m.put(there)
			}
		})
		if err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	for _, t := range w.targets {
		if err := p.enter(ctx, t, e, gone); err != nil {
			return fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	return nil
}

// enter puts the entry into the ledger of one target.
func (p *Provider) enter(ctx context.Context, t target, e entry, gone []string) error {
	if there, ok := t.find(e.name); ok && there.id == e.id {
		return nil
	}
	err := p.amend(ctx, t.bucket, func(m *marks) {
		if there, ok := m.find(e.name); !ok || there.pending() || slices.Contains(gone, there.id) || !e.pending() {
			m.put(e.on(t))
		}
	})
	if err != nil {
		return err
	}
	if there, _ := t.find(e.name); there.id != e.id {
		return refuse(provider.ErrConflict, "another process grants the same access at this moment; repeat the call")
	}
	return nil
}

// madeBefore returns the groups of the access that may exist already: the one that
// this process has made, or else those that the list shows under its name. The lag
// of the list is waited out only if the access was announced.
func (p *Provider) madeBefore(ctx context.Context, region, name string, announced bool) ([]group, error) {
	if g, ok := p.knownGroup(region, name); ok {
		return []group{g}, nil
	}
	return p.groupsNamed(ctx, region, announced, name)
}

// unannounce takes an access whose group the API has refused out of the ledgers
// again. An entry left behind costs the next attempt a look at the list.
func (p *Provider) unannounce(ctx context.Context, w whole) {
	for _, t := range w.targets {
		_ = p.change(ctx, t.bucket, func(m *marks) { m.drop(w.name) })
	}
}
