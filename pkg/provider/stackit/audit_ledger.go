package stackit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// faultsOf looks at the ledger, the policy and the groups of a bucket that carries
// the mark.
func (p *Provider) faultsOf(ctx context.Context, b *bucket, whole provider.Resource) ([]fault, error) {
	current, err := p.policyOf(ctx, b)
	if err != nil {
		return nil, err
	}
	faults, err := p.missing(ctx, b)
	if err != nil {
		return nil, err
	}
	if samePolicy(current, render(b.Name, b.adminURN, b.members())) {
		return faults, nil
	}
	lost, err := p.lostEntries(ctx, b, current)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		return append(faults, p.lostFaults(b, lost)...), nil
	}
	drift, problem := provider.DriftPolicy, "its policy is not the one of its accesses"
	switch {
	case current == "":
		problem = "its policy is gone, so that every key of the project may do everything in it"
	case !exempts(current, b.adminURN):
		drift, problem = provider.DriftAdmin, "its policy does not exempt the driver's admin group"
	}
	return append(faults, finding(drift, whole, problem, repairRemedy).by(func(ctx context.Context) error {
		if err := p.enforce(ctx, b); err != nil {
			return err
		}
		return p.settle(ctx, b)
	})), nil
}

func (b *bucket) resourceOf(e entry) provider.Resource {
	return provider.Resource{Kind: provider.KindAccess, ID: e.id, Bucket: b.Name, Region: b.Region, Account: accountOf(e.name)}
}

// missing looks for the groups of the ledger. The list lags, so that what it does not
// show is asked for.
func (p *Provider) missing(ctx context.Context, b *bucket) ([]fault, error) {
	if len(b.entries) == 0 {
		return nil, nil
	}
	list, err := p.listGroups(ctx, b.Region)
	if err != nil {
		return nil, err
	}
	var faults []fault
	for _, e := range b.entries {
		if e.pending() {
			continue
		}
		at := slices.IndexFunc(list, func(g group) bool { return strings.EqualFold(g.id, e.id) })
		var g group
		if at >= 0 {
			g = list[at]
		} else if g, err = p.getGroup(ctx, b.Region, e.id); errors.Is(err, provider.ErrNotFound) {
			faults = append(faults, finding(provider.DriftMissingUser, b.resourceOf(e),
				fmt.Sprintf("credentials group %s does not exist, so that its keys are dead", e.id),
				repairRemedy+", which ends the access; delete its BucketAccess and make it again").by(p.endMissing(b, e)))
			continue
		} else if err != nil {
			return nil, err
		}
		if g.urn == e.urn || g.name != e.name {
			continue
		}
		faults = append(faults, finding(provider.DriftTags, b.resourceOf(e), fmt.Sprintf("the record of credentials group %s has another URN than the group", e.id), repairRemedy).by(
			func(ctx context.Context) error {
				err := p.change(ctx, b, func(m *marks) {
					if there, ok := m.find(e.name); ok && there.id == e.id {
						there.urn = g.urn
						m.put(there)
					}
				})
				if err != nil {
					return err
				}
				return p.enforce(ctx, b)
			}))
	}
	return faults, nil
}

// endMissing ends an access in the bucket whose group is gone, as a revocation does.
func (p *Provider) endMissing(b *bucket, e entry) func(context.Context) error {
	return func(ctx context.Context) error {
		proved, err := p.proved(ctx, b, e)
		if err != nil || !proved {
			return err
		}
		return p.end(ctx, b.Region, wanted{name: e.name, known: true}, []*bucket{b})
	}
}

