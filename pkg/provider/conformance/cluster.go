package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// in is the session of another process, in the cluster with that ID.
func (s *session) in(ctx context.Context, cluster string) (*session, error) {
	p, err := s.o.Cluster(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("provider of cluster %q: %w", cluster, err)
	}
	return &session{Provider: patient{p}, o: s.o}, nil
}

// inEach is in for several clusters.
func (s *session) inEach(ctx context.Context, clusters ...string) ([]*session, error) {
	all := make([]*session, len(clusters))
	for i, cluster := range clusters {
		var err error
		if all[i], err = s.in(ctx, cluster); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// clusterID returns a fresh one.
func clusterID() string { return "check-" + strings.ToLower(rand.Text()[:8]) }

// named is the spec of a bucket that is named after a claim.
func (s *session) named(name string, claim provider.ClaimRef) provider.BucketSpec {
	spec := s.spec(name)
	spec.Claim = claim
	return spec
}

// settled removes what a session has made, and then counts as clean.
func (s *session) settled(ctx context.Context, err *error) {
	*err = errors.Join(*err, s.cleanup(ctx))
	s.after = nil
}

// mentions says that the error should be target and hold the texts.
func mentions(what string, err, target error, texts ...string) error {
	if err := want(what, err, target); err != nil {
		return err
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%s: the refusal does not say %q: %w", what, text, err)
		}
	}
	return nil
}

func claimHolds(ctx context.Context, s *session) (err error) {
	cluster := clusterID()
	all, err := s.inEach(ctx, cluster, cluster)
	if err != nil {
		return err
	}
	one, later := all[0], all[1]
	defer one.settled(ctx, &err)
	photos, films := provider.ClaimRef{Namespace: "a-b", Name: "c.d"}, provider.ClaimRef{Namespace: "a", Name: "b-c.d"}
	name := s.name()
	first, err := one.createNamed(ctx, name, photos)
	if err != nil {
		return err
	}
	again, err := later.CreateBucket(ctx, s.named(name, photos))
	if err != nil || again != first {
		return fmt.Errorf("CreateBucket %q for the same claim, by a new process, answered %+v, before %+v: %w", name, again, first, err)
	}
	_, err = later.CreateBucket(ctx, s.named(name, films))
	if err := mentions("CreateBucket for another claim", err, provider.ErrAlreadyExists, name, photos.String(), films.String()); err != nil {
		return err
	}
	_, err = later.CreateBucket(ctx, s.spec(name))
	if err := mentions("CreateBucket for no claim", err, provider.ErrAlreadyExists, photos.String()); err != nil {
		return err
	}
	plain := s.name()
	if _, err := one.create(ctx, plain); err != nil {
		return err
	}
	_, err = later.CreateBucket(ctx, s.named(plain, photos))
	if err := mentions("CreateBucket for a claim, of a bucket that has none", err, provider.ErrAlreadyExists, photos.String()); err != nil {
		return err
	}
	for _, bad := range []provider.ClaimRef{{Name: "x"}, {Namespace: "x"}, {Namespace: "a/b", Name: "c"}, {Namespace: "a", Name: strings.Repeat("x", 64)}} {
		_, err = later.CreateBucket(ctx, s.named(s.name(), bad))
		if err := want(fmt.Sprintf("CreateBucket for the claim %+v", bad), err, provider.ErrInvalidArgument); err != nil {
			return err
		}
	}
	return nil
}

// createNamed is create for a bucket that is named after a claim.
func (s *session) createNamed(ctx context.Context, name string, claim provider.ClaimRef) (provider.Bucket, error) {
	s.later(func(ctx context.Context) error {
		return s.DeleteBucket(ctx, provider.BucketRef{Name: name, Region: s.o.Region}, provider.DeleteOptions{Purge: true})
	})
	b, err := s.CreateBucket(ctx, s.named(name, claim))
	if err != nil {
		return b, fmt.Errorf("CreateBucket %q for %s: %w", name, claim, err)
	}
	return b, nil
}

func clustersAreApart(ctx context.Context, s *session) (err error) {
	mine := clusterID()
	all, err := s.inEach(ctx, mine, clusterID(), "")
	if err != nil {
		return err
	}
	home := all[0]
	defer home.settled(ctx, &err)
	claim := provider.ClaimRef{Namespace: "prod", Name: "photos"}
	b, err := home.createNamed(ctx, s.name(), claim)
	if err != nil {
		return err
	}
	a, err := home.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	if err := a.client.PutObject(ctx, b.Name, keptKey, []byte(keptData)); err != nil {
		return err
	}
	short := provider.BucketRef{Name: b.Name, Region: b.Region}
	whole := b.BucketRef
	for _, other := range all[1:] {
		for _, spec := range []provider.BucketSpec{s.named(b.Name, claim), s.spec(b.Name)} {
			_, err := other.CreateBucket(ctx, spec)
			if err := mentions("CreateBucket of another cluster's bucket", err, provider.ErrPrecondition, b.Name, mine, claim.String()); err != nil {
				return err
			}
		}
		for _, ref := range []provider.BucketRef{short, whole, {Name: b.Name, Region: b.Region, AccessOnly: true}} {
			_, err := other.GetBucket(ctx, ref)
			if err := mentions("GetBucket of another cluster's bucket", err, provider.ErrPermissionDenied, b.Name, mine); err != nil {
				return err
			}
			account, err := s.account()
			if err != nil {
				return err
			}
			_, err = other.GrantAccess(ctx, provider.AccessSpec{Account: account, Buckets: []provider.BucketAccess{{BucketRef: ref}}})
			if err := mentions("GrantAccess to another cluster's bucket", err, provider.ErrPermissionDenied, b.Name, mine); err != nil {
				return err
			}
			err = other.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true})
			if !ref.AccessOnly || err != nil {
				if err := mentions("DeleteBucket of another cluster's bucket", err, provider.ErrPermissionDenied, b.Name, mine); err != nil {
					return err
				}
			}
		}
		err := other.RevokeAccess(ctx, a.ref)
		if err := mentions("RevokeAccess of another cluster's access", err, provider.ErrPermissionDenied, mine); err != nil {
			return err
		}
		if err := other.remains(ctx, b.Name); err != nil {
			return fmt.Errorf("the inventory of another cluster: %w", err)
		}
	}
	return holds(ctx, a.client, b.Name, keptKey, keptData)
}

