package e2e

import (
	"testing"
)

// TestModes: three accesses of one bucket, each with a key of its own that may do
// what its class says, and the end of one is not the end of another.
func TestModes(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			s.claim("photos", s.class(backend))
			open := func(name, mode string) (object, bucketClient) {
				access := s.access(name, "photos", s.accessClass("accessMode", mode))
				return access, s.bucketInfo(access).s3()
			}
			writer, both := open("writer", "ReadWrite")
			reader, read := open("reader", "ReadOnly")
			_, write := open("dropper", "WriteOnly")

			may := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			mayNot := func(what string, err error) {
				t.Helper()
				if !refused(err) {
					t.Errorf("%s: %v, want a refusal", what, err)
				}
			}
			s.wantUsable(both)
			may("ReadWrite writes", both.put(t.Context(), "a", "of both"))
			may("WriteOnly writes", write.put(t.Context(), "b", "of the dropper"))
			content, err := read.read(t.Context(), "b")
			may("ReadOnly reads", err)
			if content != "of the dropper" {
				t.Errorf("ReadOnly read %q", content)
			}
			mayNot("ReadOnly writes", read.put(t.Context(), "c", "x"))
			mayNot("ReadOnly removes", read.remove(t.Context(), "a"))
			_, err = write.read(t.Context(), "a")
			mayNot("WriteOnly reads", err)

			s.delete(reader)
			_, err = read.read(t.Context(), "a")
			mayNot("a deleted access reads", err)
			for _, key := range []string{"a", "b"} {
				may("ReadWrite removes", both.remove(t.Context(), key))
			}
			s.delete(writer)
			mayNot("a deleted access writes", both.put(t.Context(), "a", "x"))
			may("the last access writes", write.put(t.Context(), "d", "x"))
			_, both = open("writer", "ReadWrite")
			may("a new access removes", both.remove(t.Context(), "d"))
		})
	}
}
