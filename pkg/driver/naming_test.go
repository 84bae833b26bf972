package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// objects is what a cluster has of Buckets and claims.
type objects struct {
	claims  map[string]Claim // by Bucket
	buckets []BucketObject
	fail    error
	asked   int
}

func (o *objects) ClaimOf(_ context.Context, bucketObject string) (Claim, error) {
	o.asked++
	c, ok := o.claims[bucketObject]
	if !ok && o.fail == nil {
		return c, fmt.Errorf("the Bucket %s: %w: there is none", bucketObject, provider.ErrPrecondition)
	}
	return c, o.fail
}

func (o *objects) NamespaceLabels(context.Context, string) (map[string]string, error) {
	return nil, o.fail
}

func (o *objects) BucketObjects(context.Context) ([]BucketObject, error) {
	o.asked++
	return o.buckets, o.fail
}

// class makes the parameters of a BucketClass in region rma.
func class(pairs ...string) map[string]string {
	m := map[string]string{"region": "rma"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

const (
	uid1      = "bucket-6d0a7a0e-3f4c-4a5e-9d43-0d8f6e0a1b2c"
	prefix    = "bucketNamePrefix"
	withNS    = "bucketNameIncludeNamespace"
	nameOf    = "bucketNameFrom"
	testNS    = "prod"
	testClaim = "photos"
)

// TestBucketNamesOfClasses: what a class says makes the name, and what the clouds would not take is
// refused with its parts and a way out, never cut.
func TestBucketNamesOfClasses(t *testing.T) {
	long := strings.Repeat("n", 63)
	for name, c := range map[string]struct {
		params           map[string]string
		namespace, claim string
		want             string
		says             []string // of the refusal
	}{
		"COSI's":                  {params: class(), want: uid1},
		"COSI's, said":            {params: class(nameOf, "uid", withNS, "false"), want: uid1},
		"prefix":                  {params: class(prefix, "acme"), want: "acme-" + uid1},
		"namespace":               {params: class(withNS, "true"), want: "prod-" + uid1},
		"prefix and namespace":    {params: class(prefix, "acme", withNS, "true"), want: "acme-prod-" + uid1},
		"claim":                   {params: class(nameOf, "claim"), want: "photos"},
		"all":                     {params: class(prefix, "acme.eu", withNS, "true", nameOf, "claim"), want: "acme.eu-prod-photos"},
		"a claim with dots":       {params: class(nameOf, "claim"), claim: "a.b", want: "a.b"},
		"63 characters":           {params: class(prefix, strings.Repeat("p", 56), nameOf, "claim"), want: strings.Repeat("p", 56) + "-photos"},
		"64 characters":           {params: class(prefix, strings.Repeat("p", 57), nameOf, "claim"), says: []string{"64 characters", "bucketNamePrefix \"ppp", `the BucketClaim "photos"`, "another name", "another bucketNamePrefix"}},
		"too short":               {params: class(nameOf, "claim"), claim: "ab", says: []string{"2 characters", `the BucketClaim "ab"`}},
		"an IP address":           {params: class(nameOf, "claim"), claim: "10.0.0.1", says: []string{"IP address"}},
		"a long namespace":        {params: class(withNS, "true"), namespace: long, says: []string{`the namespace "nnn`, "COSI's name", `bucketNameFrom = "claim"`, "without bucketNameIncludeNamespace"}},
		"a dot beside the hyphen": {params: class(prefix, "a.", nameOf, "claim"), says: []string{"not ending with a dot"}},
		"a prefix that is none":   {params: class(prefix, "-a", nameOf, "claim"), says: []string{"bucketNamePrefix"}},
		"a capital prefix":        {params: class(prefix, "Acme", nameOf, "claim"), says: []string{"bucketNamePrefix"}},
		"an empty prefix":         {params: class(prefix, "", nameOf, "claim"), says: []string{"it is empty"}},
		"another source":          {params: class(nameOf, "Claim"), says: []string{`did you mean "claim"?`}},
		"a dot in a host name":    {params: class(nameOf, "claim", "s3PathStyle", "false"), claim: "a.b", says: []string{"bucket a.b", "s3PathStyle"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := Claim{Namespace: testNS, Name: testClaim, UID: "u1"}
			if c.namespace != "" {
				claim.Namespace = c.namespace
			}
			if c.claim != "" {
				claim.Name = c.claim
			}
			d, f := oneBackend(t, func(cfg *Config) {
				cfg.Claims, cfg.ClusterID = &objects{claims: map[string]Claim{uid1: claim}}, "c1"
			})
			got, err := d.CreateBucket(t.Context(), uid1, c.params)
			if c.says != nil {
				if !errors.Is(err, provider.ErrInvalidArgument) || f.callCount() != 0 {
					t.Fatalf("%v, with %d calls", err, f.callCount())
				}
				for _, text := range c.says {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q lacks %q", err, text)
					}
				}
				return
			}
			if err != nil || got.Bucket.Name != c.want || got.ID != "cloudscale/rma/"+c.want+"/owner1" {
				t.Fatalf("%+v, %v", got, err)
			}
			wantClaim := provider.ClaimRef{}
			if c.params[nameOf] == "claim" {
				wantClaim = provider.ClaimRef{Namespace: claim.Namespace, Name: claim.Name}
			}
			if f.claims[c.want] != wantClaim {
				t.Errorf("the mark has %q, want %q", f.claims[c.want], wantClaim)
			}
			if planned := NameOf(uid1, claim, c.params); planned != c.want {
				t.Errorf("it is expected to be called %q", planned)
			}
		})
	}
}

// TestNamesNeedTheCluster: what cannot be known is refused so that it is tried again,
// and COSI's own names need nobody.
func TestNamesNeedTheCluster(t *testing.T) {
	claims := map[string]Claim{uid1: {Namespace: testNS, Name: testClaim, UID: "u1"}}
	down := fmt.Errorf("the API server: %w", provider.ErrUnavailable)
	for name, c := range map[string]struct {
		claims    Claims
		clusterID string
		params    map[string]string
		want      error
		says      string
	}{
		"no companion":         {nil, "c1", class(nameOf, "claim"), provider.ErrPrecondition, "--companion=on"},
		"no companion, prefix": {nil, "c1", class(prefix, "acme"), provider.ErrPrecondition, "--companion=on"},
		"no companion, uid":    {nil, "", class(), nil, ""},
		"no cluster ID":        {&objects{claims: claims}, "", class(nameOf, "claim"), provider.ErrPrecondition, "--cluster-id"},
		"no cluster ID, uid":   {&objects{claims: claims}, "", class(withNS, "true"), nil, ""},
		"no Bucket":            {&objects{}, "c1", class(nameOf, "claim"), provider.ErrPrecondition, "there is none"},
		"no API server":        {&objects{claims: claims, fail: down}, "c1", class(nameOf, "claim"), provider.ErrUnavailable, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := oneBackend(t, func(cfg *Config) { cfg.Claims, cfg.ClusterID = c.claims, c.clusterID })
			_, err := d.CreateBucket(t.Context(), uid1, c.params)
			if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.says) || f.callCount() != 0) {
				t.Errorf("%v, with %d calls", err, f.callCount())
			}
		})
	}
	asked := &objects{}
	d, _ := oneBackend(t, func(cfg *Config) { cfg.Claims = asked })
	id := created(t, d, uid1, nil)
	if err := d.DeleteBucket(t.Context(), id, class()); err != nil || asked.asked != 0 {
		t.Errorf("the cluster is asked %d times about a bucket with COSI's name: %v", asked.asked, err)
	}
}