// unnamedIsShared has a driver with an ID take over what it made without one.
func unnamedIsShared(ctx context.Context, s *session) (err error) {
	all, err := s.inEach(ctx, "", clusterID())
	if err != nil {
		return err
	}
	before, after := all[0], all[1]
	b, err := before.create(ctx, s.name())
	if err != nil {
		return err
	}
	defer before.settled(ctx, &err)
	old, err := before.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	again, err := after.CreateBucket(ctx, s.spec(b.Name))
	if err != nil || again != b {
		return fmt.Errorf("CreateBucket %q with a cluster ID answered %+v, without %+v: %w", b.Name, again, b, err)
	}
	fresh, err := after.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	// The policy has whom the driver let in under either name.
	if _, err := before.grant(ctx, b, provider.ReadOnly); err != nil {
		return err
	}
	if err := fresh.client.PutObject(ctx, b.Name, keptKey, []byte(keptData)); err != nil {
		return err
	}
	if err := holds(ctx, old.client, b.Name, keptKey, keptData); err != nil {
		return err
	}
	if err := after.RevokeAccess(ctx, old.ref); err != nil {
		return fmt.Errorf("RevokeAccess of an access that names no cluster: %w", err)
	}
	return after.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{Purge: true})
}

// clusterIsRecovered has a new cluster with a lost one's ID go on.
func clusterIsRecovered(ctx context.Context, s *session) (err error) {
	id := clusterID()
	all, err := s.inEach(ctx, id, id)
	if err != nil {
		return err
	}
	lost, fresh := all[0], all[1]
	claim := provider.ClaimRef{Namespace: "prod", Name: "photos"}
	b, err := lost.createNamed(ctx, s.name(), claim)
	if err != nil {
		return err
	}
	defer lost.settled(ctx, &err)
	old, err := lost.grant(ctx, b, provider.ReadWrite)
	if err != nil {
		return err
	}
	if err := old.client.PutObject(ctx, b.Name, keptKey, []byte(keptData)); err != nil {
		return err
	}
	adopted, err := fresh.CreateBucket(ctx, s.named(b.Name, claim))
	if err != nil {
		return fmt.Errorf("CreateBucket %q in the new cluster: %w", b.Name, err)
	}
	now, err := fresh.grant(ctx, adopted, provider.ReadWrite)
	if err != nil {
		return err
	}
	if now.Credentials.AccessKeyID == old.Credentials.AccessKeyID {
		return errors.New("the new cluster's access has the key of the lost one's")
	}
	if err := holds(ctx, now.client, b.Name, keptKey, keptData); err != nil {
		return err
	}
	found := provider.AccountRef{Account: old.ref.Account}
	for r, err := range fresh.Inventory(ctx) {
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		if r.Kind == provider.KindAccess && r.Bucket == b.Name && r.Account == old.ref.Account {
			found.IdentityID = r.ID
			found.Buckets = append(found.Buckets, provider.BucketRef{Name: r.Bucket, Region: r.Region})
		}
	}
	if len(found.Buckets) != 1 {
		return fmt.Errorf("the inventory has the lost cluster's access to %d buckets, want 1", len(found.Buckets))
	}
	if err := fresh.RevokeAccess(ctx, found); err != nil {
		return fmt.Errorf("RevokeAccess of the lost cluster's access: %w", err)
	}
	if err := eventually(ctx, func() error {
		if _, err := old.client.GetObject(ctx, b.Name, keptKey); err == nil {
			return errors.New("the lost cluster's key still opens the bucket")
		}
		return nil
	}); err != nil {
		return err
	}
	return holds(ctx, now.client, b.Name, keptKey, keptData)
}
