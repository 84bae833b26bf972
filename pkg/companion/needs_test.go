package companion

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// Where a right is given that a RoleBinding gives in the namespaces of users.
const withUsers = "of its users"

// need says what users miss without one right. A verb of a resource in one place
// is a right; a row is all that a new one takes.
type need struct {
	verbs, group, resource, namespace string
	miss                              string // the part of their lives that fails, see lives
}

// needs has every right of config/companion and of config/companion-per-namespace.
//
// A server that streams is not asked for the lists of what is watched. The server
// here is one that cannot, as the companion works with those, too. The lists of
// Buckets, of BucketClaims, and of Secrets in the namespaces of users are also asked
// for by themselves.
func needs() []need {
	const coordination, zuberSystem = "coordination.k8s.io", "zuber-system"
	return []need{
		{"get", cosiGroup, "bucketclaims", "", "wiped"},
		{"list", cosiGroup, "bucketclaims", "", "env Secret"},
		{"watch", cosiGroup, "bucketclaims", "", "bucketclaims at once"},
		{"get", cosiGroup, "buckets", "", "claim found"},
		{"list", cosiGroup, "buckets", "", "env Secret"},
		{"watch", cosiGroup, "buckets", "", "buckets at once"},
		{"list", cosiGroup, "bucketaccesses", "", "env Secret"},
		{"watch", cosiGroup, "bucketaccesses", "", "bucketaccesses at once"},
		{"list", cosiGroup, "bucketaccessclasses", "", "env Secret"},
		{"watch", cosiGroup, "bucketaccessclasses", "", "bucketaccessclasses at once"},
		{"create", "", "events", "", "env Secret"},
		{"patch", "", "events", "", "failures counted"},
		{"list", "", "events", clusterEvents, "env Secret"},
		{"watch", "", "events", clusterEvents, "events at once"},
		{"get", "", "namespaces", "", "tenant found"},
		{"get create", coordination, "leases", zuberSystem, "env Secret"},
		{"update", coordination, "leases", zuberSystem, "Lease kept"},
		{"get create list", "", "secrets", "", "env Secret"},
		{"update", "", "secrets", "", "env Secret healed"},
		{"delete", "", "secrets", "", "env Secret moved"},
		{"watch", "", "secrets", "", "secrets at once"},
		{"get create", "", "secrets", withUsers, "env Secret"},
		{"update", "", "secrets", withUsers, "env Secret healed"},
		{"list delete", "", "secrets", withUsers, "env Secret moved"},
	}
}

// granted lists the rights that a directory of config gives. A ClusterRole that is
// not bound in it is for the namespaces of users.
func granted(t *testing.T, c *cluster.Cluster, dir string) []right {
	t.Helper()
	text, err := c.Kubectl(t.Context(), "", "kustomize", "../../config/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	rules, places := map[string][]rbacv1.PolicyRule{}, map[string]string{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []rbacv1.PolicyRule
			RoleRef  rbacv1.RoleRef
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		role := func(kind, name string) string { return kind + " " + o.Metadata.Namespace + "/" + name }
		switch o.Kind {
		case "ClusterRole", "Role":
			rules[role(o.Kind, o.Metadata.Name)] = o.Rules
		case "ClusterRoleBinding", "RoleBinding":
			places[role(o.RoleRef.Kind, o.RoleRef.Name)] = o.Metadata.Namespace
		default:
			t.Fatalf("config/%s has a %s", dir, o.Kind)
		}
	}
	var all []right
	for role, of := range rules {
		place, bound := places[role]
		if !bound {
			place = withUsers
		}
		for _, rule := range of {
			for _, resource := range rule.Resources {
				all = append(all, rights(rule.APIGroups[0], resource, place, rule.Verbs...)...)
			}
		}
	}
	return all
}

