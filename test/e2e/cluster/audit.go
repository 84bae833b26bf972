package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sidecarUser is the ServiceAccount of config/rbac to the API server.
const sidecarUser = "system:serviceaccount:zuber-system:zuber"

// auditPolicy records what the sidecar asks for, without any content.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "users": ["` + sidecarUser + `"]}, {"level": "None"}]}`

// Request is what the sidecar has asked the API server for.
type Request struct {
	Verb string
	// Resource has the subresource, too, as a role names it: buckets/status.
	Resource string
}

// SidecarRequests lists every kind of request that sidecars have made since the
// start of the cluster, each once, whether allowed or not.
func (c *Cluster) SidecarRequests() (map[Request]bool, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "logs", "audit.log"))
	if err != nil {
		return nil, err
	}
	all := map[Request]bool{}
	for line := range strings.Lines(string(text)) {
		var event struct {
			Verb      string
			ObjectRef struct{ Resource, Subresource string }
		}
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		resource := event.ObjectRef.Resource
		if sub := event.ObjectRef.Subresource; sub != "" {
			resource += "/" + sub
		}
		all[Request{event.Verb, resource}] = true
	}
	return all, nil
}
