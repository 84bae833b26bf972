package cloudscale

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

// ledger is what the tags and the policy of a bucket say of its accesses.
type ledger struct {
	owner
	current string
	members []member
	// lost are accesses of the policy that the tags of an existing user of ours do not
	// record, as they would be recorded; dead are those whose user does not exist, but
	// not those that the policy denies everything, as a revocation leaves it; and
	// strange those whose user does not carry the mark.
	lost    []lostAccess
	dead    []member
	strange []member
	// astray are the IDs of those that are recorded in another region.
	astray []string
	// garbled are the IDs of users whose tags speak of the bucket and make no sense.
	garbled []string
	// proved: the policy is the one that the driver would have made for all of them.
	proved bool
}

type lostAccess struct {
	id string
	membership
}

// readLedger compares the policy with the tags. An access that the policy has and the
// tags have not is believed to have been one only if the policy is, byte for byte,
// the one that the driver makes for them all.
func (p *Provider) readLedger(ctx context.Context, o owner, current string) (*ledger, error) {
	users, err := p.listUsers(ctx, tagManagedBy, p.config.DriverName)
	if err != nil {
		return nil, err
	}
	l := &ledger{owner: o, current: current}
	key := bucketKey(o.bucket)
	ours := map[string]user{}
	recorded := map[string]bool{}
	for _, u := range users {
		if !p.isAccess(u) {
			continue
		}
		ours[u.id] = u
		m, ok := recordedMembership(u, o.bucket)
		switch {
		case ok && m.owner == ownerTag(o.id):
			recorded[u.id] = true
			if m.named() {
				l.members = append(l.members, member{id: u.id, uid: m.uid, mode: m.mode, revoked: m.stage == stageOut})
			}
			if m.region != o.region {
				l.astray = append(l.astray, u.id)
			}
		case !ok && (hasKey(u.tags, tagMember+key) || hasKey(u.tags, tagTerms+key)):
			l.garbled = append(l.garbled, u.id)
		}
	}
	named, ok := namedIn(current)
	if !ok {
		return l, nil // nothing can be told from it
	}
	all := slices.Clone(l.members)
	for _, m := range named {
		if recorded[m.id] {
			continue
		}
		u, marked := ours[m.id]
		if !marked {
			switch u, err = p.getUser(ctx, m.id); {
			case errors.Is(err, provider.ErrNotFound) && m.revoked:
			case errors.Is(err, provider.ErrNotFound):
				l.dead = append(l.dead, m)
			case err != nil:
				return nil, err
			default:
				l.strange = append(l.strange, m)
				m.uid = recordedUID(user{id: m.id, tags: u.tags}, key)
			}
			all = append(all, m)
			continue
		}
		found := lostAccess{m.id, membership{bucket: o.bucket, region: o.region, owner: ownerTag(o.id), mode: m.mode, stage: stageIn, uid: recordedUID(u, key)}}
		if m.revoked {
			found.stage = stageOut
		}
		m.uid = found.uid
		l.lost, all = append(l.lost, found), append(all, m)
	}
	whole, err := render(o.bucket, o.uid, all)
	l.proved = err == nil && whole == current
	l.garbled = slices.DeleteFunc(l.garbled, func(id string) bool {
		return l.proved && slices.ContainsFunc(l.lost, func(a lostAccess) bool { return a.id == id })
	})
	return l, nil
}

// namedIn returns the accesses that the Sids of a policy name; false if the policy is
// not of the driver's form. Their uids are what the policy says, which is no proof that
// they are those of the users.
func namedIn(policy string) ([]member, bool) {
	if policy == "" {
		return nil, true
	}
	var doc policyDocument
	if json.Unmarshal([]byte(policy), &doc) != nil {
		return nil, false
	}
	found := map[string]member{}
	for _, s := range doc.Statement {
		rest, ours := strings.CutPrefix(s.Sid, sidPrefix)
		code, rest, cut := strings.Cut(rest, "-")
		end := strings.LastIndex(rest, "-")
		if !ours || !cut || end < 1 || !userIDPattern.MatchString(rest[:end]) {
			continue
		}
		for _, mode := range []provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly} {
			if sidOf(mode) == code {
				found[rest[:end]] = member{id: rest[:end], uid: s.Principal.uid(), mode: mode, revoked: rest[end+1:] == "x"}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b member) int { return strings.Compare(a.id, b.id) }), true
}

