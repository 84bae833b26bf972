package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/gc"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// cosiGroup is the API group of COSI, in all its versions.
const cosiGroup = "objectstorage.k8s.io"

// expectation builds what should exist from COSI's objects. Both versions have the
// same fields in the same places, as far as they are read here.
type expectation struct {
	driverName string
	backends   map[string]bool
	gc.Expected
}

func newExpectation(driverName string, backends []driver.Backend) *expectation {
	e := &expectation{driverName: driverName, backends: map[string]bool{}}
	for _, b := range backends {
		e.backends[b.Name] = true
	}
	return e
}

// add expects what an object of COSI stands for, also if another driver's name is on
// it: keeping those of others costs nothing. An object without an ID yet owns what it
// would be called.
func (e *expectation) add(o unstructured.Unstructured) error {
	if o.GetName() == "" || o.GetUID() == "" {
		return fmt.Errorf("%w: a %s has no name or no UID", provider.ErrInvalidArgument, o.GetKind())
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(o.Object, path...)
		return s
	}
	ours := strings.EqualFold(text("spec", "driverName"), e.driverName)
	switch o.GetKind() {
	case "Bucket":
		e.AddBucket(o.GetName())
		e.AddBucket(plannedName(o))
		for _, id := range []string{text("status", "bucketID"), text("spec", "existingBucketID")} {
			ours = e.addBucketID(id) || ours
		}
	case "BucketAccess":
		ours = strings.EqualFold(text("status", "driverName"), e.driverName)
		account := "ba-" + string(o.GetUID())
		id, err := driver.ParseAccountID(text("status", "accountID"))
		if err != nil {
			e.AddAccount(account, "")
			break
		}
		e.AddAccount(account, id.IdentityID)
		e.AddAccount(id.Account, id.IdentityID)
		ours = ours || e.backends[id.Backend]
	}
	if ours {
		e.Ours++
	}
	return nil
}

// plannedName is the name that a Bucket's class and claim make, "" if they make none.
func plannedName(o unstructured.Unstructured) string {
	var claim driver.Claim
	for _, field := range []string{"bucketClaim", "bucketClaimRef"} { // of v1alpha1, of v1alpha2
		if ref, found, _ := unstructured.NestedStringMap(o.Object, "spec", field); found {
			claim = driver.Claim{Namespace: ref["namespace"], Name: ref["name"]}
		}
	}
	parameters, _, _ := unstructured.NestedStringMap(o.Object, "spec", "parameters")
	return driver.NameOf(o.GetName(), claim, parameters)
}

// addBucketID expects the bucket of an ID, whose short forms are its name alone or
// with one part before it. It reports whether the ID is of one of the back ends.
func (e *expectation) addBucketID(id string) bool {
	e.AddBucket(id)
	parts := strings.Split(id, "/")
	if len(parts) == 2 {
		e.AddBucket(parts[1])
	}
	parsed, err := driver.ParseBucketID(id)
	if err != nil {
		return false
	}
	e.AddBucket(parsed.Bucket)
	return e.backends[parsed.Backend]
}

// expectFunc returns what reads what should exist, as the settings say.
func (s gcSettings) expectFunc(env environment, backends []driver.Backend) (func(context.Context) (gc.Expected, error), error) {
	read, err := s.objectsFunc(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (gc.Expected, error) {
		e := newExpectation(s.DriverName, backends)
		e.None = s.AssumeNone
		for _, name := range s.KeepBuckets {
			e.AddBucket(name)
		}
		if read == nil {
			return e.Expected, nil
		}
		if err := s.checkFileAge(); err != nil {
			return gc.Expected{}, err
		}
		objects, err := read(ctx)
		if err != nil {
			return gc.Expected{}, fmt.Errorf("what should exist is not known, so nothing is an orphan: %w", err)
		}
		for _, o := range objects {
			if err := e.add(o); err != nil {
				return gc.Expected{}, err
			}
		}
		return e.Expected, nil
	}, nil
}

// checkFileAge refuses to delete by a file that was written before some of what is old
// enough to go was made: the objects of that would not be in it.
func (s gcSettings) checkFileAge() error {
	if s.File == "" || !s.Delete || s.MinAge == 0 {
		return nil
	}
	info, err := os.Stat(s.File)
	if err != nil {
		return err
	}
	if age := time.Since(info.ModTime()); age >= s.MinAge {
		return fmt.Errorf("%w: %s was written %s ago, and what was made since then is not in it; write it anew, at most %s (--%s) before the deletion",
			errIncomplete, s.File, age.Round(time.Second), s.MinAge, flagMinAge)
	}
	return nil
}

// objectsFunc returns what reads the Buckets and BucketAccesses; nil if nothing is
// to be read.
func (s clusterSettings) objectsFunc(env environment) (func(context.Context) ([]unstructured.Unstructured, error), error) {
	switch {
	case s.AssumeNone:
		return nil, nil
	case s.File != "":
		return func(context.Context) ([]unstructured.Unstructured, error) { return objectsInFile(s.File) }, nil
	}
	config, err := s.restConfig(env)
	if err != nil {
		return nil, &usageError{fmt.Errorf("the cluster: %w; name one with --%s, a file with --%s, or say --%s", err, flagKubeconfig, flagFile, flagAssumeNone)}
	}
	return func(ctx context.Context) ([]unstructured.Unstructured, error) { return objectsInCluster(ctx, config) }, nil
}

func (s clusterSettings) restConfig(env environment) (config *rest.Config, err error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig}
	if s.Kubeconfig == "" {
		for _, path := range strings.Split(env[envKubeconfig], string(os.PathListSeparator)) {
			if path != "" {
				rules.Precedence = append(rules.Precedence, path)
			}
		}
	}
	if rules.ExplicitPath == "" && len(rules.Precedence) == 0 {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, nil).ClientConfig()
	}
	if err != nil {
		return nil, err
	}
	config.UserAgent = "zuber/" + readBuild().Version
	config.Timeout = clusterTimeout
	return config, nil
}

// objectsInFile reads a List, or documents, of Buckets and BucketAccesses.
func objectsInFile(path string) ([]unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for n, document := range strings.Split("\n"+string(raw), "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, n+1, err)
		}
		if o == nil {
			continue
		}
		if _, list := o["items"]; !list {
			all = append(all, unstructured.Unstructured{Object: o})
			continue
		}
		list := unstructured.Unstructured{Object: o}
		if more, _, _ := unstructured.NestedString(o, "metadata", "continue"); more != "" {
			return nil, fmt.Errorf("%s, document %d: %w: the list is cut off and goes on in another one", path, n+1, errIncomplete)
		}
		items, err := list.ToList()
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, n+1, err)
		}
		all = append(all, items.Items...)
	}
	for _, o := range all {
		known := o.GetKind() == "Bucket" || o.GetKind() == "BucketAccess"
		if group := o.GroupVersionKind().Group; group != cosiGroup || !known {
			return nil, fmt.Errorf("%s: it holds a %s of group %q; want Buckets and BucketAccesses of %s alone", path, o.GetKind(), group, cosiGroup)
		}
	}
	return all, nil
}

// errIncomplete: not everything is there that should be.
var errIncomplete = errors.New("the answer is not whole")

// cosiResources are what is read of COSI.
func cosiResources() []string { return []string{"buckets", "bucketaccesses"} }

// cosiVersions are the versions whose fields are known here.
func cosiVersions() []schema.GroupVersion {
	return []schema.GroupVersion{{Group: cosiGroup, Version: "v1alpha2"}, {Group: cosiGroup, Version: "v1alpha1"}}
}
