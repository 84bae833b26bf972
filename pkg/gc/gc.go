// Package gc finds what carries the driver's mark in the clouds and should not exist
// any more, and deletes it. It knows neither a cloud nor Kubernetes: what exists is
// said by provider.Inventory, what should exist by whoever calls.
//
// Everything is made for an object of the cluster that exists before it. So the
// clouds are read first and the cluster after them: what is in a cloud and has no
// object then has lost it, or is another cluster's. Nothing is deleted by one look
// at something of unknown age.
package gc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// manyOrphans is how many orphans of a kind, of which nothing at all is expected,
// are taken for a fault of what was read.
const manyOrphans = 10

// Backend is one cloud project under its name.
type Backend struct {
	Name     string
	Provider provider.Provider
}

// Collector compares and deletes. It is not safe for concurrent use.
type Collector struct {
	Backends []Backend
	// Expect reads what should exist. An answer that may not be complete must be an
	// error.
	Expect func(context.Context) (Expected, error)
	// MinAge is how old an orphan must be to be deleted. One of unknown age is as
	// old as the first sighting of it as an orphan.
	MinAge time.Duration
	// Seen holds those sightings; Look keeps it current. It must not be nil.
	Seen Sightings
	// Regions and Only bound what is looked at: names of regions, and IDs of
	// resources or names of buckets. None means all.
	Regions, Only []string
	Now           func() time.Time
}

// Verdict is what is to become of a resource.
type Verdict string

// The verdicts.
const (
	Kept   Verdict = "kept"
	Young  Verdict = "young"  // an orphan that is not old enough
	Orphan Verdict = "orphan" // to be deleted
)

// Item is a resource and what was decided about it.
type Item struct {
	Backend string
	provider.Resource
	// Created is zero where the cloud does not tell, and Seen is then when the
	// resource was first seen as an orphan.
	Created, Seen time.Time
	Verdict       Verdict
	Why           string
	// Outcome is what Delete did; empty for what it has not tried.
	Outcome Outcome
	Err     error
}

// Age is how old the item is at least; false if that is not known.
func (i Item) Age(now time.Time) (time.Duration, bool) {
	if i.Created.IsZero() {
		return 0, false
	}
	return now.Sub(i.Created), true
}

// Plan is the answer of Look.
type Plan struct {
	// Items are ordered by back end, region, bucket and kind.
	Items []Item
	// Refusal says why nothing of this plan may be deleted; nil if it may.
	Refusal error
	// Unread are the errors of back ends that could not be read to the end; nothing
	// of them is in Items.
	Unread []error

	units []*unit
}

// Orphans counts what is to be deleted.
func (p *Plan) Orphans() int {
	n := 0
	for _, i := range p.Items {
		if i.Verdict == Orphan {
			n++
		}
	}
	return n
}

// Within reports whether every orphan of this plan is one of the other's.
func (p *Plan) Within(other *Plan) bool {
	agreed := map[string]bool{}
	for _, u := range other.units {
		agreed[u.key] = u.selected && u.verdict == Orphan
	}
	return !slices.ContainsFunc(p.units, func(u *unit) bool { return u.selected && u.verdict == Orphan && !agreed[u.key] })
}

// unit is what is deleted by one call: an access in all its buckets, a bucket with
// its owners, or an announcement.
type unit struct {
	key      string
	backend  Backend
	members  []provider.Resource
	verdict  Verdict
	why      string
	created  time.Time
	seen     time.Time
	items    []int // in Plan.Items
	selected bool
}

func (u *unit) first() provider.Resource { return u.members[0] }

func (u *unit) access() bool { return u.first().Kind == provider.KindAccess }

// Look reads the clouds and what should exist, and decides. It changes nothing but
// Seen. An error means that nothing is known.
func (c *Collector) Look(ctx context.Context) (*Plan, error) {
	p := &Plan{}
	read := map[string]bool{}
	for _, b := range c.Backends {
		units, err := inventory(ctx, b)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			p.Unread = append(p.Unread, fmt.Errorf("back end %s: %w", b.Name, err))
			continue
		}
		read[b.Name] = true
		p.units = append(p.units, units...)
	}
	expected, err := c.Expect(ctx)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	for _, u := range p.units {
		c.judge(expected, u)
		u.selected = c.selects(u)
	}
	c.spare(p.units)
	p.Refusal = c.doubts(expected, p.units)
	c.Seen.keep(p.units, read)
	for _, u := range p.units {
		if err := c.date(ctx, u, now); err != nil {
			return nil, err
		}
	}
	c.spare(p.units)
	p.list()
	return p, nil
}

// inventory reads a back end and groups what goes together.
func inventory(ctx context.Context, b Backend) ([]*unit, error) {
	var units []*unit
	byKey := map[string]*unit{}
	for r, err := range b.Provider.Inventory(ctx) {
		if err != nil {
			return nil, err
		}
		key := keyOf(b.Name, r)
		u := byKey[key]
		if u == nil {
			u = &unit{key: key, backend: b}
			byKey[key], units = u, append(units, u)
		}
		u.members = append(u.members, r)
	}
	return units, nil
}

// keyOf names the unit of a resource, for ever.
func keyOf(backend string, r provider.Resource) string {
	parts := []string{backend, string(r.Kind), r.Region, r.ID}
	switch {
	case r.Kind == provider.KindAccess && r.ID == "":
		// Its identity may not exist: it is known by its account, or else by its bucket.
		parts = []string{backend, string(r.Kind), "", r.Account}
		if r.Account == "" {
			parts = append(parts, r.Region, r.Bucket)
		}
	case r.Kind == provider.KindAccess:
		parts[2] = "" // one access may span regions
	case r.Bucket != "" && r.Kind != provider.KindAdmin:
		parts = []string{backend, string(provider.KindBucket), r.Region, r.Bucket}
	}
	return strings.Join(parts, "/")
}

