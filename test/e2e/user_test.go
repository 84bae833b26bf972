package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The back ends of the driver, each with a region that it has.
const (
	cloudscale = "cloudscale"
	stackit    = "stackit"
)

func regionOf(backend string) string {
	return map[string]string{cloudscale: "rma", stackit: "eu01"}[backend]
}

// manifest renders one object as JSON, which is YAML, too.
func manifest(kind, name string, fields map[string]any) string {
	all := map[string]any{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range fields {
		all[key] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err.Error() // the API server refuses it, and kubectl shows it
	}
	return string(raw)
}

const driverName = "cosi.zuber.dev"

// className makes a name of the story's own for an object without a namespace.
func (s *story) className(name string) string { return s.ns + "-" + name }

// class makes a BucketClass of a back end, with the deletion policy Delete, and
// returns its name. More parameters come in pairs.
func (s *story) class(backend string, parameters ...string) string {
	s.Helper()
	return s.classWith("Delete", backend, parameters...)
}

// classWith makes a BucketClass with a deletion policy.
func (s *story) classWith(policy, backend string, parameters ...string) string {
	s.Helper()
	name := s.className(fmt.Sprintf("%s-%d", backend, len(s.applied)))
	parameters = append([]string{"backend", backend, "region", regionOf(backend)}, parameters...)
	s.apply(manifest("BucketClass", name, map[string]any{"driverName": driverName, "deletionPolicy": policy, "parameters": pairs(parameters)}))
	return name
}

// accessClass makes a BucketAccessClass with authenticationType Key and returns
// its name.
func (s *story) accessClass(parameters ...string) string {
	s.Helper()
	name := s.className(fmt.Sprintf("key-%d", len(s.applied)))
	s.apply(manifest("BucketAccessClass", name, map[string]any{"driverName": driverName, "authenticationType": "Key", "parameters": pairs(parameters)}))
	return name
}

// pairs makes a map of keys and values in turn.
func pairs(list []string) map[string]string {
	m := map[string]string{}
	for i := 1; i < len(list); i += 2 {
		m[list[i-1]] = list[i]
	}
	return m
}

func claimManifest(name, class string) string {
	return manifest("BucketClaim", name, map[string]any{"spec": map[string]any{"bucketClassName": class, "protocols": []string{"S3"}}})
}

// accessManifest wants the Secret named <name>-credentials.
func accessManifest(name, claim, class string) string {
	return manifest("BucketAccess", name, map[string]any{"spec": map[string]any{
		"bucketClaimName": claim, "bucketAccessClassName": class, "protocol": "S3", "credentialsSecretName": name + "-credentials",
	}})
}

// claim makes a BucketClaim and returns it as it was made.
func (s *story) claim(name, class string) object {
	s.Helper()
	return s.apply(claimManifest(name, class))[0]
}

// access makes a BucketAccess and returns it as it was made.
func (s *story) access(name, claim, class string) object {
	s.Helper()
	return s.apply(accessManifest(name, claim, class))[0]
}

// ready waits until a BucketClaim has its bucket, or a BucketAccess its Secret,
// and returns the object as it is then.
func (s *story) ready(o object) object {
	s.Helper()
	field := map[string]string{"BucketClaim": "bucketReady", "Bucket": "bucketReady", "BucketAccess": "accessGranted"}[o.text("kind")]
	if claim := o.text("spec", "bucketClaimName"); claim != "" {
		s.ready(object{"apiVersion": o["apiVersion"], "kind": "BucketClaim", "metadata": map[string]any{"name": claim, "namespace": o.text("metadata", "namespace")}})
	}
	var got object
	repair := &repair{story: s}
	s.eventually(func() (err error) {
		if got, err = s.Get(s.Context(), o.path()); err != nil {
			return err
		}
		if o.text("kind") == "BucketClaim" {
			if err := repair.claim(got); err != nil {
				return err
			}
		}
		if got.at("status", field) != true {
			return fmt.Errorf("%s: status %v; events: %s", o, got["status"], strings.Join(s.events(o), "; "))
		}
		return nil
	})
	return got
}

// bucket is the Bucket of a BucketClaim that is ready.
func (s *story) bucket(claim object) object {
	s.Helper()
	name := s.ready(claim).text("status", "bucketName")
	got, err := s.Get(s.Context(), cosiPath("buckets", "")+"/"+name)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// secret reads the Secret of a BucketAccess once it is ready.
func (s *story) secret(access object) object {
	s.Helper()
	s.ready(access)
	got, err := s.Get(s.Context(), s.secretPath(access))
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// events lists "reason: message" of the events about an object, wherever they
// are: those of a Bucket are in the namespace default.
func (s *story) events(o object) []string {
	got, err := s.Get(s.Context(), "/api/v1/events?fieldSelector=involvedObject.name="+o.name())
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range object(got).list("items") {
		if about := e.text("involvedObject", "kind"); about == o.text("kind") && e.text("involvedObject", "namespace") == o.text("metadata", "namespace") {
			all = append(all, e.text("reason")+": "+e.text("message"))
		}
	}
	return all
}

// event waits for an event about an object that holds the text.
func (s *story) event(o object, text string) {
	s.Helper()
	s.eventually(func() error { return s.hasEvent(o, text) })
}

// hasEvent is nil if an object has an event that holds the text.
func (s *story) hasEvent(o object, text string) error {
	all := s.events(o)
	for _, e := range all {
		if strings.Contains(e, text) {
			return nil
		}
	}
	return fmt.Errorf("%s has no event with %q; it has: %q", o, text, all)
}

// bucketOf is the Bucket of a BucketClaim, which may not be ready.
func (s *story) bucketOf(claim object) object {
	s.Helper()
	var got object
	s.eventually(func() (err error) {
		got, err = s.Get(s.Context(), cosiPath("buckets", "")+"/bucket-"+claim.text("metadata", "uid"))
		return err
	})
	return got
}
