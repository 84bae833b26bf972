package e2e

import (
	"testing"
)

// TestDeletionOrder: in whatever order a user deletes, everything goes, and with
// it the key.
func TestDeletionOrder(t *testing.T) {
	type made struct {
		claim, access object
		classes       []object
	}
	for order, remove := range map[string]func(*story, made){
		"access first":  func(s *story, m made) { s.delete(m.access); s.delete(m.claim) },
		"claim first":   func(s *story, m made) { s.deleteSoon(m.claim) },
		"both at once":  func(s *story, m made) { s.deleteSoon(m.access, m.claim) },
		"classes first": func(s *story, m made) { s.delete(m.classes...); s.delete(m.access); s.delete(m.claim) },
	} {
		for _, backend := range []string{cloudscale, stackit} {
			t.Run(order+"/"+backend, func(t *testing.T) {
				s := together(t)
				class, accessClass := s.class(backend), s.accessClass()
				m := made{classes: s.applied[1:3]}
				m.claim, m.access = s.claim("photos", class), s.access("photos", "photos", accessClass)
				client, secret, bucket := s.bucketInfo(m.access).s3(), s.secret(m.access), s.bucket(m.claim)
				s.wantUsable(client)
				remove(s, m)
				s.gone(m.claim, bucket)
				s.freed(m.access)
				s.gone(secret)
				if err := client.put(t.Context(), "late", "x"); err == nil {
					t.Error("the key of a deleted access may still write")
				}
			})
		}
	}
}

// TestNamespaceDeletion: Kubernetes deletes everything of a namespace at once, in
// an order of its own. Upstream's sidecar leaves accesses behind then, but
// nothing stays in the cloud.
func TestNamespaceDeletion(t *testing.T) {
	for _, backend := range []string{cloudscale, stackit} {
		t.Run(backend, func(t *testing.T) {
			s := together(t)
			namespace := s.applied[0]
			claim, accessClass := s.claim("photos", s.class(backend)), s.accessClass()
			accesses := []object{s.access("first", "photos", accessClass), s.access("second", "photos", accessClass)}
			var clients []bucketClient
			for _, access := range accesses {
				clients = append(clients, s.bucketInfo(access).s3())
			}
			bucket := s.bucket(claim)
			s.deleteSoon(namespace)
			s.gone(claim, bucket)
			s.freed(accesses...)
			s.gone(namespace)
			for _, client := range clients {
				if err := client.put(t.Context(), "late", "x"); err == nil {
					t.Error("the key of a deleted access may still write")
				}
			}
		})
	}
}

// TestSecretDeletion: a user deletes the Secrets of accesses, one of them with
// its finalizer, and then the accesses. The keys end, but upstream's sidecar does
// not let go of the accesses.
func TestSecretDeletion(t *testing.T) {
	s := together(t)
	s.claim("photos", s.class(cloudscale))
	accessClass := s.accessClass()
	for _, force := range []bool{false, true} {
		name := map[bool]string{false: "asked", true: "forced"}[force]
		access := s.access(name, "photos", accessClass)
		client, secret := s.bucketInfo(access).s3(), s.secret(access)
		s.deleteSoon(secret)
		if force {
			s.patch(secret, map[string]any{"metadata": map[string]any{"finalizers": nil}})
			s.gone(secret)
		} else {
			s.wantUsable(client) // the Secret waits for its access
		}
		s.deleteSoon(access)
		s.gone(secret)
		// Whatever happens to the access, the sidecar looks at it again.
		s.patch(access, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/look": "again"}}})
		s.eventually(func() error {
			// The sidecar repeats a grant with what it knew before the grant, and may
			// write the Secret once more; it then finds one, and lets go.
			if s.absent(t.Context(), access) == nil {
				t.Logf("%s is gone by itself", access)
				return nil
			}
			return s.hasEvent(access, `secrets "`+secret.name()+`" not found`)
		})
		if err := client.put(t.Context(), "late", "x"); !refused(err) {
			t.Errorf("the key of a deleted access may still write: %v", err)
		}
		s.freed(access)
	}
}
