package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// codeUnknownKey is the endpoint's answer to a key that has not reached it, or
// that is gone.
const codeUnknownKey = "InvalidAccessKeyId"

// adminRounds is how often the lag of the list is waited out, at most, before the
// admin group is known.
const adminRounds = 6

// admin is the driver's own credentials group in a region, and this process's
// key of it. Every process mints its own key and lets it expire, so none ever
// touches another's.
type admin struct {
	region string
	lock   keyLock // guards all below; held during calls

	group   group // zero until it is found
	key     provider.Credentials
	minted  time.Time
	expires time.Time // zero when somebody else keeps the key
	clients map[endpoint]*adminClient
}

// adminClient uses the admin's key at one endpoint.
type adminClient struct {
	*s3.Client
	key    provider.Credentials
	proven atomic.Bool // the endpoint has known the key
}

// adminGroup returns the admin group of the region. It finds it, and makes it,
// and enables the service before, only if create is true; ErrNotFound otherwise.
// ErrConflict when there are several.
func (p *Provider) adminGroup(ctx context.Context, region string, create bool) (group, error) {
	a := p.admins[region]
	unlock, err := a.lock.lock(ctx, "")
	if err != nil {
		return group{}, err
	}
	defer unlock()
	if a.group.id == "" {
		if a.group, err = p.findAdmin(ctx, region, create); err != nil {
			a.group = group{}
			return group{}, err
		}
	}
	return a.group, nil
}

func (p *Provider) findAdmin(ctx context.Context, region string, create bool) (group, error) {
	if id := p.config.AdminGroupID; id != "" {
		g, err := p.getGroup(ctx, region, id)
		if errors.Is(err, provider.ErrNotFound) {
			return group{}, refuse(provider.ErrPrecondition,
				"the configured admin group %s does not exist in region %q; set the ID of the group that the policies name", id, region)
		}
		return g, err
	}
	return p.electAdmin(ctx, region, adminName(p.config.DriverName), create)
}

// electAdmin agrees with all other processes on one group of the name, although
// any of them may make one and none sees at once what the others made. A group
// that has a key is in use and wins. One without is used only if it is alone and
// was there before the list's lag was waited out. A process removes the group it
// made as soon as it sees one that is in use or has a smaller ID. It also removes
// it when another one has not gone away a lag later: whoever made that one has
// crashed. Nobody can have begun to use it by then.
func (p *Provider) electAdmin(ctx context.Context, region, name string, create bool) (group, error) {
	var made group    // by this call, and not yet removed
	var waited string // the ID that the lag was last waited out for
	rivals := 0       // rounds in which others stood beside made
	for range adminRounds {
		used, fresh, err := p.candidates(ctx, region, name, create, made)
		if err != nil {
			return group{}, err
		}
		switch {
		case len(used) > 1:
			return group{}, p.ambiguous(name, region, used)
		case len(used) == 1 && used[0].id == made.id:
			return made, nil
		}
		all := slices.Concat(used, fresh)
		if made.id != "" && len(all) > 1 {
			rivals++
		}
		if made.id != "" && (len(all) == 0 || all[0].id != made.id || rivals > 1) {
			// A key that somebody has made in it meanwhile shows in the next round.
			if err := p.deleteGroup(ctx, region, made.id); err != nil && !errors.Is(err, provider.ErrNotEmpty) {
				return group{}, err
			}
			fresh = slices.DeleteFunc(fresh, func(g group) bool { return g.id == made.id })
			made, rivals = group{}, 0
		}
		switch {
		case len(used) == 1:
			return used[0], nil
		case len(fresh) == 1 && fresh[0].id == waited:
			return fresh[0], nil
		case len(fresh) == 0 && !create:
			return group{}, refuse(provider.ErrNotFound, "there is no admin group %s in region %q", name, region)
		case len(fresh) == 0:
			made, err = p.createGroup(ctx, region, name)
			if err != nil && !errors.Is(err, provider.ErrConflict) {
				return group{}, err
			}
			waited = made.id
		default:
			waited = fresh[0].id
		}
		if err := pause(ctx, p.config.ListingWait); err != nil {
			return group{}, err
		}
	}
	if made.id != "" {
		if err := p.deleteGroup(ctx, region, made.id); err != nil && !errors.Is(err, provider.ErrNotEmpty) {
			return group{}, err
		}
	}
	_, fresh, err := p.candidates(ctx, region, name, create, group{})
	switch {
	case err != nil:
		return group{}, err
	case len(fresh) < 2:
		return group{}, refuse(provider.ErrConflict, "other processes make the admin group %s in region %q at the same time; repeat the call", name, region)
	}
	return group{}, p.ambiguous(name, region, fresh)
}

