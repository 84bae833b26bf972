package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// object is a Kubernetes object.
type object map[string]any

// at follows keys and indices; it is nil where the path ends early.
func (o object) at(path ...any) any {
	var here any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := here.(map[string]any)
			here = m[step]
		case int:
			list, _ := here.([]any)
			if step >= len(list) {
				return nil
			}
			here = list[step]
		}
	}
	return here
}

func (o object) kind() string { s, _ := o.at("kind").(string); return s }

// readManifest parses every document of a file, refusing duplicate keys.
func readManifest(t *testing.T, path string) []object {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var o map[string]any // a named type would be the type of inner maps too
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, o)
	}
}

// manifests reads everything under config but the chart, whose files are templates,
// values and copies: test/chart is about it.
func manifests(t *testing.T) map[string][]object {
	t.Helper()
	all := map[string][]object{}
	dir := filepath.Join(root, "config")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "chart" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[name] = readManifest(t, path)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d manifests, %v", len(all), err)
	}
	return all
}

func TestManifestsAreObjects(t *testing.T) {
	for name, objects := range manifests(t) {
		if name == "samples/backends.yaml" {
			continue // a configuration of ours, see TestSampleConfiguration
		}
		if len(objects) == 0 {
			t.Errorf("%s holds nothing", name)
		}
		for i, o := range objects {
			version, _ := o.at("apiVersion").(string)
			if o.kind() == "" || version == "" {
				t.Errorf("%s, document %d: apiVersion or kind is missing", name, i)
			}
			if o.kind() != "Kustomization" && o.at("metadata", "name") == nil {
				t.Errorf("%s, document %d: the %s has no name", name, i, o.kind())
			}
		}
	}
}

// TestKustomizations: what they list is there, and every other file of their
// directory is listed.
func TestKustomizations(t *testing.T) {
	all := manifests(t)
	found := 0
	for name, objects := range all {
		if filepath.Base(name) != "kustomization.yaml" {
			continue
		}
		found++
		dir := filepath.Dir(name)
		listed, _ := objects[0].at("resources").([]any)
		for _, resource := range listed {
			if remote, _ := resource.(string); strings.Contains(remote, "://") {
				if !strings.HasSuffix(remote, "?ref=v0.2.2") {
					t.Errorf("%s takes %s without a fixed version", name, remote)
				}
				continue
			}
			path := filepath.Join(dir, resource.(string))
			_, file := all[path]
			_, directory := all[filepath.Join(path, "kustomization.yaml")]
			if !file && !directory {
				t.Errorf("%s lists %s, which there is not", name, resource)
			}
		}
		for other := range all {
			if filepath.Dir(other) == dir && other != name && !slices.Contains(listed, any(filepath.Base(other))) {
				t.Errorf("%s does not list %s", name, filepath.Base(other))
			}
		}
	}
	if found != 10 {
		t.Errorf("%d kustomizations, want 10", found)
	}
}

func deployment(t *testing.T) object {
	t.Helper()
	return readManifest(t, filepath.Join(root, "config/manager/deployment.yaml"))[0]
}

// container returns a container of the Deployment.
func container(t *testing.T, name string) object {
	t.Helper()
	list, _ := deployment(t).at("spec", "template", "spec", "containers").([]any)
	for _, c := range list {
		if o := object(c.(map[string]any)); o.at("name") == name {
			return o
		}
	}
	t.Fatalf("the Deployment has no container %s", name)
	return nil
}

// TestDeploymentStarts takes the container's command line and checks it as the
// program does.
func TestDeploymentStarts(t *testing.T) {
	c := container(t, "zuber")
	var args []string
	for _, a := range c.at("args").([]any) {
		args = append(args, a.(string))
	}
	if args[0] != "serve" {
		t.Fatalf("args %q", args)
	}
	s := bound(t, nil, args[1:]...)
	if s.Endpoint != "unix:///var/lib/cosi/cosi.sock" || s.DriverName != defaultDriverName || s.AllowDeleteAll {
		t.Errorf("%+v", s)
	}
	_, port, _ := strings.Cut(s.MetricsAddress, ":")
	if got := c.at("ports", 0, "containerPort"); port != "8080" || got != 8080 {
		t.Errorf("metrics on %s, port %v", s.MetricsAddress, got)
	}
	wantKnownVariables(t, c)
	grace := deployment(t).at("spec", "template", "spec", "terminationGracePeriodSeconds").(int)
	if float64(grace) <= s.ShutdownTimeout.Seconds() {
		t.Errorf("%d s of grace do not cover --shutdown-timeout %s", grace, s.ShutdownTimeout)
	}
}

