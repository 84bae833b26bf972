package stackit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The tags of buckets. Those of the ledger are in ledger.go; all others on the
// bucket are somebody else's and are kept.
const (
	tagManagedBy  = "zuber_managed_by"
	tagBucket     = "zuber_bucket"
	tagEndpoint   = "zuber_endpoint"        // only when not the region's own
	tagAddressing = "zuber_addressing"      // only when virtual
	tagPolicy     = "zuber_deletion_policy" // only when DeleteAll
	tagClaim      = "zuber_claim"           // <namespace>/<name>, only when named after a claim
	tagCluster    = "zuber_cluster"         // only when the driver knows its cluster's ID
	tagIntent     = "zuber_intent"          // ID of the group that announced the bucket, until it is gone

	addressingVirtual = "virtual"
	// vendorPrefix begins the tags that the storage system sets of its own
	// accord, such as NTAP-SG-ILM-BUCKET-TAG.
	vendorPrefix = "NTAP-"
)

// record is what the tags say of how the bucket was made.
type record struct {
	endpoint      string // "" means the region's own
	virtualHosted bool
	policy        provider.DeletionPolicy
	claim         string // as its tag spells it
	cluster       string // ID of the cluster that made it; "" if it had none
}

// marks is everything that the tags of a managed bucket say.
type marks struct {
	record
	intent  string
	entries []entry
	foreign map[string]string
}

// ours reports whether the bucket carries the driver's mark.
func (p *Provider) ours(b *bucket) bool { return p.marked(b) && !p.elsewhereMade(b.tags) }

// marked is ours for the driver of any cluster.
func (p *Provider) marked(b *bucket) bool {
	return b.tags[tagManagedBy] == p.config.DriverName && b.tags[tagBucket] == b.Name
}

// untagged reports whether nobody has tagged the bucket.
func untagged(tags map[string]string) bool {
	for key := range tags {
		if !strings.HasPrefix(key, vendorPrefix) {
			return false
		}
	}
	return true
}

// recordOf validates what CreateBucket is asked for, for a region whose own
// endpoint is given.
func (p *Provider) recordOf(spec provider.BucketSpec, regional endpoint) (record, error) {
	r := record{virtualHosted: spec.VirtualHosted, policy: spec.DeletionPolicy, claim: spec.Claim.String(), cluster: p.config.ClusterID}
	if r.claim != "" && (!labelPattern.MatchString(spec.Claim.Namespace) || !labelPattern.MatchString(spec.Claim.Name)) {
		return record{}, refuse(provider.ErrInvalidArgument, "the claim %q cannot be recorded: want 1 to 63 of [a-z0-9.-] in each part", r.claim)
	}
	switch r.policy {
	case "":
		r.policy = provider.DeleteIfEmpty
	case provider.DeleteIfEmpty, provider.DeleteAll:
	default:
		return record{}, refuse(provider.ErrInvalidArgument, "deletion policy %q is not one of %s, %s",
			spec.DeletionPolicy, provider.DeleteIfEmpty, provider.DeleteAll)
	}
	used := regional
	if spec.Endpoint != "" {
		asked, err := parseEndpoint(spec.Endpoint)
		if err != nil {
			return record{}, err
		}
		if _, err := asked.tag(); err != nil && asked != regional {
			return record{}, err
		}
		if used = asked; asked != regional {
			r.endpoint = asked.String()
		}
	}
	if spec.VirtualHosted && used.scheme == "https" && strings.Contains(spec.Name, ".") {
		return record{}, refuse(provider.ErrInvalidArgument,
			"bucket name %q holds a dot, which the endpoint's wildcard certificate does not cover; use path-style addressing", spec.Name)
	}
	return r, nil
}

// encode returns the marks as tags. ErrQuotaExceeded when they do not fit.
func (m marks) encode(driver, bucket, adminURN string) (map[string]string, error) {
	tags, err := encodeLedger(m.entries, adminURN)
	if err != nil {
		return nil, err
	}
	tags[tagManagedBy], tags[tagBucket] = driver, bucket
	if m.endpoint != "" {
		e, err := parseEndpoint(m.endpoint)
		if err != nil {
			return nil, err
		}
		if tags[tagEndpoint], err = e.tag(); err != nil {
			return nil, err
		}
	}
	if m.virtualHosted {
		tags[tagAddressing] = addressingVirtual
	}
	if m.policy == provider.DeleteAll {
		tags[tagPolicy] = string(provider.DeleteAll)
	}
	if m.claim != "" {
		tags[tagClaim] = m.claim
	}
	if m.cluster != "" {
		tags[tagCluster] = m.cluster
	}
	if m.intent != "" {
		tags[tagIntent] = m.intent
	}
	maps.Copy(tags, m.foreign)
	if len(tags) > tagCountLimit {
		return nil, refuse(provider.ErrQuotaExceeded, "with %d accesses and %d tags of others it would need %d tags, and %d is the limit; "+
			"revoke some, remove tags, or use more buckets", len(m.entries), len(m.foreign), len(tags), tagCountLimit)
	}
	return tags, nil
}

