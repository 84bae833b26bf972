package companion

import (
	"errors"
	"fmt"
	"time"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// The parameters of a BucketAccessClass that say whose keys are rotated.
const (
	rotateEvery          = "rotateEvery"
	credentialsParameter = "credentials"
)

// wish is what an access and its class say about rotation.
type wish struct {
	value string        // opaque; empty asks for nothing
	every time.Duration // zero is never
	grace time.Duration // how long a replaced key goes on working
}

// asks reports whether there is to be any rotation.
func (w wish) asks() bool { return w.value != "" || w.every > 0 }

// asksForRotation is wish.asks for what need not be free of faults.
func asksForRotation(a access, parameters map[string]string) bool {
	return a.annotations[AnnotationRotateAt] != "" || parameters[rotateEvery] != ""
}

// readWish reads what an access and its class say. It reports the first fault, in
// words for the user.
func readWish(a access, parameters map[string]string) (w wish, err error) {
	if parameters == nil {
		return w, fmt.Errorf("the BucketAccessClass %s is away, and with it what it says about credentials: make it again", quote(a.class))
	}
	if parameters[credentialsParameter] == string(provider.CredentialsShared) {
		return w, errors.New("the BucketAccessClass gives the key of the bucket's owner (credentials: shared), which is not rotated: " +
			"make a BucketAccess of a class without that")
	}
	w.value = a.annotations[AnnotationRotateAt]
	if grace := a.annotations[AnnotationRotationGrace]; grace != "" {
		if w.grace, err = time.ParseDuration(grace); err != nil || w.grace < 0 {
			return w, fmt.Errorf("%s: %s: want a duration such as 1h or 90s, or 0", AnnotationRotationGrace, quote(grace))
		}
	}
	if every := parameters[rotateEvery]; every != "" {
		if w.every, err = driver.ParseRotateEvery(every); err != nil {
			return w, fmt.Errorf("%s of the BucketAccessClass: %s: %w", rotateEvery, quote(every), err)
		}
	}
	return w, nil
}
