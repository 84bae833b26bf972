package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/gc"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// collect deletes as garbage whatever the cluster has lost the objects of: buckets,
// with their data, and accounts, which COSI names with a prefix.
func collect(lost ...string) rpc {
	gone := func(name string) bool { return slices.Contains(lost, name) }
	buckets := slices.DeleteFunc(slices.Clone(lost), isAccount)
	return rpc{
		what: "gc", buckets: buckets,
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			e := gc.Expected{Ours: 1}
			for bucket := range l.bucketIDs {
				if !gone(bucket) {
					e.AddBucket(bucket)
				}
			}
			for account, id := range l.accountIDs {
				if gone(account) {
					continue
				}
				parsed, err := driver.ParseAccountID(id)
				if err != nil {
					return outcome{}, err
				}
				e.AddAccount(account, parsed.IdentityID)
			}
			return outcome{}, collectAllBut(ctx, p, e)
		},
		then: func(l *life, _ outcome) {
			for _, name := range lost {
				delete(l.bucketIDs, name)
				delete(l.accountIDs, name)
				delete(l.touched, name)
				delete(l.full, name)
			}
		},
		rights: func(r rights) {
			maps.DeleteFunc(r, func(k [2]string, _ provider.Mode) bool { return gone(k[0]) || gone(k[1]) })
		},
	}
}

func isAccount(name string) bool { return strings.HasPrefix(name, "ba-") }

// collectAllBut is a whole run of a collector, which must get through.
func collectAllBut(ctx context.Context, p *process, e gc.Expected) error {
	c := gc.Collector{
		Backends: []gc.Backend{{Name: backend, Provider: p.adapter}}, Seen: gc.Sightings{}, Now: time.Now,
		Expect: func(context.Context) (gc.Expected, error) { return e, nil },
	}
	plan, err := c.Look(ctx)
	if err != nil {
		return err
	}
	faults := append(slices.Clone(plan.Unread), c.Delete(ctx, plan, true))
	for _, i := range plan.Items {
		if i.Err != nil {
			faults = append(faults, fmt.Errorf("%s of %s %s: %w", i.Outcome, i.Kind, i.ID, i.Err))
		}
	}
	return errors.Join(faults...)
}
