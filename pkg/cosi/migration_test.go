package cosi

import (
	"testing"

	"google.golang.org/grpc/codes"
)

// TestMigration goes the way of docs/migration.md as far as calls to the driver show
// it: a cluster changes from v1alpha1 to v1alpha2 and no bucket is touched.
func TestMigration(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		const name = "bucket-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10"
		before := s.start()
		oldID, err := before.CreateBucket(ctx, name, s.params())
		if err != nil {
			t.Fatal(err)
		}
		var old []Granted
		for _, account := range []string{"ba-ended-before", "ba-kept-for-a-while"} {
			g, err := before.GrantAccess(ctx, oldID, account, nil)
			if err != nil {
				t.Fatal(err)
			}
			old = append(old, g)
		}
		if err := s.client(old[0]).PutObject(ctx, name, "key", []byte("data")); err != nil {
			t.Fatal(err)
		}
		// Step 3: one access is deleted, one is left to a workload that must not stop.
		// With Retain the sidecar calls nothing for the claim.
		if err := before.RevokeAccess(ctx, oldID, old[0].AccountID); err != nil {
			t.Fatal(err)
		}

		// The Deployment has the other sidecar now, and a driver that remembers nothing.
		after := s.start().Speaking(V1alpha2)
		s.ResetCalls()
		id, err := after.ExistingBucket(ctx, oldID, s.params())
		if err != nil || id != oldID {
			t.Fatalf("the bucket is found under %q, %v; want its old ID %q", id, err, oldID)
		}
		if short, err := after.ExistingBucket(ctx, s.region+"/"+name, nil); err != nil || short != oldID {
			t.Errorf("by its name it is found under %q, %v", short, err)
		}
		for _, c := range s.changes() {
			if c.Operation != "" && c.Plane == "s3" {
				t.Errorf("finding the bucket changed something: %+v", c)
			}
		}
		g, err := after.GrantAccess(ctx, id, "ba-new", nil)
		if err != nil {
			t.Fatal(err)
		}
		workload := s.client(g)
		if data, err := workload.GetObject(ctx, name, "key"); err != nil || string(data) != "data" {
			t.Errorf("the new access reads %q, %v", data, err)
		}
		// What the old workload holds works until its access is ended, by the ID that its
		// object had.
		if err := s.client(old[1]).PutObject(ctx, name, "late", []byte("x")); err != nil {
			t.Errorf("the old workload was stopped: %v", err)
		}
		if err := after.RevokeAccess(ctx, id, old[1].AccountID); err != nil {
			t.Fatal(err)
		}
		for _, g := range old {
			_, err := s.client(g).GetObject(ctx, name, "key")
			wantDenied(t, "a read with an old key", err)
		}
		// The new claims may be deleted like any other: data protects the bucket.
		if err := after.RevokeAccess(ctx, id, g.AccountID); err != nil {
			t.Fatal(err)
		}
		codeIs(t, after.DeleteBucket(ctx, id, s.params()), codes.FailedPrecondition, "not empty")
		if err := after.DeleteBucket(ctx, id, map[string]string{"bucketDeletionPolicy": "DeleteAll"}); err != nil {
			t.Fatal(err)
		}
		s.empty()
	})
}
