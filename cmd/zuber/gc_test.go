package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/gc"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// yard is a driver's things in both clouds, and the cluster that has made some.
type yard struct {
	*testing.T
	cloud   *emulator.Emulator
	cluster *apiServer
	config  string
	owners  map[string]string // owner IDs by bucket
}

const (
	uidLive   = "6a1e3b5c-9d2f-4e7a-8b1c-000000000001"
	uidOrphan = "6a1e3b5c-9d2f-4e7a-8b1c-000000000002"
)

// newYard makes in each cloud a bucket that is wanted and one that is not, and an
// access of each kind in the former. Of what is wanted, cs has all IDs and st none.
func newYard(t *testing.T, version string) *yard {
	t.Helper()
	y := &yard{T: t, cloud: newCloud(t), cluster: newAPIServer(t, version), owners: map[string]string{}}
	settleAdmin(t, y.cloud)
	y.config = bothConfig(t, y.cloud)
	for backend, p := range y.providers() {
		region := map[string]string{"cs": "rma", "st": emulatedRegion}[backend]
		for _, name := range []string{"live-" + backend, "orphan-" + backend} {
			b, err := p.CreateBucket(t.Context(), provider.BucketSpec{Name: name, Region: region})
			if err != nil {
				t.Fatal(err)
			}
			y.owners[name] = b.OwnerID
		}
		live := provider.BucketRef{Name: "live-" + backend, Region: region}
		access := map[string]provider.Access{}
		for _, uid := range []string{uidLive, uidOrphan} {
			a, err := p.GrantAccess(t.Context(), provider.AccessSpec{Account: "ba-" + uid, Buckets: []provider.BucketAccess{{BucketRef: live}}})
			if err != nil {
				t.Fatal(err)
			}
			access[uid] = a
		}
		status := map[string]any{}
		if backend == "cs" {
			status["bucketID"] = "cs/rma/live-cs/" + y.owners["live-cs"]
		}
		y.cluster.add("buckets", "live-"+backend, "uid-"+backend, map[string]any{"driverName": defaultDriverName}, status)
		status = map[string]any{}
		if backend == "cs" {
			status["accountID"] = "cs/ba-" + uidLive + "/" + access[uidLive].IdentityID
		}
		y.cluster.add("bucketaccesses", "access-"+backend, uidLive, map[string]any{}, status)
	}
	return y
}

func (y *yard) providers() map[string]provider.Provider { return y.providersIn("") }

// providersIn are those of the driver in the cluster with that ID.
func (y *yard) providersIn(cluster string) map[string]provider.Provider {
	y.Helper()
	specs := []backendSpec{emulatedStackit(y.cloud.Stackit()), {
		Name: "cs", Kind: providerCloudscale, APIURL: y.cloud.Cloudscale().APIURL, Endpoints: y.cloud.Cloudscale().Endpoints,
		Token: staticToken(provider.NewSecret(y.cloud.Cloudscale().Token)),
	}}
	specs[0].Name = "st"
	specs[0].Stackit.ListingWait = time.Millisecond
	backends, err := openAll(specs, wiring{DriverName: defaultDriverName, ClusterID: cluster})
	if err != nil {
		y.Fatal(err)
	}
	return map[string]provider.Provider{"st": backends[0].Provider, "cs": backends[1].Provider}
}

// gc runs the command against the cluster.
func (y *yard) gc(args ...string) outcomeOf {
	y.Helper()
	return command(y.T, environment{envKubeconfig: y.cluster.kubeconfig(y.T)}, append([]string{"gc", "--config", y.config}, args...)...)
}

// report runs it with JSON output, which must be one object and nothing else.
func (y *yard) report(args ...string) (gcReport, outcomeOf) {
	y.Helper()
	got := y.gc(append(args, "--output", "json")...)
	var r gcReport
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		y.Fatalf("%v: %s", err, got)
	}
	return r, got
}

