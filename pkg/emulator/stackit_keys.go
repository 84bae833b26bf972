package emulator

import (
	"crypto/rand"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// stackitKey is an access key. Its secret is known to the data plane alone.
type stackitKey struct {
	id, accessKey string
	expires       time.Time // zero is never
}

type accessKeyBody struct {
	ID          string `json:"keyId"`
	DisplayName string `json:"displayName"`
	// Expires is null for a key that does not expire.
	Expires *string `json:"expires"`
}

type accessKeysBody struct {
	Project string          `json:"project"`
	Keys    []accessKeyBody `json:"accessKeys"`
}

type accessKeyCreatedBody struct {
	Project string `json:"project"`
	accessKeyBody
	AccessKey       string `json:"accessKey"`
	SecretAccessKey string `json:"secretAccessKey"`
}

type accessKeyDeletedBody struct {
	Project string `json:"project"`
	ID      string `json:"keyId"`
}

func (k *stackitKey) body() accessKeyBody {
	b := accessKeyBody{ID: k.id, DisplayName: "****************" + k.accessKey[len(k.accessKey)-4:]}
	if !k.expires.IsZero() {
		expires := stackitTime(k.expires)
		b.Expires = &expires
	}
	return b
}

// groupOfQuery reads the credentials group that a key belongs to.
func groupOfQuery(call *stackitCall) (id string, refusal *stackitReply) {
	const name = "credentials-group"
	q := call.URL.Query()
	if !q.Has(name) {
		// The cloud may mean a default group here. A client that left the group
		// out by mistake learns of it.
		reply := stackitRefusal("missing", "Field required", "query", name)
		return "", &reply
	}
	id = q.Get(name)
	return id, stringOfLength(id, groupIDLength, groupIDLength, "query", name)
}

// listAccessKeys never lags, not even for a group that the list of groups does
// not show yet.
func (c *Stackit) listAccessKeys(call *stackitCall) stackitReply {
	id, refusal := groupOfQuery(call)
	if refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.groups[id]
		if g == nil {
			return noGroup()
		}
		body := accessKeysBody{Project: t.project, Keys: []accessKeyBody{}}
		for _, k := range g.valid(c.now()) {
			body.Keys = append(body.Keys, k.body())
		}
		return stackitReply{http.StatusOK, body}
	})
}

func (c *Stackit) createAccessKey(call *stackitCall) stackitReply {
	id, refusal := groupOfQuery(call)
	if refusal != nil {
		return *refusal
	}
	members, refusal := readStackitBody(call.Request)
	if refusal != nil {
		return *refusal
	}
	expires, refusal := expiryOf(members, c.now())
	if refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.groups[id]
		if g == nil {
			return noGroup()
		}
		raw := make([]byte, 31)
		_, _ = rand.Read(raw) // never fails
		k := &stackitKey{
			id:        base64.URLEncoding.EncodeToString(raw),
			accessKey: randomString(accessKeySet, 20),
			expires:   expires,
		}
		// Every secret has the one character that a careless client turns into a space.
		secret := randomString(alphanumeric, 6) + "+" + randomString(alphanumeric, 33)
		g.keys = append(g.keys, k)
		identity := objectstore.Identity{
			UID: g.userURN, DisplayName: g.displayName, Group: g.urn,
			Account: objectstore.Account{ID: t.account, Name: t.project},
		}
		c.s3Keys.add(t.region, k.accessKey, expires, objectstore.Key{Secret: secret, Identity: identity})
		return stackitReply{http.StatusCreated, accessKeyCreatedBody{t.project, k.body(), k.accessKey, secret}}
	})
}

func (c *Stackit) deleteAccessKey(call *stackitCall) stackitReply {
	if !call.URL.Query().Has("credentials-group") {
		return stackitProblem(http.StatusInternalServerError, "internal", "Internal server error")
	}
	id, refusal := groupOfQuery(call)
	if refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		g := t.groups[id]
		if g == nil {
			return noGroup()
		}
		i := slices.IndexFunc(g.valid(c.now()), func(k *stackitKey) bool { return k.id == call.id })
		if i < 0 {
			return stackitProblem(http.StatusNotFound, "access_key.not_found", "The access key could not be found")
		}
		c.s3Keys.remove(g.keys[i].accessKey)
		g.keys = slices.Delete(g.keys, i, i+1)
		return stackitReply{http.StatusOK, accessKeyDeletedBody{t.project, call.id}}
	})
}

// stackitS3Keys is what the data plane knows of access keys: a keyring whose
// keys belong to one region and may expire. It is safe for concurrent use.
type stackitS3Keys struct {
	ring *keyring
	now  func() time.Time

	mu     sync.Mutex
	limits map[string]stackitKeyLimit
}

type stackitKeyLimit struct {
	region  string
	expires time.Time // zero is never
	removed bool
}

func newStackitS3Keys(ring *keyring, now func() time.Time) *stackitS3Keys {
	return &stackitS3Keys{ring: ring, now: now, limits: map[string]stackitKeyLimit{}}
}

// Lookup implements objectstore.Keys.
func (s *stackitS3Keys) Lookup(region, accessKeyID string) (objectstore.Key, bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, ok := s.limits[accessKeyID]
	if !ok || limit.region != region || limit.expired(now) {
		return objectstore.Key{}, false
	}
	return s.ring.Lookup(region, accessKeyID)
}

func (l stackitKeyLimit) expired(now time.Time) bool {
	return !l.expires.IsZero() && !now.Before(l.expires)
}

func (s *stackitS3Keys) add(region, accessKeyID string, expires time.Time, key objectstore.Key) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	s.limits[accessKeyID] = stackitKeyLimit{region: region, expires: expires}
	s.ring.add(accessKeyID, key)
}

func (s *stackitS3Keys) remove(accessKeyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.remove(accessKeyID)
	if limit, ok := s.limits[accessKeyID]; ok {
		limit.removed = true
		s.limits[accessKeyID] = limit
	}
}

// sweep forgets keys that will never work again. It needs mu.
func (s *stackitS3Keys) sweep(now time.Time) {
	maps.DeleteFunc(s.limits, func(accessKeyID string, l stackitKeyLimit) bool {
		if l.expired(now) {
			s.ring.remove(accessKeyID)
			return true
		}
		_, works := s.ring.Lookup(l.region, accessKeyID)
		return l.removed && !works
	})
}
