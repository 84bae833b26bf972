package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sender makes one call of an API server as its administrator, as package cluster
// does with a real one. A body of a PATCH is a merge patch.
type sender interface {
	Send(ctx context.Context, method, path string, body any) (map[string]any, error)
}

// objectServer keeps whatever objects it is sent, and reads them to zuber status as an
// API server would.
type objectServer struct {
	*httptest.Server
	version string // of COSI

	mu      sync.Mutex
	objects map[string]map[string]any // by path
}

func newObjectServer(t *testing.T, version string) *objectServer {
	t.Helper()
	s := &objectServer{version: version, objects: map[string]map[string]any{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// uidOf is the UID that the server gives an object, and that outputs are compared
// with.
func uidOf(path string) string {
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(path)))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

// Send implements sender.
func (s *objectServer) Send(_ context.Context, method, path string, body any) (map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path = strings.TrimSuffix(path, "/status")
	there := s.objects[path]
	switch method {
	case http.MethodPost:
		metadata := fields["metadata"].(map[string]any)
		path += "/" + metadata["name"].(string)
		metadata["uid"], metadata["creationTimestamp"], metadata["resourceVersion"] = uidOf(path), "2026-01-02T02:00:00Z", "1"
		if parts := strings.Split(path, "/namespaces/"); len(parts) > 1 {
			metadata["namespace"], _, _ = strings.Cut(parts[1], "/")
		}
		s.objects[path] = fields
		return fields, nil
	case http.MethodPatch:
		merge(there, fields)
	case http.MethodDelete:
		there["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T02:30:00Z"
	default:
		return nil, errors.New("not known: " + method)
	}
	return there, nil
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		deeper, isMap := value.(map[string]any)
		if old, both := into[key].(map[string]any); both && isMap {
			merge(old, deeper)
			continue
		}
		into[key] = value
	}
}

// limitedUser may read the claims, accesses and events of one namespace.
const limitedUser = "limited"

func (s *objectServer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	code, answer := s.answer(r)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *objectServer) answer(r *http.Request) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := func(code int, reason string) (int, any) {
		return code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason}
	}
	if answer := s.discovery(r.URL.Path); answer != nil {
		return http.StatusOK, answer
	}
	if r.Method != http.MethodGet {
		return failed(http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
	forbidden := !strings.Contains(r.URL.Path, "/namespaces/prod/") || strings.Contains(r.URL.Path, "/secrets")
	if r.Header.Get("Impersonate-User") == limitedUser && forbidden {
		return failed(http.StatusForbidden, "Forbidden")
	}
	if there := s.objects[r.URL.Path]; there != nil {
		return http.StatusOK, there
	}
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	kind, known := map[string]string{"buckets": "Bucket", "bucketclaims": "BucketClaim", "bucketaccesses": "BucketAccess", "events": "Event"}[resource]
	if !known {
		return failed(http.StatusNotFound, "NotFound")
	}
	items := []any{}
	prefix, _ := strings.CutSuffix(r.URL.Path, resource)
	paths := []string{}
	for path := range s.objects {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		o := object(s.objects[path])
		if !strings.HasPrefix(path, prefix) || !strings.Contains(path, "/"+resource+"/") {
			continue
		}
		if !selected(o, r.URL.Query().Get("fieldSelector")) {
			continue
		}
		items = append(items, s.objects[path])
	}
	version := cosiGroup + "/" + s.version
	if kind == "Event" {
		version = "v1"
	}
	return http.StatusOK, map[string]any{"kind": kind + "List", "apiVersion": version, "items": items}
}

// discovery is what clients read of the API before they use it.
func (s *objectServer) discovery(path string) any {
	group := map[string]any{
		"kind": "APIGroup", "apiVersion": "v1", "name": cosiGroup,
		"versions": []any{map[string]any{"groupVersion": cosiGroup + "/" + s.version, "version": s.version}},
	}
	one := func(name, kind string, namespaced bool) any {
		return map[string]any{"name": name, "kind": kind, "namespaced": namespaced}
	}
	switch path {
	case "/api":
		return map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		return map[string]any{"kind": "APIGroupList", "groups": []any{group}}
	case "/api/v1":
		return map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{one("secrets", "Secret", true), one("events", "Event", true)}}
	case "/apis/" + cosiGroup:
		return group
	case "/apis/" + cosiGroup + "/" + s.version:
		return map[string]any{"kind": "APIResourceList", "groupVersion": cosiGroup + "/" + s.version, "resources": []any{
			one("buckets", "Bucket", false), one("bucketaccessclasses", "BucketAccessClass", false),
			one("bucketclaims", "BucketClaim", true), one("bucketaccesses", "BucketAccess", true),
		}}
	}
	return nil
}

// kubeconfig writes one for the server.
func (s *objectServer) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, path, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "zuber",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "zuber", "context": {"cluster": "c", "user": "u"}}]}`, s.URL))
	return path
}

// selected reports whether an event fits a selector of its fields.
func selected(event object, selector string) bool {
	fields := map[string]any{"involvedObject.kind": event.at("involvedObject", "kind"), "type": event.at("type")}
	for requirement := range strings.SplitSeq(selector, ",") {
		if name, value, is := strings.Cut(requirement, "="); is && fields[name] != value {
			return false
		}
	}
	return true
}
