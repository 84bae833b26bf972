package driver

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// ParameterKind is the class object that a parameter belongs to.
type ParameterKind string

// The kinds of parameters.
const (
	BucketClass       ParameterKind = "BucketClass"
	BucketAccessClass ParameterKind = "BucketAccessClass"
)

// Parameter describes one class parameter, for documents.
type Parameter struct {
	Name        string
	Kind        ParameterKind
	Required    bool   // CreateBucket or GrantAccess fails without it
	Default     string // what an absent parameter means, in words or verbatim
	Allowed     string // what its value may be
	Description string
}

// ParameterTable lists every parameter, in the order of documents. The same
// table drives parsing and its errors.
func ParameterTable() []Parameter {
	rows := parameterRows()
	table := make([]Parameter, 0, len(rows))
	for _, r := range rows {
		table = append(table, r.Parameter)
	}
	return table
}

// parameters are the values of one request; what was absent is empty.
type parameters struct {
	backend   string
	region    string
	endpoint  string // scheme://host[:port]
	policy    provider.DeletionPolicy
	pathStyle string // "true" or "false"
	mode      provider.Mode
	shared    provider.SharedCredentials
	keys      provider.CredentialMode
	own       provider.OwnBuckets
	adopt     string
	naming    naming
	// How buckets are owned.
	objectsUser, tenant, tenantLabel string
}

// parameterRow is a Parameter with what the parser needs.
type parameterRow struct {
	Parameter
	values []string // the only values, if they can be listed
	set    func(*parameters, string) error
}

func parameterRows() []parameterRow {
	return slices.Concat(bucketRows(), namingRows(), tenantRows(), []parameterRow{adoptExisting(BucketClass)}, accessRows(), []parameterRow{adoptExisting(BucketAccessClass)})
}

func bucketRows() []parameterRow {
	return []parameterRow{{
		Parameter: Parameter{
			Name: "backend", Kind: BucketClass,
			Default:     "the only back end",
			Allowed:     "the name of a configured back end",
			Description: "Back end that holds the bucket. Required when several are configured.",
		},
		set: func(p *parameters, v string) error {
			p.backend = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "region", Kind: BucketClass, Required: true,
			Allowed:     "a region of the cloud, for example rma",
			Description: "Region that holds the bucket.",
		},
		set: func(p *parameters, v string) error {
			if !goodPart(v) {
				return errors.New(`want characters of a-z, A-Z, 0-9, ".", "_" and "-"`)
			}
			p.region = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "endpointURL", Kind: BucketClass,
			Default:     "the region's own endpoint",
			Allowed:     "scheme://host[:port], scheme http or https",
			Description: "S3 endpoint to use and to hand to workloads.",
		},
		set: func(p *parameters, v string) (err error) {
			p.endpoint, err = parseEndpoint(v)
			return err
		},
	}, {
		Parameter: Parameter{
			Name: "bucketDeletionPolicy", Kind: BucketClass,
			Default:     string(provider.DeleteIfEmpty),
			Allowed:     listed(deletionPolicies()),
			Description: "Whether deleting the bucket may delete the data in it. DeleteAll also needs the driver's own permission.",
		},
		values: deletionPolicies(),
		set: func(p *parameters, v string) error {
			p.policy = provider.DeletionPolicy(v)
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "s3PathStyle", Kind: BucketClass,
			Default:     "true",
			Allowed:     listed(booleans()),
			Description: "Whether the bucket is addressed in the path (true) or in the host name (false).",
		},
		values: booleans(),
		set: func(p *parameters, v string) error {
			p.pathStyle = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "sharedCredentials", Kind: BucketClass,
			Default:     string(provider.SharedAllowed),
			Allowed:     listed(sharedChoices()),
			Description: "Whether accesses may be given the key of the bucket's owner (credentials shared), where the cloud has such a key.",
		},
		values: sharedChoices(),
		set: func(p *parameters, v string) error {
			p.shared = provider.SharedCredentials(v)
			return nil
		},
	}}
}

func accessRows() []parameterRow {
	return []parameterRow{{
		Parameter: Parameter{
			Name: "accessMode", Kind: BucketAccessClass,
			Default: string(provider.ReadWrite),
			Allowed: listed(modes()),
			Description: "What an access may do with the objects of the bucket. A cloud that cannot enforce a mode refuses it. " +
				"In v1alpha2 the BucketAccess says it for each bucket, and not beyond this.",
		},
		values: modes(),
		set: func(p *parameters, v string) error {
			p.mode = provider.Mode(v)
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "credentials", Kind: BucketAccessClass,
			Default: string(provider.CredentialsPerAccess),
			Allowed: listed(credentialModes()),
			Description: "Whose key an access gets: one of its own, or the one of the bucket's owner, which no revocation can cut off. " +
				"STACKIT has perAccess alone.",
		},
		values: credentialModes(),
		set: func(p *parameters, v string) error {
			p.keys = provider.CredentialMode(v)
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "ownBuckets", Kind: BucketAccessClass,
			Default: string(provider.OwnBucketsRefuse),
			Allowed: listed(ownBucketsChoices()),
			Description: "What revoking does with buckets that a workload made for itself with its key: refuse ends the access and then names them until " +
				"somebody deletes them; purge deletes them, with their data only if the driver may delete data.",
		},
		values: ownBucketsChoices(),
		set: func(p *parameters, v string) error {
			p.own = provider.OwnBuckets(v)
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "envSecretSuffix", Kind: BucketAccessClass,
			Default: "no env Secret",
			Allowed: "the end of a Secret's name, for example -env",
			Description: "Makes a Secret with the credentials as variables beside every BucketAccess of the class, named after it with this at the end, " +
				"if the companion runs. The annotation `zuber.dev/env-secret` of a BucketAccess comes first.",
		},
		set: func(_ *parameters, v string) error {
			// After the last character of an object's name, which is a letter or digit.
			if len(v) > 63 || !subdomain.MatchString("x"+v) {
				return errors.New(`want at most 63 characters of a-z, 0-9, "-" and ".", with a letter or digit at the end and on both sides of a "."`)
			}
			return nil // the companion reads it
		},
	}, {
		Parameter: Parameter{
			Name: "rotateEvery", Kind: BucketAccessClass,
			Default: "only when a BucketAccess asks for it",
			Allowed: "a duration of at least 1h, for example 720h",
			Description: "Gives every BucketAccess of the class a new key when its key is that old, if the companion runs. " +
				"The annotation `zuber.dev/rotation-grace` of a BucketAccess says how long the old key goes on working.",
		},
		set: func(_ *parameters, v string) error {
			_, err := ParseRotateEvery(v)
			return err // the companion reads it
		},
	}}
}

