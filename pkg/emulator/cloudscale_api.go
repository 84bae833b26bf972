package emulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// cloudscaleCall is one authenticated request of the control plane.
type cloudscaleCall struct {
	*http.Request
	grant cloudscaleGrant
	id    string // the last path element of a single object
}

// cloudscaleReply is an answer; a nil body is an empty one.
type cloudscaleReply struct {
	status int
	body   any
}

// detail is the shape of an error that belongs to no field.
func detail(status int, format string, args ...any) cloudscaleReply {
	return cloudscaleReply{status, map[string]string{"detail": fmt.Sprintf(format, args...)}}
}

// fieldError is the shape of an error of one field: a string, not a list.
func fieldError(field, message string) cloudscaleReply {
	return cloudscaleReply{http.StatusBadRequest, map[string]string{field: message}}
}

func notFound() cloudscaleReply { return detail(http.StatusNotFound, "Not found.") }

// cloudscaleAction is one method of a resource.
type cloudscaleAction struct {
	method    string
	operation string // as Fault and Call name it
	serve     func(*Cloudscale, cloudscaleCall) cloudscaleReply
}

// cloudscaleRoute finds a path's actions. The API has no trailing slashes.
func cloudscaleRoute(path string) (actions []cloudscaleAction, id string) {
	const users = "/v1/objects-users"
	switch path {
	case "/v1/regions":
		return []cloudscaleAction{{http.MethodGet, "ListRegions", (*Cloudscale).listRegions}}, ""
	case "/v1/metrics/buckets":
		return []cloudscaleAction{{http.MethodGet, "GetBucketMetrics", (*Cloudscale).bucketMetrics}}, ""
	case users:
		return []cloudscaleAction{
			{http.MethodGet, "ListObjectsUsers", (*Cloudscale).listUsers},
			{http.MethodPost, "CreateObjectsUser", (*Cloudscale).createUser},
		}, ""
	}
	id, ok := strings.CutPrefix(path, users+"/")
	if !ok || id == "" || strings.Contains(id, "/") {
		return nil, ""
	}
	return []cloudscaleAction{
		{http.MethodGet, "GetObjectsUser", (*Cloudscale).getUser},
		{http.MethodPatch, "UpdateObjectsUser", (*Cloudscale).updateUser},
		{http.MethodDelete, "DeleteObjectsUser", (*Cloudscale).deleteUser},
	}, id
}

// actionFor picks the action of a method; HEAD is GET without the body.
func actionFor(actions []cloudscaleAction, method string) (cloudscaleAction, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(actions, func(a cloudscaleAction) bool { return a.method == method })
	if i < 0 {
		return cloudscaleAction{}, false
	}
	return actions[i], true
}

// cloudscaleOperation names a call for faults and records.
func cloudscaleOperation(r *http.Request) string {
	actions, _ := cloudscaleRoute(r.URL.Path)
	a, _ := actionFor(actions, r.Method)
	return a.operation
}

func (c *Cloudscale) serveAPI(w http.ResponseWriter, r *http.Request) {
	actions, id := cloudscaleRoute(r.URL.Path)
	setCloudscaleHeaders(w.Header(), actions)
	if r.Method == http.MethodOptions {
		// A browser asks before it has credentials.
		w.WriteHeader(http.StatusOK)
		return
	}
	reply := c.answer(r, actions, id)
	if reply.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if reply.body == nil {
		w.Header().Del("Content-Type")
		w.WriteHeader(reply.status)
		return
	}
	body, err := json.Marshal(reply.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(reply.status)
	// The client may be gone; nobody is left to be told.
	_, _ = w.Write(body)
}

// answer checks in the order of Django REST framework, which the API's messages
// point to: path, token, permission, method.
func (c *Cloudscale) answer(r *http.Request, actions []cloudscaleAction, id string) cloudscaleReply {
	if actions == nil {
		return notFound()
	}
	grant, refusal := c.authenticate(r.Header.Get("Authorization"))
	if refusal != "" {
		return detail(http.StatusUnauthorized, "%s", refusal)
	}
	if grant.readOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return detail(http.StatusForbidden, "You do not have permission to perform this action.")
	}
	action, ok := actionFor(actions, r.Method)
	if !ok {
		return detail(http.StatusMethodNotAllowed, "Method %q not allowed.", r.Method)
	}
	return action.serve(c, cloudscaleCall{Request: r, grant: grant, id: id})
}

// authenticate returns what the header opens, or why it opens nothing.
func (c *Cloudscale) authenticate(header string) (grant cloudscaleGrant, refusal string) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return cloudscaleGrant{}, "Authentication credentials were not provided."
	}
	grant, ok := c.tokens[token]
	if !ok {
		return cloudscaleGrant{}, "Invalid token."
	}
	return grant, ""
}

// setCloudscaleHeaders sets what was recorded from the real API.
func setCloudscaleHeaders(h http.Header, actions []cloudscaleAction) {
	h.Set("Server", "nginx")
	h.Set("Content-Type", "application/json")
	h.Set("Content-Language", "en")
	h["Vary"] = []string{"Accept-Encoding", "Accept-Language, Cookie"}
	h.Set("Strict-Transport-Security", "max-age=15768000; includeSubDomains")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization")
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS, PUT, PATCH, DELETE")
	if actions == nil {
		return
	}
	var allow []string
	for _, a := range actions {
		allow = append(allow, a.method)
	}
	h.Set("Allow", strings.Join(append(allow, http.MethodHead, http.MethodOptions), ", "))
}

type regionBody struct {
	Slug  string     `json:"slug"`
	Zones []zoneBody `json:"zones"`
}

type zoneBody struct {
	Slug string `json:"slug"`
}

func (c *Cloudscale) listRegions(cloudscaleCall) cloudscaleReply {
	var regions []regionBody
	for _, name := range c.ring.regions {
		regions = append(regions, regionBody{Slug: name, Zones: []zoneBody{{Slug: name + "1"}}})
	}
	return cloudscaleReply{http.StatusOK, regions}
}
