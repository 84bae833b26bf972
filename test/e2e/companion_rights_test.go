package e2e

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// companionRoles are where the rights of config/companion are.
func companionRoles() []string {
	return []string{
		"clusterroles/zuber-companion", "clusterroles/zuber-companion-secrets", "clusterroles/zuber-companion-watched-secrets",
		"namespaces/zuber-system/roles/zuber-companion", "namespaces/default/roles/zuber-companion",
	}
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// grants lists "verb resource" of a role.
func (s *story) grants(path string) []string {
	s.Helper()
	role, err := s.Get(s.Context(), rbacPath+path)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for _, rule := range object(role).list("rules") {
		for _, resource := range rule.texts("resources") {
			for _, verb := range rule.texts("verbs") {
				all = append(all, verb+" "+resource)
			}
		}
	}
	return all
}

// TestCompanionRoles does what the companion does for users, and compares what it
// asked the API server for with what config/companion allows it: neither is more.
func TestCompanionRoles(t *testing.T) {
	s := alone(t)
	s.Driver.Extra = []string{"--allow-wipe-annotation"}
	defer func() {
		s.Driver.Extra = nil
		s.restart(s.Driver)
	}()
	s.restart(s.Driver)
	claim := s.claim("photos", s.class(cloudscale, "bucketNameIncludeNamespace", "true", "bucketNameFrom", "claim"))
	access := s.access("photos", "photos", s.accessClass())
	s.annotate(access, envSecret, "photos-env")
	info := s.infoNaming(access, s.ns+"-photos")
	want := variablesOf(t, info, info.Spec.BucketName)
	s.wantVariables("photos-env", want)
	s.patch(s.secretNamed("photos-env"), map[string]any{"stringData": map[string]any{"MORE": "x"}})
	s.wantVariables("photos-env", want)
	s.annotate(access, envSecret, "")
	s.gone(s.secretNamed("photos-env"))
	s.annotate(access, rotateAt, "today")
	s.wantOnce(access, "CredentialsRotated")
	info = s.bucketInfo(access)
	if err := info.s3().put(t.Context(), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	s.annotate(claim, wipeOnDelete, "true")
	// A failure that goes on is repeated in the claim's event.
	s.event(s.claim("nowhere", s.class(cloudscale, "region", "nowhere")), "nowhere")
	s.delete(claim)
	// Every namespace has this label.
	s.ready(s.claim("labelled", s.class(cloudscale, "objectsUser", "tenant", "tenantFromNamespaceLabel", "kubernetes.io/metadata.name")))

	allowed := map[string]bool{}
	for _, path := range companionRoles() {
		for _, grant := range s.grants(path) {
			allowed[grant] = true
		}
	}
	s.eventually(func() error {
		requests, err := s.Requests(cluster.CompanionUser)
		if err != nil {
			return err
		}
		unused := maps.Clone(allowed)
		for r := range requests {
			what := r.Verb + " " + r.Resource
			// Everybody may ask what the server has, and what they may do.
			if r.Resource == "" || strings.HasPrefix(r.Resource, "selfsubject") {
				continue
			}
			if !allowed[what] {
				t.Fatalf("the companion asked for %q, which is not granted", what)
			}
			delete(unused, what)
			if r.Verb == "watch" {
				// A server that can streams the list as the beginning of a watch; one that
				// cannot is asked for it.
				delete(unused, "list "+r.Resource)
			}
		}
		if len(unused) > 0 {
			return fmt.Errorf("granted and not used: %q", slices.Sorted(maps.Keys(unused)))
		}
		return nil
	})
}

// TestCompanionWithoutRights takes each right of the companion away in turn. It
// says which one it lacks, and the driver works on.
func TestCompanionWithoutRights(t *testing.T) {
	s := alone(t)
	claim := s.claim("photos", s.class(cloudscale))
	for _, path := range companionRoles() {
		role, err := s.Get(t.Context(), rbacPath+path)
		if err != nil {
			t.Fatal(err)
		}
		for i, rule := range object(role).list("rules") {
			for j, verb := range rule.texts("verbs") {
				if err := s.tryWithout(path, role, i, j); err != nil {
					t.Errorf("%s without %s %v: %v", path, verb, rule.texts("resources"), err)
				}
			}
		}
	}
	s.restart(s.Driver)
	s.ready(claim)
}

// tryWithout takes one verb of a rule away for one run of the driver.
func (s *story) tryWithout(path string, role object, rule, verb int) error {
	rules := role.list("rules")
	verbs := rules[rule].texts("verbs")
	less := make([]any, len(rules))
	for i, r := range rules {
		less[i] = r
	}
	copied := maps.Clone(rules[rule])
	copied["verbs"] = slices.Delete(slices.Clone(verbs), verb, verb+1)
	less[rule] = copied
	if len(verbs) == 1 {
		less = slices.Delete(less, rule, rule+1)
	}
	if _, err := s.Send(s.Context(), "PATCH", rbacPath+path, map[string]any{"rules": less}); err != nil {
		return err
	}
	defer func() {
		if _, err := s.Send(s.Context(), "PATCH", rbacPath+path, map[string]any{"rules": role.at("rules")}); err != nil {
			s.Error(err)
		}
	}()
	before := len(s.Driver.Log())
	s.restart(s.Driver)
	var wants []string
	for _, resource := range rules[rule].texts("resources") {
		wants = append(wants, verbs[verb]+" "+resource)
	}
	if strings.HasSuffix(path, "-secrets") {
		wants = []string{`"secretsEverywhere":false`}
	}
	var last error
	s.eventually(func() error {
		log := s.Driver.Log()[before:]
		switch {
		case !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(log, want) }):
			last = nil
		case strings.Contains(log, "The companion works"):
			last = errors.New("the companion works without it")
		default:
			return errors.New("the companion has said nothing yet")
		}
		return nil
	})
	return last
}

