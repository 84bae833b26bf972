package emulator

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// userBody is an objects user as the API shows it.
type userBody struct {
	HREF        string            `json:"href"`
	ID          string            `json:"id"`
	DisplayName string            `json:"display_name"`
	Keys        []userKeyBody     `json:"keys"`
	Tags        map[string]string `json:"tags"`
}

type userKeyBody struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key,omitempty"`
}

// show needs mu.
func (u *cloudscaleUser) show(call cloudscaleCall) userBody {
	key := userKeyBody{AccessKey: u.accessKey, SecretKey: u.secretKey}
	if call.grant.readOnly {
		key.SecretKey = ""
	}
	return userBody{
		HREF:        "http://" + call.Host + "/v1/objects-users/" + u.id,
		ID:          u.id,
		DisplayName: u.displayName,
		Keys:        []userKeyBody{key},
		Tags:        maps.Clone(u.tags),
	}
}

// find returns the called user if the token's project has it. It needs mu.
func (c *Cloudscale) find(call cloudscaleCall) (*cloudscaleUser, bool) {
	i := slices.IndexFunc(c.users, func(u *cloudscaleUser) bool {
		return u.id == call.id && u.project == call.grant.project
	})
	if i < 0 {
		return nil, false
	}
	return c.users[i], true
}

// tagClause is the one tag filter a list takes; an empty value matches any.
type tagClause struct{ key, value string }

func (t tagClause) matches(tags map[string]string) bool {
	if t.key == "" {
		return true
	}
	value, ok := tags[t.key]
	return ok && (t.value == "" || t.value == value)
}

// parseTagClause reports false for more than one clause.
func parseTagClause(query url.Values) (tagClause, bool) {
	var found []tagClause
	for name, values := range query {
		key, ok := strings.CutPrefix(name, "tag:")
		if !ok {
			continue
		}
		for _, v := range values {
			found = append(found, tagClause{key, v})
		}
	}
	switch len(found) {
	case 0:
		return tagClause{}, true
	case 1:
		return found[0], true
	}
	return tagClause{}, false
}

func (c *Cloudscale) listUsers(call cloudscaleCall) cloudscaleReply {
	clause, ok := parseTagClause(call.URL.Query())
	if !ok {
		return detail(http.StatusBadRequest, "At most one tag: clause can be passed")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []userBody{}
	for _, u := range c.users {
		if u.project == call.grant.project && clause.matches(u.tags) {
			list = append(list, u.show(call))
		}
	}
	return cloudscaleReply{http.StatusOK, list}
}

func (c *Cloudscale) getUser(call cloudscaleCall) cloudscaleReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, ok := c.find(call)
	if !ok {
		return notFound()
	}
	return cloudscaleReply{http.StatusOK, u.show(call)}
}

func (c *Cloudscale) createUser(call cloudscaleCall) cloudscaleReply {
	in, refusal := readUserInput(call.Request)
	if refusal != nil {
		return *refusal
	}
	if in.displayName == nil {
		return fieldError("display_name", "This field is required.")
	}
	u := newCloudscaleUser(call.grant.project, *in.displayName, in.tags)
	if u.tags == nil {
		u.tags = map[string]string{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users = append(c.users, u)
	c.projects[u.id] = u.project
	c.ring.add(u.accessKey, objectstore.Key{
		Secret:   u.secretKey,
		Identity: objectstore.Identity{UID: u.id, DisplayName: u.displayName},
	})
	return cloudscaleReply{http.StatusCreated, u.show(call)}
}

func (c *Cloudscale) updateUser(call cloudscaleCall) cloudscaleReply {
	in, refusal := readUserInput(call.Request)
	c.mu.Lock()
	defer c.mu.Unlock()
	u, ok := c.find(call)
	if !ok {
		return notFound()
	}
	if refusal != nil {
		return *refusal
	}
	switch {
	case in.displayName != nil && in.tags != nil:
		return detail(http.StatusBadRequest, "Only one attribute can be changed at a time.")
	case in.displayName != nil:
		u.displayName = *in.displayName
		c.ring.rename(u.accessKey, u.displayName)
	case in.tags != nil:
		u.tags = in.tags
	default:
		return detail(http.StatusBadRequest, "No attribute to change was passed.")
	}
	return cloudscaleReply{status: http.StatusNoContent}
}

func (c *Cloudscale) deleteUser(call cloudscaleCall) cloudscaleReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, ok := c.find(call)
	if !ok {
		return notFound()
	}
	if len(c.store.OwnedBuckets(u.id)) > 0 {
		return detail(http.StatusBadRequest, "The objects user still owns buckets and cannot be deleted.")
	}
	c.users = slices.DeleteFunc(c.users, func(other *cloudscaleUser) bool { return other == u })
	c.ring.remove(u.accessKey)
	return cloudscaleReply{status: http.StatusNoContent}
}
