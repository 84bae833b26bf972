package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// backupNamespace is that of config/samples/backup.
const backupNamespace = "database"

// scheduleDefinition is as much of K8up's Schedule as the samples use. A field
// that it does not know is refused.
const scheduleDefinition = "testdata/k8up-schedule.yaml"

// TestBackup does what docs/backup.md says, with the samples as they are, and what
// K8up would: restic makes backups, and reads them, with nothing but the Secret.
func TestBackup(t *testing.T) {
	s := alone(t)
	s.Driver.Extra = []string{"--allow-wipe-annotation"}
	defer func() {
		s.Driver.Extra = nil
		s.restart(s.Driver)
	}()
	s.restart(s.Driver)
	for _, backend := range []string{cloudscale, stackit} {
		s.record(s.kubectl("apply", "-o", "json", "-f", filepath.Join(root, "config", "samples", backend, "v1alpha1", "classes.yaml")))
		s.backup(backend, "v1alpha1")
	}
}

// program is the path of a program of Debian's that a test runs.
func (s *story) program(name string) string {
	s.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("ZUBER_REQUIRE_CLIENTS") == "1" {
			s.Fatal(err)
		}
		s.Skip(err)
	}
	return path
}

// backup is the life of the sample for one cloud and one version of COSI.
func (s *story) backup(backend, version string) {
	s.Helper()
	s.kubectl("apply", "-f", scheduleDefinition)
	s.kubectl("wait", "--for=condition=Established", "customresourcedefinitions/schedules.k8up.io")
	page := s.page("backup.md", "cloudscale/v1alpha1", backend+"/"+version)
	ns := s.ns
	s.ns = backupNamespace
	defer func() { s.ns = ns }()

	s.bash(page[0])
	claim := s.sample("objectstorage.k8s.io/"+version, "bucketclaims", "backup")
	access := s.sample("objectstorage.k8s.io/"+version, "bucketaccesses", "backup")
	namespace, err := s.Get(s.Context(), "/api/v1/namespaces/"+s.ns)
	if err != nil {
		s.Fatal(err)
	}
	s.applied = append(s.applied, access, claim, namespace)
	if version == "v1alpha1" {
		s.ready(access)
	}
	s.bash(page[1])
	variables, err := s.variables("backup-env")
	if err != nil {
		s.Fatal(err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "S3_ENDPOINT_URL", "S3_BUCKET"} {
		if variables[name] == "" {
			s.Errorf("the Secret has no %s; it has %q", name, slices.Sorted(maps.Keys(variables)))
		}
	}
	s.bash(page[2])
	schedule := s.sample("k8up.io/v1", "schedules", "backup")
	if got, want := schedule.text("spec", "backend", "s3", "bucket"), variables["S3_BUCKET"]; got != want {
		s.Errorf("the Schedule has the bucket %q, want %q", got, want)
	}
	if version == "v1alpha1" { // the programs take seconds, and the Secret is the same
		repository := "s3:" + schedule.text("spec", "backend", "s3", "endpoint") + "/" + schedule.text("spec", "backend", "s3", "bucket")
		s.backUp(append(s.scheduled(schedule), "RESTIC_REPOSITORY="+repository))
	}

	s.bash(page[3])
	s.gone(schedule)
	s.wantVariables("backup-env", variables)
	client := clientOf(variables)
	if err := client.put(s.Context(), "precious", "data"); err != nil {
		s.Errorf("the bucket without the Schedule: %v", err)
	}

	s.bash(page[4])
	s.gone(access, claim)
	for what, left := range map[string][]string{"the access": leftInClouds(s.Emulator, access.text("metadata", "uid")), "the claim": leftInClouds(s.Emulator, claim.text("metadata", "uid"))} {
		if len(left) > 0 {
			s.Errorf("left in the clouds of %s: %q", what, left)
		}
	}
	s.eventually(func() error {
		secrets, err := s.Get(s.Context(), "/api/v1/namespaces/"+backupNamespace+"/secrets")
		if left := object(secrets).list("items"); err == nil && len(left) != 1 {
			err = fmt.Errorf("%d Secrets are left, want the password's alone", len(left))
		}
		return err
	})
	s.delete(s.secretNamed("backup-password"))
}

// sample reads an object of the sample's namespace.
func (s *story) sample(version, resource, name string) object {
	s.Helper()
	got, err := s.Get(s.Context(), "/apis/"+version+"/namespaces/"+s.ns+"/"+resource+"/"+name)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// scheduled is the environment that K8up makes of a Schedule: the whole Secrets,
// and then the single keys.
func (s *story) scheduled(schedule object) []string {
	s.Helper()
	all := map[string]string{}
	read := func(name string) map[string]string {
		variables, err := s.variables(name)
		if err != nil {
			s.Fatal(err)
		}
		return variables
	}
	for _, from := range schedule.list("spec", "backend", "envFrom") {
		maps.Copy(all, read(from.text("secretRef", "name")))
	}
	backend := object(schedule.at("spec", "backend").(map[string]any))
	for name, path := range map[string][]string{
		"RESTIC_PASSWORD":       {"repoPasswordSecretRef"},
		"AWS_ACCESS_KEY_ID":     {"s3", "accessKeyIDSecretRef"},
		"AWS_SECRET_ACCESS_KEY": {"s3", "secretAccessKeySecretRef"},
	} {
		all[name] = read(backend.text(append(path, "name")...))[backend.text(append(path, "key")...)]
	}
	var env []string
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	return env
}

// backUp makes two backups, reads the older one back, and prunes it.
func (s *story) backUp(env []string) {
	s.Helper()
	restic := s.program("restic")
	dir := s.TempDir()
	// What leaves the loopback fails at a proxy that is not there.
	env = append(env, "HOME="+dir, "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1")
	run := func(args ...string) {
		cmd := exec.CommandContext(s.Context(), restic, append([]string{"--quiet", "--no-cache"}, args...)...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("restic %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	content := map[string][]byte{"base": bytes.Repeat([]byte("rows\n"), 1<<18), "wal/empty": {}, "wal/000 1": []byte("log")}
	for name, text := range content {
		path := filepath.Join(dir, "data", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	run("init")
	run("backup", "--tag=first", "data")
	if err := os.WriteFile(filepath.Join(dir, "data", "base"), []byte("changed"), 0o600); err != nil {
		s.Fatal(err)
	}
	run("backup", "data")
	run("check", "--read-data")
	run("restore", "latest", "--tag=first", "--target=restored")
	restored := 0
	err := filepath.WalkDir(filepath.Join(dir, "restored", "data"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		restored++
		name, _ := strings.CutPrefix(filepath.ToSlash(path), filepath.ToSlash(dir)+"/restored/data/")
		text, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(text, content[name]) {
			err = fmt.Errorf("%s differs from what was backed up", name)
		}
		return err
	})
	if err != nil || restored != len(content) {
		s.Errorf("%d of %d files restored, %v", restored, len(content), err)
	}
	run("forget", "--group-by=", "--keep-last=1", "--prune")
	run("check", "--read-data")
}

// clientOf uses a bucket with the variables of an env Secret.
func clientOf(variables map[string]string) bucketClient {
	info := bucketInfo{}
	info.Spec.BucketName = variables["S3_BUCKET"]
	info.Spec.SecretS3 = &secretS3{
		Endpoint: variables["S3_ENDPOINT_URL"], Region: variables["AWS_DEFAULT_REGION"],
		AccessKeyID: variables["AWS_ACCESS_KEY_ID"], AccessSecretKey: variables["AWS_SECRET_ACCESS_KEY"],
	}
	return info.s3()
}

// page returns the shell blocks of a page of docs, with texts replaced in pairs.
func (s *story) page(name string, replace ...string) []string {
	s.Helper()
	var blocks []string
	for _, part := range strings.Split(s.read(filepath.Join(root, "docs", name)), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, strings.NewReplacer(replace...).Replace(block))
	}
	return blocks
}

// read reads a file of the repository.
func (s *story) read(path string) string {
	s.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// bash runs a shell block in the root of the repository, with the cluster's
// kubectl.
func (s *story) bash(block string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HOME="+s.Dir, "PATH="+filepath.Dir(s.Binaries.Kubectl)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s%v\n%s", block, err, out)
	}
}
