package cloudscale

import (
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The tags of objects users. Values stay within [a-z0-9.-] and 63 characters:
// the cloud's own rules are not documented.
const (
	tagManagedBy  = "zuber_managed_by"
	tagBucket     = "zuber_bucket"
	tagRole       = "zuber_role"
	tagRegion     = "zuber_region"
	tagEndpoint   = "zuber_endpoint"        // only when not the region's own
	tagAddressing = "zuber_addressing"      // only when virtual
	tagPolicy     = "zuber_deletion_policy" // only when DeleteAll
	tagShared     = "zuber_shared"          // only when forbidden
	tagNamespace  = "zuber_namespace"       // only when named after a claim
	tagClaim      = "zuber_claim"           // only when named after a claim
	tagCluster    = "zuber_cluster"         // only when the driver knows its cluster's ID
	tagPurpose    = "zuber_purpose"         // only of what the probe makes
	tagTenant     = "zuber_tenant"          // only of the owner of a tenant's buckets

	roleOwner         = "owner"
	roleTenant        = "tenant"
	purposeProbe      = "probe"
	addressingVirtual = "virtual"
	tagValueLimit     = 63
)

// record is what the owner's tags say of a bucket.
type record struct {
	bucket        string
	region        string
	endpoint      string // "" means the region's own
	virtualHosted bool
	policy        provider.DeletionPolicy
	shared        provider.SharedCredentials
	claim         provider.ClaimRef
	cluster       string // ID of the cluster that made it; "" if it had none
	probe         bool   // the bucket is a probe's
	tenant        string // whose owner it is; "" if the bucket has an owner of its own
	keepTenant    bool   // asked for: another tenant will do
}

// recordOf validates what CreateBucket is asked for.
func (p *Provider) recordOf(spec provider.BucketSpec) (record, error) {
	r := record{
		bucket: spec.Name, region: spec.Region, virtualHosted: spec.VirtualHosted, policy: spec.DeletionPolicy, shared: spec.SharedCredentials,
		claim: spec.Claim, cluster: p.config.ClusterID,
		tenant: spec.Tenant, keepTenant: spec.KeepTenant,
	}
	if c := r.claim; c != (provider.ClaimRef{}) && (!tagValuePattern.MatchString(c.Namespace) || !tagValuePattern.MatchString(c.Name)) {
		return record{}, refuse(provider.ErrInvalidArgument, "the claim %q cannot be recorded: want 1 to 63 of [a-z0-9.-] in each part", c)
	}
	switch r.policy {
	case "":
		r.policy = provider.DeleteIfEmpty
	case provider.DeleteIfEmpty, provider.DeleteAll:
	default:
		return record{}, refuse(provider.ErrInvalidArgument, "deletion policy %q is not one of %s, %s",
			spec.DeletionPolicy, provider.DeleteIfEmpty, provider.DeleteAll)
	}
	if r.tenant != "" {
		if !tenantPattern.MatchString(r.tenant) {
			return record{}, refuse(provider.ErrInvalidArgument, "tenant %q: want 1 to %d of a-z, 0-9, hyphen and dot, a letter or digit at both ends", spec.Tenant, tagValueLimit)
		}
		if r.shared == provider.SharedAllowed {
			return record{}, refuse(provider.ErrInvalidArgument, "sharedCredentials %q does not go with a tenant: the key of its objects user opens all its buckets", r.shared)
		}
		r.shared = provider.SharedForbidden
	}
	switch r.shared {
	case "":
		r.shared = provider.SharedAllowed
	case provider.SharedAllowed, provider.SharedForbidden:
	default:
		return record{}, refuse(provider.ErrInvalidArgument, "sharedCredentials %q is not one of %s, %s",
			spec.SharedCredentials, provider.SharedAllowed, provider.SharedForbidden)
	}
	used, err := parseEndpoint(p.defaultEndpoint(spec.Region))
	if err != nil {
		return record{}, err
	}
	if spec.Endpoint != "" {
		asked, err := parseEndpoint(spec.Endpoint)
		if err != nil {
			return record{}, err
		}
		if asked != used {
			if _, err := asked.tag(); err != nil {
				return record{}, err
			}
			r.endpoint, used = asked.String(), asked
		}
	}
	if spec.VirtualHosted && used.scheme == "https" && strings.Contains(spec.Name, ".") {
		return record{}, refuse(provider.ErrInvalidArgument,
			"bucket name %q holds a dot, which the endpoint's wildcard certificate does not cover; use path-style addressing", spec.Name)
	}
	return r, nil
}

// tags returns the record as the tags of an owner: the bucket's own, or its tenant's
// that has no other bucket.
func (r record) tags(driver string) (map[string]string, error) {
	tags, err := r.facts()
	if err != nil {
		return nil, err
	}
	tags[tagManagedBy], tags[tagRole] = driver, roleOwner
	if r.cluster != "" {
		tags[tagCluster] = r.cluster
	}
	if r.tenant != "" {
		tags[tagRole], tags[tagTenant] = roleTenant, r.tenant
		return tags, nil
	}
	if r.shared == provider.SharedForbidden {
		tags[tagShared] = string(provider.SharedForbidden)
	}
	if r.probe {
		tags[tagPurpose] = purposeProbe
	}
	return tags, nil
}

// facts returns the tags that are about the bucket. Those of a tenant's owner end in
// a digest of its name, see bucketSuffix.
func (r record) facts() (map[string]string, error) {
	suffix := ""
	if r.tenant != "" {
		suffix = bucketSuffix(r.bucket)
	}
	tags := map[string]string{tagBucket + suffix: r.bucket, tagRegion + suffix: r.region}
	if r.endpoint != "" {
		e, err := parseEndpoint(r.endpoint)
		if err != nil {
			return nil, err
		}
		if tags[tagEndpoint+suffix], err = e.tag(); err != nil {
			return nil, err
		}
	}
	if r.virtualHosted {
		tags[tagAddressing+suffix] = addressingVirtual
	}
	if r.policy == provider.DeleteAll {
		tags[tagPolicy+suffix] = string(provider.DeleteAll)
	}
	if r.claim != (provider.ClaimRef{}) {
		tags[tagNamespace+suffix], tags[tagClaim+suffix] = r.claim.Namespace, r.claim.Name
	}
	return tags, nil
}

// recorded reads the record of a bucket back that has an owner of its own.
func recorded(tags map[string]string) (record, error) {
	r, err := readFacts(tags, "")
	r.probe = tags[tagPurpose] == purposeProbe
	if tags[tagShared] == string(provider.SharedForbidden) {
		r.shared = provider.SharedForbidden
	}
	return r, err
}

func readFacts(tags map[string]string, suffix string) (record, error) {
	r := record{
		bucket:        tags[tagBucket+suffix],
		region:        tags[tagRegion+suffix],
		virtualHosted: tags[tagAddressing+suffix] == addressingVirtual,
		policy:        provider.DeleteIfEmpty,
		shared:        provider.SharedAllowed,
		claim:         provider.ClaimRef{Namespace: tags[tagNamespace+suffix], Name: tags[tagClaim+suffix]},
		cluster:       tags[tagCluster],
	}
	if tags[tagPolicy+suffix] == string(provider.DeleteAll) {
		r.policy = provider.DeleteAll
	}
	if value, ok := tags[tagEndpoint+suffix]; ok {
		e, err := parseEndpointTag(value)
		if err != nil {
			return record{}, err
		}
		r.endpoint = e.String()
	}
	return r, nil
}

// differs says how asked differs from what is recorded; nil if it does not.
func (r record) differs(asked record) error {
	if r.claim != asked.claim {
		return refuse(provider.ErrAlreadyExists, "it is the bucket of %s, and is now asked for by %s; use another name", ownedBy(r.claim), ownedBy(asked.claim))
	}
	for _, f := range []struct{ parameter, recorded, asked string }{
		{"region", r.region, asked.region},
		{"endpointURL", r.endpoint, asked.endpoint},
		{"s3PathStyle", fmt.Sprint(!r.virtualHosted), fmt.Sprint(!asked.virtualHosted)},
		{"bucketDeletionPolicy", string(r.policy), string(asked.policy)},
		{"tenant", r.tenant, asked.tenant},
		{"sharedCredentials", string(r.shared), string(asked.shared)},
	} {
		if f.parameter == "tenant" && asked.keepTenant && r.tenant != "" {
			continue
		}
		if f.recorded != f.asked {
			return refuse(provider.ErrAlreadyExists,
				"it was made with %s %s and is now asked for with %s; ask for the former or use another name",
				f.parameter, orDefault(f.recorded), orDefault(f.asked))
		}
	}
	return nil
}

// ownedBy says whose a bucket is that was made for the claim.
func ownedBy(c provider.ClaimRef) string {
	if c == (provider.ClaimRef{}) {
		return "a Bucket that is not named after its claim"
	}
	return "the BucketClaim " + c.String()
}

func orDefault(s string) string {
	if s == "" {
		return "(default)"
	}
	return fmt.Sprintf("%q", s)
}
