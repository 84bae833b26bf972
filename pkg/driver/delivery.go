package driver

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// deliveryTime is how long a key that a grant has returned may be on its way into
// the Secrets. A sidecar writes them at once, one for each bucket, and asks for the
// grant again when that fails.
const deliveryTime = 2 * time.Minute

// deliveries remembers which key this process has returned last for each account.
// The sidecar of v1alpha2 has every access granted again when it starts. Whoever has
// read the Secrets just before names another key as the one to keep, and would end the
// one that they are about to hold.
type deliveries struct {
	mu   sync.Mutex
	keys map[string]delivery
}

type delivery struct {
	accessKeyID string
	ends        time.Time
}

func newDeliveries() *deliveries { return &deliveries{keys: map[string]delivery{}} }

func (d *deliveries) granted(account, accessKeyID string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.keys, func(_ string, k delivery) bool { return !now.Before(k.ends) })
	d.keys[account] = delivery{accessKeyID, now.Add(deliveryTime)}
}

// arrived forgets the key of an account.
func (d *deliveries) arrived(account string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, account)
}

// spares is ErrConflict while another key than the one to keep is on its way. A key
// that is kept was read where it is delivered to.
func (d *deliveries) spares(account, keep string, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.keys[account]
	if !ok || k.accessKeyID == keep || !now.Before(k.ends) {
		return nil
	}
	return fmt.Errorf("account %s: %w: a grant has just returned key %s, which the Secrets may hold by now instead of key %s; no key was ended; read them again",
		account, provider.ErrConflict, k.accessKeyID, keep)
}

func deliveryKey(backend, account string) string { return backend + "/" + account }
