package policy

import (
	"slices"
	"strings"
)

// principal is one entry of Principal or NotPrincipal.
type principal struct {
	kind    principalKind
	account string // the tenant or account
	name    string // the uid; for StorageGRID type/name, as in "group/x"
}

type principalKind int

const (
	principalNobody  principalKind = iota // accepted, matches nobody
	principalAnyone                       // "*", anonymous requests included
	principalAccount                      // every user of the account or tenant
	principalUser                         // one RGW user
	principalGrid                         // one StorageGRID user or group
)

// anyone reports whether the list holds "*".
func anyone(list []principal) bool {
	return slices.ContainsFunc(list, func(p principal) bool { return p.kind == principalAnyone })
}

func matchesAny(list []principal, r Request) bool {
	return slices.ContainsFunc(list, func(p principal) bool { return p.matches(r) })
}

func (p principal) matches(r Request) bool {
	switch p.kind {
	case principalAnyone:
		return true
	case principalAccount:
		return p.matchesAccount(r.Principal)
	case principalUser:
		tenant, uid := splitUID(r.Principal)
		return r.Principal != "" && tenant == p.account && uid == p.name
	case principalGrid:
		for _, urn := range append([]string{r.Principal}, r.Groups...) {
			if account, name, ok := splitIdentity(urn); ok && account == p.account && name == p.name {
				return true
			}
		}
	case principalNobody:
	}
	return false
}

// matchesAccount compares the account of a StorageGRID identity, or the tenant
// of an RGW uid. The gateway's anonymous user has no tenant, so the empty
// tenant covers it.
func (p principal) matchesAccount(who string) bool {
	if account, _, ok := splitIdentity(who); ok {
		return account == p.account
	}
	tenant, _ := splitUID(who)
	return tenant == p.account
}

// splitUID takes RGW's "tenant$uid" apart.
func splitUID(id string) (tenant, uid string) {
	if t, u, ok := strings.Cut(id, "$"); ok {
		return t, u
	}
	return "", id
}

// splitIdentity takes urn:sgws:identity::account:type/name, or the same with
// the prefix arn:aws:iam, apart.
func splitIdentity(s string) (account, name string, ok bool) {
	parts := strings.SplitN(s, ":", 6)
	if len(parts) != 6 || parts[3] != "" {
		return "", "", false
	}
	switch strings.Join(parts[:3], ":") {
	case "urn:sgws:identity", "arn:aws:iam":
		return parts[4], parts[5], true
	}
	return "", "", false
}
