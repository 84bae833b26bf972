package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// story is a user's dealings in a namespace of their own.
type story struct {
	*testing.T
	*cluster.Cluster
	ns string

	applied []object
	kept    map[string]bool // UIDs
	logs    map[*cluster.Process]int
}

// stories numbers them, for names that do not collide.
var stories atomic.Int64

// together begins a story that runs beside others.
func together(t *testing.T) *story {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	t.Parallel()
	return begin(t)
}

// alone begins a story during which no other runs.
func alone(t *testing.T) *story {
	t.Helper()
	return begin(t)
}

func begin(t *testing.T) *story {
	t.Helper()
	s := &story{T: t, Cluster: theCluster(t), ns: fmt.Sprintf("story-%d", stories.Add(1)), kept: map[string]bool{}, logs: map[*cluster.Process]int{}}
	for _, p := range s.Processes() {
		s.logs[p] = len(p.Log())
	}
	// Registered first, so that it comes after the story's own clean-ups.
	t.Cleanup(s.end)
	s.apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", s.ns))
	return s
}

// kubectl runs kubectl and returns what it writes.
func (s *story) kubectl(args ...string) string {
	s.Helper()
	out, err := s.Kubectl(s.Context(), "", args...)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// apply applies manifests with kubectl in the story's namespace, and returns the
// objects as the API server has them.
func (s *story) apply(manifests ...string) []object {
	s.Helper()
	out, err := s.Kubectl(s.Context(), strings.Join(manifests, "\n---\n"), "apply", "--namespace", s.ns, "-o", "json", "-f", "-")
	if err != nil {
		s.Fatal(err)
	}
	return s.record(out)
}

// record remembers the objects in kubectl's output, so that they are deleted at
// the end.
func (s *story) record(out string) []object {
	s.Helper()
	var o object
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	objects := []object{o}
	if o.text("kind") == "List" {
		objects = o.list("items")
	}
	s.applied = append(s.applied, objects...)
	return objects
}

// keep says that what the object stands for stays in the clouds.
func (s *story) keep(o object) {
	uid := o.text("metadata", "uid")
	s.kept[uid] = true
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.kept = append(shared.kept, uid)
}

// delete deletes objects one after the other, each when the one before is gone: a
// claim that is deleted at once with its access can go first, and upstream's
// sidecar then abandons the access (docs/upstream.md).
func (s *story) delete(objects ...object) {
	s.Helper()
	for _, o := range objects {
		s.deleteSoon(o)
		s.gone(o)
	}
}

// deleteSoon asks for the deletion of objects, in their order, and does not wait.
func (s *story) deleteSoon(objects ...object) {
	s.Helper()
	for _, o := range objects {
		if _, err := s.Send(s.Context(), "DELETE", o.path(), nil); err != nil && !missing(err) {
			s.Fatal(err)
		}
	}
}

// end deletes what is left of the story and looks for what stays behind.
func (s *story) end() {
	defer s.mend()
	if s.Failed() {
		s.dump()
		return
	}
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	last := &story{T: s.T, Cluster: s.Cluster, ns: s.ns, kept: s.kept, logs: s.logs}
	last.finish(ctx, s.applied)
	if s.Failed() {
		s.dump()
	}
}

// mend starts again what the story has stopped and not started, so that the
// next one finds everything.
func (s *story) mend() {
	for _, p := range s.Processes() {
		if p.Running() {
			continue
		}
		if !s.Failed() {
			s.Errorf("%s does not run at the end of the story", p.Name)
		}
		if err := p.Start(context.Background()); err != nil {
			s.Error(err)
		}
	}
}

// finish deletes accesses, then claims, then everything else.
func (s *story) finish(ctx context.Context, applied []object) {
	order := func(kinds ...string) {
		for _, o := range applied {
			for _, kind := range kinds {
				if o.text("kind") == kind {
					s.finishOne(ctx, o)
				}
			}
		}
	}
	order("BucketAccess")
	order("BucketClaim")
	order("Pod", "Secret", "Bucket", "BucketClass", "BucketAccessClass")
	// What an access owns goes a moment after it.
	if err := await(ctx, func() error {
		if left := s.leftInCluster(ctx); len(left) > 0 {
			return fmt.Errorf("left in the cluster:\n%s", strings.Join(left, "\n"))
		}
		return nil
	}); err != nil {
		s.Error(err)
	}
	order("Namespace")
	for _, o := range applied {
		uid := o.text("metadata", "uid")
		if s.kept[uid] {
			continue
		}
		if left := leftInClouds(s.Emulator, uid); len(left) > 0 {
			s.Errorf("left in the clouds of %s:\n%s", o, strings.Join(left, "\n"))
		}
	}
	// Buckets that are named by their classes have no UID in their names.
	if left := leftInClouds(s.Emulator, s.ns+"-"); len(left) > 0 && len(s.kept) == 0 {
		s.Errorf("left in the clouds of %s:\n%s", s.ns, strings.Join(left, "\n"))
	}
}

func (s *story) finishOne(ctx context.Context, o object) {
	if _, err := s.Send(ctx, "DELETE", o.path(), nil); err != nil && !missing(err) {
		s.Error(err)
		return
	}
	if err := await(ctx, func() error { return s.absent(ctx, o) }); err != nil {
		s.Error(err)
	}
}

// leftInCluster lists the objects of COSI and the Secrets of the namespace, and
// the Buckets of its claims.
func (s *story) leftInCluster(ctx context.Context) []string {
	var left []string
	for _, path := range []string{cosiPath("bucketclaims", s.ns), cosiPath("bucketaccesses", s.ns), "/api/v1/namespaces/" + s.ns + "/secrets", cosiPath("buckets", "")} {
		list, err := s.Get(ctx, path)
		if err != nil {
			left = append(left, err.Error())
			continue
		}
		for _, o := range object(list).list("items") {
			if o.text("metadata", "namespace") == s.ns || o.text("spec", "bucketClaim", "namespace") == s.ns {
				left = append(left, fmt.Sprintf("%s %s", path, o.text("metadata", "name")))
			}
		}
	}
	return left
}

// dump prints what helps to understand a failure. It shows no Secret.
func (s *story) dump() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"get", "bucketclaims,bucketaccesses", "-n", s.ns, "-o", "wide"},
		{"get", "buckets,bucketclasses,bucketaccessclasses", "-o", "wide"},
		{"events", "-n", s.ns}, {"events", "-n", "default"},
	} {
		out, err := s.Kubectl(ctx, "", args...)
		s.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, p := range s.Processes() {
		log := p.Log()
		if from := s.logs[p]; from < len(log) {
			log = log[from:]
		}
		lines, tail := strings.Split(log, "\n"), 80
		if p == s.Etcd || p == s.APIServer {
			tail = 10
		}
		s.Logf("%s, running: %v\n%s", p.Name, p.Running(), strings.Join(lines[max(0, len(lines)-tail):], "\n"))
	}
}
