package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEqualsKustomize: config/cloudscale with config/companion and the chart with
// ci/cloudscale.yaml make the same objects, but for what follows from how each of
// them is told about the back end.
func TestEqualsKustomize(t *testing.T) {
	kubectl := binaries(t).Kubectl
	var overlays []object
	for _, name := range []string{"cloudscale", "companion"} {
		out, err := run(t, kubectl, "kustomize", filepath.Join(root, "config", name))
		if err != nil {
			t.Fatal(err)
		}
		overlays = append(overlays, parse(t, out)...)
	}
	want := named(t, overlays)
	got := named(t, parse(t, render(t, inChart("cloudscale.yaml"))))

	// The namespace is Helm's --create-namespace, and classes are config/samples.
	delete(want, "Namespace zuber-system")
	for _, extra := range []string{"ConfigMap zuber-system/zuber", "BucketClass zuber-rma", "BucketAccessClass zuber-key"} {
		if got[extra] == nil {
			t.Errorf("the chart makes no %s", extra)
		}
		delete(got, extra)
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Fatalf("the chart makes\n%q\nand kustomize\n%q", a, b)
	}
	for name, o := range want {
		mine, theirs := lines("", effect(got[name])), lines("", effect(o))
		for _, line := range mine {
			if !slices.Contains(theirs, line) {
				t.Errorf("%s: the chart alone has %s", name, line)
			}
		}
		for _, line := range theirs {
			if !slices.Contains(mine, line) {
				t.Errorf("%s: kustomize alone has %s", name, line)
			}
		}
	}
}

// named are objects by kind and name.
func named(t *testing.T, all []object) map[string]object {
	t.Helper()
	m := map[string]object{}
	for _, o := range all {
		metadata := o["metadata"].(object)
		name := fmt.Sprint(metadata["name"])
		if ns := metadata["namespace"]; ns != nil {
			name = fmt.Sprint(ns, "/", name)
		}
		key := fmt.Sprint(o["kind"], " ", name)
		if m[key] != nil {
			t.Fatalf("%s is there twice", key)
		}
		m[key] = o
	}
	return m
}

// effect is what of an object differs in more than its labels, where it names an
// image, and how the driver is told about its back end.
func effect(o object) object {
	o = maps.Clone(o)
	delete(o, "metadata")
	spec, ok := o["spec"].(object)
	if !ok || o["kind"] != "Deployment" {
		return o
	}
	delete(spec, "selector")
	template := spec["template"].(object)
	metadata := template["metadata"].(object)
	delete(metadata, "labels")
	delete(metadata["annotations"].(object), "checksum/config")
	pod := template["spec"].(object)
	aside := func(list any, key string, prefixes ...string) []any {
		return slices.DeleteFunc(slices.Clone(list.([]any)), func(item any) bool {
			text := fmt.Sprint(item)
			if m, ok := item.(object); ok {
				text = fmt.Sprint(m[key])
			}
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
		})
	}
	pod["volumes"] = aside(pod["volumes"], "name", "config", "backend-", "cloudscale")
	for _, c := range pod["containers"].([]any) {
		container := c.(object)
		delete(container, "imagePullPolicy")
		container["volumeMounts"] = aside(container["volumeMounts"], "name", "config", "backend-", "cloudscale")
		if container["name"] != "zuber" {
			continue
		}
		delete(container, "image")
		delete(container, "env")
		container["args"] = aside(container["args"], "", "--config=")
	}
	return o
}

// lines are the leaves of a value with their paths.
func lines(path string, value any) []string {
	switch v := value.(type) {
	case object:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, lines(path+"."+key, v[key])...)
		}
		return all
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, lines(path+"[]", item)...)
		}
		return all
	}
	return []string{fmt.Sprint(path, " = ", value)}
}
