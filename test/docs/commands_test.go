package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// elsewhere says of commands that begin so, or pages, why they are not run here.
func elsewhere() map[string]string {
	return map[string]string{
		"docs/backup.md":   "TestBackup of test/e2e runs it",
		"docs/gitops.md":   "TestGitOps of test/e2e applies its files",
		"docs/releases.md": "it takes a release, and a Docker engine",

		"go run ./cmd/zuber selftest --emulate":  "TestReadmeShowsARun of cmd/zuber runs it",
		"zuber ":                                 "TestDocumentedCommands of cmd/zuber runs it",
		"kubectl zuber ":                         "it is zuber; TestKubectlPlugin of cmd/zuber runs it",
		"ln -s ":                                 "it changes the machine",
		"bin/zuber ":                             "it runs until it is stopped; TestServe and TestEmulate of cmd/zuber run it",
		"go test ":                               "it is what runs this",
		"CLOUDSCALE_API_TOKEN=":                  "it takes an account",
		"STACKIT_SERVICE_ACCOUNT_KEY_PATH=":      "it takes an account",
		"docker ":                                "it takes a Docker engine",
		"grpcurl ":                               "it takes grpcurl and the socket of a driver in a Pod",
		"sigs.k8s.io.cosi.v1alpha2.Provisioner/": "it is the second line of grpcurl",
		"kubectl apply -k config/crd":            "it names upstream by its address; test/e2e/cluster applies it with a copy",
		"kubectl -n zuber-system rollout status": "no Pod runs here",
		"kubectl -n zuber-system logs ":          "no Pod runs here",
		"kubectl apply -k config/stackit":        "TestManifests of cmd/zuber builds it",
	}
}

// objects are what the commands of the documents are about, under the names that
// fill their places.
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Secret
metadata: {name: photos-credentials, namespace: team}
---
apiVersion: v1
kind: Secret
metadata: {name: photos-credentials, namespace: default}
data: {BucketInfo: e30=}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: Bucket
metadata: {name: bucket-photos, finalizers: [cosi.objectstorage.k8s.io/bucket-protection]}
spec: {driverName: cosi.zuber.dev, bucketClassName: zuber-rma, deletionPolicy: Delete, protocols: [S3], parameters: {region: rma}, bucketClaim: {name: photos, namespace: team}}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: NAMESPACE}
spec: {bucketClassName: zuber-rma, protocols: [S3]}
---
apiVersion: objectstorage.k8s.io/v1alpha1
kind: BucketAccess
metadata: {name: photos, namespace: NAMESPACE}
spec: {bucketClaimName: photos, bucketAccessClassName: zuber-key, protocol: S3, credentialsSecretName: photos-credentials}
`

// TestCommands runs the commands that the documents show, page by page, with names
// in the places of NAMES, against an API server that has such objects.
func TestCommands(t *testing.T) {
	c := start(t)
	dir := workplace(t, c)
	filled := strings.NewReplacer("NAMESPACE", "team", "BACKEND/REGION/BUCKET", "cloudscale/rma/bucket-photos", "BUCKET", "bucket-photos",
		"TOKEN_FILE", "cloudscale.token", "CLAIM", "photos", "ACCESS", "photos", "SECRET", "photos-credentials", "NAME", "photos")
	not := elsewhere()
	used, ran, prepared := map[string]bool{}, 0, false
	for _, p := range pages(t) {
		if _, skip := not[p.path]; skip {
			used[p.path] = true
			continue
		}
		for _, b := range p.blocks() {
			if b.language != "sh" {
				continue
			}
			var script []string
			for line := range strings.Lines(b.text) {
				prefix := beginning(not, line)
				if prefix != "" {
					used[prefix] = true
					continue
				}
				script = append(script, filled.Replace(line))
			}
			if len(script) == 0 {
				continue
			}
			ran++
			if !prepared {
				prepare(t, c)
			}
			prepared = !strings.Contains(b.text, "delete")
			if err := bash(t, dir, strings.Join(script, "")); err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
			}
		}
	}
	for prefix := range not {
		if !used[prefix] {
			t.Errorf("no command begins with %q", prefix)
		}
	}
	if ran < 20 {
		t.Errorf("%d blocks were run", ran)
	}
}

// prepare makes the objects, or those anew that commands have deleted.
func prepare(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var all []string
	for _, namespace := range []string{"team", "default"} {
		all = append(all, strings.ReplaceAll(objects, "NAMESPACE", namespace))
	}
	if _, err := c.Kubectl(t.Context(), strings.Join(all, "\n---\n"), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// beginning is the key that a line begins with.
func beginning(of map[string]string, line string) string {
	for prefix := range of {
		if strings.HasPrefix(strings.TrimSpace(line), prefix) {
			return prefix
		}
	}
	return ""
}

// helmStandIn is helm install|upgrade RELEASE CHART --namespace NAMESPACE --values FILE,
// but for what it would leave. The Deployment of config/manager gives way to the chart's,
// which differs in a field that cannot be changed.
const helmStandIn = `#!/bin/sh
set -e
test "$4 $6" = '--namespace --values'
'%s' render "$2" "$5" "$3" "$7" >render.yaml
kubectl --namespace "$5" delete deployment zuber --ignore-not-found
kubectl apply --dry-run=server -f render.yaml
`

// workplace is a directory to run commands in: the repository's, but for what they
// write, with kubectl and what stands for helm in bin.
func workplace(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	helmProgram, err := cluster.BuildHelm(t.Context(), root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cloudscale.token": "token", "key.json": "{}", "values.yaml": "backends: [{name: cloudscale, provider: cloudscale, credentials: {secretName: zuber-cloudscale}}]",
		"bin/kubectl": fmt.Sprintf("#!/bin/sh\nexec '%s' --kubeconfig '%s' \"$@\"\n", c.Binaries.Kubectl, c.Kubeconfig),
		"bin/helm":    fmt.Sprintf(helmStandIn, helmProgram),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "cmd", "pkg", "go.mod", "go.sum"} {
		if err := os.Symlink(filepath.Join(absolute, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bash runs a script. That something is there already is no failure: pages begin
// at the beginning.
func bash(t *testing.T, dir, script string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err == nil || strings.Contains(output.String(), "(AlreadyExists)") {
		return nil
	}
	return fmt.Errorf("%w\n%s%s", err, script, &output)
}

// helm runs the program of test/tools/helm.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := cluster.BuildHelm(t.Context(), root, os.Stderr)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, &stderr)
	}
	return stdout.String(), nil
}
