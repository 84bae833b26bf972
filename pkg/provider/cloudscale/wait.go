package cloudscale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// codeUnknownKey is the endpoint's answer to a key that has not reached it.
const codeUnknownKey = "InvalidAccessKeyId"

// backoff is exponential waiting with jitter.
type backoff struct{ first, most time.Duration }

var defaultBackoff = backoff{first: 500 * time.Millisecond, most: 4 * time.Second}

// after returns the wait after the n-th attempt, n from 1: between half and all
// of a value that doubles from first to most.
func (b backoff) after(n int) time.Duration {
	full := b.most
	if shift := n - 1; shift < 16 && b.first<<shift < b.most {
		full = b.first << shift
	}
	return full/2 + rand.N(full/2+1) //nolint:gosec // jitter needs no secrecy
}

// identity is an objects user whose key is used at an endpoint.
type identity struct {
	id       string
	region   string // for messages
	endpoint string
}

// withKey runs do with an S3 client of the user's key and repeats it while, and
// only while, the endpoint does not know the key, for at most KeyWait. The user
// is read again before each repetition: it may be gone, or its key replaced.
// Afterwards u holds the key that was used last. Errors: those of do;
// ErrUnavailable after the wait; ErrConflict if the user vanished.
func (p *Provider) withKey(ctx context.Context, who identity, u *user, do func(*s3.Client) error) error {
	began := time.Now()
	for n := 1; ; n++ {
		key, err := u.key()
		if err != nil {
			return err
		}
		client, err := p.client(who.endpoint, key)
		if err != nil {
			return err
		}
		err = do(client)
		waited := time.Since(began)
		if s3.Code(err) != codeUnknownKey {
			if n > 1 {
				p.keyWaited(who, waited, true)
			}
			return err
		}
		if p.config.OnKeyWait != nil {
			p.config.OnKeyWait(who.region, waited)
		}
		next := p.waits.after(n)
		if waited+next > p.config.KeyWait {
			p.keyWaited(who, waited, false)
			return refuse(provider.ErrUnavailable,
				"the key of objects user %s does not work at %s after %s; a key may take some time to reach a region, so repeat the call",
				who.id, who.endpoint, waited.Round(time.Millisecond))
		}
		if err := pause(ctx, next); err != nil {
			p.keyWaited(who, time.Since(began), false)
			return fmt.Errorf("waiting for the key of objects user %s at %s: %w", who.id, who.endpoint, err)
		}
		if *u, err = p.getUser(ctx, who.id); errors.Is(err, provider.ErrNotFound) {
			return refuse(provider.ErrConflict, "objects user %s was deleted meanwhile; repeat the call", who.id)
		} else if err != nil {
			return err
		}
	}
}

// keyWaited tells of the end of a wait.
func (p *Provider) keyWaited(who identity, waited time.Duration, works bool) {
	if p.config.OnKeyWaited != nil {
		p.config.OnKeyWaited(who.region, waited, works)
	}
}