// TestNameIsFrozen: a bucket that COSI knows keeps its name.
func TestNameIsFrozen(t *testing.T) {
	o := &objects{claims: map[string]Claim{uid1: {Namespace: testNS, Name: testClaim, UID: "u1", BucketID: "cloudscale/rma/first-name/owner1"}}}
	// Whoever else may stand for it by now, it is this Bucket's.
	o.buckets = []BucketObject{{Name: "static", BucketID: "cloudscale/rma/first-name"}}
	d, _ := oneBackend(t, func(cfg *Config) { cfg.Claims, cfg.ClusterID = o, "c1" })
	got, err := d.CreateBucket(t.Context(), uid1, class(prefix, "later", nameOf, "claim"))
	if err != nil || got.ID != "cloudscale/rma/first-name/owner1" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = d.CreateBucket(t.Context(), uid1, class("region", "lpg", nameOf, "claim"))
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "another place") {
		t.Errorf("in another region: %v", err)
	}
}

// TestOneBucketObjectAlone: a bucket that another Bucket object stands for is not
// adopted, since the deletion of that object would delete it.
func TestOneBucketObjectAlone(t *testing.T) {
	mine := Claim{Namespace: testNS, Name: testClaim, UID: "u2"}
	old := Claim{Namespace: testNS, Name: testClaim, UID: "u1"}
	other := Claim{Namespace: "other", Name: "claim", UID: "u3"}
	const here, uid0 = "cloudscale/rma/photos/owner1", "bucket-u0"
	for name, c := range map[string]struct {
		object BucketObject
		want   error
		says   string
	}{
		"itself":                                {BucketObject{Name: uid1, Claim: mine}, nil, ""},
		"another bucket":                        {BucketObject{Name: uid0, BucketID: "cloudscale/rma/films/owner1", Claim: old}, nil, ""},
		"of another back end":                   {BucketObject{Name: uid0, BucketID: "stackit/rma/photos", Claim: other}, nil, ""},
		"of another driver's form":              {BucketObject{Name: uid0, BucketID: "arn:aws:s3:::photos", Claim: other}, nil, ""},
		"an earlier claim's, being deleted":     {BucketObject{Name: uid0, BucketID: here, Claim: old, Deleting: true}, provider.ErrPrecondition, "wait until that Bucket is gone"},
		"an earlier claim's, kept":              {BucketObject{Name: uid0, BucketID: here, Claim: old}, provider.ErrPrecondition, "delete that Bucket"},
		"an earlier claim's, without an ID yet": {BucketObject{Name: uid0, Claim: old, Deleting: true}, provider.ErrPrecondition, "BucketClaim prod/photos"},
		"another claim's":                       {BucketObject{Name: uid0, BucketID: here, Claim: other}, provider.ErrPrecondition, "BucketClaim other/claim"},
		"another claim's, being deleted":        {BucketObject{Name: uid0, BucketID: here, Claim: other, Deleting: true}, provider.ErrPrecondition, "being deleted"},
		"another claim's, without an ID yet":    {BucketObject{Name: uid0, Claim: other}, nil, ""},
		"nobody's, by a short ID":               {BucketObject{Name: "static", BucketID: "rma/photos"}, provider.ErrPrecondition, "no BucketClaim"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &objects{claims: map[string]Claim{uid1: mine}, buckets: []BucketObject{c.object}}
			d, f := oneBackend(t, func(cfg *Config) { cfg.Claims, cfg.ClusterID = o, "c1" })
			_, err := d.CreateBucket(t.Context(), uid1, class(nameOf, "claim"))
			if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.object.Name) || f.callCount() != 0) {
				t.Errorf("%v, with %d calls", err, f.callCount())
			}
		})
	}
}

