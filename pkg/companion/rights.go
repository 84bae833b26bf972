package companion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// right is what the companion must be allowed to do. An empty namespace is all
// of them.
type right struct {
	verb, group, resource, namespace string
}

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.namespace != "" {
		s += " in namespace " + r.namespace
	}
	return s
}

func rights(group, resource, namespace string, verbs ...string) []right {
	var all []right
	for _, verb := range verbs {
		all = append(all, right{verb, group, resource, namespace})
	}
	return all
}

// clusterEvents is where Kubernetes keeps the events of objects without a
// namespace.
const clusterEvents = "default"

// requiredRights are those without which the companion does not start.
func requiredRights(version, namespace string) []right {
	all := slices.Concat(
		rights(cosiGroup, "bucketclaims", "", "get", "list", "watch"),
		rights(cosiGroup, "buckets", "", "get", "list", "watch"),
		rights(cosiGroup, "bucketaccesses", "", "list", "watch"),
		rights("", "events", "", "create", "patch"),
		rights("", "namespaces", "", "get"),
		rights("coordination.k8s.io", "leases", namespace, "get", "create", "update"),
	)
	if version == v1alpha1 {
		// v1alpha2 has in status what these say.
		all = append(all, rights(cosiGroup, "bucketaccessclasses", "", "list", "watch")...)
		all = append(all, rights("", "events", clusterEvents, "list", "watch")...)
	}
	return all
}

// secretRights are those that it needs in a namespace with env Secrets or rotation.
// Where it has them in all, it watches its Secrets.
func secretRights() []right {
	return rights("", "secrets", "", "get", "list", "watch", "create", "update", "delete")
}

// missing returns the rights that the API server would refuse.
func missing(ctx context.Context, c client.Client, all []right) ([]string, error) {
	var absent []string
	for _, r := range all {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace},
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("ask for the right to %s: %w", r, err)
		}
		if !review.Status.Allowed {
			absent = append(absent, r.String())
		}
	}
	return absent, nil
}

// subject is the companion itself, as kubectl create rolebinding names it.
func subject(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask who the companion is: %w", err)
	}
	user := review.Status.UserInfo.Username
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		return "--serviceaccount=" + account, nil
	}
	return "--user=" + user, nil
}
