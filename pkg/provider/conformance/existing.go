package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// theirs makes a bucket that the provider did not make, with keptKey in it.
func (s *session) theirs(ctx context.Context) (ref provider.BucketRef, owner *s3.Client, remove func(context.Context) error, err error) {
	ref = provider.BucketRef{Name: s.name(), Region: s.o.Region}
	owner, remove, err = s.o.Foreign(ctx, ref.Name)
	if err != nil {
		return ref, nil, nil, fmt.Errorf("making the existing bucket %q: %w", ref.Name, err)
	}
	s.later(remove)
	return ref, owner, remove, owner.PutObject(ctx, ref.Name, keptKey, []byte(keptData))
}

// theirStatements are what others may have written into the policy of a bucket,
// in the shapes that the language allows and a program would not choose.
func theirStatements(bucket string) []string {
	return []string{
		`{ "Sid":"TheirReaders" , "Effect":"Allow","Principal":"*",
	"Action":"s3:GetObject", "Resource":"arn:aws:s3:::` + bucket + `/public/*"}`,
		`{"Resource":["arn:aws:s3:::` + bucket + `/secret/*"],"Principal":{"AWS":"*"},"Action":["s3:GetObject"],"Effect":"Deny"}`,
	}
}

// theirPolicies are whole documents of those statements; "" is none.
func theirPolicies(bucket string) []string {
	list := theirStatements(bucket)
	return []string{
		"",
		"{\n \"Version\" : \"2012-10-17\",\n \"Id\":\"theirs\",\n \"Statement\" : [ " + list[0] + " ,\n " + list[1] + " ]\n}",
		`{"Statement":` + list[0] + `, "Version":"2012-10-17"}`,
	}
}

func existingIsRefused(ctx context.Context, s *session) error {
	ref, owner, _, err := s.theirs(ctx)
	if err != nil {
		return err
	}
	policy := theirPolicies(ref.Name)[1]
	if err := owner.SetPolicy(ctx, ref.Name, policy); err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	calls := map[string]func() error{
		"GetBucket":    func() error { _, err := s.GetBucket(ctx, ref); return err },
		"GrantAccess":  func() error { _, err := s.grantSpan(ctx, account, provider.BucketAccess{BucketRef: ref}); return err },
		"DeleteBucket": func() error { return s.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true}) },
	}
	for name, call := range calls {
		err := call()
		if err := want(name+" of an existing bucket that is not ours", err, provider.ErrPermissionDenied); err != nil {
			return err
		}
		if !strings.Contains(err.Error(), ref.Name) {
			return fmt.Errorf("the refusal of %s does not name the bucket: %w", name, err)
		}
	}
	missing := provider.BucketRef{Name: s.name(), Region: s.o.Region, AccessOnly: true}
	_, err = s.GetBucket(ctx, missing)
	if err := want("GetBucket of a missing bucket with AccessOnly", err, provider.ErrNotFound); err != nil {
		return err
	}
	return s.untouched(ctx, owner, ref.Name, policy)
}

// untouched says that the existing bucket should be as its owner left it, and
// that nothing of the provider's should know it.
func (s *session) untouched(ctx context.Context, owner *s3.Client, bucket, policy string) error {
	if err := holds(ctx, owner, bucket, keptKey, keptData); err != nil {
		return err
	}
	got, err := owner.Policy(ctx, bucket)
	if err != nil {
		return fmt.Errorf("policy of %q: %w", bucket, err)
	}
	if got != policy {
		return fmt.Errorf("the policy of %q is\n%s\nand was\n%s", bucket, got, policy)
	}
	return s.remains(ctx, bucket)
}

func existingIsShared(ctx context.Context, s *session) error {
	ref, owner, _, err := s.theirs(ctx)
	if err != nil {
		return err
	}
	ref.AccessOnly = true
	b, err := s.GetBucket(ctx, ref)
	if err != nil {
		return fmt.Errorf("GetBucket with AccessOnly: %w", err)
	}
	if !b.AccessOnly || b.Name != ref.Name || b.Region != ref.Region || b.Endpoint == "" {
		return fmt.Errorf("GetBucket with AccessOnly answered %+v", b)
	}
	if s.Capabilities().SharedKeys {
		return nil
	}
	for _, policy := range theirPolicies(ref.Name) {
		if err := owner.SetPolicy(ctx, ref.Name, policy); err != nil {
			return fmt.Errorf("writing a policy of others: %w", err)
		}
		if err := s.sharesUnder(ctx, b, owner, policy); err != nil {
			return fmt.Errorf("with the policy %q of others: %w", policy, err)
		}
	}
	return nil
}

