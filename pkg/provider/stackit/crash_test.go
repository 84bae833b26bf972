package stackit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const testAccount = "ba-6a1e3b5c-9d2f-4e7a-8b1c-0d3e5f7a9b1c"

// step is one RPC of a bucket's life, with what it needs before it and what must
// hold after it. The account is named like its bucket.
type step struct {
	name   string
	before func(t *testing.T, c *cloud, p *Provider, bucket string)
	run    func(ctx context.Context, p *Provider, bucket string) error
	holds  func(t *testing.T, c *cloud, p *Provider, bucket string)
}

func steps() []step {
	grant := func(ctx context.Context, p *Provider, bucket string) error {
		_, err := p.GrantAccess(ctx, accessTo(bucket, bucket, provider.ReadWrite))
		return err
	}
	return []step{
		{
			"create",
			func(*testing.T, *cloud, *Provider, string) {},
			func(ctx context.Context, p *Provider, bucket string) error {
				_, err := p.CreateBucket(ctx, spec(bucket))
				return err
			},
			func(t *testing.T, c *cloud, p *Provider, bucket string) {
				tags, policy := c.stored(t, p, bucket)
				if len(tags) != 2 || !p.ours(bucketOf(bucket, tags)) {
					t.Errorf("tags %v", tags)
				}
				adm, err := p.adminGroup(t.Context(), testRegion, false)
				if err != nil || !samePolicy(policy, render(bucket, adm.urn, nil)) {
					t.Errorf("policy %s (%v)", policy, err)
				}
				if g := c.groups(); len(g) != 0 {
					t.Errorf("left over: %v", g)
				}
			},
		},
		{
			"grant",
			func(t *testing.T, _ *cloud, p *Provider, bucket string) { mustCreate(t, p, bucket) },
			grant,
			func(t *testing.T, c *cloud, p *Provider, bucket string) {
				groups := c.groups()
				if len(groups) != 1 || groups[0].DisplayName != groupName(bucket) || groups[0].Keys > 3 {
					t.Fatalf("groups %v", groups)
				}
				tags, policy := c.stored(t, p, bucket)
				adm, err := p.adminGroup(t.Context(), testRegion, false)
				if err != nil {
					t.Fatal(err)
				}
				m, err := decodeMarks(tags, adm.urn)
				if err != nil || len(m.entries) != 1 || m.entries[0].id != groups[0].ID || len(tags) != 3 {
					t.Errorf("ledger %+v (%v)", m.entries, err)
				}
				if !samePolicy(policy, render(bucket, adm.urn, []member{{groups[0].URN, provider.ReadWrite}})) {
					t.Errorf("policy %s", policy)
				}
			},
		},
		{
			"revoke",
			func(t *testing.T, _ *cloud, p *Provider, bucket string) {
				mustCreate(t, p, bucket)
				mustGrant(t, p, bucket, bucket, provider.ReadWrite)
			},
			func(ctx context.Context, p *Provider, bucket string) error {
				return p.RevokeAccess(ctx, provider.AccountRef{Account: bucket, Buckets: []provider.BucketRef{refOf(bucket)}})
			},
			func(t *testing.T, c *cloud, p *Provider, bucket string) { steps()[0].holds(t, c, p, bucket) },
		},
		{
			"delete",
			func(t *testing.T, _ *cloud, p *Provider, bucket string) {
				mustCreate(t, p, bucket)
				key := mustGrant(t, p, bucket, bucket, provider.ReadWrite)
				client, err := p.client(testRegion, key.Buckets[0].Endpoint, key.Credentials)
				if err != nil {
					t.Fatal(err)
				}
				if err := client.PutObject(t.Context(), bucket, "k", []byte("x")); err != nil {
					t.Fatal(err)
				}
			},
			func(ctx context.Context, p *Provider, bucket string) error {
				return p.DeleteBucket(ctx, refOf(bucket), provider.DeleteOptions{Purge: true})
			},
			func(t *testing.T, c *cloud, p *Provider, bucket string) {
				for _, b := range c.Buckets() {
					if b.Name == bucket {
						t.Errorf("the bucket is still there")
					}
				}
				if g := c.groups(); len(g) != 0 {
					t.Errorf("groups %v", g)
				}
			},
		},
	}
}

// TestEveryCallMayBeTheLastWithLag: after a crash before or after any outbound call,
// a new process that repeats the RPC leaves what an undisturbed one would have, even
// with lists that lag. A second announcement of a bucket may then be left, which its
// deletion removes.
func TestEveryCallMayBeTheLastWithLag(t *testing.T) {
	if testing.Short() {
		t.Log("the exact lists are enough for a short run")
		return
	}
	lagging := emulator.StackitOptions{ListDelay: emulator.Delay{Min: 2 * time.Millisecond, Max: 12 * time.Millisecond}}
	for _, s := range steps() {
		if s.name == "create" {
			holds := steps()[3].holds
			s.holds = func(t *testing.T, c *cloud, p *Provider, bucket string) {
				for _, g := range c.groups() {
					if g.DisplayName != intentName(p.config.DriverName, "", bucket) {
						t.Errorf("left over: %v", g)
					}
				}
				if err := pause(t.Context(), lagging.ListDelay.Max); err != nil {
					t.Fatal(err)
				}
				if err := p.DeleteBucket(t.Context(), refOf(bucket), provider.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				holds(t, c, p, bucket)
			}
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, lagging, s)
		})
	}
}

