package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// apiServer answers what zuber gc asks an API server, of one version of COSI.
type apiServer struct {
	*httptest.Server
	version string

	mu       sync.Mutex
	objects  map[string][]map[string]any // by resource
	pageSize int
	// fault answers a list instead, if it returns true.
	fault func(w http.ResponseWriter, resource string, offset int) bool
	lists int
}

func newAPIServer(t *testing.T, version string) *apiServer {
	t.Helper()
	s := &apiServer{version: version, pageSize: 2, objects: map[string][]map[string]any{"buckets": {}, "bucketaccesses": {}}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// add stores an object, or replaces the one of its name.
func (s *apiServer) add(resource, name, uid string, spec, status map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := map[string]string{"buckets": "Bucket", "bucketaccesses": "BucketAccess"}[resource]
	s.objects[resource] = append(s.objects[resource], map[string]any{
		"apiVersion": cosiGroup + "/" + s.version, "kind": kind,
		"metadata": map[string]any{"name": name, "uid": uid}, "spec": spec, "status": status,
	})
}

// kubeconfig writes one for the server.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, path, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, s.URL))
	return path
}

// listed is what kubectl get writes.
func (s *apiServer) listed(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": slices.Concat(s.objects["buckets"], s.objects["bucketaccesses"])})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	groupVersion := cosiGroup + "/" + s.version
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch resource := strings.TrimPrefix(r.URL.Path, "/apis/"+groupVersion+"/"); {
	case r.URL.Path == "/api":
		answer(map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis":
		groups := []any{}
		if s.version != "" {
			version := map[string]any{"groupVersion": groupVersion, "version": s.version}
			groups = append(groups, map[string]any{"name": cosiGroup, "versions": []any{version}, "preferredVersion": version})
		}
		answer(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	case r.URL.Path == "/apis/"+groupVersion:
		resources := []any{}
		for name := range s.objects {
			resources = append(resources, map[string]any{"name": name, "kind": name, "verbs": []string{"list"}})
		}
		answer(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": resources})
	case s.objects[resource] != nil:
		s.lists++
		offset, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		if s.fault != nil && s.fault(w, resource, offset) {
			return
		}
		all := s.objects[resource]
		end := min(len(all), offset+s.pageSize)
		meta := map[string]any{"resourceVersion": "1"}
		if end < len(all) {
			meta["continue"], meta["remainingItemCount"] = strconv.Itoa(end), len(all)-end
		}
		answer(map[string]any{"kind": "List", "apiVersion": groupVersion, "metadata": meta, "items": all[offset:end]})
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound})
	}
}
