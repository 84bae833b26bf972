package cloudscale

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// policyDocument is a bucket policy. Nothing of it is ever NotPrincipal, which
// can make a bucket public, or NotAction, which the endpoint accepts and does not
// enforce.
type policyDocument struct {
	Version   string            `json:"Version"`
	ID        string            `json:"Id"`
	Statement []policyStatement `json:"Statement"`
}

type policyStatement struct {
	Sid       string          `json:"Sid"`
	Effect    string          `json:"Effect"`
	Principal policyPrincipal `json:"Principal"`
	Action    []string        `json:"Action"`
	Resource  []string        `json:"Resource"`
}

type policyPrincipal struct {
	AWS []string `json:"AWS"`
}

// permission is one statement of a mode.
type permission struct {
	suffix  string // of the Sid
	effect  string
	bucket  bool // counts for the bucket itself
	objects bool // counts for what is in it
	actions []string
}

// policyLimit is the most bytes that the endpoint stores of a policy.
const policyLimit = 1 << 20

const (
	allow = "Allow"
	deny  = "Deny"

	// sidPrefix begins the Sid of every statement of a driver's, see sids.
	sidPrefix = "zuber-"
	sidOwner  = sidPrefix + "owner"
	// policyID is the Id of a document that the driver made.
	policyID = "zuber"
)

// permissionsOf returns the statements of a mode.
func permissionsOf(mode provider.Mode) []permission {
	switch mode {
	case provider.ReadWrite:
		return []permission{
			{"b", allow, true, false, []string{
				"s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketLocation", "s3:GetBucketVersioning",
			}},
			// A delete of several objects asks for the right on the bucket, too.
			{"o", allow, true, true, []string{
				"s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion",
				"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
				"s3:GetObjectTagging", "s3:GetObjectVersionTagging", "s3:PutObjectTagging", "s3:PutObjectVersionTagging",
				"s3:DeleteObjectTagging", "s3:DeleteObjectVersionTagging",
			}},
			// The writer owns an object and could publish it.
			{"d", deny, false, true, []string{"s3:PutObjectAcl", "s3:PutObjectVersionAcl"}},
		}
	case provider.ReadOnly:
		return []permission{
			{"b", allow, true, false, []string{"s3:ListBucket", "s3:ListBucketVersions", "s3:GetBucketLocation", "s3:GetBucketVersioning"}},
			{"o", allow, false, true, []string{"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:GetObjectVersionTagging"}},
		}
	case provider.WriteOnly:
		return []permission{
			{"b", allow, true, false, []string{"s3:GetBucketLocation", "s3:ListBucketMultipartUploads"}},
			{"o", allow, false, true, []string{"s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}},
			// The writer owns an object and could read it back.
			{"d", deny, false, true, []string{
				"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectAcl", "s3:GetObjectVersionAcl", "s3:PutObjectAcl", "s3:PutObjectVersionAcl",
			}},
		}
	}
	return nil
}

// sidOf abbreviates a mode for the Sid of its statements.
func sidOf(mode provider.Mode) string {
	switch mode {
	case provider.ReadOnly:
		return "ro"
	case provider.WriteOnly:
		return "wo"
	}
	return "rw"
}

// member is an access as the policy names it.
type member struct {
	id   string // of the objects user
	uid  string // as the endpoint calls it
	mode provider.Mode
	// revoked: it may do nothing. Without a word about it, it could still read
	// and publish what it wrote, until the endpoint knows that the user is gone.
	revoked bool
}

// permissions returns the member's statements.
func (m member) permissions() []permission {
	if m.revoked {
		return []permission{{"x", deny, true, true, []string{"s3:*"}}}
	}
	return permissionsOf(m.mode)
}

// uidPattern is what a uid may look like. A wildcard would match everybody, and
// a slash could lead out of the user's name; the part before "$" is its tenant.
var uidPattern = regexp.MustCompile(`^([A-Za-z0-9_-]{1,128}\$)?[A-Za-z0-9._@=,+-]{1,128}$`)

// render returns the policy of a bucket. It depends on nothing but the owner and
// the set of members.
func render(bucket, ownerUID string, members []member) (string, error) {
	all, err := statements(bucket, ownerUID, members)
	if err != nil {
		return "", err
	}
	return wholePolicy(all, len(members))
}

// wholePolicy makes the statements a document.
func wholePolicy(all []policyStatement, members int) (string, error) {
	// Structs of strings always marshal.
	text, _ := json.Marshal(policyDocument{Version: "2012-10-17", ID: policyID, Statement: all})
	return checkPolicySize(string(text), members)
}

func checkPolicySize(text string, members int) (string, error) {
	if len(text) > policyLimit {
		return "", refuse(provider.ErrQuotaExceeded, "with %d accesses its policy would have %d bytes, and %d is the limit; revoke some, or use more buckets",
			members, len(text), policyLimit)
	}
	return text, nil
}

// statements returns those of the owner and the members. The owner has one because
// it may not read what the members write without. ErrPrecondition if an access is
// the owner itself: a Deny that hits the owner locks everybody out for ever.
func statements(bucket, ownerUID string, members []member) ([]policyStatement, error) {
	bucketARN := "arn:aws:s3:::" + bucket
	objects := bucketARN + "/*"
	principal, err := principalOf(ownerUID)
	if err != nil {
		return nil, err
	}
	all := []policyStatement{{
		Sid: sidOwner, Effect: allow, Principal: principal, Action: []string{"s3:*"}, Resource: []string{bucketARN, objects},
	}}
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.id, b.id) })
	for _, m := range members {
		if m.uid == ownerUID {
			return nil, refuse(provider.ErrPrecondition, "objects user %s is an access and the owner at once (%q); delete it", m.id, m.uid)
		}
		if principal, err = principalOf(m.uid); err != nil {
			return nil, err
		}
		for _, r := range m.permissions() {
			s := policyStatement{Sid: sidPrefix + sidOf(m.mode) + "-" + m.id + "-" + r.suffix, Effect: r.effect, Principal: principal, Action: r.actions}
			if r.bucket {
				s.Resource = append(s.Resource, bucketARN)
			}
			if r.objects {
				s.Resource = append(s.Resource, objects)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// principalOf names a user of the endpoint.
func principalOf(uid string) (policyPrincipal, error) {
	if err := checkUID(uid); err != nil {
		return policyPrincipal{}, err
	}
	tenant, name, ok := strings.Cut(uid, "$")
	if !ok {
		tenant, name = "", uid
	}
	return policyPrincipal{AWS: []string{"arn:aws:iam::" + tenant + ":user/" + name}}, nil
}

// uid returns whom principalOf has named; "" if it is not of that form.
func (p policyPrincipal) uid() string {
	if len(p.AWS) != 1 {
		return ""
	}
	named, _ := strings.CutPrefix(p.AWS[0], "arn:aws:iam::")
	tenant, name, _ := strings.Cut(named, ":user/")
	if tenant != "" {
		return tenant + "$" + name
	}
	return name
}

func checkUID(uid string) error {
	if !uidPattern.MatchString(uid) {
		return refuse(provider.ErrUnavailable, "the endpoint calls a user %q, which no policy can name; check the endpoint", clip(uid))
	}
	return nil
}
