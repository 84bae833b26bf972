package companion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// party is a companion of a driver of its own, its users in a namespace, and
// whoever plays COSI for them.
type party struct {
	*testing.T
	*cluster.Cluster
	lacks     right
	expects   bool // whether what comes next is to be missed for that
	ns        string
	driver    string
	server    *listener
	companion *Companion
	ended     chan error // what the companion's work ended with
}

// parties numbers them, for names that do not collide.
var parties atomic.Int64

// newParty makes the objects of a user and starts the companion with all rights
// but one.
func newParty(t *testing.T, c *cluster.Cluster, all []right, lacks right) *party {
	t.Helper()
	name := fmt.Sprintf("party-%d", parties.Add(1))
	p := &party{T: t, Cluster: c, lacks: lacks, ns: name, driver: name + ".example", server: &listener{}, ended: make(chan error, 1)}
	p.post("/api/v1/namespaces", `"kind": "Namespace", "metadata": {"name": %q}`, p.ns)
	watched := false
	for i, r := range all {
		watched = watched || r == right{"watch", "", "secrets", ""}
		if r != lacks {
			p.allow(fmt.Sprintf("%s-%d", name, i), r)
		}
	}
	p.post(cosiPath+"/bucketaccessclasses", `"kind": "BucketAccessClass", "metadata": {"name": %q}, "driverName": %q, "authenticationType": "Key"`, p.ns, p.driver)
	p.claim("photos")
	p.access("photos", "photos-env")
	p.access("plain", "")

	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	config.Wrap(p.server.through)
	if p.companion, err = New(Config{Driver: p.driver, REST: config, Namespace: "zuber-system", AllowWipe: true, Metrics: NewMetrics()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), logr.Discard()))
	// It would find out by itself that a right is lacking, and not start. One that ends
	// because a busy machine kept it from renewing its Lease starts again, as it does in
	// a driver.
	go func() {
		plan := plan{v1alpha1, watched || lacks == right{"watch", "", "secrets", ""}}
		for {
			err := p.companion.work(ctx, nil, plan, "--user="+name)
			if ctx.Err() != nil || lacks.resource == "leases" {
				p.ended <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-p.ended; err != nil && lacks == (right{}) {
			t.Error(err)
		}
	})
	return p
}

// allow gives the companion a right.
func (p *party) allow(name string, r right) {
	p.Helper()
	const path = "/apis/rbac.authorization.k8s.io/v1/"
	kind, place, where := "ClusterRole", "", r.namespace
	if where == withUsers {
		where = p.ns
	}
	if where != "" {
		kind, place = "Role", "namespaces/"+where+"/"
	}
	p.post(path+place+strings.ToLower(kind)+"s", `"apiVersion": "rbac.authorization.k8s.io/v1", "kind": %q, "metadata": {"name": %q},
"rules": [{"apiGroups": [%q], "resources": [%q], "verbs": [%q]}]`, kind, name, r.group, r.resource, r.verb)
	p.post(path+place+strings.ToLower(kind)+"bindings", `"apiVersion": "rbac.authorization.k8s.io/v1", "kind": %q, "metadata": {"name": %q},
"subjects": [{"kind": "User", "name": %q}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": %q, "name": %q}`, kind+"Binding", name, p.ns, kind, name)
}

// send makes a call as the administrator, with JSON as its body.
func (p *party) send(method, path, format string, args ...any) map[string]any {
	p.Helper()
	var body any
	if format != "" {
		if err := json.Unmarshal(fmt.Appendf(nil, "{"+format+"}", args...), &body); err != nil {
			p.Fatal(err)
		}
	}
	got, err := p.Send(p.Context(), method, path, body)
	if err != nil {
		p.Fatal(err)
	}
	return got
}