// subdomain is the form of a Secret's name.
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// What adoptExisting can be.
const (
	adoptNever      = "never"
	adoptAccessOnly = "accessOnly"
)

// adoptExisting is a parameter of both kinds: COSI v1alpha1 asks the driver nothing
// about an existing bucket before the first access.
func adoptExisting(kind ParameterKind) parameterRow {
	choices := []string{adoptNever, adoptAccessOnly}
	return parameterRow{
		Parameter: Parameter{
			Name: "adoptExisting", Kind: kind,
			Default: adoptNever,
			Allowed: listed(choices),
			Description: "Whether an existing bucket (existingBucketID) that this driver did not make may be used. accessOnly gives accesses to it " +
				"and never deletes, empties or marks it.",
		},
		values: choices,
		set: func(p *parameters, v string) error {
			p.adopt = v
			return nil
		},
	}
}

func sharedChoices() []string {
	return []string{string(provider.SharedAllowed), string(provider.SharedForbidden)}
}

func credentialModes() []string {
	return []string{string(provider.CredentialsPerAccess), string(provider.CredentialsShared)}
}

func ownBucketsChoices() []string {
	return []string{string(provider.OwnBucketsRefuse), string(provider.OwnBucketsPurge)}
}

func modes() []string {
	return []string{string(provider.ReadWrite), string(provider.ReadOnly), string(provider.WriteOnly)}
}

func deletionPolicies() []string {
	return []string{string(provider.DeleteIfEmpty), string(provider.DeleteAll)}
}

func booleans() []string { return []string{"true", "false"} }

func listed(values []string) string { return strings.Join(values, " or ") }

// maxFaults bounds what one message lists, and the work that a hostile request
// can cause.
const maxFaults = 10

// parseParameters reads the parameters of one request and reports all its
// faults, up to maxFaults, in one ErrInvalidArgument. Whether required ones are there is asked
// only where demand is true: deletions and revocations can do without.
func parseParameters(kind ParameterKind, in map[string]string, demand bool) (parameters, error) {
	var (
		out    parameters
		faults []string
		names  []string
		rows   = map[string]parameterRow{}
	)
	for _, r := range parameterRows() {
		if r.Kind != kind {
			continue
		}
		names = append(names, r.Name)
		rows[r.Name] = r
		if _, ok := in[r.Name]; !ok && r.Required && demand {
			faults = append(faults, fmt.Sprintf("%s is missing: want %s", r.Name, r.Allowed))
		}
	}
	keys := make([]string, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if len(faults) >= maxFaults {
			faults = append(faults, fmt.Sprintf("and %d parameters more that were not looked at", len(keys)-i))
			break
		}
		r, ok := rows[k]
		if !ok {
			faults = append(faults, unknownParameter(kind, k, in[k], names))
			continue
		}
		if err := r.parse(&out, in[k]); err != nil {
			faults = append(faults, fmt.Sprintf("%s = %s: %v", k, shown(k, in[k]), err))
		}
	}
	if len(faults) > 0 {
		return parameters{}, fmt.Errorf("%s parameters: %w: %s", kind, provider.ErrInvalidArgument, strings.Join(faults, "; "))
	}
	return out, nil
}

func (r parameterRow) parse(out *parameters, v string) error {
	if v == "" {
		return fmt.Errorf("it is empty: want %s, or leave it out", r.Allowed)
	}
	if r.values != nil && !slices.Contains(r.values, v) {
		return fmt.Errorf("want %s%s", r.Allowed, DidYouMean(v, r.values))
	}
	return r.set(out, v)
}

// unknownParameter says what the key may have been meant for.
func unknownParameter(kind ParameterKind, key, value string, names []string) string {
	fault := fmt.Sprintf("%s = %s is unknown", quote(key), shown(key, value))
	if strings.EqualFold(key, "authenticationType") {
		return fault + ": authenticationType is a field of the BucketAccessClass, not a parameter"
	}
	for _, r := range parameterRows() {
		if r.Kind != kind && r.Name == key {
			return fault + fmt.Sprintf(": it is a parameter of the %s", r.Kind)
		}
	}
	return fault + ": known are " + strings.Join(names, ", ") + DidYouMean(key, names)
}

// shown is a value as an error may repeat it: not at all where the key or the
// value hints at a secret put there by mistake.
func shown(key, value string) string {
	lower := strings.ToLower(key)
	for _, hint := range []string{"secret", "password", "passwd", "token", "credential", "key"} {
		if strings.Contains(lower, hint) {
			return "(value withheld)"
		}
	}
	if strings.Contains(value, "@") {
		return "(value withheld)" // user information in a URL
	}
	return quote(value)
}
