package cloudscale

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The tags of a bucket that an access opens. Each begins the key of a tag that
// ends in a digest of the bucket's name, because a list takes one clause, and a
// name can be longer than a key and hold a dot.
const (
	tagMember = "zuber_bucket_" // the bucket's name
	tagTerms  = "zuber_access_" // what the access may do there, see membership.terms
	tagUID    = "zuber_uid_"    // only where the endpoint does not call the user by its ID
)

// stage is how far the access to a bucket has come.
type stage string

const (
	stageNew stage = "new" // no policy names the user: its key was not yet seen to work
	stageIn  stage = "in"  // the policy lets the user in
	stageOut stage = "out" // revoked: the policy denies the user everything
	stageOff stage = "off" // revoked before any policy named the user
)

// membership is one bucket of an access, as the tags of its user record it.
type membership struct {
	bucket string
	region string
	// owner is the owner of the bucket, see ownerTag: a later bucket of the same
	// name must not let the access in.
	owner  string
	mode   provider.Mode
	stage  stage
	theirs bool   // the bucket is not of the driver's making
	uid    string // of the user, as the bucket's endpoint calls it; "" in the stages new and off
}

// named reports whether the policy of the bucket has a word about the user.
func (m membership) named() bool { return m.stage == stageIn || m.stage == stageOut }

// alive reports whether the access to the bucket has not been revoked.
func (m membership) alive() bool { return m.stage == stageNew || m.stage == stageIn }

// revoked returns the membership as it is after its revocation. It stays with
// the user: while the user is there, the policy must go on denying it what it wrote.
func (m membership) revoked() membership {
	switch m.stage {
	case stageNew:
		m.stage = stageOff
	case stageIn:
		m.stage = stageOut
	case stageOut, stageOff:
	}
	return m
}

const flagTheirs = "theirs"

// terms spells the membership as the value of a tag, within 63 characters:
// rw.rma.0123456789abcdef.in[.theirs].
func (m membership) terms() string {
	parts := []string{sidOf(m.mode), m.region, m.owner, string(m.stage)}
	if m.theirs {
		parts = append(parts, flagTheirs)
	}
	return strings.Join(parts, ".")
}

// tags returns the membership as tags of the user.
func (m membership) tags(userID string) map[string]string {
	key := bucketKey(m.bucket)
	tags := map[string]string{tagMember + key: m.bucket, tagTerms + key: m.terms()}
	if !m.named() || m.uid == userID {
		return tags
	}
	n := 0
	for part := range slices.Chunk([]byte(hex.EncodeToString([]byte(m.uid))), tagValueLimit) {
		n++
		tags[uidKey(key, n)] = string(part)
	}
	return tags
}

// recordedMembership reads the tags back; false if they make no sense, so that
// nobody is let in by them.
func recordedMembership(u user, bucket string) (membership, bool) {
	key := bucketKey(bucket)
	parts := strings.Split(u.tags[tagTerms+key], ".")
	if u.tags[tagMember+key] != bucket || checkBucketName(bucket) != nil || len(parts) < 4 {
		return membership{}, false
	}
	m := membership{bucket: bucket, region: parts[1], owner: parts[2], stage: stage(parts[3]), theirs: slices.Contains(parts[4:], flagTheirs)}
	for _, mode := range []provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly} {
		if sidOf(mode) == parts[0] {
			m.mode = mode
		}
	}
	if m.mode == "" || !regionPattern.MatchString(m.region) || !m.named() && !m.alive() && m.stage != stageOff {
		return membership{}, false
	}
	if m.named() {
		m.uid = recordedUID(u, key)
	}
	return m, m.uid != "" || !m.named()
}

// recordedUID reads the uid back: the user's ID where nothing else is said, ""
// if what is said makes no sense.
func recordedUID(u user, key string) string {
	var text strings.Builder
	for n := 1; ; n++ {
		part, ok := u.tags[uidKey(key, n)]
		if !ok {
			break
		}
		text.WriteString(part)
	}
	if text.Len() == 0 {
		return u.id
	}
	uid, err := hex.DecodeString(text.String())
	if err != nil || !uidPattern.Match(uid) {
		return ""
	}
	return string(uid)
}

