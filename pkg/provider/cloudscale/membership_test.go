package cloudscale

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var tagKeyPattern = regexp.MustCompile(`^[a-z0-9_-]{1,57}$`)

// Whatever is recorded is read back, and within what the cloud is known to take.
func TestTagsOfAnAccess(t *testing.T) {
	modes := rapid.SampledFrom(modesOf())
	stages := rapid.SampledFrom([]stage{stageNew, stageIn, stageOut, stageOff})
	uids := rapid.SampledFrom([]string{"id", "tenant$user", strings.Repeat("f", 64), strings.Repeat("x", 128)})
	regions := rapid.SampledFrom([]string{"rma", "a-region-with-a-very-long-name-3"})
	rapid.Check(t, func(t *rapid.T) {
		want := access{
			user: user{id: "id"}, account: accountTag(rapid.String().Draw(t, "account")), probe: rapid.Bool().Draw(t, "probe"),
			own:     rapid.SampledFrom([]provider.OwnBuckets{provider.OwnBucketsRefuse, provider.OwnBucketsPurge}).Draw(t, "own"),
			buckets: map[string]membership{},
		}
		for i := range rapid.IntRange(0, 128).Draw(t, "n") {
			name := fmt.Sprintf("%d-%s", i, strings.Repeat("b", rapid.IntRange(1, 59).Draw(t, "length")))
			m := membership{
				bucket: name, region: regions.Draw(t, "region"), owner: ownerTag(name),
				mode: modes.Draw(t, "mode"), stage: stages.Draw(t, "stage"), theirs: rapid.Bool().Draw(t, "theirs"),
			}
			if m.named() {
				m.uid = uids.Draw(t, "uid")
			}
			want.buckets[name] = m
		}
		want.tags = map[string]string{"team": "theirs", tagTerms + "stale": "rw"}
		tags := want.asTags(testDriver)
		if tags["team"] != "theirs" || tags[tagTerms+"stale"] != "" {
			t.Error("a tag of somebody else is lost, or an old one of ours is kept")
		}
		for k, v := range tags {
			if !tagKeyPattern.MatchString(k) || !tagValuePattern.MatchString(v) && v != string(provider.OwnBucketsPurge) {
				t.Errorf("the tag %s=%s", k, v)
			}
		}
		got := recordedAccess(user{id: "id", tags: tags})
		want.user, got.user = user{}, user{}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Tags that make no sense let nobody in.
func TestMalformedMembershipIsNone(t *testing.T) {
	key := bucketKey("bucket")
	good := map[string]string{tagMember + key: "bucket", tagTerms + key: "rw.rma.0123456789abcdef.in"}
	if a := recordedAccess(user{id: "id", tags: good}); a.buckets["bucket"].uid != "id" {
		t.Fatalf("%+v", a)
	}
	for name, tags := range map[string]map[string]string{
		"no terms":          {tagMember + key: "bucket"},
		"another name":      {tagMember + key: "another", tagTerms + key: good[tagTerms+key]},
		"a name of no form": {tagMember + bucketKey("A/B"): "A/B", tagTerms + bucketKey("A/B"): good[tagTerms+key]},
		"few parts":         {tagMember + key: "bucket", tagTerms + key: "rw.rma.0123"},
		"no such mode":      {tagMember + key: "bucket", tagTerms + key: "xx.rma.0123456789abcdef.in"},
		"no such stage":     {tagMember + key: "bucket", tagTerms + key: "rw.rma.0123456789abcdef.inn"},
		"no such region":    {tagMember + key: "bucket", tagTerms + key: "rw.R/.0123456789abcdef.in"},
		"a uid of no form":  {tagMember + key: "bucket", tagTerms + key: good[tagTerms+key], uidKey(key, 1): "2a"},
		"a uid not in hex":  {tagMember + key: "bucket", tagTerms + key: good[tagTerms+key], uidKey(key, 1): "zz"},
	} {
		if a := recordedAccess(user{id: "id", tags: tags}); len(a.buckets) != 0 {
			t.Errorf("%s: %+v", name, a.buckets)
		}
	}
}