// marked returns what is left in the clouds, buckets by name and accesses by account.
func (y *yard) marked() []string {
	y.Helper()
	var all []string
	for backend, p := range y.providers() {
		for r, err := range p.Inventory(y.Context()) {
			if err != nil {
				y.Fatal(err)
			}
			switch r.Kind {
			case provider.KindBucket:
				all = append(all, r.Bucket)
			case provider.KindAccess:
				all = append(all, backend+" "+r.Account)
			case provider.KindOwner, provider.KindAdmin:
			}
		}
	}
	slices.Sort(all)
	return all
}

// everything is what newYard makes, live what of it is wanted.
func everything() []string {
	return []string{"cs ba-" + uidLive, "cs ba-" + uidOrphan, "live-cs", "live-st", "orphan-cs", "orphan-st", "st ba-" + uidLive, "st ba-" + uidOrphan}
}

func live() []string {
	return slices.DeleteFunc(everything(), func(s string) bool { return strings.HasPrefix(s, "orphan") || strings.Contains(s, uidOrphan) })
}

func (y *yard) wantMarked(want []string) {
	y.Helper()
	if got := y.marked(); !slices.Equal(got, want) {
		y.Errorf("in the clouds are %q, want %q", got, want)
	}
}

// TestGC: orphans are listed and stay; with --delete they go, and nothing else.
func TestGC(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			y := newYard(t, version)
			got := y.gc("--min-age", "0s")
			if got.code != exitOK {
				t.Fatal(got)
			}
			wantLines(t, "the table", got.stdout, "KIND", "BUCKET", "AGE", "WHY", "orphan-cs", "no Bucket of that name", "no BucketAccess of that account",
				"its Bucket exists", "its BucketAccess exists", "the driver works with it", "5 to delete")
			if lines := strings.Split(got.stdout, "\n"); !slices.ContainsFunc(lines, func(l string) bool {
				return strings.HasPrefix(l, "st ") && strings.Contains(l, " admin ") && strings.Contains(l, " kept ")
			}) {
				t.Errorf("the admin group is not listed as kept: %s", got)
			}
			y.wantMarked(everything())

			r, got := y.report("--delete", "--yes", "--min-age", "0s")
			if got.code != exitOK || r.Orphans != 5 {
				t.Fatal(got)
			}
			for _, i := range r.Items {
				if (i.Verdict == string(gc.Orphan)) != (i.Outcome == string(gc.Deleted)) {
					t.Errorf("%+v", i)
				}
				if i.Kind == "bucket" && i.Verdict == string(gc.Orphan) && (i.Created == nil || time.Since(*i.Created) > time.Minute) {
					t.Errorf("bucket %s was made %v", i.Bucket, i.Created)
				}
			}
			y.wantMarked(live())
			if r, got = y.report("--delete", "--yes", "--min-age", "0s"); got.code != exitOK || r.Orphans != 0 {
				t.Errorf("a second run: %s", got)
			}
		})
	}
}

// TestGCHeedsAge: by default nothing of the last hour goes, and an access, whose age
// no cloud tells, goes an hour after it was first seen without its object.
func TestGCHeedsAge(t *testing.T) {
	y := newYard(t, "v1alpha1")
	seen := filepath.Join(t.TempDir(), "seen.json")
	got := y.gc("--delete", "--yes", "--seen-file", seen)
	wantLines(t, "the table", got.stdout, "young", "its age is unknown, and it was first seen so 0s ago", " 0 to delete")
	y.wantMarked(everything())

	// The same file, as it would be after two hours.
	raw, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	var sightings map[string]time.Time
	if err := json.Unmarshal(raw, &sightings); err != nil || len(sightings) != 2 {
		t.Fatalf("%s: %v", raw, err)
	}
	for key, at := range sightings {
		sightings[key] = at.Add(-2 * time.Hour)
	}
	if raw, err = json.Marshal(sightings); err != nil {
		t.Fatal(err)
	}
	writeFile(t, seen, string(raw))
	if r, got := y.report("--delete", "--yes", "--seen-file", seen); got.code != exitOK || r.Orphans != 2 {
		t.Error(got)
	}
	y.wantMarked(slices.DeleteFunc(everything(), func(s string) bool { return strings.Contains(s, uidOrphan) }))

	writeFile(t, seen, "no JSON")
	if got := y.gc("--seen-file", seen); got.code != exitFailed || !strings.Contains(got.stderr, "holds no sightings") {
		t.Error(got)
	}
}