func bucketKey(bucket string) string { return digest(bucket, 32) }

func uidKey(key string, n int) string { return fmt.Sprintf("%s%s_%d", tagUID, key, n) }

// The tags of an access's objects user, besides tagManagedBy, tagRole and those
// of its buckets.
const (
	tagAccount    = "zuber_account"
	tagOwnBuckets = "zuber_own_buckets" // only when purge
	// The tags of a user that a rotation made in another one's place.
	tagRotation = "zuber_rotation" // how many rotations the account has seen
	tagIdentity = "zuber_identity" // the ID of the account's first user

	roleAccess = "access"
	// tagPrefix begins the key of every tag of the driver's.
	tagPrefix = "zuber_"
)

// access is the objects user of one BucketAccess.
type access struct {
	user
	account string // as its tag spells it, see accountTag
	own     provider.OwnBuckets
	probe   bool
	cluster string                // ID of the cluster that made it; "" if it had none
	buckets map[string]membership // by name
	// rotation counts the account's users, each made in place of the one before;
	// first is the ID of the first of them, which stays the account's identity for
	// COSI, and empty with that one itself.
	rotation int
	first    string
}

// identity is what COSI knows the account's user by, whichever one it has.
func (a access) identity() string { return cmp.Or(a.first, a.id) }

// isAccess reports whether the user carries our mark as an access, be it one of
// another cluster: whoever is let into a bucket stays in its policy.
func (p *Provider) isAccess(u user) bool {
	return u.tags[tagManagedBy] == p.config.DriverName && u.tags[tagRole] == roleAccess
}

// asTags returns the access as the tags of its user. Tags that somebody else gave
// the user stay.
func (a access) asTags(driver string) map[string]string {
	tags := maps.Clone(a.tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, tagPrefix) })
	tags[tagManagedBy], tags[tagRole], tags[tagAccount] = driver, roleAccess, a.account
	for _, m := range a.buckets {
		maps.Copy(tags, m.tags(a.id))
	}
	if a.own == provider.OwnBucketsPurge {
		tags[tagOwnBuckets] = string(a.own)
	}
	if a.rotation > 0 {
		tags[tagRotation], tags[tagIdentity] = strconv.Itoa(a.rotation), a.first
	}
	if a.cluster != "" {
		tags[tagCluster] = a.cluster
	}
	if a.probe {
		tags[tagPurpose] = purposeProbe
	}
	return tags
}

// recordedAccess reads the tags back.
func recordedAccess(u user) access {
	a := access{
		user: u, account: u.tags[tagAccount], own: provider.OwnBucketsRefuse,
		probe: u.tags[tagPurpose] == purposeProbe, cluster: u.tags[tagCluster], buckets: map[string]membership{},
	}
	if u.tags[tagOwnBuckets] == string(provider.OwnBucketsPurge) {
		a.own = provider.OwnBucketsPurge
	}
	if n, err := strconv.Atoi(u.tags[tagRotation]); err == nil && n > 0 && userIDPattern.MatchString(u.tags[tagIdentity]) {
		a.rotation, a.first = n, u.tags[tagIdentity]
	}
	for key, bucket := range u.tags {
		if !strings.HasPrefix(key, tagMember) {
			continue
		}
		if m, ok := recordedMembership(u, bucket); ok {
			a.buckets[bucket] = m
		}
	}
	return a
}

// names returns the names of its buckets, sorted.
func (a access) names() []string { return slices.Sorted(maps.Keys(a.buckets)) }

// opens reports whether the access opens a bucket, other than the named one.
func (a access) opens(besides string) bool {
	for name, m := range a.buckets {
		if name != besides && m.alive() {
			return true
		}
	}
	return false
}

// usable reports whether the key may have been handed out.
func (a access) usable() bool {
	for _, m := range a.buckets {
		if m.named() {
			return true
		}
	}
	return false
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

// ownerTag is the ID of a bucket's owner in the tags of others.
func ownerTag(id string) string { return digest(id, 16) }
