package policy

import "strings"

// arn is arn:partition:service:region:account:resource taken apart.
type arn struct {
	partition, service, region, account, resource string
}

// rgwARN reads an ARN. With wild, "*" stands for an ARN of wildcards and may
// stand for single parts; without, only the resource may hold a star.
func rgwARN(s string, wild bool) (arn, bool) {
	if wild && s == "*" {
		return arn{"*", "*", "*", "*", "*"}, true
	}
	part := strings.SplitN(s, ":", 6)
	if len(part) != 6 || part[0] != "arn" {
		return arn{}, false
	}
	if !wild && strings.Contains(strings.Join(part[:5], ""), "*") {
		return arn{}, false
	}
	switch part[1] {
	case "aws", "aws-cn", "aws-us-gov", "*":
	default:
		return arn{}, false
	}
	// The gateway has a long list of services. A name outside it is refused
	// there and here accepted; neither can match an S3 request.
	if part[2] == "" || strings.ContainsFunc(part[2], func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '*'
	}) {
		return arn{}, false
	}
	return arn{part[1], part[2], part[3], part[4], part[5]}, true
}

const (
	rgwBadResource = "` is not a valid ARN. Resource ARNs should have a format like `arn:aws:s3::tenant:resource' or `arn:aws:s3:::resource`."
	rgwBadARN      = "` is not a supported AWS or Federated ARN. Supported ARNs are forms like: " +
		"`arn:aws:iam::tenant:root` or a bare tenant name for a tenant, " +
		"`arn:aws:iam::tenant:role/role-name` for a role, " +
		"`arn:aws:sts::tenant:assumed-role/role-name/role-session-name` for an assumed role, " +
		"`arn:aws:iam::tenant:user/user-name` for a user, " +
		"`arn:aws:iam::tenant:oidc-provider/idp-url` for OIDC."
)

// rgwResource reads an entry of Resource; the second value is the text of a
// refusal. Buckets have no tenant, so neither may the ARN.
func rgwResource(s string) (resource, string) {
	a, ok := rgwARN(s, true)
	if !ok {
		return resource{}, "`" + s + rgwBadResource
	}
	if a.account != "" && a.account != "*" {
		return resource{}, "Policy owned by tenant `` cannot grant access to resource owned by tenant `" + a.account + "`."
	}
	foreign := (a.partition != "aws" && a.partition != "*") || (a.service != "s3" && a.service != "*") ||
		(a.region != "" && a.region != "*")
	return resource{foreign: foreign, pattern: plainTemplate(a.resource)}, ""
}

// rgwPrincipal reads an entry of Principal or NotPrincipal under the given
// type; the second value is the text of a refusal.
func rgwPrincipal(kind, s string) (principal, string) {
	switch {
	case kind == "AWS" && s == "*":
		return principal{kind: principalAnyone}, ""
	case kind == "CanonicalUser":
		return principal{}, "RGW does not support canonical users."
	case kind != "AWS" && kind != "Federated":
		return principal{}, "RGW does not support principals of type `" + kind + "`."
	}
	a, ok := rgwARN(s, false)
	if !ok {
		if strings.ContainsAny(s, ":/") {
			return principal{}, "`" + s + rgwBadARN
		}
		// A bare name is a tenant, which is why a plain uid matches nobody.
		return principal{kind: principalAccount, account: s}, ""
	}
	if a.resource == "root" {
		return principal{kind: principalAccount, account: a.account}, ""
	}
	typ, name, _ := strings.Cut(a.resource, "/")
	switch typ {
	case "user":
		return principal{kind: principalUser, account: a.account, name: name}, ""
	case "role", "oidc-provider", "assumed-role":
		return principal{kind: principalNobody}, ""
	}
	return principal{}, "`" + s + rgwBadARN
}
