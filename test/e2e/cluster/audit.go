package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The ServiceAccounts of config/rbac and of config/companion to the API server.
const (
	SidecarUser   = "system:serviceaccount:zuber-system:zuber"
	CompanionUser = "system:serviceaccount:zuber-system:" + companionAccount
)

// auditPolicy records what these two ask for, without any content.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "users": ["` + SidecarUser + `", "` + CompanionUser + `"]}, {"level": "None"}]}`

// Request is what somebody has asked the API server for.
type Request struct {
	Verb string
	// Resource has the subresource, too, as a role names it: buckets/status.
	Resource string
}

// Requests lists every kind of request that a user has made since the start of the
// cluster, each once, whether allowed or not.
func (c *Cluster) Requests(user string) (map[Request]bool, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "logs", "audit.log"))
	if err != nil {
		return nil, err
	}
	all := map[Request]bool{}
	for line := range strings.Lines(string(text)) {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if event.User.Username != user {
			continue
		}
		resource := event.ObjectRef.Resource
		if sub := event.ObjectRef.Subresource; sub != "" {
			resource += "/" + sub
		}
		all[Request{event.Verb, resource}] = true
	}
	return all, nil
}
