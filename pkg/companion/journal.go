package companion

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// journal is what the companion remembers of the rotations of an access: the last
// one, and the one that is going on, so that whoever comes after a crash knows how
// far it has come. It holds no secret. It is in a Secret all the same, because to
// those the companion has its rights.
type journal struct {
	// Handled is the value of AnnotationRotateAt that asks for nothing any more.
	Handled string    `json:"handled,omitempty"`
	Rotated time.Time `json:"rotated,omitzero"` // when the last new key was in the Secrets
	Running *running  `json:"running,omitempty"`

	secret *corev1.Secret // as it was read
}

// running is a rotation that goes on.
type running struct {
	Value    string `json:"value,omitempty"` // what it handles
	Replaced string `json:"replaced"`        // access key ID of the key that is to end
	// Minted is the access key ID of the new key; empty until there is one. It is
	// noted before the key is in any Secret.
	Minted string `json:"minted,omitempty"`
	// Delivered is when the last Secret had the new key; zero until then.
	Delivered time.Time `json:"delivered,omitzero"`
	// Grace is what the access said at that time. What it says in the end counts;
	// this one is for the event.
	Grace time.Duration `json:"grace,omitempty"`
}

// journalKey is the only key of the Secret.
const journalKey = "rotation"

// journalName is the Secret's name.
func journalName(a access) string { return "zuber-rotation-" + a.uid }

// journal reads what is remembered of an access, which may be nothing. What
// somebody has made unreadable is forgotten: a rotation then begins anew, and keeps
// the key that the Secrets hold.
func (s *secrets) journal(ctx context.Context, a access) (*journal, error) {
	var secret corev1.Secret
	err := s.live.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: journalName(a)}, &secret)
	if apierrors.IsNotFound(err) {
		return &journal{secret: newSecret(a, journalName(a), nil)}, nil
	}
	if err != nil {
		return nil, s.judged(a, err)
	}
	if !owned(&secret, a) {
		return nil, refused(fmt.Errorf("the Secret %s, in which rotations are remembered, is not of this BucketAccess: delete it", secret.Name))
	}
	j := &journal{}
	if json.Unmarshal(secret.Data[journalKey], j) != nil || j.Running != nil && j.Running.Replaced == "" {
		j = &journal{}
	}
	j.secret = &secret
	return j, nil
}

// remember writes the journal. It fails if anybody else has written it since it was
// read.
func (s *secrets) remember(ctx context.Context, a access, j *journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	fresh := newSecret(a, journalName(a), map[string][]byte{journalKey: text})
	j.secret.Data, j.secret.Labels = fresh.Data, fresh.Labels
	if j.secret.ResourceVersion == "" {
		err = s.client.Create(ctx, j.secret)
	} else {
		err = s.client.Update(ctx, j.secret)
	}
	return s.judged(a, err)
}
