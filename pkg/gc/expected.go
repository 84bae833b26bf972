package gc

import (
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Expected is what should exist in the clouds. The zero value expects nothing and
// lets nothing be deleted; see None.
type Expected struct {
	// None says that nothing is expected on purpose, so that finding nothing is no
	// sign of a fault.
	None bool
	// Ours counts the objects that are known to be of this driver.
	Ours int

	buckets    map[string]bool
	accounts   map[string]bool
	identities map[string]bool
	vague      bool
}

// AddBucket expects a bucket of that name, in whatever back end and region: what is
// kept by mistake costs less than what is deleted by mistake.
func (e *Expected) AddBucket(name string) { add(&e.buckets, name) }

// AddAccount expects the access of an account. The cloud's ID of its identity may be
// empty while it is not known.
func (e *Expected) AddAccount(account, identityID string) {
	add(&e.accounts, account)
	if identityID == "" {
		e.vague = true
		return
	}
	add(&e.identities, strings.ToLower(identityID))
}

func add(set *map[string]bool, key string) {
	if key == "" {
		return
	}
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[key] = true
}

// wants says why a resource should exist, "" if nothing wants it.
func (e *Expected) wants(r provider.Resource, announces func(provider.Resource, string) bool) string {
	switch r.Kind {
	case provider.KindAdmin:
		return "the driver works with it"
	case provider.KindAccess:
		return e.wantsAccess(r)
	case provider.KindBucket, provider.KindOwner:
		if e.buckets[r.Bucket] {
			return "its Bucket exists"
		}
		if r.Kind == provider.KindOwner && r.ID != "" && e.identities[strings.ToLower(r.ID)] {
			return "a BucketAccess uses its key"
		}
		if r.Bucket == "" {
			for name := range e.buckets {
				if announces(r, name) {
					return "it announces a bucket whose Bucket exists"
				}
			}
		}
		return ""
	}
	return "it is of an unknown kind"
}

func (e *Expected) wantsAccess(r provider.Resource) string {
	switch {
	case e.accounts[r.Account], r.ID != "" && e.identities[strings.ToLower(r.ID)]:
		return "its BucketAccess exists"
	case r.Account == "" && e.vague:
		return "its account is not known, and a BucketAccess has no account ID yet"
	}
	return ""
}