// sharesUnder gives accesses of every mode to the existing bucket and takes them
// back.
func (s *session) sharesUnder(ctx context.Context, b provider.Bucket, owner *s3.Client, policy string) error {
	var granted []spanning
	for _, mode := range s.Capabilities().Modes {
		account, err := s.account()
		if err != nil {
			return err
		}
		for range 2 {
			a, err := s.grantSpan(ctx, account, provider.BucketAccess{BucketRef: b.BucketRef, Mode: mode})
			if err != nil {
				return fmt.Errorf("GrantAccess: %w", err)
			}
			if !a.Buckets[0].AccessOnly {
				return fmt.Errorf("GrantAccess answered %+v, want AccessOnly", a.Buckets[0])
			}
			granted = append(granted, a)
		}
		if err := s.held(ctx, granted[len(granted)-1].clients[0], b.Name, mode); err != nil {
			return err
		}
		got, err := owner.Policy(ctx, b.Name)
		if err != nil {
			return err
		}
		for _, st := range theirStatements(b.Name) {
			if strings.Contains(policy, st) && !strings.Contains(got, st) {
				return fmt.Errorf("a statement of others is not what it was: %s", got)
			}
		}
	}
	// What an access writes is the owner's to read.
	if err := eventually(ctx, func() error { return holds(ctx, owner, b.Name, "new", "new") }); err != nil {
		return err
	}
	for i, a := range granted {
		ref := a.ref
		if i%4 < 2 {
			// The record says it, not the reference.
			ref.Buckets = []provider.BucketRef{{Name: b.Name, Region: b.Region}}
		}
		if err := s.RevokeAccess(ctx, ref); err != nil {
			return fmt.Errorf("RevokeAccess: %w", err)
		}
		if err := s.held(ctx, a.clients[0], b.Name, ""); err != nil {
			return fmt.Errorf("after the revocation: %w", err)
		}
	}
	return s.untouched(ctx, owner, b.Name, policy)
}

func existingIsNeverDeleted(ctx context.Context, s *session) error {
	ref, owner, _, err := s.theirs(ctx)
	if err != nil {
		return err
	}
	policy := theirPolicies(ref.Name)[1]
	if err := owner.SetPolicy(ctx, ref.Name, policy); err != nil {
		return err
	}
	ref.AccessOnly = true
	if !s.Capabilities().SharedKeys {
		account, err := s.account()
		if err != nil {
			return err
		}
		a, err := s.grantSpan(ctx, account, provider.BucketAccess{BucketRef: ref, Mode: provider.ReadWrite})
		if err != nil {
			return err
		}
		if err := s.DeleteBucket(ctx, a.Buckets[0].BucketRef, provider.DeleteOptions{Purge: true}); err != nil {
			return fmt.Errorf("DeleteBucket with AccessOnly: %w", err)
		}
		if err := s.held(ctx, a.clients[0], ref.Name, ""); err != nil {
			return fmt.Errorf("after DeleteBucket with AccessOnly: %w", err)
		}
		if err := s.accountRemains(ctx, a.IdentityID); err != nil {
			return err
		}
	}
	for range 2 {
		if err := s.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true}); err != nil {
			return fmt.Errorf("DeleteBucket with AccessOnly, repeated: %w", err)
		}
	}
	if err := s.untouched(ctx, owner, ref.Name, policy); err != nil {
		return err
	}
	// Nor is one that is the driver's, if somebody calls it an existing one.
	b, a, err := s.filled(ctx)
	if err != nil {
		return err
	}
	b.AccessOnly = true
	if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{Purge: true}); err != nil {
		return fmt.Errorf("DeleteBucket with AccessOnly of a bucket that is ours: %w", err)
	}
	return holds(ctx, a.client, b.Name, keptKey, keptData)
}

func existingInASpan(ctx context.Context, s *session) error {
	if s.Capabilities().SharedKeys {
		return nil
	}
	ref, owner, remove, err := s.theirs(ctx)
	if err != nil {
		return err
	}
	ref.AccessOnly = true
	ours, _, err := s.filled(ctx)
	if err != nil {
		return err
	}
	account, err := s.account()
	if err != nil {
		return err
	}
	a, err := s.grantSpan(ctx, account,
		provider.BucketAccess{BucketRef: ref, Mode: provider.ReadOnly}, provider.BucketAccess{BucketRef: ours.BucketRef, Mode: provider.ReadWrite})
	if err != nil {
		return fmt.Errorf("GrantAccess to an existing bucket and one of ours: %w", err)
	}
	if err := s.held(ctx, a.clients[0], ref.Name, provider.ReadOnly); err != nil {
		return err
	}
	if err := s.held(ctx, a.clients[1], ours.Name, provider.ReadWrite); err != nil {
		return err
	}
	if !a.Buckets[0].AccessOnly || a.Buckets[1].AccessOnly {
		return fmt.Errorf("GrantAccess answered %+v, want AccessOnly for the first alone", a.Buckets)
	}
	// Its owner deletes it meanwhile.
	if err := owner.DeleteObject(ctx, ref.Name, keptKey); err != nil {
		return err
	}
	if err := remove(ctx); err != nil {
		return err
	}
	for range 2 {
		if err := s.RevokeAccess(ctx, a.ref); err != nil {
			return fmt.Errorf("RevokeAccess after the existing bucket is gone: %w", err)
		}
	}
	if err := s.held(ctx, a.clients[1], ours.Name, ""); err != nil {
		return err
	}
	return s.accountRemains(ctx, a.IdentityID)
}
