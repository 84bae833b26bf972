package stackit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// How many keys an access may have, and which recorded ones survive when it has
// more. The oldest may be the one that a Secret written once holds; a second one
// is kept because the first may have been lost before it got there. The newest
// are in a Secret that each grant overwrites, and in workloads that read it
// before the last restarts.
const (
	maxKeys    = 7
	keepOldest = 2
	keepNewest = 5
)

// grantedKey is a key that this process has minted for an access.
type grantedKey struct {
	mintedKey
	works    bool // it has been seen to work
	rotating bool // a rotation made it and has not handed it out yet
}

func (p *Provider) knownKey(groupID string) (grantedKey, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.granted[groupID]
	return k, ok
}

func (p *Provider) rememberKey(groupID string, k grantedKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted[groupID] = k
}

// knownGroup returns the group of that name that this process has made.
func (p *Provider) knownGroup(region, name string) (group, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.made[region+"/"+name]
	return g, ok
}

func (p *Provider) rememberGroup(region string, g group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[region+"/"+g.name] = g
}

func (p *Provider) forgetGroup(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.made, func(_ string, g group) bool { return g.id == id })
}

// forgetHandedOut forgets the key of the group, unless a rotation that was cut short
// has made it: the next one goes on with it, or each would make one more.
func (p *Provider) forgetHandedOut(groupID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.granted[groupID].rotating {
		delete(p.granted, groupID)
	}
}

func (p *Provider) forgetKey(groupID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.granted, groupID)
}

// surplus divides the live keys of an access, whose ledger lists the recorded
// ones from the oldest to the newest: which must go, and what the ledger says
// afterwards. A key outside the ledger was never handed out, so it goes first. One
// that may have the access key ID to keep never goes.
func surplus(recorded []string, live []accessKey, keep string) (remove []accessKey, left []string) {
	kept := func(k accessKey) bool { return keep != "" && maskedAs(k, keep) }
	byPrint := map[string][]accessKey{}
	var unrecorded []accessKey
	for _, k := range live {
		f := fingerprint(k.id)
		if slices.Contains(recorded, f) {
			byPrint[f] = append(byPrint[f], k)
		} else {
			unrecorded = append(unrecorded, k)
		}
	}
	left = slices.DeleteFunc(slices.Clone(recorded), func(f string) bool { return len(byPrint[f]) == 0 })
	excess := len(live) - maxKeys
	for _, k := range unrecorded {
		if excess > 0 && !kept(k) {
			remove = append(remove, k)
			excess--
		}
	}
	for i := keepOldest; excess > 0 && i < len(left)-keepNewest; {
		// Two keys of one fingerprint cannot be told apart; they go together.
		middle := byPrint[left[i]]
		if slices.ContainsFunc(middle, kept) {
			i++
			continue
		}
		remove = append(remove, middle...)
		left = slices.Delete(left, i, i+1)
		excess -= len(middle)
	}
	return remove, left
}

// minting says what a key is made for.
type minting struct {
	rotation bool
	keep     string // access key ID of a key that must not go; may be empty
}

// ensureKey returns the key of the access: the one that this process has minted,
// or a new one beside the live ones. The new one, and which others are left, are in
// the ledgers before it returns.
func (p *Provider) ensureKey(ctx context.Context, targets []target, e entry, live []accessKey, why minting) (grantedKey, error) {
	key, cached := p.knownKey(e.id)
	var remove []accessKey
	before := e.keys
	if !cached {
		for _, t := range targets {
			more := e
			more.keys = append(e.keys[:len(e.keys):len(e.keys)], fingerprint(""))
			if err := p.room(t, more); err != nil {
				return grantedKey{}, fmt.Errorf("bucket %q: %w", t.Name, err)
			}
		}
		minted, err := p.mintKey(ctx, targets[0].Region, e.id, 0)
		if errors.Is(err, provider.ErrNotFound) {
			err = refuse(provider.ErrConflict, "its credentials group %s was deleted at this moment; repeat the call", e.id)
		}
		if err != nil {
			return grantedKey{}, err
		}
		key = grantedKey{mintedKey: minted, rotating: why.rotation}
		p.rememberKey(e.id, key)
		recorded := append(e.keys[:len(e.keys):len(e.keys)], fingerprint(minted.id))
		remove, e.keys = surplus(recorded, append(slices.Clone(live), accessKey{id: minted.id}), why.keep)
	} else if f := fingerprint(key.id); !slices.Contains(e.keys, f) {
		// Another process has written over the ledger since the key was handed out.
		e.keys = append(e.keys[:len(e.keys):len(e.keys)], f)
	}
	for _, t := range targets {
		if err := p.record(ctx, t, e, before, !cached, why.rotation); err != nil {
			return grantedKey{}, fmt.Errorf("bucket %q: %w", t.Name, err)
		}
	}
	for _, k := range remove {
		if err := p.deleteKey(ctx, targets[0].Region, e.id, k.id); err != nil {
			return grantedKey{}, err
		}
	}
	return key, nil
}

