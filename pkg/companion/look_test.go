package companion

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestUnreadOnce: of two reads that want for the same right, the first and larger one
// says what is missing.
func TestUnreadOnce(t *testing.T) {
	l := &look{unread: map[right]string{}}
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	r := right{"list", "", "events", "default"}
	for _, missing := range []string{"all errors", "some errors"} {
		if forbidden, err := l.tolerated(refusal, r, missing); !forbidden || err != nil {
			t.Fatal(forbidden, err)
		}
	}
	if got := l.unread[r]; got != "all errors" {
		t.Error(got)
	}
}
