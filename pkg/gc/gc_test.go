package gc

import (
	"context"
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const testDriver = "cosi.gc.example"

// TestSightings: an orphan without an age counts from its first sighting, is
// forgotten when it is none any more, and survives a file.
func TestSightings(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := Sightings{"a/gone": now, "b/unread": now, "a/future": now.Add(time.Hour)}
	if got := s.since("a/one", now); !got.Equal(now) {
		t.Errorf("a first sighting is of %s", got)
	}
	if got := s.since("a/one", now.Add(time.Hour)); !got.Equal(now) {
		t.Errorf("a second sighting is of %s", got)
	}
	if got := s.since("a/future", now); !got.Equal(now) {
		t.Errorf("a sighting in the future counts as %s", got)
	}
	s.keep([]*unit{{key: "a/one", verdict: Young}, {key: "a/future", verdict: Kept}}, map[string]bool{"a": true})
	if got, want := slices.Sorted(maps.Keys(s)), []string{"a/one", "b/unread"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	path := filepath.Join(t.TempDir(), "seen")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := LoadSightings(path)
	if err != nil || !maps.EqualFunc(again, s, time.Time.Equal) {
		t.Errorf("read back %v, %v", again, err)
	}
	if none, err := LoadSightings(path + "-missing"); err != nil || len(none) != 0 {
		t.Errorf("a missing file: %v, %v", none, err)
	}
}

// TestExpectedKeeps: whatever may belong to a live object is wanted.
func TestExpectedKeeps(t *testing.T) {
	var e Expected
	e.AddBucket("bucket-1")
	e.AddAccount("ba-1", "ID-1")
	e.AddAccount("ba-2", "")
	announces := func(r provider.Resource, bucket string) bool { return r.Name == "new-"+bucket }
	for _, tc := range []struct {
		r    provider.Resource
		kept bool
	}{
		{provider.Resource{Kind: provider.KindAdmin, ID: "x"}, true},
		{provider.Resource{Kind: "strange"}, true},
		{provider.Resource{Kind: provider.KindBucket, Bucket: "bucket-1", Region: "anywhere"}, true},
		{provider.Resource{Kind: provider.KindBucket, Bucket: "bucket-2"}, false},
		{provider.Resource{Kind: provider.KindOwner, ID: "o", Bucket: "bucket-1"}, true},
		{provider.Resource{Kind: provider.KindOwner, ID: "id-1", Bucket: "bucket-2"}, true},
		{provider.Resource{Kind: provider.KindOwner, ID: "o", Name: "new-bucket-1"}, true},
		{provider.Resource{Kind: provider.KindOwner, ID: "o", Name: "new-bucket-2"}, false},
		{provider.Resource{Kind: provider.KindAccess, Account: "ba-1", ID: "other"}, true},
		{provider.Resource{Kind: provider.KindAccess, Account: "renamed", ID: "id-1"}, true},
		{provider.Resource{Kind: provider.KindAccess, Account: "ba-2"}, true},
		{provider.Resource{Kind: provider.KindAccess, Account: "ba-3", ID: "id-3"}, false},
		{provider.Resource{Kind: provider.KindAccess, ID: "id-3"}, true}, // ba-2 has no ID yet
	} {
		if why := e.wants(tc.r, announces); (why != "") != tc.kept {
			t.Errorf("%+v: %q, want kept %t", tc.r, why, tc.kept)
		}
	}
}

// listing is an inventory that is given; everything else of a provider is missing.
type listing struct {
	provider.Provider
	all []provider.Resource
	err error
}

func (l listing) Inventory(context.Context) iter.Seq2[provider.Resource, error] {
	return func(yield func(provider.Resource, error) bool) {
		for _, r := range l.all {
			if !yield(r, nil) {
				return
			}
		}
		if l.err != nil {
			yield(provider.Resource{}, l.err)
		}
	}
}

func collectorOver(expect Expected, p provider.Provider) *Collector {
	return &Collector{
		Backends: []Backend{{"a", p}}, Seen: Sightings{}, Now: time.Now,
		Expect: func(context.Context) (Expected, error) { return expect, nil },
	}
}

// TestDoubt: an answer that may not be whole lets nothing be deleted.
func TestDoubt(t *testing.T) {
	bucket := func(name string) provider.Resource {
		return provider.Resource{Kind: provider.KindBucket, ID: name, Bucket: name, Region: "r"}
	}
	var many []provider.Resource
	for n := range manyOrphans {
		many = append(many, provider.Resource{Kind: provider.KindAccess, ID: string(rune('a' + n)), Bucket: "live", Account: "ba"})
	}
	live := Expected{Ours: 1}
	live.AddBucket("live")
	for name, tc := range map[string]struct {
		expect  Expected
		all     []provider.Resource
		refused bool
	}{
		"nothing is expected":            {Expected{}, []provider.Resource{bucket("one")}, true},
		"on purpose":                     {Expected{None: true}, []provider.Resource{bucket("one")}, false},
		"nothing is there":               {Expected{}, []provider.Resource{{Kind: provider.KindAdmin, ID: "x"}}, false},
		"one is wanted":                  {live, []provider.Resource{bucket("live"), bucket("one")}, false},
		"no access of many is explained": {live, append(many, bucket("live")), true},
		"nor of a few":                   {live, append(many[:2:2], bucket("live")), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := collectorOver(tc.expect, listing{all: tc.all})
			plan, err := c.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (plan.Refusal != nil) != tc.refused {
				t.Fatalf("refusal %v", plan.Refusal)
			}
			if tc.refused {
				if err := c.Delete(t.Context(), plan, true); !errors.Is(err, provider.ErrPrecondition) {
					t.Errorf("deletion: %v", err)
				}
			}
		})
	}
}

// TestUnread: of a back end that is not read to its end nothing is an orphan, and
// what was seen of it is remembered.
func TestUnread(t *testing.T) {
	c := collectorOver(Expected{None: true}, listing{all: []provider.Resource{{Kind: provider.KindBucket, Bucket: "one"}}, err: provider.ErrUnavailable})
	c.Seen["a/bucket//one"] = time.Now()
	plan, err := c.Look(t.Context())
	if err != nil || len(plan.Items) != 0 || len(plan.Unread) != 1 || !errors.Is(plan.Unread[0], provider.ErrUnavailable) || len(c.Seen) != 1 {
		t.Errorf("%+v, %v, seen %v", plan, err, c.Seen)
	}
	c.Expect = func(context.Context) (Expected, error) { return Expected{}, provider.ErrUnavailable }
	if plan, err := c.Look(t.Context()); plan != nil || !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("an unreadable cluster: %+v, %v", plan, err)
	}
}

