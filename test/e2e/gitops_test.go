package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// gitops does with config/samples/gitops what Flux and Argo CD do: it applies them
// again and again, and looks at their health. Their classes are there.
func (s *story) gitops(version string) {
	s.Helper()
	ns := s.ns
	s.ns = "default"
	defer func() { s.ns = ns }()
	s.takesGitops()

	var album []object
	for _, dir := range []string{"bucket", "access"} {
		made := s.record(s.kubectl("apply", "-o", "json", "-f", gitopsSamples(version, dir)))
		s.wantHealth(made[0], "Progressing", "waits") // as nobody has seen it yet
		album = append(album, made...)
	}
	claim, access := album[0], album[1]
	s.served(access)
	for i, o := range album {
		album[i] = s.sample(claim.text("apiVersion"), resourceOf(o), o.name())
		s.wantHealth(album[i], "Healthy", "current")
	}
	s.unchangedByApplying(version, album)

	wrong := s.neverReady(version)
	s.event(wrong[0], "nowhere")
	s.wantHealth(s.sample(claim.text("apiVersion"), "bucketclaims", wrong[0].name()), "Progressing", "waits")
	if version == "v1alpha2" {
		s.eventually(func() error {
			got, err := s.Get(s.Context(), wrong[1].path())
			if err == nil && object(got).text("status", "error", "message") == "" {
				err = fmt.Errorf("%s has no error", wrong[1])
			}
			return err
		})
		wrong[1] = s.sample(claim.text("apiVersion"), "bucketaccesses", wrong[1].name())
		s.wantHealth(wrong[1], "Degraded", "failed")
	}
	for _, o := range []object{wrong[1], access, claim, wrong[0]} {
		deleted, err := s.Send(s.Context(), "DELETE", o.path(), nil)
		if err != nil {
			s.Fatal(err)
		}
		// What nothing holds is gone at once.
		if d := object(deleted); d.text("kind") == o.text("kind") && d.at("metadata", "deletionTimestamp") != nil {
			s.wantHealth(d, "Progressing", "inProgress")
		} else if o.name() == claim.name() {
			s.Errorf("nothing holds %s, so its deletion was not seen", o)
		}
		s.gone(o)
	}
}

// takesGitops has the API server judge the objects of Flux and Argo CD.
func (s *story) takesGitops() {
	s.Helper()
	s.kubectl("apply", "-f", "testdata/gitops.yaml")
	s.kubectl("wait", "--for=condition=Established", "customresourcedefinitions/applications.argoproj.io",
		"customresourcedefinitions/kustomizations.kustomize.toolkit.fluxcd.io", "customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io")
	s.apply("{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}", "{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}")
	s.kubectl("apply", "--dry-run=server", "-f", gitopsSamples("flux"), "-f", gitopsSamples("argocd"))
}

// served waits until an access has the env Secret that its annotation names.
func (s *story) served(access object) {
	s.Helper()
	if strings.HasSuffix(access.text("apiVersion"), "v1alpha1") {
		s.ready(access)
	}
	s.eventually(func() error {
		_, err := s.variables(access.text("metadata", "annotations", envSecret))
		return err
	})
}

// resourceOf is the plural of a kind of COSI's.
func resourceOf(o object) string {
	return map[string]string{"BucketClaim": "bucketclaims", "BucketAccess": "bucketaccesses"}[o.text("kind")]
}

// unchangedByApplying applies the samples again as Argo CD does, and then as Flux
// does. But for who they belong to, nothing is written, neither into them nor into
// what was made for them, and their bucket is left alone.
func (s *story) unchangedByApplying(version string, album []object) {
	s.Helper()
	variables, err := s.variables("album-env")
	if err != nil {
		s.Fatal(err)
	}
	bucket := variables["S3_BUCKET"]
	calls := func() int {
		return len(slices.DeleteFunc(s.Emulator.Calls(), func(c emulator.Call) bool { return !strings.HasPrefix(c.Path, "/"+bucket) }))
	}
	all := []string{
		album[0].path(), album[1].path(), s.secretNamed("album-env").path(), s.secretNamed("album-credentials").path(),
		"/apis/" + album[0].text("apiVersion") + "/buckets/" + bucket,
	}
	apply := []string{"apply", "-R", "-f", gitopsSamples(version)}
	s.other(version, "before") // what made them is over
	called, was := calls(), s.versions(all)
	again := func(args ...string) {
		s.kubectl(args...)
		if is := s.versions(all); !maps.Equal(is, was) {
			s.Errorf("kubectl %s has changed %v to %v", strings.Join(args, " "), was, is)
		}
	}
	again(apply...)
	apply = append(apply, "--server-side", "--field-manager=kustomize-controller", "--force-conflicts")
	s.kubectl(apply...)
	for _, o := range album { // another manager is written down in them, once
		maps.Copy(was, s.versions([]string{o.path()}))
	}
	again(apply...)
	s.other(version, "after") // whatever that has set off is over
	again(apply...)
	if n := calls() - called; n != 0 || called == 0 {
		s.Errorf("applying again made %d calls about the bucket, after %d", n, called)
	}
}

// versions are the UIDs and resource versions of what is at some paths.
func (s *story) versions(paths []string) map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, path := range paths {
		got, err := s.Get(s.Context(), path)
		if err != nil {
			s.Fatal(err)
		}
		all[path] = object(got).text("metadata", "uid") + " " + object(got).text("metadata", "resourceVersion")
	}
	return all
}

// other makes a bucket with an access and deletes it again. Each program of COSI's,
// and the companion, has then seen all that came before.
func (s *story) other(version, name string) {
	s.Helper()
	made := s.fromSample(version, name, "")
	s.served(made[1])
	s.delete(made[1], made[0])
}

// neverReady makes a claim of a class that cannot work, with an access.
func (s *story) neverReady(version string) []object {
	s.Helper()
	fields := map[string]any{"driverName": driverName, "deletionPolicy": "Delete", "parameters": map[string]string{"backend": cloudscale, "region": "nowhere"}}
	if version == "v1alpha2" {
		s.apply(manifest2("BucketClass", "nowhere", fields))
	} else {
		s.apply(manifest("BucketClass", "nowhere", fields))
	}
	return s.fromSample(version, "never-ready", "nowhere")
}

// fromSample makes a claim and an access that are as those of the samples, under
// another name and perhaps of another class.
func (s *story) fromSample(version, name, class string) []object {
	s.Helper()
	rename := strings.NewReplacer("name: album", "name: "+name, "bucketClaimName: album", "bucketClaimName: "+name, "album-", name+"-")
	var made []object
	for _, file := range []string{"bucket/claim.yaml", "access/access.yaml"} {
		text := rename.Replace(s.read(gitopsSamples(version, file)))
		if class != "" {
			text = strings.Replace(text, "bucketClassName: zuber-rma", "bucketClassName: "+class, 1)
		}
		made = append(made, s.apply(text)...)
	}
	return made
}
