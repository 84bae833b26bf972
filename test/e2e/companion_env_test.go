package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Annotations of the companion.
const (
	envSecret    = "zuber.dev/env-secret"
	envKeys      = "zuber.dev/env-keys"
	wipeOnDelete = "zuber.dev/wipe-on-delete"
)

// annotate sets an annotation of an object; an empty value takes it away.
func (s *story) annotate(o object, key, value string) {
	s.Helper()
	var to any
	if value != "" {
		to = value
	}
	s.patch(o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: to}}})
}

// secretNamed is a Secret of the story's namespace by its name alone.
func (s *story) secretNamed(name string) object {
	return object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": s.ns}}
}

// variables reads the data of a Secret.
func (s *story) variables(name string) (map[string]string, error) {
	got, err := s.Get(s.Context(), s.secretNamed(name).path())
	if err != nil {
		return nil, err
	}
	data, _ := got["data"].(map[string]any)
	all := map[string]string{}
	for key, value := range data {
		text, _ := value.(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("Secret %s, key %s: %w", name, key, err)
		}
		all[key] = string(raw)
	}
	return all, nil
}

// wantVariables waits until a Secret has just these variables. What it has
// instead is not printed.
func (s *story) wantVariables(name string, want map[string]string) {
	s.Helper()
	s.eventually(func() error {
		got, err := s.variables(name)
		if err != nil {
			return err
		}
		var wrong []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if got[key] != want[key] {
				wrong = append(wrong, key)
			}
		}
		if len(wrong) > 0 || len(got) != len(want) {
			return fmt.Errorf("Secret %s has %q; wrong are %q", name, slices.Sorted(maps.Keys(got)), wrong)
		}
		return nil
	})
}

// variablesOf are what an env Secret with the usual keys says.
func variablesOf(t *testing.T, info bucketInfo, bucket string) map[string]string {
	t.Helper()
	c := info.Spec.SecretS3
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.AccessSecretKey,
		"AWS_REGION": c.Region, "AWS_ENDPOINT_URL_S3": c.Endpoint,
		"S3_BUCKET": bucket, "S3_REGION": c.Region, "S3_ENDPOINT": endpoint.Host,
		"S3_ENDPOINT_URL": c.Endpoint, "S3_BUCKET_URL": c.Endpoint + "/" + bucket,
	}
}

// TestEnvSecret: a Secret with variables beside an access, which stays as it
// should be, moves with its annotation and goes with the access.
func TestEnvSecret(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			s.claim("photos", s.class(backend))
			access := s.access("photos", "photos", s.accessClass())
			s.annotate(access, envSecret, "photos-env")
			info := s.bucketInfo(access)
			want := variablesOf(t, info, info.Spec.BucketName)
			s.wantVariables("photos-env", want)
			s.event(access, "EnvSecretWritten: Secret photos-env")

			// Altered, and then deleted, it comes back.
			env := s.secretNamed("photos-env")
			s.patch(env, map[string]any{"stringData": map[string]any{"S3_BUCKET": "other", "MORE": "x"}})
			s.wantVariables("photos-env", want)
			s.patch(env, map[string]any{"immutable": true, "data": map[string]any{"S3_BUCKET": nil}})
			s.wantVariables("photos-env", want)
			s.deleteSoon(env)
			s.wantVariables("photos-env", want)
			s.patch(env, map[string]any{"metadata": map[string]any{"labels": nil}})
			s.eventually(func() error {
				got, err := s.Get(t.Context(), env.path())
				if err == nil && object(got).text("metadata", "labels", "app.kubernetes.io/managed-by") != "zuber" {
					err = fmt.Errorf("labels %v", object(got).at("metadata", "labels"))
				}
				return err
			})

			// It moves with the annotation, and takes other keys.
			s.annotate(access, envSecret, "photos-moved")
			s.wantVariables("photos-moved", want)
			s.eventually(func() error { return s.absent(t.Context(), env) })
			s.annotate(access, envKeys, "accessKeyID=ACCESS_KEY, secretAccessKey=SECRET_KEY,bucket=BUCKET")
			renamed := maps.Clone(want)
			for from, to := range map[string]string{"AWS_ACCESS_KEY_ID": "ACCESS_KEY", "AWS_SECRET_ACCESS_KEY": "SECRET_KEY", "S3_BUCKET": "BUCKET"} {
				renamed[to] = want[from]
				delete(renamed, from)
			}
			s.wantVariables("photos-moved", renamed)

			// Without the annotation there is none; with the access it goes, too.
			s.annotate(access, envSecret, "")
			s.eventually(func() error { return s.absent(t.Context(), s.secretNamed("photos-moved")) })
			s.annotate(access, envSecret, "photos-env")
			s.wantVariables("photos-env", renamed)
			s.delete(access)
			s.eventually(func() error { return s.absent(t.Context(), env) })
		})
	}
}