// TestSecretRightsPerNamespace: without the rights to all Secrets, the companion
// says what to type for a namespace, and that is all it takes.
func TestSecretRightsPerNamespace(t *testing.T) {
	s := alone(t)
	binding, err := s.Get(t.Context(), rbacPath+"clusterrolebindings/zuber-companion-secrets")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "DELETE", rbacPath+"clusterrolebindings/zuber-companion-secrets", nil); err != nil {
		t.Fatal(err)
	}
	defer func() {
		delete(binding["metadata"].(map[string]any), "resourceVersion")
		if _, err := s.Send(t.Context(), "POST", rbacPath+"clusterrolebindings", binding); err != nil {
			t.Error(err)
		}
		s.restart(s.Driver)
	}()
	s.restart(s.Driver)
	s.claim("photos", s.class(cloudscale, fromClaim("acme")...))
	access := s.access("photos", "photos", s.accessClass())
	s.annotate(access, envSecret, "photos-env")
	s.claim("plain", s.class(cloudscale))
	other := s.access("other", "plain", s.accessClass())
	old := s.bucketInfo(other)
	s.annotate(other, rotateAt, "today")
	// Whoever reads COSI's Secret before somebody gives the right is told the name.
	s.event(access, "EnvSecretForbidden: the bucket of the Secret photos-credentials is called acme-"+s.ns+"-photos, whatever its bucketName says: ")
	s.event(other, "RotationForbidden: ")
	var remedy string
	for _, text := range s.events(access) {
		if found := regexp.MustCompile(`kubectl create rolebinding \S+ --namespace=\S+ --clusterrole=\S+ --serviceaccount=\S+`).FindString(text); found != "" {
			remedy = found
		}
	}
	s.shell(remedy)
	info := s.infoNaming(access, "acme-"+s.ns+"-photos")
	want := variablesOf(t, info, info.Spec.BucketName)
	s.wantVariables("photos-env", want)
	s.wantUsable(s.rotated(other, old).s3())
	// Nothing is watched here, but looked at every minute.
	s.deleteSoon(s.secretNamed("photos-env"))
	s.wantVariables("photos-env", want)
}
