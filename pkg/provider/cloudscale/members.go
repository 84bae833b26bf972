package cloudscale

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The tags of an access's objects user, besides tagManagedBy, tagBucket, tagRole
// and tagRegion.
const (
	tagAccount = "zuber_account"
	tagMode    = "zuber_mode"
	// tagOwner ties the access to the owner of the bucket: a later bucket of the
	// same name must not let it in.
	tagOwner      = "zuber_owner"
	tagUID        = "zuber_uid"         // what ListBuckets calls the user; see uidTags
	tagOwnBuckets = "zuber_own_buckets" // only when purge
	tagRevoked    = "zuber_revoked"     // only while a revocation is under way

	roleAccess = "access"
	revokedYes = "yes"
	// uidIsID is the uid tag of a user that the endpoint calls by its API ID.
	uidIsID = "id"
)

// access is the objects user of one BucketAccess.
type access struct {
	user
	bucket  string
	region  string
	account string // as its tag spells it, see accountTag
	owner   string // as its tag spells it, see ownerTag
	mode    provider.Mode
	own     provider.OwnBuckets
	uid     string // "" until its key has worked once
	revoked bool
	probe   bool
}

// isAccess reports whether the user carries our mark as an access to the bucket.
func (p *Provider) isAccess(u user, bucket string) bool {
	return u.tags[tagManagedBy] == p.config.DriverName && u.tags[tagRole] == roleAccess && u.tags[tagBucket] == bucket
}

// tags returns the access as the tags of its user.
func (a access) tags(driver string) map[string]string {
	tags := map[string]string{
		tagManagedBy: driver, tagBucket: a.bucket, tagRole: roleAccess, tagRegion: a.region,
		tagAccount: a.account, tagOwner: a.owner, tagMode: string(a.mode),
	}
	maps.Copy(tags, uidTags(a.id, a.uid))
	if a.own == provider.OwnBucketsPurge {
		tags[tagOwnBuckets] = string(a.own)
	}
	if a.revoked {
		tags[tagRevoked] = revokedYes
	}
	if a.probe {
		tags[tagPurpose] = purposeProbe
	}
	return tags
}

// recordedAccess reads the tags back.
func recordedAccess(u user) access {
	a := access{
		user: u, bucket: u.tags[tagBucket], region: u.tags[tagRegion], account: u.tags[tagAccount], owner: u.tags[tagOwner],
		mode: provider.Mode(u.tags[tagMode]), own: provider.OwnBucketsRefuse, uid: recordedUID(u),
		revoked: u.tags[tagRevoked] != "", probe: u.tags[tagPurpose] == purposeProbe,
	}
	if u.tags[tagOwnBuckets] == string(provider.OwnBucketsPurge) {
		a.own = provider.OwnBucketsPurge
	}
	return a
}

var tagValuePattern = regexp.MustCompile(`^[a-z0-9.-]{1,63}$`)

// accountTag is an account's name as a tag: itself where that is a good value,
// else a digest.
func accountTag(account string) string {
	if tagValuePattern.MatchString(account) && !strings.HasPrefix(account, "sha256.") {
		return account
	}
	return "sha256." + digest(account, 48)
}

// ownerTag is a user's ID as a tag of others. IDs are one character too long.
func ownerTag(id string) string { return digest(id, 32) }

func digest(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:length]
}

// uidTags spells a uid as tags: a word where it is the user's ID, else in
// hexadecimal, in as many tags as it takes.
func uidTags(id, uid string) map[string]string {
	switch uid {
	case "":
		return nil
	case id:
		return map[string]string{tagUID: uidIsID}
	}
	tags := map[string]string{}
	n := 0
	for part := range slices.Chunk([]byte(hex.EncodeToString([]byte(uid))), tagValueLimit) {
		n++
		tags[fmt.Sprintf("%s_%d", tagUID, n)] = string(part)
	}
	return tags
}

// recordedUID reads the uid back, "" if there is none or it makes no sense.
func recordedUID(u user) string {
	if u.tags[tagUID] == uidIsID {
		return u.id
	}
	var text strings.Builder
	for n := 1; ; n++ {
		part, ok := u.tags[fmt.Sprintf("%s_%d", tagUID, n)]
		if !ok {
			break
		}
		text.WriteString(part)
	}
	uid, err := hex.DecodeString(text.String())
	if err != nil || !uidPattern.Match(uid) {
		return ""
	}
	return string(uid)
}

// accessesOf returns the accesses among the users of a bucket, ordered by ID.
func (p *Provider) accessesOf(users []user, bucket string) []access {
	var found []access
	for _, u := range users {
		if p.isAccess(u, bucket) {
			found = append(found, recordedAccess(u))
		}
	}
	slices.SortFunc(found, func(a, b access) int { return strings.Compare(a.id, b.id) })
	return found
}

// accesses returns the accesses to the owner's bucket, and none to a former one
// of the name.
func (p *Provider) accesses(ctx context.Context, o owner) ([]access, error) {
	users, err := p.listUsers(ctx, tagBucket, o.bucket)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(p.accessesOf(users, o.bucket), func(a access) bool { return a.owner != ownerTag(o.id) }), nil
}

// preferred returns the one of several identities of an account that is handed
// out. One that has a uid may have been handed out already; among equals the
// lowest ID wins, so that all processes choose alike.
func preferred(found []access, account string) (access, bool) {
	var best access
	for _, a := range found {
		if a.account == account && (best.id == "" || best.uid == "" && a.uid != "") {
			best = a
		}
	}
	return best, best.id != ""
}

// ensureAccess finds the access's objects user or makes it, with everything but
// its uid in its tags.
func (p *Provider) ensureAccess(ctx context.Context, o owner, want access) (access, error) {
	found, err := p.accesses(ctx, o)
	if err != nil {
		return access{}, err
	}
	if a, ok := preferred(found, want.account); ok {
		return a, nil
	}
	u, err := p.createUser(ctx, displayName(want.account), want.tags(p.config.DriverName))
	if err != nil {
		return access{}, err
	}
	if _, err := u.key(); err != nil {
		return access{}, p.removeMade(ctx, u.id, err)
	}
	if found, err = p.accesses(ctx, o); err != nil {
		return access{}, err
	}
	a, ok := preferred(found, want.account)
	switch {
	case !ok:
		return access{}, refuse(provider.ErrConflict, "objects user %s was deleted as soon as it was made; repeat the call", u.id)
	case a.id != u.id:
		return access{}, p.removeMade(ctx, u.id, refuse(provider.ErrConflict,
			"another call made the identity %s of the account at the same time; repeat the call", a.id))
	}
	return a, nil
}

// record makes the user's tags say what the access is. A user that vanished
// meanwhile is ErrConflict.
func (p *Provider) record(ctx context.Context, a access) error {
	tags := a.tags(p.config.DriverName)
	if maps.Equal(tags, a.user.tags) {
		return nil
	}
	err := p.updateTags(ctx, a.id, tags)
	if errors.Is(err, provider.ErrNotFound) {
		return refuse(provider.ErrConflict, "objects user %s was deleted meanwhile; repeat the call", a.id)
	}
	return err
}