// wantKnownVariables checks a container's variables against those documented.
func wantKnownVariables(t *testing.T, c object) {
	t.Helper()
	known := readRoot(t, "docs/flags.md")
	list, _ := c.at("env").([]any)
	if len(list) == 0 {
		t.Error("the container has no variables")
	}
	for _, e := range list {
		if name, _ := e.(map[string]any)["name"].(string); !strings.Contains(known, "`"+name+"`") {
			t.Errorf("the variable %q is not known", name)
		}
	}
}

// TestStackitPatches: what the patches set is known, what they mount is there,
// and what they take out is in the Deployment.
func TestStackitPatches(t *testing.T) {
	for _, name := range []string{"stackit", "stackit-federation"} {
		text, _ := manifests(t)[name+"/kustomization.yaml"][0].at("patches", 0, "patch").(string)
		path := filepath.Join(t.TempDir(), "patch.yaml")
		writeFile(t, path, text)
		patch := readManifest(t, path)[0]
		if patch.at("metadata", "name") != "zuber" || patch.at("metadata", "namespace") != "zuber-system" || patch.kind() != "Deployment" {
			t.Errorf("%s patches %v", name, patch.at("metadata"))
		}
		spec := []any{"spec", "template", "spec"}
		volumes := append(slices.Clone(spec), "volumes")
		c := object(patch.at(append(slices.Clone(spec), "containers", 0)...).(map[string]any))
		if c.at("name") != "zuber" {
			t.Errorf("%s patches the container %v", name, c.at("name"))
		}
		wantKnownVariables(t, c)
		if volume := patch.at(append(volumes, 0, "name")...); volume == nil || volume != c.at("volumeMounts", 0, "name") {
			t.Errorf("%s mounts %v and has %v", name, c.at("volumeMounts", 0, "name"), volume)
		}
		variables, whole := c.at("env").([]any), container(t, "zuber")
		if whole.at("env", 0, "name") != c.at("env", len(variables)-1, "name") ||
			whole.at("volumeMounts", 1, "mountPath") != c.at("volumeMounts", 1, "mountPath") ||
			deployment(t).at(append(volumes, 1, "name")...) != patch.at(append(volumes, 1, "name")...) {
			t.Errorf("%s takes out what the Deployment does not have", name)
		}
		mount, _ := c.at("volumeMounts", 0, "mountPath").(string)
		file := mount + "/token"
		if name == "stackit" {
			file, _ = c.at("env", 0, "value").(string)
		} else if file != stackit.DefaultFederatedTokenFile {
			t.Errorf("%s: the token is at %s", name, file)
		}
		if filepath.Dir(file) != mount {
			t.Errorf("%s: %s is not in %s", name, file, mount)
		}
	}
}

// probeCode asks a handler as the kubelet does.
func probeCode(t *testing.T, handler http.Handler, path string) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+strings.TrimPrefix(path, "/"), nil))
	return recorder.Code
}

func TestDeploymentProbesExist(t *testing.T) {
	c := container(t, "zuber")
	handler := webHandler(prometheus.NewRegistry(), func() error { return nil })
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		path, _ := c.at(probe, "httpGet", "path").(string)
		if code := probeCode(t, handler, path); code != 200 || path == "" {
			t.Errorf("%s %q answers %d", probe, path, code)
		}
	}
}

// TestDeploymentIsRestricted: what the namespace's pod security level wants, for
// both containers, and a socket that both can use.
func TestDeploymentIsRestricted(t *testing.T) {
	pod := deployment(t)
	spec := []any{"spec", "template", "spec"}
	if pod.at(append(spec, "securityContext", "runAsNonRoot")...) != true ||
		pod.at(append(spec, "securityContext", "fsGroup")...) != 65532 ||
		pod.at(append(spec, "securityContext", "seccompProfile", "type")...) != "RuntimeDefault" {
		t.Errorf("security context of the pod: %v", pod.at(append(spec, "securityContext")...))
	}
	for _, name := range []string{"zuber", "sidecar"} {
		c := container(t, name)
		if c.at("securityContext", "readOnlyRootFilesystem") != true || c.at("securityContext", "allowPrivilegeEscalation") != false ||
			c.at("securityContext", "capabilities", "drop", 0) != "ALL" {
			t.Errorf("%s: %v", name, c.at("securityContext"))
		}
		if c.at("resources", "requests", "memory") == nil || c.at("resources", "limits", "memory") == nil {
			t.Errorf("%s: %v", name, c.at("resources"))
		}
		if c.at("volumeMounts", 0, "mountPath") != "/var/lib/cosi" || c.at("volumeMounts", 0, "name") != "socket" {
			t.Errorf("%s: %v", name, c.at("volumeMounts"))
		}
	}
	if image := container(t, "sidecar").at("image"); image != "registry.k8s.io/sig-storage/objectstorage-sidecar:v0.2.2" {
		t.Errorf("sidecar image %v", image)
	}
}

