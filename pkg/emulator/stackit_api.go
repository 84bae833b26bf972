package emulator

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stackitCall is one authenticated request of the control plane.
type stackitCall struct {
	*http.Request
	stackitScope
	// id is the last variable element of the path: a bucket's name, a group's or
	// a key's id.
	id string
}

// stackitReply is an answer.
type stackitReply struct {
	status int
	body   any
}

// stackitError is the API's own error shape, ErrorMessage in its description.
type stackitError struct {
	Detail []stackitErrorDetail `json:"detail"`
}

type stackitErrorDetail struct {
	Key string `json:"key"`
	Msg string `json:"msg"`
}

// stackitProblem answers in the API's own error shape.
func stackitProblem(status int, key, format string, args ...any) stackitReply {
	return stackitReply{status, stackitError{[]stackitErrorDetail{{key, fmt.Sprintf(format, args...)}}}}
}

// stackitInvalid is the shape of what the API's framework refuses, 422 always;
// HTTPValidationError in the API's description.
type stackitInvalid struct {
	Detail []stackitInvalidDetail `json:"detail"`
}

type stackitInvalidDetail struct {
	// Loc holds strings and ints.
	Loc  []any  `json:"loc"`
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

func stackitRefusal(kind, msg string, loc ...any) stackitReply {
	return stackitReply{http.StatusUnprocessableEntity, stackitInvalid{[]stackitInvalidDetail{{loc, msg, kind}}}}
}

// stackitForbidden is the shape of the gateway before the API.
type stackitForbidden struct {
	Timestamp string `json:"timestamp"`
	Path      string `json:"path"`
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Message   string `json:"message"`
}

// stackitAction is one method of a path.
type stackitAction struct {
	method    string
	path      string // below the project and region; "{}" is one variable element
	operation string // the SDK's name, which Fault and Call use
	serve     func(*Stackit, *stackitCall) stackitReply
}

func stackitActions() []stackitAction {
	return []stackitAction{
		{http.MethodGet, "", "GetServiceStatus", (*Stackit).getServiceStatus},
		{http.MethodPost, "", "EnableService", (*Stackit).enableService},
		{http.MethodDelete, "", "DisableService", (*Stackit).disableService},
		{http.MethodGet, "buckets", "ListBuckets", (*Stackit).listBuckets},
		{http.MethodPost, "bucket/{}", "CreateBucket", (*Stackit).createBucket},
		{http.MethodGet, "bucket/{}", "GetBucket", (*Stackit).getBucket},
		{http.MethodDelete, "bucket/{}", "DeleteBucket", (*Stackit).deleteBucket},
		{http.MethodPut, "bucket/{}/default-retention", "SetDefaultRetention", (*Stackit).setDefaultRetention},
		{http.MethodGet, "bucket/{}/default-retention", "GetDefaultRetention", (*Stackit).getDefaultRetention},
		{http.MethodDelete, "bucket/{}/default-retention", "DeleteDefaultRetention", (*Stackit).deleteDefaultRetention},
		{http.MethodPost, "compliance-lock", "CreateComplianceLock", (*Stackit).createComplianceLock},
		{http.MethodGet, "compliance-lock", "GetComplianceLock", (*Stackit).getComplianceLock},
		{http.MethodDelete, "compliance-lock", "DeleteComplianceLock", (*Stackit).deleteComplianceLock},
		{http.MethodGet, "credentials-groups", "ListCredentialsGroups", (*Stackit).listGroups},
		{http.MethodPost, "credentials-group", "CreateCredentialsGroup", (*Stackit).createGroup},
		{http.MethodGet, "credentials-group/{}", "GetCredentialsGroup", (*Stackit).getGroup},
		{http.MethodDelete, "credentials-group/{}", "DeleteCredentialsGroup", (*Stackit).deleteGroup},
		{http.MethodGet, "access-keys", "ListAccessKeys", (*Stackit).listAccessKeys},
		{http.MethodPost, "access-key", "CreateAccessKey", (*Stackit).createAccessKey},
		{http.MethodDelete, "access-key/{}", "DeleteAccessKey", (*Stackit).deleteAccessKey},
	}
}

// stackitPath is a path taken apart.
type stackitPath struct {
	stackitScope
	id      string
	actions []stackitAction // one per method; none if the path is unknown
}

// parseStackitPath takes /v2/project/{projectId}/regions/{region}/… apart. The
// scope is empty if the path does not begin like that.
func parseStackitPath(u *url.URL) stackitPath {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i := range parts {
		// EscapedPath is a valid encoding.
		parts[i], _ = url.PathUnescape(parts[i])
	}
	if len(parts) < 5 || parts[0] != "v2" || parts[1] != "project" || parts[2] == "" || parts[3] != "regions" {
		return stackitPath{}
	}
	p := stackitPath{stackitScope: stackitScope{parts[2], parts[4]}}
	for _, a := range stackitActions() {
		if id, ok := matchStackitPath(a.path, parts[5:]); ok {
			p.id = id
			p.actions = append(p.actions, a)
		}
	}
	return p
}

func matchStackitPath(pattern string, parts []string) (id string, ok bool) {
	if pattern == "" {
		return "", len(parts) == 0
	}
	want := strings.Split(pattern, "/")
	if len(want) != len(parts) {
		return "", false
	}
	for i, w := range want {
		switch {
		case w == "{}" && parts[i] != "":
			id = parts[i]
		case w != parts[i]:
			return "", false
		}
	}
	return id, true
}

func (p stackitPath) action(method string) (stackitAction, bool) {
	i := slices.IndexFunc(p.actions, func(a stackitAction) bool { return a.method == method })
	if i < 0 {
		return stackitAction{}, false
	}
	return p.actions[i], true
}

// stackitOperation names a call for faults and records.
func stackitOperation(r *http.Request) string {
	if r.URL.Path == stackitTokenPath {
		return "Token"
	}
	a, _ := parseStackitPath(r.URL).action(r.Method)
	return a.operation
}

func (c *Stackit) serveAPI(w http.ResponseWriter, r *http.Request) {
	var reply stackitReply
	if r.URL.Path == stackitTokenPath {
		w.Header().Set("Cache-Control", "no-store")
		reply = c.serveToken(r)
	} else {
		reply = c.answer(r)
	}
	body, err := json.Marshal(reply.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if reply.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	trace := make([]byte, 16)
	_, _ = rand.Read(trace) // never fails
	w.Header().Set("X-Trace-Id", hex.EncodeToString(trace))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(reply.status)
	// The client may be gone; nobody is left to be told.
	_, _ = w.Write(body)
}

// answer lets the gateway speak first: token, project. The API's framework
// follows with path, method and the form of the request, and what the request
// means comes last.
func (c *Stackit) answer(r *http.Request) stackitReply {
	path := parseStackitPath(r.URL)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return stackitProblem(http.StatusUnauthorized, "auth.missing", "The request carries no bearer token")
	}
	project, err := c.issuer.project(token)
	if err != nil {
		return stackitProblem(http.StatusUnauthorized, "auth.invalid", "The bearer token is invalid or has expired")
	}
	if path.project != "" && path.project != project {
		return stackitReply{http.StatusForbidden, stackitForbidden{
			Timestamp: c.now().UTC().Format("2006-01-02T15:04:05.000+00:00"), Path: r.URL.Path,
			Status: http.StatusForbidden, Error: "Forbidden", Message: "Unauthorized",
		}}
	}
	if path.actions == nil {
		return stackitReply{http.StatusNotFound, map[string]string{"detail": "Not Found"}}
	}
	action, ok := path.action(r.Method)
	if !ok {
		return stackitReply{http.StatusMethodNotAllowed, map[string]string{"detail": "Method Not Allowed"}}
	}
	if c.stores[path.region] == nil {
		return stackitRefusal("enum", "Input should be 'eu01' or 'eu02'", "path", "region")
	}
	return action.serve(c, &stackitCall{Request: r, stackitScope: path.stackitScope, id: path.id})
}

// withTenant runs do under the lock, on a tenant that is enabled.
func (c *Stackit) withTenant(s stackitScope, do func(*stackitTenant) stackitReply) stackitReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[s]
	if !t.enabled {
		return stackitProblem(http.StatusNotFound, "project.not_found", "The project could not be found")
	}
	return do(t)
}

// seenBy draws the moment from which lists show a write. It needs mu.
func (c *Stackit) seenBy() time.Time { return c.now().Add(c.options.ListDelay.draw(c.rng)) }

// stackitTime is how the API shows times.
func stackitTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// newUUID makes a random UUID.
func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