// decodeMarks reads the marks back. Beside an error, which is a malformed tag,
// the rest is returned.
func decodeMarks(tags map[string]string, adminURN string) (marks, error) {
	m := marks{
		record: record{
			virtualHosted: tags[tagAddressing] == addressingVirtual, policy: provider.DeleteIfEmpty,
			claim: tags[tagClaim], cluster: tags[tagCluster],
		},
		intent: tags[tagIntent], foreign: map[string]string{},
	}
	if tags[tagPolicy] == string(provider.DeleteAll) {
		m.policy = provider.DeleteAll
	}
	var err error
	m.entries, err = decodeLedger(tags, adminURN)
	if value, ok := tags[tagEndpoint]; ok {
		e, endpointErr := parseEndpointTag(value)
		if endpointErr != nil {
			return m, endpointErr
		}
		m.endpoint = e.String()
	}
	own := []string{tagManagedBy, tagBucket, tagEndpoint, tagAddressing, tagPolicy, tagClaim, tagCluster, tagIntent}
	for key, value := range tags {
		if !slices.Contains(own, key) && !strings.HasPrefix(key, tagAccess) {
			m.foreign[key] = value
		}
	}
	return m, err
}

// find returns the entry with the group name.
func (m *marks) find(name string) (entry, bool) {
	i := slices.IndexFunc(m.entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return m.entries[i], true
}

// put adds the entry or replaces the one with its name.
func (m *marks) put(e entry) {
	m.drop(e.name)
	m.entries = append(m.entries, e)
}

// inForce reports whether the entry still stands, be it with other keys, and has not
// been ended.
func (m *marks) inForce(e entry) bool {
	had, ok := m.find(e.name)
	return ok && had.id == e.id && (had.mode != modeEnded || e.mode == modeEnded)
}

// renew is put for an entry that is in force, and does nothing else.
func (m *marks) renew(e entry) {
	if m.inForce(e) {
		m.put(e)
	}
}

// drop removes the entry with the name, if there is one.
func (m *marks) drop(name string) {
	m.entries = slices.DeleteFunc(slices.Clone(m.entries), func(e entry) bool { return e.name == name })
}

// dropAll removes the entries with the names of these.
func (m *marks) dropAll(entries []entry) {
	for _, e := range entries {
		m.drop(e.name)
	}
}

// members returns the accesses that the policy lets in.
func (m *marks) members() []member {
	var all []member
	for _, e := range m.entries {
		if !e.pending() && e.mode != modeEnded {
			all = append(all, member{e.urn, e.mode})
		}
	}
	return all
}

// differs says how asked differs from what is recorded; nil if it does not.
func (r record) differs(asked record) error {
	if r.claim != asked.claim {
		return refuse(provider.ErrAlreadyExists, "it is the bucket of %s, and is now asked for by %s; use another name", ownedBy(r.claim), ownedBy(asked.claim))
	}
	for _, f := range []struct{ parameter, recorded, asked string }{
		{"endpointURL", r.endpoint, asked.endpoint},
		{"s3PathStyle", fmt.Sprint(!r.virtualHosted), fmt.Sprint(!asked.virtualHosted)},
		{"bucketDeletionPolicy", string(r.policy), string(asked.policy)},
	} {
		if f.recorded != f.asked {
			return refuse(provider.ErrAlreadyExists,
				"it was made with %s %s and is now asked for with %s; ask for the former or use another name",
				f.parameter, orDefault(f.recorded), orDefault(f.asked))
		}
	}
	return nil
}

// ownedBy says whose a bucket is that was made for the claim.
func ownedBy(claim string) string {
	if claim == "" {
		return "a Bucket that is not named after its claim"
	}
	return "the BucketClaim " + clip(claim)
}

func orDefault(s string) string {
	if s == "" {
		return "(default)"
	}
	return fmt.Sprintf("%q", s)
}
