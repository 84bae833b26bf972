package emulator

import (
	"net/http"
	"time"
)

// stackitGroup is a credentials group. Stackit.mu guards its keys.
type stackitGroup struct {
	id, displayName, urn, userURN string
	keys                          []*stackitKey // in the order of creation
}

// valid drops the keys that have expired and returns the others.
func (g *stackitGroup) valid(now time.Time) []*stackitKey {
	kept := make([]*stackitKey, 0, len(g.keys))
	for _, k := range g.keys {
		if k.expires.IsZero() || now.Before(k.expires) {
			kept = append(kept, k)
		}
	}
	g.keys = kept
	return kept
}

type groupBody struct {
	ID          string `json:"credentialsGroupId"`
	DisplayName string `json:"displayName"`
	URN         string `json:"urn"`
}

// groupExtendedBody is what reading a single group adds.
type groupExtendedBody struct {
	groupBody
	UserURN string `json:"userUrn"`
}

type groupReplyBody struct {
	Project string `json:"project"`
	Group   any    `json:"credentialsGroup"`
}

type groupsBody struct {
	Project string      `json:"project"`
	Groups  []groupBody `json:"credentialsGroups"`
}

type groupDeletedBody struct {
	Project string `json:"project"`
	ID      string `json:"credentialsGroupId"`
}

func (g *stackitGroup) body() groupBody { return groupBody{g.id, g.displayName, g.urn} }

func noGroup() stackitReply {
	return stackitProblem(http.StatusNotFound, "credentials_group.not_found", "The credentials group could not be found")
}

// groupIDLength is the length of a UUID.
const groupIDLength = 36

func (c *Stackit) listGroups(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		body := groupsBody{Project: t.project, Groups: []groupBody{}}
		for _, g := range t.groupList.at(c.now()) {
			body.Groups = append(body.Groups, g.body())
		}
		return stackitReply{http.StatusOK, body}
	})
}

// createGroup makes one more group each time: names are not unique.
func (c *Stackit) createGroup(call *stackitCall) stackitReply {
	members, refusal := readStackitBody(call.Request)
	if refusal != nil {
		return *refusal
	}
	name, refusal := displayNameOf(members)
	if refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.newGroup(name)
		t.groups[g.id] = g
		t.groupList.add(g.id, g, c.seenBy())
		return stackitReply{http.StatusCreated, groupReplyBody{t.project, g.body()}}
	})
}

// newGroup makes a group whose URN is its own within the account.
func (t *stackitTenant) newGroup(displayName string) *stackitGroup {
	for {
		identity := "credentials-group-" + randomString("0123456789abcdef", 6)
		g := &stackitGroup{
			id: newUUID(), displayName: displayName,
			urn:     "urn:sgws:identity::" + t.account + ":group/" + identity,
			userURN: "urn:sgws:identity::" + t.account + ":user/" + identity,
		}
		if !t.hasURN(g.urn) {
			return g
		}
	}
}

func (t *stackitTenant) hasURN(urn string) bool {
	for _, g := range t.groups {
		if g.urn == urn {
			return true
		}
	}
	return false
}

func (c *Stackit) getGroup(call *stackitCall) stackitReply {
	if refusal := stringOfLength(call.id, groupIDLength, groupIDLength, "path", "groupId"); refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.groups[call.id]
		if g == nil {
			return noGroup()
		}
		return stackitReply{http.StatusOK, groupReplyBody{t.project, groupExtendedBody{g.body(), g.userURN}}}
	})
}

func (c *Stackit) deleteGroup(call *stackitCall) stackitReply {
	if refusal := stringOfLength(call.id, groupIDLength, groupIDLength, "path", "groupId"); refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.groups[call.id]
		if g == nil {
			return noGroup()
		}
		if len(g.valid(c.now())) > 0 {
			// Declared is the framework's shape; that the API sends its own is what a
			// client has to be ready for.
			return stackitProblem(http.StatusUnprocessableEntity, "credentials_group.not_empty", "The credentials group still has access keys")
		}
		delete(t.groups, g.id)
		t.groupList.remove(g.id, c.seenBy())
		return stackitReply{http.StatusOK, groupDeletedBody{t.project, g.id}}
	})
}