// TestGCLooksTwice: with --look-twice one run is enough.
func TestGCLooksTwice(t *testing.T) {
	y := newYard(t, "v1alpha1")
	if r, got := y.report("--delete", "--yes", "--look-twice", "--min-age", "20ms"); got.code != exitOK || r.Orphans != 5 {
		t.Error(got)
	}
	y.wantMarked(live())
}

// TestGCBounds: what is bounded is left alone beyond the bounds, and a bucket that
// Retain has kept can be named.
func TestGCBounds(t *testing.T) {
	y := newYard(t, "v1alpha1")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--backend", "cs"}, "cs"},
		{[]string{"--region", "rma"}, "cs"},
		{[]string{"--only", "orphan-cs"}, "cs"},
	} {
		r, got := y.report(append(tc.args, "--min-age", "0s")...)
		if got.code != exitOK || r.Orphans == 0 {
			t.Errorf("%v: %s", tc.args, got)
		}
		for _, i := range r.Items {
			if i.Backend != tc.want {
				t.Errorf("%v: lists %+v", tc.args, i)
			}
		}
	}
	if r, got := y.report("--only", "orphan-cs", "--delete", "--yes", "--min-age", "0s", "--keep-bucket", "orphan-cs"); got.code != exitOK || r.Orphans != 0 {
		t.Error(got)
	}
	y.wantMarked(everything())
	if r, got := y.report("--only", "orphan-cs", "--delete", "--yes", "--min-age", "0s"); got.code != exitOK || r.Orphans != 2 {
		t.Error(got)
	}
	y.wantMarked(slices.DeleteFunc(everything(), func(s string) bool { return s == "orphan-cs" }))
}

// TestGCDoubts: whenever the cluster's answer may not be whole, nothing is deleted
// and the reason is said.
func TestGCDoubts(t *testing.T) {
	y := newYard(t, "v1alpha1")
	for n := range 4 {
		y.cluster.add("buckets", fmt.Sprintf("other-%d", n), "uid", map[string]any{"driverName": "other.example"}, map[string]any{})
	}
	lists := func(f func(w http.ResponseWriter, resource string, offset int) bool) func() {
		return func() { y.cluster.fault = f }
	}
	empty := func(w http.ResponseWriter) bool {
		_, err := w.Write([]byte(`{"kind":"List","apiVersion":"objectstorage.k8s.io/v1alpha1","metadata":{},"items":[]}`))
		return err == nil
	}
	before := y.cluster.objects
	for name, tc := range map[string]struct {
		disturb func()
		want    string
	}{
		"a page is an error": {lists(func(w http.ResponseWriter, resource string, offset int) bool {
			if resource == "buckets" && offset > 0 {
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
			return false
		}), "list the buckets"},
		"a page is lost": {lists(func(w http.ResponseWriter, resource string, offset int) bool {
			return resource == "buckets" && offset > 0 && empty(w)
		}), "6 objects were announced and 2 came"},
		"the list has expired": {lists(func(w http.ResponseWriter, _ string, offset int) bool {
			if offset > 0 {
				w.WriteHeader(http.StatusGone)
			}
			return offset > 0
		}), "list the buckets"},
		"it is forbidden": {lists(func(w http.ResponseWriter, resource string, _ int) bool {
			if resource == "bucketaccesses" {
				w.WriteHeader(http.StatusForbidden)
			}
			return resource == "bucketaccesses"
		}), "list the bucketaccesses"},
		"everything is empty": {lists(func(w http.ResponseWriter, _ string, _ int) bool { return empty(w) }), "--assume-none"},
		"a definition is missing": {func() {
			y.cluster.objects = map[string][]map[string]any{"buckets": before["buckets"]}
		}, "without its bucketaccesses"},
		"COSI is missing":  {func() { y.cluster.version = "" }, "the cluster has no Buckets and BucketAccesses"},
		"a version is new": {func() { y.cluster.version = "v1" }, "does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			y.cluster.mu.Lock()
			tc.disturb()
			y.cluster.mu.Unlock()
			got := y.gc("--delete", "--yes", "--min-age", "0s")
			if got.code != exitFailed || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("%s, want %q", got, tc.want)
			}
			y.cluster.mu.Lock()
			y.cluster.fault, y.cluster.objects, y.cluster.version = nil, before, "v1alpha1"
			y.cluster.mu.Unlock()
		})
	}
	y.wantMarked(everything())
}

