package companion

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// apiServer is as much of a Kubernetes API as the companion needs to read and
// write single objects. It keeps them by path.
type apiServer struct {
	version string // of COSI
	mu      sync.Mutex
	objects map[string]map[string]any
	asked   []string // method and path of every request
	denied  string   // end of the paths that nobody may read
	written int      // how often anything was
}

func newAPIServer(t *testing.T) (*apiServer, *rest.Config) {
	t.Helper()
	s := &apiServer{version: v1alpha1, objects: map[string]map[string]any{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// The paths of what tests put there.
const (
	secretsPath = "/api/v1/namespaces/ns/secrets"
	cosiPath    = "/apis/objectstorage.k8s.io/v1alpha1"
)

// discovered is what clients read of the API before they use it; an empty one is
// something else.
func discovered(path string) string {
	return map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "objectstorage.k8s.io", "versions": [{"groupVersion": "objectstorage.k8s.io/v1alpha1", "version": "v1alpha1"}]}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets", "namespaced": true, "kind": "Secret"},
{"name": "events", "namespaced": true, "kind": "Event"}, {"name": "namespaces", "kind": "Namespace"}]}`,
		"/apis/objectstorage.k8s.io": `{"kind": "APIGroup", "apiVersion": "v1", "name": "objectstorage.k8s.io",
"versions": [{"groupVersion": "objectstorage.k8s.io/v1alpha1", "version": "v1alpha1"}]}`,
		cosiPath: `{"kind": "APIResourceList", "groupVersion": "objectstorage.k8s.io/v1alpha1", "resources": [
{"name": "buckets", "kind": "Bucket"}, {"name": "bucketaccessclasses", "kind": "BucketAccessClass"},
{"name": "bucketclaims", "namespaced": true, "kind": "BucketClaim"}, {"name": "bucketaccesses", "namespaced": true, "kind": "BucketAccess"}]}`,
	}[path]
}

func (s *apiServer) put(t *testing.T, path, object string) {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = o
}

// mostKeys are those that the server takes in a Secret. A real one counts bytes.
const mostKeys = 30

// get returns the object's JSON; an empty one is none.
func (s *apiServer) get(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		text, _ := json.Marshal(o)
		return string(text)
	}
	return ""
}

func (s *apiServer) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.asked {
		if r == request {
			n++
		}
	}
	return n
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	if text := discovered(strings.ReplaceAll(r.URL.Path, s.version, v1alpha1)); text != "" {
		_, _ = w.Write([]byte(strings.ReplaceAll(text, v1alpha1, s.version)))
		return
	}
	code, answer := s.answer(r)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *apiServer) answer(r *http.Request) (int, any) {
	path := r.URL.Path
	var body map[string]any
	if r.Body != http.NoBody {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return status(http.StatusBadRequest, "BadRequest")
		}
	}
	if r.Method == http.MethodPost {
		metadata, _ := body["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		path += "/" + name
	}
	if s.denied != "" && strings.HasSuffix(path, s.denied) {
		return status(http.StatusForbidden, "Forbidden")
	}
	there := s.objects[path]
	data, _ := body["data"].(map[string]any)
	switch {
	case r.Method == http.MethodGet && slices.Contains([]string{"buckets", "bucketclaims", "bucketaccesses", "secrets"}, path[strings.LastIndex(path, "/")+1:]):
		return http.StatusOK, s.list(path)
	case r.Method == http.MethodPost && there != nil:
		return status(http.StatusConflict, "AlreadyExists")
	case r.Method != http.MethodPost && there == nil:
		return status(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodPut && field(there, "metadata", "resourceVersion") != field(body, "metadata", "resourceVersion"):
		return status(http.StatusConflict, "Conflict")
	case r.Method == http.MethodPut && there["immutable"] == true, len(data) > mostKeys:
		return status(http.StatusUnprocessableEntity, "Invalid")
	case r.Method == http.MethodDelete:
		if metadata, _ := there["metadata"].(map[string]any); metadata["finalizers"] != nil {
			metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		} else {
			delete(s.objects, path)
		}
	case r.Method == http.MethodPatch:
		maps.Copy(there, body)
	case r.Method != http.MethodGet:
		s.written++
		metadata, _ := body["metadata"].(map[string]any)
		metadata["resourceVersion"] = strconv.Itoa(s.written)
		s.objects[path] = body
		return http.StatusOK, body
	}
	return http.StatusOK, there
}

// field follows keys; it is nil where the path ends early.
func field(o map[string]any, path ...string) any {
	var here any = o
	for _, key := range path {
		m, _ := here.(map[string]any)
		here = m[key]
	}
	return here
}

// list is what there is of a kind, in one namespace or in all.
func (s *apiServer) list(path string) any {
	_, kind, _ := strings.Cut(path, s.version+"/")
	items := []any{}
	for at, o := range s.objects {
		if strings.HasPrefix(at, path+"/") || kind != "" && strings.HasPrefix(at, strings.ReplaceAll(cosiPath, v1alpha1, s.version)) && strings.Contains(at, "/"+kind+"/") {
			items = append(items, o)
		}
	}
	if kind == "" {
		return map[string]any{"kind": "SecretList", "apiVersion": "v1", "items": items}
	}
	return map[string]any{"kind": "List", "apiVersion": cosiGroup + "/" + s.version, "items": items}
}

func status(code int, reason string) (int, any) {
	return code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason}
}