// record puts the entry, whose keys were before, into the ledger of the target.
// The keys that another process has recorded since then stay. If stale is true
// some time has passed since the tags were read. With renewed the entry must stand
// there already: what another process has revoked since then stays so.
func (p *Provider) record(ctx context.Context, t target, e entry, before []string, stale, renewed bool) error {
	write := p.change
	if stale {
		write = p.amend
	}
	return write(ctx, t.bucket, func(m *marks) {
		merged := e.on(t)
		if renewed && !m.inForce(merged) {
			return
		}
		if had, ok := m.find(e.name); ok && had.id == e.id {
			others := slices.DeleteFunc(slices.Clone(had.keys), func(f string) bool {
				return slices.Contains(e.keys, f) || slices.Contains(before, f)
			})
			merged.keys = append(others, e.keys...)
		}
		m.put(merged)
	})
}

var shownPattern = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// maskedAs reports whether a listed key may be the one with the access key ID: the
// list shows only the end of it. One that is shown in another way may be any.
func maskedAs(k accessKey, accessKeyID string) bool {
	shown := strings.TrimLeft(k.masked, "*")
	return !shownPattern.MatchString(shown) || strings.HasSuffix(accessKeyID, shown)
}

// unknownKey is the error of a key that worked once and that the endpoint knows
// no more.
type unknownKey struct{ endpoint string }

func (e *unknownKey) Error() string { return fmt.Sprintf("the key is gone at %s", e.endpoint) }

// await returns once the key works on the bucket at the endpoint that its users
// are told, and the policy is in force for it there: what no mode may do is
// refused, and after that, what every mode may do is allowed. In this order,
// because a new bucket is open first, then closed, and then open as it shall be.
// A new key and a new policy may both take their time; nothing else is waited
// for.
func (p *Provider) await(ctx context.Context, b provider.Bucket, k grantedKey) error {
	client, err := p.client(b.Region, b.Endpoint, k.credentials)
	if err != nil {
		return err
	}
	for wait := p.patience(); ; {
		_, err := client.Policy(ctx, b.Name)
		if s3.Code(err) == "AccessDenied" {
			if _, err = client.BucketLocation(ctx, b.Name); err == nil {
				return nil
			}
		}
		if s3.Code(err) != codeUnknownKey {
			p.keyWaited(wait, b.Region, true)
		}
		switch code := s3.Code(err); {
		case code == codeUnknownKey && k.works:
			return &unknownKey{b.Endpoint}
		case code == codeUnknownKey:
			if err := p.waitForKey(ctx, wait, b.Region, "the new key", b.Endpoint); err != nil {
				return err
			}
			continue
		case err != nil && code != "AccessDenied":
			return s3Error(ctx, err)
		}
		more, err := wait.next(ctx)
		switch {
		case err != nil:
			return err
		case !more && b.AccessOnly:
			return refuse(provider.ErrUnavailable, "its policy is not in force at %s after %s; repeat the call; if it lasts, "+
				"a statement of others with a condition shuts the access out", b.Endpoint, p.config.PropagationWait)
		case !more:
			return refuse(provider.ErrUnavailable, "its policy is not in force at %s after %s; repeat the call", b.Endpoint, p.config.PropagationWait)
		}
	}
}
