package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// clusterTimeout bounds one call of the API server.
	clusterTimeout = time.Minute
	// clusterPage is how many objects one call asks for.
	clusterPage = 500
)

// objectsInCluster lists every Bucket and BucketAccess of the cluster, of every
// version of COSI that is served. Any doubt that this is all is an error.
func objectsInCluster(ctx context.Context, config *rest.Config) ([]unstructured.Unstructured, error) {
	served, err := servedVersions(ctx, config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for _, version := range served {
		for _, resource := range cosiResources() {
			objects, err := listAll(ctx, client.Resource(version.WithResource(resource)))
			if err != nil {
				return nil, fmt.Errorf("list the %s of %s: %w", resource, version, err)
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// servedVersions returns the versions of COSI that the cluster has both resources of.
func servedVersions(ctx context.Context, config *rest.Config) ([]schema.GroupVersion, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	// The client's own methods take no context, and would hold up the end of the process.
	ask := client.RESTClient().Get
	var groups metav1.APIGroupList
	if err := ask().AbsPath("/apis").Do(ctx).Into(&groups); err != nil {
		return nil, fmt.Errorf("ask the cluster for its API groups: %w", err)
	}
	var served []schema.GroupVersion
	for _, g := range groups.Groups {
		if g.Name != cosiGroup {
			continue
		}
		for _, v := range g.Versions {
			version := schema.GroupVersion{Group: g.Name, Version: v.Version}
			var resources metav1.APIResourceList
			if err := ask().AbsPath("/apis", version.Group, version.Version).Do(ctx).Into(&resources); err != nil {
				return nil, fmt.Errorf("ask the cluster for the resources of %s: %w", version, err)
			}
			missing := slices.DeleteFunc(cosiResources(), func(name string) bool {
				return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
			})
			switch {
			case len(missing) == len(cosiResources()):
				// It is that of the classes or claims alone, and holds nothing of the clouds.
			case len(missing) > 0:
				return nil, fmt.Errorf("%w: the cluster serves %s without its %s", errIncomplete, version, strings.Join(missing, " and "))
			case !slices.Contains(cosiVersions(), version):
				return nil, fmt.Errorf("the cluster serves %s, which this version of zuber does not know; take a newer one", version)
			default:
				served = append(served, version)
			}
		}
	}
	if len(served) == 0 {
		return nil, fmt.Errorf("the cluster has no Buckets and BucketAccesses of %s: check that it is the right one", cosiGroup)
	}
	return served, nil
}

// listAll reads a list page by page. The first page says how many follow; fewer
// than that are an error, as is an end of the pages before the last.
func listAll(ctx context.Context, resource dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	promised := 0
	options := metav1.ListOptions{Limit: clusterPage}
	for {
		page, err := resource.List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if remaining := page.GetRemainingItemCount(); remaining != nil {
			promised = max(promised, len(all)+int(*remaining))
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if len(all) < promised {
		return nil, fmt.Errorf("%w: %d objects were announced and %d came", errIncomplete, promised, len(all))
	}
	return all, nil
}