// TestLateDeletion: a deletion that comes when its Bucket object is gone, or that
// another one stands in the way of, does not delete the bucket of a later claim.
func TestLateDeletion(t *testing.T) {
	const id = "cloudscale/rma/photos/owner1"
	going := BucketObject{Name: "bucket-u1", BucketID: id, Claim: Claim{Namespace: testNS, Name: testClaim, UID: "u1"}, Deleting: true}
	waiting := BucketObject{Name: "bucket-u2", Claim: Claim{Namespace: testNS, Name: testClaim, UID: "u2"}}
	later, static := waiting, BucketObject{Name: "static", BucketID: "rma/photos"}
	later.BucketID = id
	former := going
	former.BucketID = "cloudscale/rma/photos/owner0"
	for name, c := range map[string]struct {
		claims Claims
		want   error
		says   string
	}{
		"its Bucket is being deleted":     {&objects{buckets: []BucketObject{going}}, nil, ""},
		"a later one waits for it":        {&objects{buckets: []BucketObject{waiting, going}}, nil, ""},
		"a later one has it":              {&objects{buckets: []BucketObject{later}}, provider.ErrPrecondition, "bucket-u2"},
		"both have it":                    {&objects{buckets: []BucketObject{going, later}}, provider.ErrPrecondition, "bucket-u2"},
		"an existing one has it, too":     {&objects{buckets: []BucketObject{going, static}}, provider.ErrPrecondition, "static"},
		"its Bucket is gone":              {&objects{}, provider.ErrPrecondition, "no Bucket with the bucket ID"},
		"its Bucket is gone, one waits":   {&objects{buckets: []BucketObject{waiting}}, provider.ErrPrecondition, "no Bucket with the bucket ID"},
		"another of its name goes":        {&objects{buckets: []BucketObject{former}}, provider.ErrPrecondition, "no Bucket with the bucket ID"},
		"the cluster cannot be asked":     {nil, provider.ErrPrecondition, "--companion=on"},
		"the cluster does not answer":     {&objects{fail: provider.ErrUnavailable}, provider.ErrUnavailable, "not known"},
		"another bucket has a Bucket":     {&objects{buckets: []BucketObject{going, {Name: "b", BucketID: "cloudscale/rma/films/o"}}}, nil, ""},
		"a Bucket of another driver's ID": {&objects{buckets: []BucketObject{going, {Name: "b", BucketID: "arn:photos"}}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := oneBackend(t, func(cfg *Config) { cfg.Claims, cfg.ClusterID = c.claims, "c1" })
			f.buckets["photos"] = provider.Bucket{BucketRef: provider.BucketRef{Name: "photos", Region: "rma", OwnerID: "owner1"}}
			err := d.DeleteBucket(t.Context(), id, class(nameOf, "claim"))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if gone := len(f.buckets) == 0; gone != (c.want == nil) {
				t.Errorf("the bucket is gone: %t", gone)
			}
		})
	}
}