// TestGCWithoutCluster: a file says the same as the cluster, and --assume-none that
// there is nothing.
func TestGCWithoutCluster(t *testing.T) {
	y := newYard(t, "v1alpha1")
	dir := t.TempDir()
	write := func(name, text string) string {
		writeFile(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	file := write("list.json", y.cluster.listed(t))
	if r, got := y.report("--file", file, "--min-age", "0s"); got.code != exitOK || r.Orphans != 5 {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"kind: List\nitems: []\n": "--assume-none",
		"{apiVersion: objectstorage.k8s.io/v1alpha1, kind: BucketClaim, metadata: {name: a, uid: b}}": "want Buckets and BucketAccesses",
		"{apiVersion: v1, kind: List, metadata: {continue: abc}, items: []}":                          "the list is cut off",
		"{apiVersion: objectstorage.k8s.io/v1alpha1, kind: Bucket, metadata: {name: a}}":              "no UID",
		"- a": "json: cannot unmarshal array",
	} {
		if got := y.gc("--file", write("bad", text), "--delete", "--yes", "--min-age", "0s"); got.code != exitFailed || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	written := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(file, written, written); err != nil {
		t.Fatal(err)
	}
	if got := y.gc("--file", file, "--delete", "--yes"); got.code != exitFailed || !strings.Contains(got.stderr, "was written 2h0m0s ago") {
		t.Errorf("a file that is older than what may go: %s", got)
	}
	if got := y.gc("--file", file, "--assume-none"); got.code != exitUsage {
		t.Error(got)
	}
	y.wantMarked(everything())
	if r, got := y.report("--assume-none", "--delete", "--yes", "--min-age", "0s"); got.code != exitOK || r.Orphans == 0 {
		t.Error(got)
	}
	y.wantMarked(nil)
	wantNoStackit(t, y.cloud)
}

// TestGCAsks: without --yes it deletes after a yes and nothing else.
func TestGCAsks(t *testing.T) {
	y := newYard(t, "v1alpha1")
	ask := func(answer string) (code int, stderr string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "gc", "--config", y.config, "--delete", "--min-age", "0s")
		cmd.Env = []string{childVariable + "=1", envKubeconfig + "=" + y.cluster.kubeconfig(t), "HOME=" + t.TempDir()}
		cmd.Stdin = strings.NewReader(answer)
		var out bytes.Buffer
		cmd.Stderr = &out
		_ = cmd.Run() // the code says it
		return cmd.ProcessState.ExitCode(), out.String()
	}
	for _, answer := range []string{"", "no\n", "y\n"} {
		code, stderr := ask(answer)
		if code != exitFailed || !strings.Contains(stderr, "nothing was deleted") {
			t.Errorf("after %q: code %d, %s", answer, code, stderr)
		}
		wantLines(t, "the question", stderr, "another cluster", defaultDriverName, "Retain", "(5)?")
	}
	y.wantMarked(everything())
	if code, stderr := ask("yes\n"); code != exitOK {
		t.Errorf("after yes: code %d, %s", code, stderr)
	}
	y.wantMarked(live())
}
