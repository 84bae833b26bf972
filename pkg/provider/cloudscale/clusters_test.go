package cloudscale

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestClustersRace: of two clusters that make one name at the same time one has it,
// the other learns whose it is, and nothing of the other is left.
func TestClustersRace(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	clusters := []string{"blue", "green"}
	spec := provider.BucketSpec{Name: "raced", Region: "rma"}
	errs := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range clusters {
		p := c.provider(func(config *Config) { config.ClusterID = id })
		wg.Go(func() {
			spec := spec
			spec.Claim = provider.ClaimRef{Namespace: id, Name: "c"}
			_, err := p.CreateBucket(t.Context(), spec)
			mu.Lock()
			defer mu.Unlock()
			errs[id] = err
		})
	}
	wg.Wait()
	winner := ""
	for id, err := range errs {
		if err == nil {
			winner += id
		}
	}
	users, err := c.listUsers(t.Context(), tagBucket, "raced")
	c.must(err)
	if !strings.Contains("blue green", winner) || winner == "" || len(users) != 1 || users[0].tags[tagCluster] != winner {
		t.Fatalf("the winner is %q, with %d owners: %v", winner, len(users), errs)
	}
	for _, id := range clusters {
		if id == winner {
			continue
		}
		if !errors.Is(errs[id], provider.ErrPrecondition) && !errors.Is(errs[id], provider.ErrConflict) {
			t.Errorf("the loser got %v", errs[id])
		}
		_, err := c.provider(func(config *Config) { config.ClusterID = id }).CreateBucket(t.Context(), spec)
		c.want(err, provider.ErrPrecondition, winner, "the BucketClaim "+winner+"/c")
	}
}

// TestOwnersOfTwoClusters: an owner of another cluster is not removed with ours, nor
// taken for one of several.
func TestOwnersOfTwoClusters(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	blue := c.provider(func(config *Config) { config.ClusterID = "blue" })
	b, err := blue.CreateBucket(t.Context(), provider.BucketSpec{Name: "two-owners", Region: "rma"})
	c.must(err)
	mine, err := c.getUser(t.Context(), b.OwnerID)
	c.must(err)
	tags := map[string]string{}
	for key, value := range mine.tags {
		tags[key] = value
	}
	tags[tagCluster] = "green"
	theirs, err := c.createUser(t.Context(), "of green", tags)
	c.must(err)
	_, err = blue.GetBucket(t.Context(), provider.BucketRef{Name: b.Name, Region: b.Region})
	c.must(err)
	c.must(blue.DeleteBucket(t.Context(), b.BucketRef, provider.DeleteOptions{}))
	if _, err := c.getUser(t.Context(), theirs.id); err != nil {
		t.Errorf("the owner of the other cluster: %v", err)
	}
	if _, err := c.getUser(t.Context(), b.OwnerID); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("our owner: %v", err)
	}
}

// FuzzRecord: what is asked for comes back from the tags, whose values are good ones,
// or is refused.
func FuzzRecord(f *testing.F) {
	for _, v := range []string{"", "a", "a-b", "a/b", "A", "ü", "a.b", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add("photos", v, "b", "cluster")
		f.Add("photos", "a", v, "cluster")
		f.Add("photos", "a", "b", v)
	}
	f.Fuzz(func(t *testing.T, bucket, namespace, name, cluster string) {
		p, err := New(Config{DriverName: testDriver, ClusterID: cluster, Token: fixedToken("x")})
		if err != nil || checkBucketName(bucket) != nil {
			return
		}
		asked, err := p.recordOf(provider.BucketSpec{Name: bucket, Region: "rma", Claim: provider.ClaimRef{Namespace: namespace, Name: name}})
		if err != nil {
			if !errors.Is(err, provider.ErrInvalidArgument) || tagValuePattern.MatchString(namespace) && tagValuePattern.MatchString(name) {
				t.Fatalf("%q/%q: %v", namespace, name, err)
			}
			return
		}
		tags, err := asked.tags(testDriver)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range tags {
			if !tagValuePattern.MatchString(value) {
				t.Errorf("the tag %s is %q", key, value)
			}
		}
		got, err := recorded(tags)
		if err != nil || got != asked || got.differs(asked) != nil {
			t.Errorf("%+v comes back as %+v: %v", asked, got, err)
		}
	})
}
