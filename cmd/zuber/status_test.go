package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/companion"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
	"github.com/zuber-storage/zuber/test/e2e/v1alpha2"
)

var updateStatus = flag.Bool("update-status", false, "write the golden files of zuber status")

// golden compares with a file of testdata, which -update-status writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "status", name)
	if *updateStatus {
		writeFile(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update-status writes it anew. Now it is\n%s", path, got)
	}
}

// settle takes out of an output what a server chooses: UIDs, and when objects were
// made and deleted.
func (w *statusWorld) settle(text string) string {
	for path, uid := range w.uids {
		text = strings.ReplaceAll(text, uid, uidOf(path))
	}
	text = regexp.MustCompile(`"created": "[^"]+"`).ReplaceAllString(text, `"created": "2026-01-02T02:00:00Z"`)
	return regexp.MustCompile(`"deleted": "[^"]+"`).ReplaceAllString(text, `"deleted": "2026-01-02T02:30:00Z"`)
}

// shows runs zuber status and holds it to what it must never do.
func shows(t *testing.T, code int, args ...string) outcomeOf {
	t.Helper()
	got := command(t, nil, append([]string{"status"}, args...)...)
	if got.code != code {
		t.Fatalf("%v: %s", args, got)
	}
	all := got.stdout + got.stderr
	if strings.Contains(all, recognisable) {
		t.Errorf("%v shows a secret access key: %s", args, all)
	}
	if raw := regexp.MustCompile("[^\n\\PC]").FindString(all); raw != "" {
		t.Errorf("%v writes the raw character %q: %q", args, raw, all)
	}
	return got
}

// checkStatus holds zuber status to the golden files, and to how it answers whom.
func (w *statusWorld) checkStatus(kubeconfig, limited string) {
	w.Helper()
	w.fill()
	for name, args := range map[string][]string{
		"all.json":     {"--kubeconfig", kubeconfig, "-A", "-o", "json"},
		"photos.json":  {"--kubeconfig", kubeconfig, "-n", "prod", "photos", "-o", "json"},
		"limited.json": {"--kubeconfig", limited, "-n", "prod", "-o", "json"},
	} {
		golden(w.T, w.version+"-"+name, w.settle(shows(w.T, exitOK, args...).stdout))
	}
	wantLines(w.T, "the table", shows(w.T, exitOK, "--kubeconfig", kubeconfig, "-n", "prod").stdout, "CLAIM ", "acme-prod-photos", "2 of 2 ready", "prod/lost")
	wantLines(w.T, "a description", shows(w.T, exitOK, "--kubeconfig", kubeconfig, "-n", "prod", "logs").stdout, "Deleting", "it holds objects")
	wantLines(w.T, "an empty namespace", shows(w.T, exitOK, "--kubeconfig", kubeconfig).stdout, "There is no BucketClaim in namespace default.")
	wantLines(w.T, "no such claim", shows(w.T, exitFailed, "--kubeconfig", kubeconfig, "-n", "prod", "nobody").stderr, "the BucketClaim nobody in namespace prod", "there is none", "zuber status --all-namespaces")
	wantLines(w.T, "no right", shows(w.T, exitFailed, "--kubeconfig", limited, "-A").stderr, "you may not list bucketclaims.objectstorage.k8s.io", "or name a namespace with --namespace")
	wantLines(w.T, "no right to one", shows(w.T, exitFailed, "--kubeconfig", limited, "-n", "dev", "photos").stderr, "you may not get bucketclaims.objectstorage.k8s.io in namespace dev")
	w.hostile(kubeconfig)
}

// hostile has objects say what a terminal would obey.
func (w *statusWorld) hostile(kubeconfig string) {
	w.Helper()
	const evil = "\x1b[31mred\x1b]0;title\x07 \u009b2J \u202eright to left\r\nState:  Ready \U000e0041"
	claim, bucket := w.claim("dev", "evil", "", map[string]string{"zuber.dev/wipe-on-delete": evil})
	w.warn(claim, "BucketClaim", "FailedCreateBucket", evil, 1)
	if !w.old() {
		w.status(bucket, map[string]any{"error": map[string]any{"message": evil + "!"}})
	}
	access := w.access("dev", "evil", "evil", "zuber-key", "ReadWrite", map[string]string{"zuber.dev/env-secret": evil, "zuber.dev/rotate-credentials-at": evil})
	w.grant(access, "evil", photosID, "x", "KEY"+evil, nil)
	w.secret(access, "zuber-rotation-"+w.uids[access], map[string]string{"rotation": `{"handled": "x", "rotated": "9999-12-31T23:59:59-23:00"}`}) // a year that JSON cannot have
	for _, args := range [][]string{{"-A"}, {"-n", "dev"}, {"-n", "dev", "evil"}, {"-A", "-o", "json"}} {
		got := shows(w.T, exitOK, append(args, "--kubeconfig", kubeconfig)...)
		if args[len(args)-1] == "json" {
			var r companion.Report
			if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
				w.Fatal(err)
			}
			if c := r.Claims[0]; c.Name != "evil" || c.WipeOnDelete != evil || c.Accesses[0].AccessKeyID != "KEY"+evil {
				w.Errorf("the JSON does not say what is there: %+v", c)
			}
		}
	}
	got := shows(w.T, exitOK, "-n", "dev", "evil", "--kubeconfig", kubeconfig).stdout
	wantLines(w.T, "an escape", got, `\x1b[31mred\x1b]0;title\a \u009b2J \u202eright to left\r\nState:`)
}

