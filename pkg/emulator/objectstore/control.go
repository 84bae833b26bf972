package objectstore

import (
	"errors"
	"fmt"
)

// Refusals of the control-plane methods, to be told with errors.Is.
var (
	ErrInvalidBucketName = errors.New("invalid bucket name")
	ErrBucketExists      = errors.New("bucket name taken")
	ErrNoSuchBucket      = errors.New("no such bucket")
	ErrBucketNotEmpty    = errors.New("bucket not empty")
	ErrNoObjectLock      = errors.New("bucket made without object lock")
)

// DefaultRetention is how long a bucket with object lock keeps a new version that names no retention
// of its own. The zero value means that such a version is not kept.
type DefaultRetention struct {
	// Mode is GOVERNANCE or COMPLIANCE; empty in the zero value only.
	Mode string
	// Days or Years is the length; at most one of them is not 0.
	Days, Years int
}

// ObjectLock is the lock configuration of a bucket.
type ObjectLock struct {
	// Enabled tells whether the bucket was made with object lock.
	Enabled          bool
	DefaultRetention DefaultRetention
}

// CreateBucketAs makes a private, empty bucket for an owner, as a control plane does that owns no key.
// Bucket policies and the limit of buckets per owner have no say. Object lock switches versioning on.
// It returns ErrInvalidBucketName, ErrBucketExists for a name that is taken in any region and by
// anybody, the same owner included, or an error for a region that the store does not have. The owner
// need not hold a key.
func (s *Store) CreateBucketAs(region, name string, owner Identity, objectLocked bool) error {
	if s.regionNamed(region) == nil {
		return fmt.Errorf("create bucket %s: the store has no region %q", name, region)
	}
	if !validBucketName(name) {
		return fmt.Errorf("create bucket %q: %w", name, ErrInvalidBucketName)
	}
	b := newBucket(name, region, owner, s.now().UTC())
	b.acl = acl{grants: []grant{{uid: owner.UID, name: owner.DisplayName, perm: permFull}}}
	if objectLocked {
		b.lock = &objectLock{}
		b.versioning = versioningEnabled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] != nil {
		return fmt.Errorf("create bucket %s: %w", name, ErrBucketExists)
	}
	s.buckets[name] = b
	return nil
}

// DeleteBucketAs removes an empty bucket of an owner, whatever its policy says. Any object, version or
// delete marker in it is ErrBucketNotEmpty; unfinished uploads go with it. A bucket that does not exist,
// or that is not the owner's, is ErrNoSuchBucket.
func (s *Store) DeleteBucketAs(name, ownerUID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.owned(name, ownerUID)
	if err != nil {
		return fmt.Errorf("delete bucket %s: %w", name, err)
	}
	if len(b.objects) > 0 {
		return fmt.Errorf("delete bucket %s: %w", name, ErrBucketNotEmpty)
	}
	delete(s.buckets, name)
	return nil
}

// BucketLock returns the lock configuration of an owner's bucket, or ErrNoSuchBucket.
func (s *Store) BucketLock(name, ownerUID string) (ObjectLock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.owned(name, ownerUID)
	switch {
	case err != nil:
		return ObjectLock{}, fmt.Errorf("object lock of bucket %s: %w", name, err)
	case b.lock == nil:
		return ObjectLock{}, nil
	case b.lock.rule == nil:
		return ObjectLock{Enabled: true}, nil
	}
	rule := b.lock.rule
	return ObjectLock{Enabled: true, DefaultRetention: DefaultRetention{Mode: rule.Mode, Days: rule.Days, Years: rule.Years}}, nil
}

// SetDefaultRetention replaces the default retention of an owner's bucket; the zero value removes it.
// What is stored already keeps its retention. It returns ErrNoSuchBucket, ErrNoObjectLock, or an error
// for a retention that does not follow the rules of DefaultRetention.
func (s *Store) SetDefaultRetention(name, ownerUID string, r DefaultRetention) error {
	remove := r == DefaultRetention{}
	if !remove {
		known := r.Mode == modeGovernance || r.Mode == modeCompliance
		if !known || r.Days < 0 || r.Years < 0 || (r.Days == 0) == (r.Years == 0) {
			return fmt.Errorf("default retention of bucket %s: mode %q with %d days and %d years makes no sense", name, r.Mode, r.Days, r.Years)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.owned(name, ownerUID)
	switch {
	case err != nil:
		return fmt.Errorf("default retention of bucket %s: %w", name, err)
	case b.lock == nil:
		return fmt.Errorf("default retention of bucket %s: %w", name, ErrNoObjectLock)
	case remove:
		b.lock.rule = nil
	default:
		b.lock.rule = &defaultRetentionXML{Mode: r.Mode, Days: r.Days, Years: r.Years}
	}
	return nil
}

// owned needs the store's lock.
func (s *Store) owned(name, ownerUID string) (*bucket, error) {
	b := s.buckets[name]
	if b == nil || b.owner.UID != ownerUID {
		return nil, ErrNoSuchBucket
	}
	return b, nil
}
