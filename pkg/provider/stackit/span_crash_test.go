package stackit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// theirPolicy is what somebody else has put on a bucket.
func theirPolicy(bucket string) string {
	return "{ \"Version\":\"2012-10-17\",\n\"Statement\": {\"Sid\":\"theirs\", \"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\"," +
		"\"Resource\":\"arn:aws:s3:::" + bucket + "/secret/*\" } }"
}

// isTheirs tells the buckets that somebody else has made.
func isTheirs(bucket string) bool { return strings.HasSuffix(bucket, "-theirs") }

func refIn(bucket string) provider.BucketRef {
	ref := refOf(bucket)
	ref.AccessOnly = isTheirs(bucket)
	return ref
}

// prepare makes the buckets.
func prepare(t *testing.T, c *cloud, p *Provider, buckets ...string) {
	t.Helper()
	for _, b := range buckets {
		if !isTheirs(b) {
			mustCreate(t, p, b)
			continue
		}
		if err := p.createBucket(t.Context(), refOf(b)); err != nil {
			t.Fatal(err)
		}
		c.admin(t, p, func(client *s3.Client) error { return client.SetPolicy(t.Context(), b, theirPolicy(b)) })
	}
}

// spanning is the request for an access to the buckets; the first is read-only.
func spanning(account string, buckets ...string) provider.AccessSpec {
	spec := provider.AccessSpec{Account: account}
	for _, b := range buckets {
		spec.Buckets = append(spec.Buckets, provider.BucketAccess{BucketRef: refIn(b), Mode: spanMode(b)})
	}
	return spec
}

func spanMode(bucket string) provider.Mode {
	if strings.HasSuffix(bucket, "-a") {
		return provider.ReadOnly
	}
	return provider.ReadWrite
}

func revocation(account string, buckets ...string) provider.AccountRef {
	ref := provider.AccountRef{Account: account}
	for _, b := range buckets {
		ref.Buckets = append(ref.Buckets, refOf(b))
	}
	return ref
}

// has checks the whole state of an account's access: its group and keys, and the
// ledger and policy of each of the buckets that exist, of which it has those named.
func (c *cloud) has(t *testing.T, p *Provider, account string, has, all []string) {
	t.Helper()
	groups := c.groups()
	if len(has) == 0 && len(groups) > 0 || len(has) > 0 && (len(groups) != 1 || groups[0].DisplayName != groupName(account) || groups[0].Keys == 0 || groups[0].Keys > 3) {
		t.Fatalf("groups %v", groups)
	}
	adm, err := p.adminGroup(t.Context(), testRegion, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		b, err := p.openRecorded(t.Context(), refOf(name))
		if err != nil {
			t.Fatal(err)
		}
		_, policy := c.stored(t, p, name)
		e, ok := b.find(groupName(account))
		in := slices.Contains(has, name)
		var members []member
		switch {
		case in && (!ok || e.id != groups[0].ID || e.mode != spanMode(name) || len(e.keys) == 0 || len(e.keys) > 3):
			t.Errorf("%s: ledger %+v, want the access in it", name, e)
		case in:
			members = []member{{groups[0].URN, spanMode(name)}}
		case ok && (!isTheirs(name) || len(has) == 0 || e.mode != modeEnded):
			t.Errorf("%s: ledger %+v, want nothing of the access in it", name, e)
		}
		for _, mark := range spanOf(nil, has) {
			if in && !slices.Contains(e.span, mark) {
				t.Errorf("%s: span %v lacks a bucket", name, e.span)
			}
		}
		switch {
		case !isTheirs(name):
			if !samePolicy(policy, render(name, adm.urn, members)) {
				t.Errorf("%s: policy %s", name, policy)
			}
		case len(has) == 0 && policy != theirPolicy(name):
			t.Errorf("%s: policy %s, want theirs", name, policy)
		case b.others != theirPolicy(name):
			t.Errorf("%s: without ours the policy is %s", name, b.others)
		}
		if tags, _ := c.stored(t, p, name); isTheirs(name) && len(tags) > 0 {
			t.Errorf("%s: tags %v", name, tags)
		}
	}
}

