package cosi

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/s3"
)

// overSocket is a client of a running server, as a sidecar is one.
func overSocket(t *testing.T, r *running) *Client {
	t.Helper()
	conn := dial(t, r.path)
	return &Client{process: &process{conn: conn, close: conn.Close}, rpcs: newV1alpha1RPCs(conn)}
}

func wantDenied(t *testing.T, what string, err error) {
	t.Helper()
	if code := s3.Code(err); code != "AccessDenied" && code != "InvalidAccessKeyId" {
		t.Errorf("%s: %v, want a refusal", what, err)
	}
}

// TestVersionsMixOnOneBucket drives both faces over one socket: what one version
// returns the other accepts, and either may carry on where the other was.
func TestVersionsMixOnOneBucket(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		o, _ := options(t, s.driver(s.adapter()))
		older := overSocket(t, start(t, o))
		newer, ctx := older.Speaking(V1alpha2), t.Context()
		const name = "mixed-bucket"
		id, err := older.CreateBucket(ctx, name, s.params())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := newer.CreateBucket(ctx, name, s.params()); err != nil || again != id {
			t.Errorf("v1alpha1 made %q, v1alpha2 %q, %v", id, again, err)
		}
		for _, written := range []string{id, s.region + "/" + name, s.backend + "/" + s.region + "/" + name} {
			if found, err := newer.ExistingBucket(ctx, written, nil); err != nil || found != id {
				t.Errorf("%s: found %q, %v; want %q", written, found, err, id)
			}
		}
		first, err := older.GrantAccess(ctx, id, "ba-older", nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := newer.GrantAccess(ctx, id, "ba-newer", map[string]string{"accessMode": "ReadOnly"})
		if err != nil {
			t.Fatal(err)
		}
		if b := second.Buckets[0]; b.Name != name || b.Endpoint != first.Endpoint || b.Region != first.Region || b.VirtualHosted {
			t.Errorf("v1alpha1 says %+v, v1alpha2 %+v", first, b)
		}
		writer, reader := s.client(first), s.client(second)
		if err := writer.PutObject(ctx, name, "key", []byte("data")); err != nil {
			t.Fatal(err)
		}
		if data, err := reader.GetObject(ctx, name, "key"); err != nil || string(data) != "data" {
			t.Errorf("read %q, %v", data, err)
		}
		wantDenied(t, "a write with a ReadOnly key", reader.PutObject(ctx, name, "key", []byte("other")))
		for c, want := range map[*Client]Granted{newer: first, older: second} {
			account, params := "ba-older", map[string]string(nil)
			if c == older {
				account, params = "ba-newer", map[string]string{"accessMode": "ReadOnly"}
			}
			again, err := c.GrantAccess(ctx, id, account, params)
			if err != nil || again.AccountID != want.AccountID || again.AccessKeyID != want.AccessKeyID || again.SecretAccessKey != want.SecretAccessKey {
				t.Errorf("%s granted as %q and then by the other version as %q, %v", account, want.AccountID, again.AccountID, err)
			}
		}
		if err := older.RevokeAccess(ctx, id, second.AccountID); err != nil {
			t.Errorf("v1alpha1 revokes what v1alpha2 granted: %v", err)
		}
		_, err = reader.GetObject(ctx, name, "key")
		wantDenied(t, "a read with a revoked key", err)
		_, err = older.CreateBucket(ctx, name, map[string]string{"region": s.region, "bucketDeletionPolicy": "DeleteAll"})
		codeIs(t, err, codes.FailedPrecondition, name)
		_, err = newer.CreateBucket(ctx, name, map[string]string{"region": s.region, "bucketDeletionPolicy": "DeleteAll"})
		codeIs(t, err, codes.AlreadyExists, name)
		codeIs(t, newer.DeleteBucket(ctx, id, s.params()), codes.FailedPrecondition, "not empty")
		if err := writer.DeleteObject(ctx, name, "key"); err != nil {
			t.Errorf("a refused deletion harmed the other access: %v", err)
		}
		if err := newer.RevokeAccess(ctx, id, first.AccountID); err != nil {
			t.Errorf("v1alpha2 revokes what v1alpha1 granted: %v", err)
		}
		wantDenied(t, "a write with a revoked key", writer.PutObject(ctx, name, "key", []byte("data")))
		for _, c := range []*Client{newer, older, newer} {
			if err := c.DeleteBucket(ctx, id, s.params()); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		s.empty()
	})
}

// TestVersionsAtTheSameTime: accesses to one bucket come and go through both faces at
// once, and end crosswise.
func TestVersionsAtTheSameTime(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		o, _ := options(t, s.driver(s.adapter()))
		older := overSocket(t, start(t, o))
		newer, ctx := older.Speaking(V1alpha2), t.Context()
		id, err := older.CreateBucket(ctx, "busy-bucket", s.params())
		if err != nil {
			t.Fatal(err)
		}
		cross := func(grant, revoke *Client, account string) error {
			g, err := grant.GrantAccess(ctx, id, account, nil)
			if err != nil {
				return fmt.Errorf("grant: %w", err)
			}
			client := s.client(g)
			if err := client.PutObject(ctx, "busy-bucket", account, []byte("x")); err != nil {
				return fmt.Errorf("put: %w", err)
			}
			if err := client.DeleteObject(ctx, "busy-bucket", account); err != nil {
				return fmt.Errorf("delete: %w", err)
			}
			if err := revoke.RevokeAccess(ctx, id, g.AccountID); err != nil {
				return fmt.Errorf("revoke: %w", err)
			}
			if client.PutObject(ctx, "busy-bucket", account, nil) == nil {
				return errors.New("the revoked key writes")
			}
			return nil
		}
		var group sync.WaitGroup
		for i := range 4 {
			for name, pair := range map[string][2]*Client{"older": {older, newer}, "newer": {newer, older}} {
				account := fmt.Sprintf("ba-%s-%d", name, i)
				group.Go(func() {
					if err := cross(pair[0], pair[1], account); err != nil {
						t.Errorf("%s: %v", account, err)
					}
				})
			}
		}
		group.Wait()
		if err := newer.DeleteBucket(ctx, id, nil); err != nil {
			t.Error(err)
		}
		s.empty()
	})
}

// TestRepeatedCallsChangeNothing: the v1alpha2 sidecar repeats create, lookup and grant
// for every object when it starts.
func TestRepeatedCallsChangeNothing(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		c, ctx := s.start().Speaking(V1alpha2), t.Context()
		id, err := c.CreateBucket(ctx, "kept-bucket", s.params())
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.GrantAccess(ctx, id, "ba-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.ResetCalls()
		for range 3 {
			if again, err := c.CreateBucket(ctx, "kept-bucket", s.params()); err != nil || again != id {
				t.Fatalf("%q, %v", again, err)
			}
			if found, err := c.ExistingBucket(ctx, id, s.params()); err != nil || found != id {
				t.Fatalf("%q, %v", found, err)
			}
			again, err := c.GrantAccess(ctx, id, "ba-1", nil)
			if err != nil || again.AccessKeyID != first.AccessKeyID || again.SecretAccessKey != first.SecretAccessKey || again.AccountID != first.AccountID {
				t.Fatalf("%v, %v", again, err)
			}
		}
		if n := len(s.Calls()); n > 3*20 {
			t.Errorf("nine repetitions cost %d calls", n)
		}
		if changed := s.changes(); len(changed) != 0 {
			t.Errorf("repetitions changed something: %+v", changed)
		}
		if err := c.DeleteBucket(ctx, id, nil); err != nil {
			t.Error(err)
		}
	})
}