// policyFaults tells what is wrong. Tags come first: the policy is rendered from them.
func (p *Provider) policyFaults(l *ledger) ([]fault, error) {
	var faults []fault
	of := func(id string) provider.Resource {
		return provider.Resource{Kind: provider.KindAccess, ID: id, Bucket: l.bucket, Region: l.region}
	}
	for _, id := range l.astray {
		faults = append(faults, finding(provider.DriftRegion, of(id), fmt.Sprintf("the tags of objects user %s record the bucket in another region", id), repairRemedy).by(
			func(ctx context.Context) error {
				return p.record(ctx, id, func(a *access) {
					if m := a.buckets[l.bucket]; m.owner == ownerTag(l.id) {
						m.region = l.region
						a.buckets[l.bucket] = m
					}
				})
			}))
	}
	for _, a := range l.lost {
		f := finding(provider.DriftTags, of(a.id), fmt.Sprintf("the tags of objects user %s do not record its access, which the policy has", a.id),
			"restore its tags by hand, or delete its BucketAccess and make it again")
		if l.proved {
			f.Remedy = repairRemedy
			f = f.by(func(ctx context.Context) error {
				return p.record(ctx, a.id, func(found *access) {
					// A record that came meanwhile is newer than the policy that was read.
					if found.buckets[l.bucket].owner != ownerTag(l.id) {
						found.buckets[l.bucket] = a.membership
					}
				})
			})
		}
		faults = append(faults, f)
	}
	for _, id := range l.garbled {
		faults = append(faults, finding(provider.DriftTags, of(id), fmt.Sprintf("the tags of objects user %s that speak of the bucket make no sense", id),
			"restore them by hand, or delete its BucketAccess and make it again"))
	}
	for _, m := range l.strange {
		faults = append(faults, finding(provider.DriftTags, of(m.id), fmt.Sprintf("objects user %s, which the policy lets in, does not carry the mark of driver %s", m.id, p.config.DriverName),
			"give it back its tags by hand; until then the policy is not repaired, because that would shut it out"))
	}
	// To write the policy anew would shut out whom the tags have lost.
	sync := func(ctx context.Context) error {
		if len(l.lost)+len(l.strange) > 0 {
			return refuse(provider.ErrPrecondition, "it would shut out accesses whose tags are lost; restore those first")
		}
		return p.syncPolicy(ctx, l.owner, "")
	}
	for _, m := range l.dead {
		faults = append(faults, finding(provider.DriftMissingUser, of(m.id), fmt.Sprintf("objects user %s, which the policy lets in, does not exist, so that its key is dead", m.id),
			repairRemedy+", which takes it out of the policy; delete its BucketAccess and make it again").by(sync))
	}
	wanted, err := l.policyFor("", l.current, l.members)
	if err != nil || wanted == l.current || l.proved {
		return faults, err
	}
	drift, problem := provider.DriftPolicy, "its policy is not the one of its accesses"
	switch {
	case l.current == "":
		problem = "its policy is gone, so that no access works"
	case !strings.Contains(l.current, ownerStatement(l.owner)):
		drift, problem = provider.DriftAdmin, "its policy has not the statement that lets its owner do everything"
	}
	f := finding(drift, l.resource(), problem, repairRemedy).by(sync)
	if len(l.lost)+len(l.strange) > 0 {
		f = finding(drift, l.resource(), problem, "restore the tags of its accesses first")
	}
	return append(faults, f), nil
}

// ownerStatement is the text of the owner's statement in a policy.
func ownerStatement(o owner) string {
	all, err := statements(o.bucket, o.uid, nil)
	if err != nil {
		return ""
	}
	// Structs of strings always marshal.
	text, _ := json.Marshal(all[0])
	return string(text)
}

// record changes what the tags of an access say, as they are by then.
func (p *Provider) record(ctx context.Context, id string, change func(*access)) error {
	u, err := p.getUser(ctx, id)
	if err == nil {
		_, err = p.amend(ctx, recordedAccess(u), change)
	}
	return absentIsFine(err)
}
