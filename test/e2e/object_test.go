package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// object is an object of the API server.
type object map[string]any

// at follows keys; it is nil where the path ends early.
func (o object) at(path ...string) any {
	var here any = map[string]any(o)
	for _, key := range path {
		m, _ := here.(map[string]any)
		here = m[key]
	}
	return here
}

func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

func (o object) texts(path ...string) []string {
	all, _ := o.at(path...).([]any)
	var texts []string
	for _, one := range all {
		text, _ := one.(string)
		texts = append(texts, text)
	}
	return texts
}

func (o object) list(path ...string) []object {
	all, _ := o.at(path...).([]any)
	var objects []object
	for _, one := range all {
		m, _ := one.(map[string]any)
		objects = append(objects, m)
	}
	return objects
}

func (o object) name() string { return o.text("metadata", "name") }

func (o object) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s %s/%s", o.text("kind"), o.text("metadata", "namespace"), o.name()), "/")
}

// path is where the API server has the object.
func (o object) path() string {
	version := o.text("apiVersion")
	prefix := "/apis/" + version
	if version == "v1" {
		prefix = "/api/v1"
	}
	if ns := o.text("metadata", "namespace"); ns != "" {
		prefix += "/namespaces/" + ns
	}
	resource := strings.ToLower(o.text("kind")) + "s"
	if strings.HasSuffix(resource, "ss") { // BucketClass, BucketAccess
		resource = strings.TrimSuffix(resource, "s") + "es"
	}
	return prefix + "/" + resource + "/" + o.name()
}

// cosiPath is where lists of COSI's objects are.
func cosiPath(resource, ns string) string {
	path := "/apis/objectstorage.k8s.io/v1alpha1/"
	if ns != "" {
		path += "namespaces/" + ns + "/"
	}
	return path + resource
}

func missing(err error) bool { return errors.Is(err, cluster.ErrNotFound) }

// absent is nil once the object is gone, and else says what holds it.
func (s *story) absent(ctx context.Context, o object) error {
	got, err := s.Get(ctx, o.path())
	switch {
	case missing(err):
		return nil
	case err != nil:
		return err
	case object(got).text("metadata", "uid") != o.text("metadata", "uid"):
		return nil // another one of the same name
	}
	return fmt.Errorf("%s is still there, deletion asked for at %v, finalizers %v, status %v", o,
		object(got).at("metadata", "deletionTimestamp"), object(got).at("metadata", "finalizers"), got["status"])
}

// gone waits until objects are gone.
func (s *story) gone(objects ...object) {
	s.Helper()
	for _, o := range objects {
		s.eventually(func() error { return s.absent(s.Context(), o) })
	}
}

// eventually waits until the condition holds, which is nil.
func (s *story) eventually(condition func() error) {
	s.Helper()
	s.within(patience, condition)
}

// within is eventually with a deadline of its own.
func (s *story) within(limit time.Duration, condition func() error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	if err := await(ctx, condition); err != nil {
		s.Fatal(err)
	}
}

// await asks until the condition holds or the context ends.
func await(ctx context.Context, condition func() error) error {
	start := time.Now()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", time.Since(start).Round(time.Second), err)
		}
	}
}
