package main

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// named makes a bucket in each cloud as the driver of that cluster does for a claim,
// with an access to it.
func (y *yard) named(cluster, namespace, account string) {
	y.Helper()
	for backend, p := range y.providersIn(cluster) {
		region := map[string]string{"cs": "rma", "st": emulatedRegion}[backend]
		b, err := p.CreateBucket(y.Context(), provider.BucketSpec{
			Name: namespace + "-photos-" + backend, Region: region, Claim: provider.ClaimRef{Namespace: namespace, Name: "photos-" + backend},
		})
		if err != nil {
			y.Fatal(err)
		}
		_, err = p.GrantAccess(y.Context(), provider.AccessSpec{Account: account, Buckets: []provider.BucketAccess{{BucketRef: b.BucketRef}}})
		if err != nil {
			y.Fatal(err)
		}
	}
}

// listedBuckets are the buckets that a run lists, with their verdicts.
func listedBuckets(r gcReport) map[string]string {
	all := map[string]string{}
	for _, i := range r.Items {
		if i.Kind == "bucket" {
			all[i.Bucket] = i.Verdict
		}
	}
	return all
}

// TestGCOfClusters: what another cluster has is not listed, whether this one has an ID
// or not. What names no cluster is listed everywhere.
func TestGCOfClusters(t *testing.T) {
	y := newYard(t, "v1alpha1")
	y.named("blue", "blue", "ba-6a1e3b5c-9d2f-4e7a-8b1c-00000000000b")
	y.named("green", "green", "ba-6a1e3b5c-9d2f-4e7a-8b1c-00000000000c")
	plain := map[string]string{"live-cs": "kept", "live-st": "kept", "orphan-cs": "orphan", "orphan-st": "orphan"}
	with := func(names ...string) map[string]string {
		all := maps.Clone(plain)
		for _, name := range names {
			all[name] = "orphan"
		}
		return all
	}
	for cluster, want := range map[string]map[string]string{
		"": plain, "blue": with("blue-photos-cs", "blue-photos-st"), "green": with("green-photos-cs", "green-photos-st"), "red": plain,
	} {
		r, got := y.report("--min-age", "0s", "--cluster-id", cluster)
		if listed := listedBuckets(r); got.code != exitOK || !maps.Equal(listed, want) {
			t.Errorf("cluster %q lists %v, want %v: %s", cluster, listed, want, got)
		}
	}
	// Whatever this one lets go, the other's stays.
	if r, got := y.report("--assume-none", "--delete", "--yes", "--min-age", "0s", "--cluster-id", "blue"); got.code != exitOK || r.Orphans == 0 {
		t.Fatal(got)
	}
	for cluster, want := range map[string][]string{"blue": nil, "green": {"green-photos-cs", "green-photos-st"}} {
		var found []string
		for _, p := range y.providersIn(cluster) {
			for r, err := range p.Inventory(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Kind == provider.KindBucket {
					found = append(found, r.Bucket)
				}
			}
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("cluster %q has %q left, want %q", cluster, found, want)
		}
	}
}

// TestGCExpectsNames: a Bucket whose bucket is about to be adopted, and that has no
// bucket ID yet, keeps that bucket. An access of a lost cluster is an orphan.
func TestGCExpectsNames(t *testing.T) {
	for version, field := range map[string]string{"v1alpha1": "bucketClaim", "v1alpha2": "bucketClaimRef"} {
		t.Run(version, func(t *testing.T) {
			y := newYard(t, version)
			y.named("blue", "prod", "ba-6a1e3b5c-9d2f-4e7a-8b1c-00000000000b")
			for _, backend := range []string{"cs", "st"} {
				y.cluster.add("buckets", "bucket-of-"+backend, "uid-new-"+backend, map[string]any{
					"driverName": defaultDriverName,
					field:        map[string]any{"namespace": "prod", "name": "photos-" + backend, "uid": "u"},
					"parameters": map[string]any{"region": "rma", "bucketNameFrom": "claim", "bucketNameIncludeNamespace": "true"},
				}, map[string]any{})
			}
			r, got := y.report("--min-age", "0s", "--cluster-id", "blue")
			if got.code != exitOK || r.Orphans != 7 { // the yard's five, and the two accesses
				t.Fatal(got)
			}
			if listed := listedBuckets(r); listed["prod-photos-cs"] != "kept" || listed["prod-photos-st"] != "kept" {
				t.Errorf("%v", listed)
			}
		})
	}
}

// TestClusterID: the flag and the file's key may each say it, or both the same.
func TestClusterID(t *testing.T) {
	const backends = "backends: [{name: a, provider: cloudscale, tokenEnv: T}]\n"
	for name, c := range map[string]struct {
		flag, file string
		want       string
		fault      bool
	}{
		"none":      {},
		"flag":      {flag: "blue", want: "blue"},
		"file":      {file: "blue", want: "blue"},
		"both":      {flag: "blue", file: "blue", want: "blue"},
		"different": {flag: "blue", file: "green", fault: true},
	} {
		s := backendSettings{DriverName: defaultDriverName, ClusterID: c.flag, ConfigFile: filepath.Join(t.TempDir(), "zuber.yaml")}
		text := backends
		if c.file != "" {
			text += "clusterID: " + c.file + "\n"
		}
		writeFile(t, s.ConfigFile, text)
		faults := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
		s.resolve(faults, environment{"T": "abc"})
		if err := faults.err(); c.fault != (err != nil) || !c.fault && s.ClusterID != c.want {
			t.Errorf("%s: %q, %v", name, s.ClusterID, err)
		}
	}
}