func TestStatus(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			s := newObjectServer(t, version)
			kubeconfig := s.kubeconfig(t)
			newStatusWorld(t, s, version).checkStatus(kubeconfig, actingAs(t, kubeconfig, limitedUser))
		})
	}
}

// actingAs writes a copy of a kubeconfig whose user is another one.
func actingAs(t *testing.T, kubeconfig, user string) string {
	t.Helper()
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	object(config).at("users", 0, "user").(map[string]any)["as"] = user
	if raw, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, path, string(raw))
	return path
}

// TestStatusOfCluster is TestStatus with a real API server and its RBAC.
func TestStatusOfCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters")
	}
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			c, err := cluster.Start(t.Context(), cluster.Options{Root: root, Log: os.Stderr, NoPrograms: true, NoCOSI: version == "v1alpha2"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			if version == "v1alpha2" {
				if err := v1alpha2.Install(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Kubectl(t.Context(), limitedRole, "apply", "-f", "-"); err != nil {
				t.Fatal(err)
			}
			newStatusWorld(t, c, version).checkStatus(c.Kubeconfig, actingAs(t, c.Kubeconfig, limitedUser))
		})
	}
}

// limitedRole is what the limited user may do.
const limitedRole = `
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}
---
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: limited, namespace: prod}
rules:
  - {apiGroups: [objectstorage.k8s.io], resources: [bucketclaims, bucketaccesses], verbs: [get, list]}
  - {apiGroups: [""], resources: [events], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: limited, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: limited}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: limited}]
`

// statusAt is when the golden texts are written.
var statusAt = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// TestStatusText writes the golden reports for people. docs/status.md shows some of
// them.
func TestStatusText(t *testing.T) {
	docs := readRoot(t, "docs/status.md")
	for name, shown := range map[string]bool{"v1alpha1-all": true, "v1alpha1-photos": true, "v1alpha1-limited": true, "v1alpha1-usage": true, "v1alpha2-all": false, "v1alpha2-photos": false, "v1alpha2-limited": false, "v1alpha2-usage": false} {
		raw, err := os.ReadFile(filepath.Join("testdata", "status", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var r companion.Report
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		usage := strings.HasSuffix(name, "-usage")
		if err := (statusText{Report: r, now: statusAt, allNamespaces: strings.HasSuffix(name, "-all") || usage, one: strings.HasSuffix(name, "-photos"), usage: usage, namespace: "prod"}).write(&text); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", text.String())
		if shown && !strings.Contains(docs, "```\n"+text.String()+"```\n") {
			t.Errorf("docs/status.md does not show\n%s", text.String())
		}
	}
	photos, err := os.ReadFile(filepath.Join("testdata", "status", "v1alpha1-photos.json"))
	if err != nil || !strings.Contains(docs, "```json\n"+string(photos)+"```\n") {
		t.Errorf("docs/status.md does not show v1alpha1-photos.json (%v)", err)
	}
}

// TestStatusOfNoCluster: what stands between zuber and the cluster is an error that
// says what to do.
func TestStatusOfNoCluster(t *testing.T) {
	empty := newObjectServer(t, "v1beta1")
	kubeconfig := empty.kubeconfig(t)
	got := shows(t, exitFailed, "--kubeconfig", kubeconfig)
	wantLines(t, "no COSI", got.stderr, "has no objectstorage.k8s.io of version v1alpha1 or v1alpha2", "--kubeconfig and --context")
	empty.Close()
	got = shows(t, exitFailed, "--kubeconfig", kubeconfig)
	wantLines(t, "nobody answers", got.stderr, "the API server "+empty.URL+" does not answer", "--kubeconfig and --context")
	got = shows(t, exitUsage, "--kubeconfig", kubeconfig, "--context", "other")
	wantLines(t, "no context", got.stderr, `context "other" does not exist`)
	got = shows(t, exitUsage, "--kubeconfig", filepath.Join(t.TempDir(), "none"))
	wantLines(t, "no kubeconfig", got.stderr, "no such file", "--kubeconfig")
}

func TestStatusFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"exclude each other":            {"-A", "-n", "prod"},
		"a BucketClaim is in one":       {"-A", "photos"},
		`unexpected argument "b"`:       {"a", "b"},
		`--output "yaml"`:               {"-o", "yaml"},
		`no BucketClaim can be called`:  {"../secrets/x"},
		`no namespace can be called so`: {"-n", "a/b"},
	} {
		wantLines(t, want, shows(t, exitUsage, args...).stderr, want)
	}
}

// TestKubectlPlugin: under the name of a plugin the program is one, and says so.
func TestKubectlPlugin(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/zuber": "zuber", "kubectl-zuber": "kubectl zuber", "/home/me/.krew/bin/kubectl-zuber": "kubectl zuber", "kubectl-zuber.exe": "kubectl zuber",
	} {
		if got := programOf(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	var stdout, stderr strings.Builder
	if code := runAs(t.Context(), pluginName, []string{"status", "--help"}, nil, &stdout, &stderr); code != exitOK {
		t.Fatal(stderr.String())
	}
	wantLines(t, "the help", stdout.String(), "kubectl zuber status [BUCKETCLAIM] [flags]", "  kubectl zuber status photos --namespace prod")
	if code := runAs(t.Context(), pluginName, []string{"status", "--nope"}, nil, &stdout, &stderr); code != exitUsage {
		t.Error(code)
	}
	wantLines(t, "a fault", stderr.String(), "See 'kubectl zuber status --help'.")
}