// TestEveryRightIsNeeded lives with the companion, once with all its rights and
// once without each of them, although it would not start by itself then: without
// it, the part of users' lives that the table names is not as it should be, and with
// it, all are. A right that is not in the table, or not in config, is a fault.
func TestEveryRightIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	c, err := cluster.Start(t.Context(), cluster.Options{Root: "../..", Log: os.Stderr, NoPrograms: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	everywhere, perNamespace := granted(t, c, "companion"), granted(t, c, "companion-per-namespace")
	var known []right
	for _, n := range needs() {
		known = append(known, rights(n.group, n.resource, n.namespace, strings.Fields(n.verbs)...)...)
	}
	all := slices.Concat(everywhere, perNamespace)
	for _, r := range all {
		if !slices.Contains(known, r) {
			t.Errorf("nobody is known to need the right to %s", r)
		}
	}
	for _, r := range known {
		if !slices.Contains(all, r) {
			t.Errorf("config does not give the right to %s", r)
		}
	}
	// They wait for most of their time, but each of them begins with much work, and
	// all at once they would lose their Leases for want of a processor.
	const atOnce = 6
	var parties errgroup.Group
	parties.SetLimit(atOnce)
	defer func() { _ = parties.Wait() }() // each fails its own test
	beside := func(name string, run func(t *testing.T)) {
		parties.Go(func() error {
			t.Run(name, run)
			return nil
		})
	}
	for name, all := range map[string][]right{"everywhere": everywhere, "per namespace": perNamespace} {
		beside(name, func(t *testing.T) { newParty(t, c, all, right{}).lives(name == "everywhere") })
	}
	for _, n := range needs() {
		from := everywhere
		if n.namespace == withUsers {
			from = perNamespace
		}
		for _, r := range rights(n.group, n.resource, n.namespace, strings.Fields(n.verbs)...) {
			beside("without "+r.String(), func(t *testing.T) { newParty(t, c, from, r).misses(n.miss) })
		}
	}
}

// lives goes through all parts of users' lives, with all rights.
func (p *party) lives(everywhere bool) {
	p.Helper()
	for _, l := range lives() {
		if l.everywhere && !everywhere {
			continue
		}
		if err := l.run(p); err != nil {
			p.Errorf("%s: %v", l.name, err)
		}
	}
	if refused := p.server.refusals(right{}); len(refused) > 0 {
		p.Errorf("refused: %v", refused)
	}
}

// mend gives back the right to list what is watched, and then the companion works:
// without it, it waits for its caches.
func (p *party) mend(l life) {
	p.Helper()
	if p.lacks.verb != "list" || !l.first {
		return
	}
	p.allow(p.ns+"-back", p.lacks)
	p.expects = false
	if err := l.run(p); err != nil {
		p.Errorf("%s with the right: %v", l.name, err)
	}
}

// errMissed is what a user misses because the API server refused something.
var errMissed = errors.New("missed")

// misses lives up to the part that is to fail, and wants it to.
func (p *party) misses(name string) {
	p.Helper()
	for _, l := range lives() {
		if l.name != name && (!l.first || p.lacks.resource == "leases") { // else it may be over before
			continue
		}
		p.expects = l.name == name
		err := l.run(p)
		if l.name == name {
			if !errors.Is(err, errMissed) {
				p.Errorf("%s: %v; want it to be missed", name, err)
			}
			if len(p.server.refusals(p.lacks)) == 0 {
				p.Errorf("%s: nothing was refused", name)
			}
			p.mend(l)
			return
		}
		if err != nil {
			p.Fatalf("%s: %v", l.name, err)
		}
	}
	p.Fatalf("no part of lives is called %s", name)
}

// within bounds one part of a life.
const within = time.Minute

// refusedAgain reports whether the right that is lacking was refused, and once more
// when it was tried again. Without a watch all is listed instead, in the end.
func (p *party) refusedAgain() bool {
	const again = 2
	return p.lacks.verb != "watch" && len(p.server.refusals(p.lacks)) >= again
}

// sees waits for a condition. If it is expected to be missed, it is when what it
// takes was refused again and again, or when the user is told to ask for the right.
func (p *party) sees(condition func() error) error {
	ctx, cancel := context.WithTimeout(p.Context(), within)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if p.expects && (p.refusedAgain() || p.told("photos", ReasonEnvSecretForbidden, 1) == nil) {
			return fmt.Errorf("%w: %w", errMissed, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", within, err)
		}
	}
}
