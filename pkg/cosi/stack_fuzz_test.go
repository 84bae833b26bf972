package cosi

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// asked is one life of a bucket as somebody may ask for it.
type asked struct {
	newer                       bool // by v1alpha2
	name, region, key, value    string
	account, mode               string
	rawBucket, rawAccount, rest string // IDs as nobody was given them
}

func (a asked) strings() []string {
	return []string{a.name, a.region, a.key, a.value, a.account, a.mode, a.rawBucket, a.rawAccount, a.rest}
}

// lives carries it out. Every failure is one of the table, and in the end the cloud
// is what it was.
func (s *site) lives(c *Client, a asked) {
	ctx, version := s.t.Context(), V1alpha1
	if a.newer {
		version = V1alpha2
	}
	c = c.Speaking(version)
	before := s.state()
	must := func(what string, err error) {
		s.t.Helper()
		if s.judged(what, err, version) != codes.OK {
			s.t.Errorf("%+v: %s: %v", a, what, err)
		}
	}
	params := map[string]string{"region": a.region, a.key: a.value}
	grant := func(id string) {
		g, err := c.GrantBuckets(ctx, a.account, []driver.GrantBucket{{ID: id, Mode: provider.Mode(a.mode)}}, nil)
		if s.judged("grant", err, version) == codes.OK {
			must("revoke", c.RevokeAccess(ctx, id, g.AccountID))
			must("revoke again", c.RevokeAccess(ctx, id, g.AccountID))
		}
	}
	id, err := c.CreateBucket(ctx, a.name, params)
	if s.judged("create", err, version) == codes.OK {
		again, err := c.CreateBucket(ctx, a.name, params)
		if must("create again", err); again != id {
			s.t.Errorf("%+v: created %q, then %q", a, id, again)
		}
		grant(id)
		must("delete", c.DeleteBucket(ctx, id, nil))
		must("delete again", c.DeleteBucket(ctx, id, nil))
	}
	_, err = c.ExistingBucket(ctx, a.rawBucket, map[string]string{a.key: a.value})
	s.judged("find", err, version)
	grant(a.rawBucket)
	s.judged("revoke of nothing", c.RevokeAccess(ctx, a.rawBucket+a.rest, a.rawAccount), version)
	s.judged("delete of nothing", c.DeleteBucket(ctx, a.rawBucket+a.rest, map[string]string{a.key: a.value}), version)
	if now := s.state(); now != before {
		s.t.Errorf("%+v: the cloud was\n%s\nand is\n%s", a, before, now)
	}
}

func fuzzStack(f *testing.F, backend string) {
	s, c := crowded(f, backend)
	add := func(a asked) {
		for _, newer := range []bool{false, true} {
			f.Add(newer, a.name, a.region, a.key, a.value, a.account, a.mode, a.rawBucket, a.rawAccount, a.rest)
		}
	}
	place := s.backend + "/" + s.region + "/"
	for _, v := range hostile() {
		add(asked{name: v, region: v, key: v, value: v, account: v, mode: v, rawBucket: v, rawAccount: v, rest: v})
		add(asked{name: "", region: s.region, account: v, rawBucket: place, rawAccount: s.backend + "/" + v, rest: v})
	}
	good := asked{name: "fuzz-bucket", region: s.region, account: "ba-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10", mode: "ReadWrite", rawBucket: place + "theirs-bucket", rawAccount: s.backend + "/ba-1"}
	for _, param := range [][2]string{{"bucketDeletionPolicy", "DeleteAll"}, {"s3PathStyle", "true"}, {"sharedCredentials", "forbidden"}, {"adoptExisting", "never"}} {
		a := good
		a.key, a.value = param[0], param[1]
		add(a)
	}
	for _, mode := range []string{"ReadOnly", "WriteOnly"} {
		a := good
		a.mode, a.key, a.value, a.name = mode, "backend", s.backend, strings.Repeat("f", 63)
		add(a)
	}
	f.Fuzz(func(t *testing.T, newer bool, name, region, key, value, account, mode, rawBucket, rawAccount, rest string) {
		a := asked{newer, name, region, key, value, account, mode, rawBucket, rawAccount, rest}
		for _, v := range a.strings() {
			if !utf8.ValidString(v) {
				return // gRPC carries none
			}
		}
		if key == "endpointURL" || key == "adoptExisting" && value == "accessOnly" {
			// The first asks another host. The second makes an ID that a person wrote for a
			// bucket of theirs a good one.
			return
		}
		s.t = t
		s.lives(c, a)
	})
}

// FuzzStackCloudscale sends requests through the whole stack, to an emulated
// cloudscale.ch that another driver uses, too.
func FuzzStackCloudscale(f *testing.F) { fuzzStack(f, "cloudscale") }

// FuzzStackStackit does so to an emulated STACKIT.
func FuzzStackStackit(f *testing.F) { fuzzStack(f, "stackit") }
