package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// advice returns the commands of docs/upstream.md that hold the text, with the
// names filled in.
func (s *story) advice(text string, names ...string) []string {
	s.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "upstream.md"))
	if err != nil {
		s.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(page)) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "kubectl ") && strings.Contains(command, text) {
			commands = append(commands, strings.NewReplacer(names...).Replace(command))
		}
	}
	if len(commands) == 0 {
		s.Fatalf("docs/upstream.md has no command with %q", text)
	}
	return commands
}

// shell runs commands of a page with the cluster's kubectl.
func (s *story) shell(commands ...string) {
	s.Helper()
	if err := s.try(commands...); err != nil {
		s.Fatal(err)
	}
}

// try is shell for commands that may fail.
func (s *story) try(commands ...string) error {
	for _, command := range commands {
		words := strings.SplitN(command, "'", 3)
		args := strings.Fields(words[0])[1:]
		if len(words) == 3 {
			args = append(args, words[1])
		}
		if _, err := s.Kubectl(s.Context(), "", args...); err != nil {
			return err
		}
	}
	return nil
}

// TestLostWrites puts claims into the states in which upstream's controller
// leaves them when it loses a race, and does what docs/upstream.md says.
func TestLostWrites(t *testing.T) {
	s := together(t)
	class := s.class(cloudscale)
	patch := func(o object, sub string, body any) {
		t.Helper()
		if _, err := s.Send(t.Context(), http.MethodPatch, o.path()+sub, body); err != nil {
			t.Fatal(err)
		}
	}
	loseFinalizer := map[string]any{"metadata": map[string]any{"finalizers": nil}}

	waiting := s.ready(s.claim("waiting", class))
	patch(waiting, "/status", map[string]any{"status": map[string]any{"bucketReady": false}})
	patch(waiting, "", loseFinalizer)
	bucket := waiting.text("status", "bucketName")
	s.shell(s.advice("patch bucketclaim", "NAMESPACE", s.ns, "CLAIM", "waiting", "BUCKET", bucket)...)
	s.wantUsable(s.bucketInfo(s.access("waiting", "waiting", s.accessClass())).s3())

	gone := s.ready(s.claim("gone", class))
	left := s.bucket(gone)
	patch(gone, "", loseFinalizer)
	s.delete(gone)
	if left := leftInClouds(s.Emulator, gone.text("metadata", "uid")); len(left) == 0 {
		t.Fatal("the bucket is gone by itself: docs/upstream.md is out of date")
	}
	s.shell(s.advice("delete bucket BUCKET", "BUCKET", left.name())...)
	s.event(left, `"gone" not found`)
	s.shell(s.advice("patch bucket BUCKET --type=json", "BUCKET", left.name())...)
	s.gone(left)
	s.emptyClouds(gone)

	early := s.ready(s.claim("early", class))
	unwritten := s.bucket(early)
	patch(unwritten, "/status", map[string]any{"status": map[string]any{"bucketID": ""}})
	s.deleteSoon(early)
	s.told(early, `bucket ID "": …`)
	s.shell(s.advice("--subresource=status --type=merge -p '{\"status\": {\"bucketID\"", "BACKEND", cloudscale, "REGION", "rma", "BUCKET", unwritten.name())...)
	s.gone(early, unwritten)
	s.emptyClouds(early)
}

// emptyClouds waits until nothing is left of what was made for a claim.
func (s *story) emptyClouds(claim object) {
	s.Helper()
	s.eventually(func() error {
		if left := leftInClouds(s.Emulator, claim.text("metadata", "uid")); len(left) > 0 {
			return errors.New(strings.Join(left, "; "))
		}
		return nil
	})
}