// TestEnvSecretRefused: what cannot be is said in an event, and nothing of
// anybody else's is touched.
func TestEnvSecretRefused(t *testing.T) {
	s := together(t)
	s.claim("photos", s.class(cloudscale))
	access := s.access("photos", "photos", s.accessClass())
	s.apply(`{apiVersion: v1, kind: Secret, metadata: {name: theirs, labels: {app.kubernetes.io/managed-by: zuber}}, stringData: {precious: data}}`)
	info := s.bucketInfo(access)
	for _, c := range []struct{ name, keys, want string }{
		{"theirs", "", "EnvSecretRefused: the Secret theirs is not of this BucketAccess and stays as it is"},
		{"Wrong_Name", "", `EnvSecretRefused: zuber.dev/env-secret: "Wrong_Name" is no name for a Secret`},
		{"photos-credentials", "", `EnvSecretRefused: zuber.dev/env-secret: "photos-credentials" is the name of the Secret that COSI writes`},
		{"photos-env", "accessKeyID=S3_BUCKET", "EnvSecretRefused: zuber.dev/env-keys: the fields accessKeyID and bucket both have the key S3_BUCKET"},
		{"photos-env", "accessKeyID=", "EnvSecretRefused: zuber.dev/env-keys: the field accessKeyID has no key"},
		{"photos-env", "accessKeyID=1_A", "EnvSecretRefused: zuber.dev/env-keys: the field accessKeyID: the key \"1_A\" is no variable's name"},
	} {
		s.annotate(access, envKeys, c.keys)
		s.annotate(access, envSecret, c.name)
		s.event(access, c.want)
	}
	for name, want := range map[string]map[string]string{"theirs": {"precious": "data"}, "photos-env": nil} {
		got, err := s.variables(name)
		if want == nil && !missing(err) || !maps.Equal(got, want) {
			t.Errorf("Secret %s has the keys %q, %v", name, slices.Sorted(maps.Keys(got)), err)
		}
	}
	s.wantUsable(info.s3())
	// Put right, it is there.
	s.annotate(access, envKeys, "")
	s.wantVariables("photos-env", variablesOf(t, info, info.Spec.BucketName))
}

// TestEnvSecretSuffix: a class gives every access an env Secret.
func TestEnvSecretSuffix(t *testing.T) {
	s := together(t)
	s.claim("photos", s.class(stackit))
	class := s.accessClass("envSecretSuffix", "-env")
	for _, name := range []string{"first", "second"} {
		access := s.access(name, "photos", class)
		info := s.bucketInfo(access)
		s.wantVariables(name+"-env", variablesOf(t, info, info.Spec.BucketName))
	}
}

// TestBucketInfoCorrected: an existing bucket whose Bucket has another name.
// COSI's Secret says the right one, and nothing else in it changes.
func TestBucketInfoCorrected(t *testing.T) {
	s := together(t)
	class, accessClass := s.classWith("Retain", cloudscale), s.accessClass()
	first := s.claim("first", class)
	kept := s.ready(s.bucket(first)) // the claim is ready before its Bucket has an ID
	s.delete(first)
	s.gone(kept)
	bucket := s.apply(manifest("Bucket", s.className("named-otherwise"), map[string]any{"spec": map[string]any{
		"driverName": driverName, "bucketClassName": class, "deletionPolicy": "Delete",
		"existingBucketID": kept.text("status", "bucketID"), "protocols": []string{"S3"}, "bucketClaim": map[string]any{},
	}}))[0]
	s.apply(manifest("BucketClaim", "again", map[string]any{"spec": map[string]any{"existingBucketName": bucket.name(), "protocols": []string{"S3"}}}))
	access := s.access("again", "again", accessClass)
	s.annotate(access, envSecret, "again-env")
	info := s.infoNaming(access, kept.name())
	if info.Metadata.Name != "bc-"+access.text("metadata", "uid") || info.Spec.AuthenticationType != "Key" || strings.Join(info.Spec.Protocols, "") != "S3" {
		t.Errorf("the rest of BucketInfo is %q, %q, %q", info.Metadata.Name, info.Spec.AuthenticationType, info.Spec.Protocols)
	}
	s.wantUsable(info.s3())
	s.wantVariables("again-env", variablesOf(t, info, kept.name()))
}