// lostEntries returns the accesses that the policy has and the ledger has not, if the
// policy is the one that the driver makes for them all and each is a group that
// bears the name of an account. It returns none else.
func (p *Provider) lostEntries(ctx context.Context, b *bucket, current string) ([]entry, error) {
	members, ok := membersIn(current, b.adminURN)
	if !ok || !samePolicy(current, render(b.Name, b.adminURN, members)) {
		return nil, nil
	}
	known := map[string]provider.Mode{}
	for _, m := range b.members() {
		known[m.urn] = m.mode
	}
	var strangers []member
	for _, m := range members {
		mode, ok := known[m.urn]
		if ok && mode != m.mode {
			return nil, nil
		}
		if !ok {
			strangers = append(strangers, m)
		}
		delete(known, m.urn)
	}
	if len(known) > 0 || len(strangers) == 0 {
		return nil, nil
	}
	list, err := p.listGroups(ctx, b.Region)
	if err != nil {
		return nil, err
	}
	var lost []entry
	for _, m := range strangers {
		at := slices.IndexFunc(list, func(g group) bool { return g.urn == m.urn && namePattern.MatchString(g.name) })
		if at < 0 {
			return nil, nil
		}
		e := entry{name: list[at].name, id: strings.ToLower(list[at].id), urn: m.urn, mode: m.mode}
		keys, err := p.listKeys(ctx, b.Region, e.id)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			e.keys = append(e.keys, fingerprint(k.id))
		}
		lost = append(lost, e)
	}
	return lost, nil
}

// lostFaults are about accesses that the ledger has lost. To write the policy from it
// would shut them out.
func (p *Provider) lostFaults(b *bucket, lost []entry) []fault {
	var faults []fault
	for _, e := range lost {
		faults = append(faults, finding(provider.DriftTags, b.resourceOf(e), "its tags do not record the access, which its policy has", repairRemedy).by(
			func(ctx context.Context) error {
				return p.change(ctx, b, func(m *marks) { m.put(e) })
			}))
	}
	return faults
}

// membersIn reads the members out of a policy of the driver's form.
func membersIn(policy, adminURN string) ([]member, bool) {
	var doc struct {
		Statement []struct {
			Sid                     string
			Principal, NotPrincipal *principals
		}
	}
	if json.Unmarshal([]byte(policy), &doc) != nil {
		return nil, false
	}
	found := map[string]provider.Mode{}
	for _, s := range doc.Statement {
		if s.Principal == nil {
			continue
		}
		if !slices.Contains(modes(), provider.Mode(s.Sid)) {
			return nil, false
		}
		for _, urn := range s.Principal.AWS {
			found[urn] = provider.Mode(s.Sid)
		}
	}
	delete(found, adminURN)
	var members []member
	for _, urn := range slices.Sorted(maps.Keys(found)) {
		members = append(members, member{urn, found[urn]})
	}
	return members, true
}

// principals are those of a statement; everybody may be written as "*".
type principals struct{ AWS urnList }

// UnmarshalJSON implements json.Unmarshaler.
func (p *principals) UnmarshalJSON(raw []byte) error {
	var everybody string
	if json.Unmarshal(raw, &everybody) == nil {
		p.AWS = urnList{everybody}
		return nil
	}
	var named struct{ AWS urnList }
	err := json.Unmarshal(raw, &named)
	p.AWS = named.AWS
	return err
}

// urnList is a list that may be written as its only element.
type urnList []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *urnList) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*l = urnList{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

// exempts reports whether every denial of the policy leaves the admin out.
func exempts(policy, adminURN string) bool {
	var doc struct {
		Statement []struct {
			Effect                  string
			Principal, NotPrincipal *principals
		}
	}
	if json.Unmarshal([]byte(policy), &doc) != nil {
		return true // of another form: the policy as a whole is wrong
	}
	for _, s := range doc.Statement {
		switch {
		case s.Effect != "Deny":
		case s.NotPrincipal != nil && !slices.Contains(s.NotPrincipal.AWS, adminURN),
			s.Principal != nil && (slices.Contains(s.Principal.AWS, adminURN) || slices.Contains(s.Principal.AWS, "*")):
			return false
		}
	}
	return true
}