// unreadable is a provider whose buckets cannot be read.
type unreadable struct {
	*fake
	err error
}

func (u unreadable) GetBucket(context.Context, provider.BucketRef) (provider.Bucket, error) {
	return provider.Bucket{}, u.err
}

// TestStaticBucketOfAClaim: a Bucket object that a person wrote, whose class says nothing
// of names, deletes no bucket that is a claim's by its record.
func TestStaticBucketOfAClaim(t *testing.T) {
	const id, short = "cloudscale/rma/photos/owner1", "cloudscale/rma/photos"
	owner := BucketObject{Name: "bucket-u1", BucketID: id, Claim: Claim{Namespace: testNS, Name: testClaim, UID: "u1"}}
	static := BucketObject{Name: "static", BucketID: short, Deleting: true}
	gone := owner
	gone.Deleting = true
	claim := provider.ClaimRef{Namespace: testNS, Name: testClaim}
	for name, c := range map[string]struct {
		claims  Claims
		claim   provider.ClaimRef
		bucket  string
		failing error
		want    error
		says    string
	}{
		"the claim has it":                {&objects{buckets: []BucketObject{owner, static}}, claim, "photos", nil, provider.ErrPrecondition, "bucket-u1"},
		"the claim gives it up, too":      {&objects{buckets: []BucketObject{gone, static}}, claim, "photos", nil, nil, ""},
		"no claim has it":                 {&objects{buckets: []BucketObject{static}}, claim, "photos", nil, nil, ""},
		"the cluster cannot be asked":     {nil, claim, "photos", nil, provider.ErrPrecondition, "--companion=on"},
		"it is named after no claim":      {nil, provider.ClaimRef{}, "photos", nil, nil, ""},
		"COSI gave the name":              {nil, provider.ClaimRef{}, uid1, errors.New("it was asked"), nil, ""},
		"its record cannot be read":       {&objects{buckets: []BucketObject{static}}, claim, "photos", provider.ErrUnavailable, provider.ErrUnavailable, ""},
		"it is gone":                      {nil, claim, "", nil, nil, ""},
		"the record is somebody else's":   {nil, claim, "photos", provider.ErrPermissionDenied, nil, ""},
		"its record is about to be one's": {nil, claim, "photos", provider.ErrConflict, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := oneBackend(t, func(cfg *Config) {
				cfg.Claims = c.claims
				if c.failing != nil {
					cfg.Backends[0].Provider = unreadable{cfg.Backends[0].Provider.(*fake), c.failing}
				}
			})
			if c.bucket != "" {
				f.buckets[c.bucket] = provider.Bucket{BucketRef: provider.BucketRef{Name: c.bucket, Region: "rma", OwnerID: "owner1"}, Claim: c.claim}
			}
			named := short
			if c.bucket == uid1 {
				named = "cloudscale/rma/" + uid1
			}
			err := d.DeleteBucket(t.Context(), named, class("bucketDeletionPolicy", "DeleteIfEmpty"))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if gone := len(f.buckets) == 0; gone != (c.want == nil) {
				t.Errorf("the bucket is gone: %t", gone)
			}
		})
	}
}

func TestClusterIDs(t *testing.T) {
	for id, good := range map[string]bool{
		"": true, "a": true, "prod-1": true, "eu.prod": true, strings.Repeat("a", 63): true,
		strings.Repeat("a", 64): false, "A": false, "-a": false, "a-": false, "a/b": false, "ü": false, "a b": false, "a\n": false,
	} {
		_, err := New(Config{Name: "cosi.test", ClusterID: id})
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "cluster ID") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