// TestRBAC holds the permissions to what the sidecar needs and no more.
func TestRBAC(t *testing.T) {
	want := map[string]string{
		"buckets": "get list watch update", "bucketclaims": "get update", "bucketaccesses": "list watch update delete",
		"buckets/status": "update", "bucketclaims/status": "update", "bucketaccesses/status": "update",
		"bucketclasses": "get", "bucketaccessclasses": "get",
		"secrets": "get create update delete", "events": "create patch",
		"leases": "get create update",
	}
	got := map[string]string{}
	for _, file := range []string{"rbac/clusterrole.yaml", "rbac/role.yaml"} {
		objects := manifests(t)[file]
		rules, _ := objects[0].at("rules").([]any)
		for _, rule := range rules {
			r := object(rule.(map[string]any))
			verbs := []string{}
			for _, v := range r.at("verbs").([]any) {
				verbs = append(verbs, v.(string))
			}
			for _, resource := range r.at("resources").([]any) {
				got[resource.(string)] = strings.Join(verbs, " ")
			}
		}
		binding := objects[1]
		if binding.at("subjects", 0, "name") != "zuber" || binding.at("subjects", 0, "namespace") != "zuber-system" ||
			binding.at("roleRef", "name") != objects[0].at("metadata", "name") || binding.at("roleRef", "kind") != objects[0].kind() {
			t.Errorf("%s: the binding does not bind: %v", file, binding)
		}
	}
	for resource, verbs := range want {
		if got[resource] != verbs {
			t.Errorf("%s: %q, want %q", resource, got[resource], verbs)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	if name := deployment(t).at("spec", "template", "spec", "serviceAccountName"); name != manifests(t)["rbac/serviceaccount.yaml"][0].at("metadata", "name") {
		t.Errorf("the Deployment runs as %v", name)
	}
}

// TestSamples: the samples of a provider fit each other, and its classes work
// with the driver.
func TestSamples(t *testing.T) {
	all := manifests(t)
	for provider, bucket := range map[string]string{providerCloudscale: "photos", providerStackit: "reports"} {
		dir := "samples/" + provider + "/v1alpha1/"
		classes, claim := all[dir+"classes.yaml"], all[dir+"claim.yaml"]
		names := map[any]bool{}
		for _, o := range classes {
			names[o.at("metadata", "name")] = true
			if o.at("driverName") != defaultDriverName {
				t.Errorf("%s%s: driver name %v", dir, o.kind(), o.at("driverName"))
			}
			if o.kind() == "BucketAccessClass" && o.at("authenticationType") != "Key" {
				t.Errorf("%sauthenticationType %v", dir, o.at("authenticationType"))
			}
		}
		if !names[claim[0].at("spec", "bucketClassName")] || claim[0].at("metadata", "name") != bucket {
			t.Errorf("%sclaim.yaml: %v", dir, claim[0])
		}
		for _, access := range claim[1:] {
			if !names[access.at("spec", "bucketAccessClassName")] || access.at("spec", "bucketClaimName") != bucket {
				t.Errorf("%sclaim.yaml: %v", dir, access)
			}
		}
		if secret := claim[1].at("spec", "credentialsSecretName"); secret != all[dir+"pod.yaml"][0].at("spec", "volumes", 0, "secret", "secretName") || secret == nil {
			t.Errorf("%spod.yaml does not mount %v", dir, secret)
		}
		tryClasses(t, classes)
	}
}

// tryClasses makes a bucket of a BucketClass and grants an access of every
// BucketAccessClass.
func tryClasses(t *testing.T, classes []object) {
	t.Helper()
	cloud, specs, err := startEmulator(backendSettings{}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cloud.Close() }()
	backends, err := openAll(specs, wiring{DriverName: defaultDriverName})
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.New(driver.Config{Name: defaultDriverName, Backends: backends})
	if err != nil {
		t.Fatal(err)
	}
	client, err := cosi.NewClient(cosi.Options{Driver: d})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	id, err := client.CreateBucket(t.Context(), "bucket-sample", parametersOf(classes[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range classes[1:] {
		if _, err := client.GrantAccess(t.Context(), id, "ba-"+c.at("metadata", "name").(string), parametersOf(c)); err != nil {
			t.Error(err)
		}
	}
}

// parametersOf are the parameters of a class.
func parametersOf(class object) map[string]string {
	parameters := map[string]string{}
	all, _ := class.at("parameters").(map[string]any)
	for key, value := range all {
		parameters[key], _ = value.(string)
	}
	return parameters
}

func TestSampleConfiguration(t *testing.T) {
	file, err := readConfigFile(filepath.Join(root, "config/samples/backends.yaml"))
	if err != nil || len(file.Backends) != 4 {
		t.Errorf("%+v, %v", file, err)
	}
}
