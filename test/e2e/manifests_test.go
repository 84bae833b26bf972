package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeployments: the API server takes every overlay, and the pod that each
// makes is allowed in the namespace, whose security level is restricted.
func TestDeployments(t *testing.T) {
	s := together(t)
	for _, overlay := range []string{"manager", "cloudscale", "stackit", "stackit-federation"} {
		t.Run(overlay, func(t *testing.T) {
			out, err := s.Kubectl(t.Context(), "", "apply", "--dry-run=server", "-o", "json", "-k", filepath.Join(root, "config", overlay))
			if err != nil {
				t.Fatal(err)
			}
			var applied object
			if err := json.Unmarshal([]byte(out), &applied); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, o := range applied.list("items") {
				if o.text("kind") != "Deployment" {
					continue
				}
				found = true
				s.podAllowed(o)
			}
			if !found {
				t.Error("there is no Deployment")
			}
		})
	}
}

// podAllowed: a Deployment's Pod may be made in the driver's namespace.
func (s *story) podAllowed(deployment object) {
	s.Helper()
	template := deployment.at("spec", "template").(map[string]any)
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "zuber"}, "spec": template["spec"]}
	delete(pod["spec"].(map[string]any), "serviceAccountName")
	create := func() error {
		_, err := s.Send(s.Context(), "POST", "/api/v1/namespaces/zuber-system/pods?dryRun=All", pod)
		return err
	}
	if err := create(); err != nil {
		s.Error(err)
	}
	// So that the check is known to see something.
	delete(pod["spec"].(map[string]any), "securityContext")
	if err := create(); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		s.Errorf("a pod that is not restricted: %v", err)
	}
}