// post makes an object and returns its UID.
func (p *party) post(path, format string, args ...any) string {
	p.Helper()
	if strings.HasPrefix(path, cosiPath) {
		format = `"apiVersion": "objectstorage.k8s.io/v1alpha1", ` + format
	}
	metadata, _ := p.send(http.MethodPost, path, format, args...)["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

func (p *party) patch(path, format string, args ...any) {
	p.Helper()
	p.send(http.MethodPatch, path, format, args...)
}

// in is where the namespace has a kind of COSI's.
func (p *party) in(resource string) string { return cosiPath + "/namespaces/" + p.ns + "/" + resource }

// secret is where a Secret of the namespace is.
func (p *party) secret(name string) string { return "/api/v1/namespaces/" + p.ns + "/secrets/" + name }

// claim makes a BucketClaim that has its bucket, and returns the Bucket's name and UID.
func (p *party) claim(name string) (bucket, bucketUID string) {
	p.Helper()
	const finalizers = `"finalizers": ["example.com/hold"]`
	uid := p.post(p.in("bucketclaims"), `"kind": "BucketClaim", "metadata": {"name": %q, `+finalizers+`}, "spec": {"bucketClassName": "any", "protocols": ["S3"]}`, name)
	bucket = "bucket-" + uid
	bucketUID = p.post(cosiPath+"/buckets", `"kind": "Bucket", "metadata": {"name": %q, `+finalizers+`}, "spec": {"driverName": %q, "bucketClassName": "any", "protocols": ["S3"],
"deletionPolicy": "Delete", "bucketClaim": {"name": %q, "namespace": %q, "uid": %q}}`, bucket, p.driver, name, p.ns, uid)
	p.patch(p.in("bucketclaims")+"/"+name+"/status", `"status": {"bucketReady": true, "bucketName": %q}`, bucket)
	p.patch(cosiPath+"/buckets/"+bucket+"/status", `"status": {"bucketReady": true, "bucketID": %q}`, bucketID(bucket))
	return bucket, bucketUID
}

func bucketID(bucket string) string { return "cloudscale/rma/" + bucket }

// access makes a BucketAccess that is granted, with its Secret.
func (p *party) access(name, env string) {
	p.Helper()
	annotation := ""
	if env != "" {
		annotation = fmt.Sprintf("%q: %q", AnnotationEnvSecret, env)
	}
	uid := p.post(p.in("bucketaccesses"), `"kind": "BucketAccess", "metadata": {"name": %q, "annotations": {%s}},
"spec": {"bucketClaimName": "photos", "bucketAccessClassName": %q, "protocol": "S3", "credentialsSecretName": %q}`, name, annotation, p.ns, name+"-cosi")
	info := fmt.Sprintf(`{"metadata": {"name": %q}, "spec": {"bucketName": "x", "secretS3": {"endpoint": "https://s3.example.com", "region": "rma", "accessKeyID": "id", "accessSecretKey": "for-tests"}}}`,
		bucketInfoName(uid))
	p.post(p.secret(""), `"kind": "Secret", "metadata": {"name": %q}, "stringData": {"BucketInfo": %q}`, name+"-cosi", info)
	p.patch(p.in("bucketaccesses")+"/"+name+"/status", `"status": {"accessGranted": true, "accountID": %q}`, "cloudscale/ba-"+uid)
}

// there is nil once something is at a path.
func (p *party) there(path string) error {
	_, err := p.Get(p.Context(), path)
	return err
}

// has is nil once a Secret has a key, or has not.
func (p *party) has(secret, key string, want bool) error {
	got, err := p.Get(p.Context(), p.secret(secret))
	if err != nil {
		return err
	}
	if data, _ := got["data"].(map[string]any); (data[key] != nil) != want {
		return fmt.Errorf("the key %s of the Secret %s: %v, want %v", key, secret, !want, want)
	}
	return nil
}

// gone is nil once nothing is.
func (p *party) gone(path string) error {
	switch err := p.there(path); {
	case errors.Is(err, cluster.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s is still there", path)
}

// told is nil once an object has an event of the companion's with that count.
func (p *party) told(object, reason string, count int) error {
	list, err := p.Get(p.Context(), "/api/v1/namespaces/"+p.ns+"/events?fieldSelector=involvedObject.name="+object+",reason="+reason)
	if err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	for _, one := range items {
		if e, _ := one.(map[string]any); e["count"] == float64(count) {
			return nil
		}
	}
	return fmt.Errorf("%s has no event %s with the count %d", object, reason, count)
}

// listener hears what the companion asks of the API server.
type listener struct {
	mu    sync.Mutex
	heard []request
}

// request is one of them: what it takes, and the status of the answer.
type request struct {
	right
	status int
}

func (l *listener) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			return cannotStream(r), nil
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.heard = append(l.heard, request{rightOf(r), response.StatusCode})
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// count is how often a request with that verb and resource was answered so.
func (l *listener) count(verb, resource string, status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.heard {
		if r.verb == verb && r.resource == resource && r.status == status {
			n++
		}
	}
	return n
}

// refusals are the refused requests that the right would have allowed, or all.
func (l *listener) refusals(of right) []right {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []right
	for _, r := range l.heard {
		if r.status == http.StatusForbidden && (of == right{} || r.verb == of.verb && r.group == of.group && r.resource == of.resource) {
			all = append(all, r.right)
		}
	}
	return all
}

// rightOf is what a request needs.
func rightOf(r *http.Request) right {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var of right
	if parts[0] == "apis" && len(parts) > 1 {
		of.group, parts = parts[1], parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		of.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 0 {
		of.resource = parts[0]
	}
	of.verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	switch {
	case of.verb != "":
	case len(parts) > 1:
		of.verb = "get"
	case r.URL.Query().Get("watch") == "true":
		of.verb = "watch"
	default:
		of.verb = "list"
	}
	return of
}

// cannotStream is what a server says that does not begin watches with lists.
func cannotStream(r *http.Request) *http.Response {
	const body = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422, "message": "sendInitialEvents is forbidden"}`
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = w.WriteString(body) // never fails
	answer := w.Result()
	answer.Request = r
	return answer
}