// spanSteps are the RPCs of an access to several buckets.
func spanSteps() []step {
	names := func(base string, ends ...string) []string {
		var all []string
		for _, e := range ends {
			all = append(all, base+e)
		}
		return all
	}
	before := func(granted, made []string) func(t *testing.T, c *cloud, p *Provider, base string) {
		return func(t *testing.T, c *cloud, p *Provider, base string) {
			prepare(t, c, p, names(base, made...)...)
			if len(granted) == 0 {
				return
			}
			if _, err := p.GrantAccess(t.Context(), spanning(base, names(base, granted...)...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	grant := func(ends ...string) func(context.Context, *Provider, string) error {
		return func(ctx context.Context, p *Provider, base string) error {
			_, err := p.GrantAccess(ctx, spanning(base, names(base, ends...)...))
			return err
		}
	}
	revoke := func(ends ...string) func(context.Context, *Provider, string) error {
		return func(ctx context.Context, p *Provider, base string) error {
			return p.RevokeAccess(ctx, revocation(base, names(base, ends...)...))
		}
	}
	remove := func(ends ...string) func(context.Context, *Provider, string) error {
		return func(ctx context.Context, p *Provider, base string) error {
			for _, b := range names(base, ends...) {
				if err := p.DeleteBucket(ctx, refIn(b), provider.DeleteOptions{}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	holds := func(has, all []string) func(*testing.T, *cloud, *Provider, string) {
		return func(t *testing.T, c *cloud, p *Provider, base string) {
			t.Helper()
			c.has(t, p, base, names(base, has...), names(base, all...))
		}
	}
	two, three := []string{"-a", "-b"}, []string{"-a", "-b", "-theirs"}
	return []step{
		{"grant two", before(nil, two), grant(two...), holds(two, two)},
		{"grant three", before(nil, three), grant(three...), holds(three, three)},
		{"grant one more", before(two, three), grant("-theirs", "-b"), holds(three, three)},
		{"revoke two", before(two, two), revoke("-b", "-a"), holds(nil, two)},
		{"revoke three", before(three, three), revoke(three...), holds(nil, three)},
		{"revoke one of two", before(two, two), revoke("-a"), holds([]string{"-b"}, two)},
		{"revoke theirs of three", before(three, three), revoke("-theirs"), holds(two, three)},
		{"revoke the last after theirs", before([]string{"-b", "-theirs"}, three[1:]), func(ctx context.Context, p *Provider, base string) error {
			return errors.Join(revoke("-theirs")(ctx, p, base), revoke("-b")(ctx, p, base))
		}, holds(nil, three[1:])},
		{"delete one of two", before(two, two), remove("-a"), holds([]string{"-b"}, []string{"-b"})},
		{"delete one of three", before(three, three), remove("-b"), holds([]string{"-a", "-theirs"}, []string{"-a", "-theirs"})},
		{"delete all of three", before(three, three), remove("-theirs", "-a", "-b"), holds(nil, []string{"-theirs"})},
		{"delete theirs", before([]string{"-theirs"}, []string{"-theirs"}), remove("-theirs"), holds(nil, []string{"-theirs"})},
	}
}

// TestEveryWriteOfASpanMayBeTheLast: after a crash before or after any call that
// changes something, of an access to two or three buckets, one of them somebody
// else's, a new process that repeats the RPC leaves what an undisturbed one would
// have. A crash at a call that reads is one before the next write.
func TestEveryWriteOfASpanMayBeTheLast(t *testing.T) {
	for _, s := range spanSteps() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			whole := newCloud(t, emulator.Options{})
			warm := whole.provider(t)
			for n := 1; ; n++ {
				reached := false
				for _, after := range []bool{false, true} {
					base := fmt.Sprintf("bucket-%d-%t", n, after)
					c := whole.again()
					s.before(t, c, warm, base)
					run := func(ctx context.Context, p *Provider) error { return s.run(ctx, p, base) }
					reached = c.crashedBy(t, &crashing{after: after, writes: true, left: n}, run) || reached
					p := c.provider(t)
					if err := run(t.Context(), p); err != nil {
						t.Fatalf("repeated after a crash at write %d (carried out: %t): %v", n, after, err)
					}
					s.holds(t, c, p, base)
					if t.Failed() {
						t.Fatalf("… after a crash at write %d (carried out: %t)", n, after)
					}
				}
				if !reached {
					t.Logf("%d writes", n-1)
					return
				}
			}
		})
	}
}

// TestGrantCutShortIsRevoked: after a crash at any write of a grant a revocation by
// a new process, instead of a repetition, leaves nothing.
func TestGrantCutShortIsRevoked(t *testing.T) {
	whole := newCloud(t, emulator.Options{})
	warm := whole.provider(t)
	for n, reached := 1, true; reached; n++ {
		base := fmt.Sprintf("bucket-%d", n)
		all := []string{base + "-a", base + "-theirs"}
		c := whole.again()
		prepare(t, c, warm, all...)
		reached = c.crashedBy(t, &crashing{after: true, writes: true, left: n}, func(ctx context.Context, p *Provider) error {
			_, err := p.GrantAccess(ctx, spanning(base, all...))
			return err
		})
		p := c.provider(t)
		if err := p.RevokeAccess(t.Context(), revocation(base, all...)); err != nil {
			t.Fatalf("after a crash at write %d: %v", n, err)
		}
		if c.has(t, p, base, nil, all); t.Failed() {
			t.Fatalf("… after a crash at write %d", n)
		}
	}
}

// TestGrowthCutShort: after a crash at any write of a grant that adds a bucket, the
// end of the bucket that was there before takes nothing from the new one: no ledger
// names a group that is gone.
func TestGrowthCutShort(t *testing.T) {
	whole := newCloud(t, emulator.Options{})
	warm := whole.provider(t)
	for n, reached := 1, true; reached; n++ {
		base := fmt.Sprintf("bucket-%d", n)
		all := []string{base + "-a", base + "-b"}
		c := whole.again()
		prepare(t, c, warm, all...)
		if _, err := warm.GrantAccess(t.Context(), spanning(base, all[0])); err != nil {
			t.Fatal(err)
		}
		reached = c.crashedBy(t, &crashing{after: true, writes: true, left: n}, func(ctx context.Context, p *Provider) error {
			_, err := p.GrantAccess(ctx, spanning(base, all[1]))
			return err
		})
		p := c.provider(t)
		if err := p.RevokeAccess(t.Context(), revocation(base, all[0])); err != nil {
			t.Fatalf("after a crash at write %d: %v", n, err)
		}
		b, err := p.open(t.Context(), refOf(all[1]))
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := b.find(groupName(base)); ok != (len(c.groups()) == 1) || ok && e.id != c.groups()[0].ID {
			t.Errorf("after a crash at write %d: ledger %+v, groups %v", n, b.entries, c.groups())
		}
		if err := p.RevokeAccess(t.Context(), revocation(base, all...)); err != nil {
			t.Fatal(err)
		}
		c.has(t, p, base, nil, all)
	}
}
