package cosi

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
)

// TestPurgeInSlices: while the bucket is too full for one call, the sidecar hears how
// far it is and may turn to other buckets; the repetition goes on, in both versions.
func TestPurgeInSlices(t *testing.T) {
	for _, v := range []APIVersion{V1alpha1, V1alpha2} {
		t.Run(string(v), func(t *testing.T) {
			eachCloud(t, func(t *testing.T, s *site) {
				c, ctx := s.start(func(cfg *driver.Config) { cfg.DeleteSlice = time.Second }).Speaking(v), t.Context()
				params := s.params()
				params["bucketDeletionPolicy"] = "DeleteAll"
				id, err := c.CreateBucket(ctx, "full-bucket", params)
				if err != nil {
					t.Fatal(err)
				}
				g, err := c.GrantAccess(ctx, id, "ba-1", nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					if err := s.client(g).PutObject(ctx, "full-bucket", fmt.Sprint("key-", i), []byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				// The endpoint takes longer for a batch than the slice is.
				healed := s.Inject(emulator.Fault{Plane: emulator.PlaneS3, Operation: "DeleteObjects", Latency: time.Hour})
				began := time.Now()
				codeIs(t, c.DeleteBucket(ctx, id, params), codes.Unavailable, "full-bucket", "0 versions were deleted", "the repeated call goes on")
				if took := time.Since(began); took > DefaultRPCTimeout/2 {
					t.Errorf("the slice took %s", took)
				}
				healed()
				patient := s.start().Speaking(v)
				if err := patient.DeleteBucket(ctx, id, params); err != nil {
					t.Fatal(err)
				}
				if err := patient.RevokeAccess(ctx, id, g.AccountID); err != nil {
					t.Error(err)
				}
				s.empty()
			})
		})
	}
}
