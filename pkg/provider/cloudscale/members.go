package cloudscale

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func digest(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:length]
}

// accessesTo returns the accesses to buckets of the name, of former owners, too,
// ordered by ID.
func (p *Provider) accessesTo(ctx context.Context, bucket string) ([]access, error) {
	users, err := p.speakingOf(ctx, bucket)
	return p.accessesToAmong(users, bucket), err
}

// speakingOf returns the users, of whatever driver, that record the bucket as one of
// several: accesses, and the owners of tenants.
func (p *Provider) speakingOf(ctx context.Context, bucket string) ([]user, error) {
	return p.listUsers(ctx, tagMember+bucketKey(bucket), bucket)
}

func (p *Provider) accessesToAmong(users []user, bucket string) []access {
	return slices.DeleteFunc(p.accessesAmong(users), func(a access) bool { return a.buckets[bucket].bucket == "" })
}

// accessesOf returns the identities of the account, ordered by ID, and none that
// another cluster has made.
func (p *Provider) accessesOf(ctx context.Context, account string) ([]access, error) {
	found, err := p.accessesTagged(ctx, tagAccount, account)
	return p.madeHere(found), err
}

func (p *Provider) madeHere(found []access) []access {
	return slices.DeleteFunc(found, func(a access) bool { return p.elsewhereMade(a.user) })
}

func (p *Provider) accessesTagged(ctx context.Context, tag, value string) ([]access, error) {
	users, err := p.listUsers(ctx, tag, value)
	if err != nil {
		return nil, err
	}
	return p.accessesAmong(users), nil
}

// accessesAmong returns the accesses of this driver among the users, ordered by ID.
func (p *Provider) accessesAmong(users []user) []access {
	var found []access
	for _, u := range users {
		if p.isAccess(u) {
			found = append(found, recordedAccess(u))
		}
	}
	slices.SortFunc(found, func(a, b access) int { return strings.Compare(a.id, b.id) })
	return found
}

// accesses returns the accesses to the owner's bucket, and none to a former one
// of the name.
func (p *Provider) accesses(ctx context.Context, o owner) ([]access, error) {
	found, err := p.accessesTo(ctx, o.bucket)
	return slices.DeleteFunc(found, func(a access) bool { return a.buckets[o.bucket].owner != ownerTag(o.id) }), err
}

// preferred returns the one of several identities of an account that is handed
// out. One that is usable may have been handed out already; of those, the one of
// the latest rotation; among equals the lowest ID wins, so that all processes
// choose alike.
func preferred(found []access) (access, bool) {
	var best access
	for _, a := range found {
		better := a.rotation > best.rotation
		if a.usable() != best.usable() {
			better = a.usable()
		}
		if best.id == "" || better {
			best = a
		}
	}
	return best, best.id != ""
}

// ensureAccess finds the access's objects user or makes it. Afterwards its tags
// record everything but what takes a key that works.
func (p *Provider) ensureAccess(ctx context.Context, want access) (access, error) {
	a, made, err := p.findOrMake(ctx, want)
	if err != nil || made {
		return a, tooMany(err, len(want.buckets))
	}
	a, err = p.amend(ctx, a, func(a *access) {
		for name, m := range want.buckets {
			// What the policy says already is changed when the key works.
			if had := a.buckets[name]; had.owner != m.owner || !had.named() {
				a.buckets[name] = m
			}
		}
	})
	return a, tooMany(vanished(err, a.id), len(want.buckets))
}

// findOrMake has the account's lock while it looks twice. What it finds is of the
// rotation that want is of, or of a later one.
func (p *Provider) findOrMake(ctx context.Context, want access) (a access, made bool, err error) {
	unlock, err := p.accounts.lock(ctx, want.account)
	if err != nil {
		return access{}, false, err
	}
	defer unlock()
	find := func() (access, bool, error) {
		found, err := p.accessesOf(ctx, want.account)
		a, ok := preferred(slices.DeleteFunc(found, func(a access) bool { return a.rotation < want.rotation }))
		return a, ok, err
	}
	if a, ok, err := find(); err != nil || ok {
		return a, false, err
	}
	want.cluster = p.config.ClusterID
	u, err := p.createUser(ctx, displayName(want.account), want.asTags(p.config.DriverName))
	if err != nil {
		return access{}, false, err
	}
	if _, err := u.key(); err != nil {
		return access{}, false, p.removeMade(ctx, u.id, err)
	}
	a, ok, err := find()
	switch {
	case err != nil:
		return access{}, false, err
	case !ok:
		return access{}, false, refuse(provider.ErrConflict, "objects user %s was deleted as soon as it was made; repeat the call", u.id)
	case a.id != u.id:
		return access{}, false, p.removeMade(ctx, u.id, refuse(provider.ErrConflict,
			"another call made the identity %s of the account at the same time; repeat the call", a.id))
	}
	return a, true, nil
}

// tooMany explains a refusal of the tags: how many the API takes is not
// documented, and each bucket needs two.
func tooMany(err error, buckets int) error {
	if buckets > 1 && statusOf(err) != 0 && (errors.Is(err, provider.ErrQuotaExceeded) || errors.Is(err, provider.ErrPrecondition)) {
		return fmt.Errorf("recording %d buckets in the tags of the objects user: %w; if those are too many for it, make accesses to fewer buckets each", buckets, err)
	}
	return err
}

// vanished makes the absence of an access's user ErrConflict.
func vanished(err error, id string) error {
	if errors.Is(err, provider.ErrNotFound) {
		return refuse(provider.ErrConflict, "objects user %s was deleted meanwhile; repeat the call", id)
	}
	return err
}

// amendTries is how often tags are written before somebody else is said to write
// them all the time.
const amendTries = 5

// amend changes the tags of an access and returns it as it is afterwards, read
// back. The API replaces all tags at once: of two writers the last one wins, and
// the other one sees it and repeats. ErrNotFound if the user is gone. It takes
// the account's lock, which no call holds together with another one of those.
func (p *Provider) amend(ctx context.Context, a access, change func(*access)) (access, error) {
	unlock, err := p.accounts.lock(ctx, a.account)
	if err != nil {
		return a, err
	}
	defer unlock()
	for range amendTries {
		u, err := p.getUser(ctx, a.id)
		if err != nil {
			return a, err
		}
		if !p.isAccess(u) {
			return a, refuse(provider.ErrPermissionDenied, "objects user %s has lost the mark of driver %s; it is left alone", u.id, p.config.DriverName)
		}
		a = recordedAccess(u)
		change(&a)
		tags := a.asTags(p.config.DriverName)
		if maps.Equal(tags, u.tags) {
			return a, nil
		}
		if err := p.updateTags(ctx, a.id, tags); err != nil {
			return a, err
		}
	}
	return a, refuse(provider.ErrConflict, "somebody else changes the tags of objects user %s at the same time; repeat the call", a.id)
}