// judge decides without regard to age.
func (c *Collector) judge(e Expected, u *unit) {
	u.verdict, u.why = Orphan, "no Bucket of that name"
	switch {
	case u.access():
		u.why = "no BucketAccess of that account"
	case u.first().Bucket == "":
		u.why = "no Bucket that it could announce"
	}
	if e.None {
		u.why = "nothing is expected"
	}
	for _, r := range u.members {
		if why := e.wants(r, announcer(u.backend.Provider)); why != "" {
			u.verdict, u.why = Kept, why
			return
		}
	}
}

// announcer is Announces of a provider that has it.
func announcer(p provider.Provider) func(provider.Resource, string) bool {
	if r, ok := p.(provider.Reclaimer); ok {
		return r.Announces
	}
	return func(provider.Resource, string) bool { return false }
}

// selects reports whether the bounds let the unit through.
func (c *Collector) selects(u *unit) bool {
	return slices.ContainsFunc(u.members, func(r provider.Resource) bool {
		inRegion := len(c.Regions) == 0 || r.Region == "" || slices.Contains(c.Regions, r.Region)
		named := len(c.Only) == 0 || slices.Contains(c.Only, r.ID) && r.ID != "" || slices.Contains(c.Only, r.Bucket) && r.Bucket != ""
		return inRegion && named
	})
}

// spare keeps the buckets whose accesses are not to be deleted: they would go with it.
func (c *Collector) spare(units []*unit) {
	type place struct{ backend, bucket string }
	held := map[place]*unit{}
	for _, u := range units {
		if !u.access() || u.verdict == Orphan {
			continue
		}
		for _, r := range u.members {
			at := place{u.backend.Name, r.Bucket}
			if h := held[at]; r.Bucket != "" && (h == nil || u.verdict == Kept) {
				held[at] = u
			}
		}
	}
	for _, u := range units {
		h := held[place{u.backend.Name, u.first().Bucket}]
		if h == nil || u.access() || u.verdict == Kept || u.first().Bucket == "" {
			continue
		}
		if h.verdict == Kept {
			u.verdict, u.why = Kept, "an access to it is kept"
		} else if u.verdict == Orphan {
			u.verdict, u.why = Young, "an access to it is young"
		}
	}
}

// doubts says why what was read can not be right. Whoever names what may go has looked
// at it.
func (c *Collector) doubts(e Expected, units []*unit) error {
	if e.None {
		return nil
	}
	var orphans, wanted [2]int // buckets, accesses
	for _, u := range units {
		kind := 0
		if u.access() {
			kind = 1
		}
		switch {
		case u.verdict == Orphan:
			orphans[kind]++
		case u.first().Kind != provider.KindAdmin:
			wanted[kind]++
		}
	}
	if e.Ours == 0 && orphans[0]+orphans[1] > 0 {
		return fmt.Errorf("%w: not one Bucket or BucketAccess of this driver was found, which is more likely a mistake than true; "+
			"check the kubeconfig and the driver's name, or say --assume-none if everything listed may go", provider.ErrPrecondition)
	}
	for kind, what := range []string{"Bucket", "BucketAccess"} {
		if wanted[kind] == 0 && orphans[kind] >= manyOrphans && len(c.Only) == 0 {
			return fmt.Errorf("%w: no %s explains any of the %d listed, so that the answer of the cluster may not be whole; "+
				"look at them, and name those that may go with --only", provider.ErrPrecondition, what, orphans[kind])
		}
	}
	return nil
}

// date finds out how old an orphan is, and what is too young.
func (c *Collector) date(ctx context.Context, u *unit, now time.Time) error {
	if u.verdict == Kept || !u.selected {
		return nil
	}
	if r, ok := u.backend.Provider.(provider.Reclaimer); ok && !u.access() {
		made, err := r.Created(ctx, u.first())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			u.created = made
		} else {
			// What cannot be dated is as good as undated; its deletion tells the fault.
			u.why += fmt.Sprintf(" (age unknown: %s)", err)
		}
	}
	since := u.created
	if since.IsZero() {
		u.seen = c.Seen.since(u.key, now)
		since = u.seen
	}
	if age := now.Sub(since); age < c.MinAge && u.verdict == Orphan {
		u.verdict = Young
		if u.created.IsZero() {
			u.why += fmt.Sprintf("; its age is unknown, and it was first seen so %s ago", max(age, 0).Round(time.Second))
		}
	}
	return nil
}

// list fills Items with what is selected.
func (p *Plan) list() {
	for _, u := range p.units {
		if !u.selected {
			continue
		}
		for _, r := range u.members {
			p.Items = append(p.Items, Item{
				Backend: u.backend.Name, Resource: r, Created: u.created, Seen: u.seen, Verdict: u.verdict, Why: u.why,
			})
		}
	}
	slices.SortStableFunc(p.Items, func(a, b Item) int { return slices.Compare(a.order(), b.order()) })
	for n, i := range p.Items {
		key := keyOf(i.Backend, i.Resource)
		at := slices.IndexFunc(p.units, func(u *unit) bool { return u.key == key })
		p.units[at].items = append(p.units[at].items, n)
	}
}

func (i Item) order() []string {
	return []string{i.Backend, i.Region, i.Bucket, string(i.Kind), i.ID, i.Account}
}