func crashEverywhere(t *testing.T, options emulator.StackitOptions, s step) {
	t.Helper()
	whole := newCloud(t, emulator.Options{Stackit: options})
	for n := 1; ; n++ {
		reached := false
		for _, after := range []bool{false, true} {
			bucket := fmt.Sprintf("bucket-%d-%t", n, after)
			c := whole.fresh(bucket)
			s.before(t, c, c.provider(t), bucket)
			run := func(ctx context.Context, p *Provider) error { return s.run(ctx, p, bucket) }
			reached = c.crashed(t, n, after, run) || reached
			p := c.provider(t)
			if err := run(t.Context(), p); err != nil {
				t.Errorf("repeated after a crash at call %d (carried out: %t): %v", n, after, err)
				continue
			}
			before := t.Failed()
			s.holds(t, c, p, bucket)
			if t.Failed() && !before {
				t.Fatalf("… after a crash at call %d (carried out: %t)", n, after)
			}
		}
		if !reached {
			t.Logf("%d calls", n-1)
			return
		}
	}
}

// TestKeysNeverPrecedeTheirPolicy: whatever call of a grant is the last, a group
// that has a key stands in the policy.
func TestKeysNeverPrecedeTheirPolicy(t *testing.T) {
	whole := newCloud(t, emulator.Options{})
	for n := 1; ; n++ {
		bucket := fmt.Sprintf("bucket-%d", n)
		c := whole.fresh(bucket)
		p := c.provider(t)
		mustCreate(t, p, bucket)
		reached := c.crashed(t, n, true, func(ctx context.Context, p *Provider) error {
			_, err := p.GrantAccess(ctx, accessTo(bucket, bucket, provider.ReadOnly))
			return err
		})
		_, policy := c.stored(t, p, bucket)
		for _, g := range c.groups() {
			if g.Keys > 0 && !strings.Contains(policy, g.URN) {
				t.Errorf("call %d: the group has a key and the policy does not know it", n)
			}
		}
		if policy == "" {
			t.Errorf("call %d: no policy", n)
		}
		if !reached {
			return
		}
	}
}

// TestKeysGoBeforeTheirPolicy: whatever ends an access, its keys are gone when the first
// policy without it is written.
func TestKeysGoBeforeTheirPolicy(t *testing.T) {
	for name, run := range map[string]func(*Provider) error{
		"revoke": func(p *Provider) error {
			return p.RevokeAccess(t.Context(), provider.AccountRef{Account: testAccount, Buckets: []provider.BucketRef{refOf("bucket-1")}})
		},
		"delete": func(p *Provider) error {
			return p.DeleteBucket(t.Context(), refOf("bucket-1"), provider.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, emulator.Options{})
			p := c.provider(t)
			mustCreate(t, p, "bucket-1")
			mustGrant(t, p, testAccount, "bucket-1", provider.ReadWrite)
			c.emu.ResetCalls()
			if err := run(p); err != nil {
				t.Fatal(err)
			}
			c.wantKeysFirst(t)
		})
	}
}

// wantKeysFirst wants one key deleted and then one policy written since the calls were
// reset.
func (c *cloud) wantKeysFirst(t *testing.T) {
	t.Helper()
	var seen []string
	for _, call := range c.emu.Calls() {
		if call.Operation == "DeleteAccessKey" || call.Operation == "PutBucketPolicy" {
			seen = append(seen, call.Operation)
		}
	}
	if order := strings.Join(seen, " "); order != "DeleteAccessKey PutBucketPolicy" {
		t.Errorf("calls %s", order)
	}
}

// TestPolicyAtOnce: between the making of a bucket and its policy nothing but the
// mark is written.
func TestPolicyAtOnce(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	c.admin(t, p, func(*s3.Client) error { return nil })
	c.emu.ResetCalls()
	mustCreate(t, p, "bucket-1")
	var seen []string
	for _, call := range c.emu.Calls() {
		seen = append(seen, call.Operation)
	}
	order := strings.Join(seen, " ")
	const want = "CreateBucket GetBucket GetBucketTagging GetBucketPolicy ListObjectVersions PutBucketTagging GetBucketTagging GetBucketPolicy PutBucketPolicy GetBucketPolicy"
	if !strings.Contains(order, want) {
		t.Errorf("calls %s", order)
	}
}