func (p *Provider) ambiguous(name, region string, found []group) error {
	return refuse(provider.ErrConflict, "several credentials groups are named %s in region %q: %s; "+
		"set the back end's admin group to the one that the bucket policies name, or delete the others",
		name, region, strings.Join(groupIDs(found), ", "))
}

// candidates returns the groups of that name that exist, ordered by ID: those
// that have a key and those that have none. made is among them even if the list
// does not show it yet. A service that is not enabled is enabled if enable is
// true.
func (p *Provider) candidates(ctx context.Context, region, name string, enable bool, made group) (used, fresh []group, err error) {
	list, err := p.listGroups(ctx, region)
	if errors.Is(err, provider.ErrNotFound) {
		if !enable {
			return nil, nil, nil
		}
		if err = p.ensureService(ctx, region); err == nil {
			list, err = p.listGroups(ctx, region)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if made.id != "" && !slices.ContainsFunc(list, func(g group) bool { return g.id == made.id }) {
		list = append(list, made)
	}
	for _, g := range named(list, name) {
		keys, err := p.listKeys(ctx, region, g.id)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			// The list still shows what is gone.
		case err != nil:
			return nil, nil, err
		case len(keys) > 0:
			used = append(used, g)
		default:
			fresh = append(fresh, g)
		}
	}
	return used, fresh, nil
}

// ensureService enables the service unless it is, and waits until it says so.
func (p *Provider) ensureService(ctx context.Context, region string) error {
	for wait := p.patience(); ; {
		enabled, err := serviceStatus(ctx, p.credentials.get(ctx), region)
		if enabled || err != nil {
			return err
		}
		// Somebody who does the same at this moment does it for us.
		if err := p.enableService(ctx, region); err != nil && !errors.Is(err, provider.ErrConflict) {
			return err
		}
		more, err := wait.next(ctx)
		switch {
		case err != nil:
			return err
		case !more:
			return refuse(provider.ErrUnavailable, "the service was enabled in region %q and does not say so yet; repeat the call", region)
		}
	}
}

// adminAt returns a client of the admin's key at the endpoint, with a new key
// when the old one is near its end.
func (p *Provider) adminAt(ctx context.Context, region string, e endpoint) (*adminClient, error) {
	g, err := p.adminGroup(ctx, region, true)
	if err != nil {
		return nil, err
	}
	a := p.admins[region]
	unlock, err := a.lock.lock(ctx, "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := p.freshKey(ctx, a, g); err != nil {
		return nil, err
	}
	if c := a.clients[e]; c != nil {
		return c, nil
	}
	client, err := p.client(region, e.String(), a.key)
	if err != nil {
		return nil, err
	}
	c := &adminClient{Client: client, key: a.key}
	a.clients[e] = c
	return c, nil
}

// freshKey gives the admin a key when it has none or two thirds of its life are
// over. A renewal that fails leaves the old key in use while it lasts.
func (p *Provider) freshKey(ctx context.Context, a *admin, g group) error {
	now, ttl := p.config.Now(), p.config.AdminKeyTTL
	have := !a.key.SecretAccessKey.Empty()
	if have && (a.expires.IsZero() || now.Sub(a.minted) < ttl*2/3) {
		return nil
	}
	key, expires, err := p.newAdminKey(ctx, a.region, g, now.Add(ttl))
	if err != nil {
		if have && now.Before(a.expires.Add(-time.Minute)) && ctx.Err() == nil {
			return nil
		}
		if errors.Is(err, provider.ErrPrecondition) {
			a.group = group{}
		}
		return err
	}
	a.key, a.minted, a.expires, a.clients = key, now, expires, map[endpoint]*adminClient{}
	return nil
}

func (p *Provider) newAdminKey(ctx context.Context, region string, g group, expires time.Time) (provider.Credentials, time.Time, error) {
	if p.config.AdminKey == nil {
		minted, err := p.mintKey(ctx, region, g.id, p.config.AdminKeyTTL)
		if errors.Is(err, provider.ErrNotFound) {
			err = refuse(provider.ErrPrecondition, "the admin group %s in region %q was deleted: the policies of all buckets name it, "+
				"so only the cloud's support can open them again; another call begins with a new group", g.id, region)
		}
		return minted.credentials, expires, err
	}
	key, err := p.config.AdminKey()
	if err != nil {
		return key, time.Time{}, refuse(provider.ErrUnauthenticated, "the admin key cannot be read: %s", clip(err.Error()))
	}
	if key.AccessKeyID == "" || key.SecretAccessKey.Empty() {
		return key, time.Time{}, refuse(provider.ErrUnauthenticated, "the admin key is incomplete")
	}
	return key, time.Time{}, nil
}

// dropKey forgets a key that the endpoint has known and knows no more.
func (p *Provider) dropKey(ctx context.Context, region string, key provider.Credentials) error {
	a := p.admins[region]
	unlock, err := a.lock.lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	if a.key == key {
		a.key, a.clients = provider.Credentials{}, nil
	}
	return nil
}

// asAdmin runs do with the admin's key at the endpoint, and repeats it while, and
// only while, the endpoint does not know the key. A key that it has known before
// was deleted by somebody and is replaced once. The error is one of s3Error.
func (p *Provider) asAdmin(ctx context.Context, region string, e endpoint, do func(*s3.Client) error) error {
	replaced := false
	for wait := p.patience(); ; {
		c, err := p.adminAt(ctx, region, e)
		if err != nil {
			return err
		}
		proven := c.proven.Load()
		err = do(c.Client)
		if s3.Code(err) != codeUnknownKey {
			p.keyWaited(wait, region, true)
			if status := s3.StatusCode(err); err == nil || (status != 0 && status < 500) {
				c.proven.Store(true)
			}
			return s3Error(ctx, err)
		}
		if proven && !replaced {
			replaced = true
			if err := p.dropKey(ctx, region, c.key); err != nil {
				return err
			}
			continue
		}
		if err := p.waitForKey(ctx, wait, region, "the admin's key", e.String()); err != nil {
			return err
		}
	}
}

// waitForKey waits for the next attempt with a key that the endpoint does not
// know; ErrUnavailable when the budget is spent.
func (p *Provider) waitForKey(ctx context.Context, wait *budget, region, whose, where string) error {
	more, err := wait.next(ctx)
	waited := p.config.PropagationWait - wait.left
	if p.config.OnKeyWait != nil {
		p.config.OnKeyWait(region, waited)
	}
	wait.forKey = waited
	if err != nil || !more {
		p.keyWaited(wait, region, false)
	}
	switch {
	case err != nil:
		return err
	case !more:
		return refuse(provider.ErrUnavailable, "%s does not work at %s after %s; a key may take some time, so repeat the call",
			whose, where, waited.Round(time.Millisecond))
	}
	return nil
}

// keyWaited tells of the end of a wait for a key, if there was one.
func (p *Provider) keyWaited(wait *budget, region string, works bool) {
	if p.config.OnKeyWaited != nil && wait.forKey > 0 {
		p.config.OnKeyWaited(region, wait.forKey, works)
	}
	wait.forKey = 0
}

// AdminClient returns an S3 client with the admin's key at the region's own
// endpoint, which knows it. The admin may do everything in a bucket of the
// driver: it is for self-tests that look behind the accesses, and its key must
// leave the process on no way. Errors: those of GetBucket.
func (p *Provider) AdminClient(ctx context.Context, ref provider.BucketRef) (*s3.Client, error) {
	if err := p.checkRef(ref); err != nil {
		return nil, err
	}
	b, err := p.open(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("bucket %q in region %q: %w", ref.Name, ref.Region, err)
	}
	c, err := p.adminAt(ctx, ref.Region, b.regional)
	if err != nil {
		return nil, err
	}
	return c.Client, nil
}

// client returns an S3 client with the key. It addresses buckets by path, which
// works at every endpoint.
func (p *Provider) client(region, endpoint string, key provider.Credentials) (*s3.Client, error) {
	c, err := s3.New(s3.Config{
		Endpoint: endpoint, AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal,
		SigningRegion: region, Transport: p.transport, UserAgent: p.config.UserAgent, OnPurge: p.config.OnPurge,
	})
	if err != nil {
		return nil, refuse(provider.ErrInvalidArgument, "%s", clip(err.Error()))
	}
	return c, nil
}
