package stackit

import (
	"context"
	"errors"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// intent is the announcement of a bucket, as far as this process knows it: the
// credentials groups with the intent's name. unsure is set when a group may exist
// that the list has not shown yet.
type intent struct {
	ids    []string
	unsure bool
}

func (p *Provider) knownIntent(ref provider.BucketRef) intent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.intents[bucketKey(ref)]
}

func (p *Provider) rememberIntent(ref provider.BucketRef, i intent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(i.ids) == 0 && !i.unsure {
		delete(p.intents, bucketKey(ref))
		return
	}
	p.intents[bucketKey(ref)] = i
}

// announce makes sure that a group announces the bucket, before it is made. It
// reports whether this very call announced it, so that no earlier attempt known
// to this driver can have made the bucket.
func (p *Provider) announce(ctx context.Context, ref provider.BucketRef) (fresh bool, err error) {
	known := p.knownIntent(ref)
	if len(known.ids) > 0 {
		return false, nil
	}
	names := p.intentNames(ref.Name)
	found, err := p.groupsNamed(ctx, ref.Region, known.unsure, names...)
	if err != nil {
		return false, err
	}
	if len(found) > 0 {
		p.rememberIntent(ref, intent{ids: groupIDs(found)})
		return false, nil
	}
	p.rememberIntent(ref, intent{unsure: true})
	made, err := p.createGroup(ctx, ref.Region, names[0])
	switch {
	case err == nil:
		p.rememberIntent(ref, intent{ids: []string{made.id}})
	case refused(err) && !errors.Is(err, provider.ErrConflict):
		p.rememberIntent(ref, intent{})
	}
	return true, err
}

// announced returns the IDs of the groups that announce the bucket, waiting out
// the list's lag before it says that there are none.
func (p *Provider) announced(ctx context.Context, ref provider.BucketRef) ([]string, error) {
	if known := p.knownIntent(ref); len(known.ids) > 0 {
		return known.ids, nil
	}
	found, err := p.groupsNamed(ctx, ref.Region, true, p.intentNames(ref.Name)...)
	if err != nil {
		return nil, err
	}
	p.rememberIntent(ref, intent{ids: groupIDs(found)})
	return groupIDs(found), nil
}

// withdraw removes the groups that announced the bucket.
func (p *Provider) withdraw(ctx context.Context, ref provider.BucketRef, ids []string) error {
	for _, id := range ids {
		if !uuidPattern.MatchString(id) {
			continue
		}
		if err := p.deleteGroup(ctx, ref.Region, id); err != nil {
			return err
		}
	}
	p.rememberIntent(ref, intent{})
	return nil
}

// claimable returns the IDs of the groups that announced an unmarked bucket, if
// it is one that an earlier attempt of this driver made: announced, without tags
// and policy, and empty. It returns none if it is not.
func (p *Provider) claimable(ctx context.Context, b *bucket) ([]string, error) {
	if !untagged(b.tags) {
		return nil, nil
	}
	doc, err := p.policyOf(ctx, b)
	if err != nil || doc != "" {
		return nil, err
	}
	var empty bool
	err = p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) (err error) {
		empty, err = c.IsEmpty(ctx, b.Name)
		return err
	})
	if err != nil || !empty {
		return nil, err
	}
	return p.announced(ctx, b.BucketRef)
}
