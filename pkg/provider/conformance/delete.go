package conformance

import (
	"context"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// remains returns an error when something of the bucket still carries our mark.
// A cloud's lists may lag behind what was deleted.
func (s *session) remains(ctx context.Context, name string) error {
	return eventually(ctx, func() error {
		for r, err := range s.Inventory(ctx) {
			if err != nil {
				return fmt.Errorf("inventory: %w", err)
			}
			if r.Bucket == name {
				return fmt.Errorf("%s %s of bucket %q is left over", r.Kind, r.ID, name)
			}
		}
		return nil
	})
}

func deleteNonEmpty(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	if err := a.client.PutObject(ctx, b.Name, "kept", []byte("data")); err != nil {
		return err
	}
	upload, err := a.client.StartUpload(ctx, b.Name, "unfinished")
	if err != nil {
		return err
	}
	err = s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
	if err := want("DeleteBucket of a non-empty bucket", err, provider.ErrNotEmpty); err != nil {
		return err
	}
	if err := holds(ctx, a.client, b.Name, "kept", "data"); err != nil {
		return fmt.Errorf("after a refused delete: %w", err)
	}
	uploads, err := a.client.ListUploads(ctx, b.Name)
	if err != nil {
		return fmt.Errorf("list of uploads: %w", err)
	}
	if len(uploads) != 1 || uploads[0].ID != upload {
		return fmt.Errorf("a refused delete touched the unfinished upload: %v are left", uploads)
	}
	return nil
}

func deleteVersions(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	owner, err := s.owner(ctx, b, a)
	if err != nil || owner == nil {
		return err
	}
	if err := owner.SetVersioning(ctx, b.Name, true); err != nil {
		return err
	}
	if err := a.client.PutObject(ctx, b.Name, "old", []byte("data")); err != nil {
		return err
	}
	if err := a.client.DeleteObject(ctx, b.Name, "old"); err != nil {
		return err
	}
	err = s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{})
	return want("DeleteBucket of a bucket with an old version and a delete marker", err, provider.ErrNotEmpty)
}

func deleteUploads(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	if _, err := a.client.StartUpload(ctx, b.Name, "unfinished"); err != nil {
		return err
	}
	if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{}); err != nil {
		return fmt.Errorf("DeleteBucket of a bucket with nothing but an unfinished upload: %w", err)
	}
	return s.remains(ctx, b.Name)
}

func deletePurges(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	if err := a.client.PutObject(ctx, b.Name, "null version", []byte("0")); err != nil {
		return err
	}
	owner, err := s.owner(ctx, b, a)
	if err != nil {
		return err
	}
	if owner != nil {
		if err := owner.SetVersioning(ctx, b.Name, true); err != nil {
			return err
		}
	}
	for i := range 3 {
		if err := a.client.PutObject(ctx, b.Name, "versions", []byte{byte('1' + i)}); err != nil {
			return err
		}
	}
	if err := a.client.DeleteObject(ctx, b.Name, "versions"); err != nil {
		return err
	}
	for range 2 {
		if _, err := a.client.StartUpload(ctx, b.Name, "unfinished"); err != nil {
			return err
		}
	}
	if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{Purge: true}); err != nil {
		return fmt.Errorf("DeleteBucket with a purge: %w", err)
	}
	return s.remains(ctx, b.Name)
}

func deleteIdempotent(ctx context.Context, s *session) error {
	b, err := s.create(ctx, s.name())
	if err != nil {
		return err
	}
	for range 3 {
		if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{}); err != nil {
			return fmt.Errorf("DeleteBucket: %w", err)
		}
	}
	ref := provider.BucketRef{Name: b.Name, Region: b.Region}
	if err := s.DeleteBucket(ctx, ref, provider.DeleteOptions{Purge: true}); err != nil {
		return fmt.Errorf("DeleteBucket by name of a bucket that is gone: %w", err)
	}
	return nil
}

func nothingRemains(ctx context.Context, s *session) error {
	b, a, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	if err := s.RevokeAccess(ctx, a.ref); err != nil {
		return fmt.Errorf("RevokeAccess: %w", err)
	}
	if err := s.DeleteBucket(ctx, b.BucketRef, provider.DeleteOptions{}); err != nil {
		return fmt.Errorf("DeleteBucket: %w", err)
	}
	if err := s.remains(ctx, b.Name); err != nil {
		return err
	}
	_, err = s.GetBucket(ctx, b.BucketRef)
	return want("GetBucket after delete", err, provider.ErrNotFound)
}