// TestNamedOrphans: what is named may go although nothing explains the rest.
func TestNamedOrphans(t *testing.T) {
	all := []provider.Resource{{Kind: provider.KindAccess, ID: "live", Bucket: "live", Account: "ba-live"}}
	for n := range manyOrphans {
		all = append(all, provider.Resource{Kind: provider.KindBucket, Bucket: "bucket-" + string(rune('a'+n)), Region: "r"})
	}
	expect := Expected{Ours: 1}
	expect.AddAccount("ba-live", "live")
	for only, refused := range map[string]bool{"": true, "bucket-a": false} {
		c := collectorOver(expect, listing{all: all})
		if only != "" {
			c.Only = []string{only}
		}
		plan, err := c.Look(t.Context())
		if err != nil || (plan.Refusal != nil) != refused {
			t.Errorf("only %q: %v, refusal %v", only, err, plan.Refusal)
		}
	}
}

// TestWantedMeanwhile: an access that has come to be wanted since the look keeps its
// bucket. The listing has nothing that deletes, so that a deletion would panic.
func TestWantedMeanwhile(t *testing.T) {
	c := collectorOver(Expected{Ours: 1}, listing{all: []provider.Resource{
		{Kind: provider.KindAccess, ID: "id", Bucket: "bucket", Account: "ba"}, {Kind: provider.KindBucket, Bucket: "bucket", Region: "r"},
	}})
	plan, err := c.Look(t.Context())
	if err != nil || plan.Orphans() != 2 {
		t.Fatal(plan, err)
	}
	c.Expect = func(context.Context) (Expected, error) {
		e := Expected{Ours: 1}
		e.AddAccount("ba", "id")
		return e, nil
	}
	if err := c.Delete(t.Context(), plan, true); err != nil || outcomes(plan)[Refused] != 1 || outcomes(plan)[""] != 1 {
		t.Errorf("%v, %+v", err, plan.Items)
	}
}
