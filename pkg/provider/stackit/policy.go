package stackit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// policyLimit is the most bytes a bucket policy may have.
const policyLimit = 20480

type document struct {
	Statement []statement `json:"Statement"`
}

type statement struct {
	Sid          string     `json:"Sid"`
	Effect       string     `json:"Effect"`
	Principal    *principal `json:"Principal,omitempty"`
	NotPrincipal *principal `json:"NotPrincipal,omitempty"`
	Action       string     `json:"Action,omitempty"`
	NotAction    []string   `json:"NotAction,omitempty"`
	Resource     []string   `json:"Resource"`
}

type principal struct {
	AWS []string `json:"AWS"`
}

// member is a credentials group that the policy lets in.
type member struct {
	urn  string
	mode provider.Mode
}

// render returns the policy of a bucket: everything is denied to everybody but
// the admin and the members, and to each member everything but its mode's
// actions. The result depends on nothing but the sets of URNs. An URN must have
// one mode only, because denials add up; the admin must not be a member.
func render(bucket, adminURN string, members []member) string {
	resources := []string{"arn:aws:s3:::" + bucket, "arn:aws:s3:::" + bucket + "/*"}
	insiders := []string{adminURN}
	byMode := map[provider.Mode][]string{}
	for _, m := range members {
		insiders = append(insiders, m.urn)
		byMode[m.mode] = append(byMode[m.mode], m.urn)
	}
	doc := document{Statement: []statement{{
		Sid: "deny-outsiders", Effect: "Deny", NotPrincipal: &principal{sorted(insiders)}, Action: "s3:*", Resource: resources,
	}}}
	for _, mode := range modes() {
		// A statement without principals is nothing the cloud is known to accept.
		if len(byMode[mode]) == 0 {
			continue
		}
		doc.Statement = append(doc.Statement, statement{
			Sid: string(mode), Effect: "Deny", Principal: &principal{sorted(byMode[mode])},
			NotAction: actionsOf(mode), Resource: resources,
		})
	}
	// Structs of strings always marshal.
	text, _ := json.Marshal(doc)
	return string(text)
}

func sorted(urns []string) []string {
	slices.Sort(urns)
	return slices.Compact(urns)
}

// checkPolicySize refuses a policy that the cloud would not store.
func checkPolicySize(policy string, members int) error {
	if len(policy) <= policyLimit {
		return nil
	}
	return refuse(provider.ErrQuotaExceeded, "with %d accesses its policy would have %d bytes, and %d is the limit, which is about %d accesses; "+
		"revoke some, or use more buckets", members, len(policy), policyLimit, members*policyLimit/len(policy))
}

// samePolicy reports whether two policy documents mean the same: a string and a
// list of one, the order of lists and statements, and the version of the
// language, which nothing here depends on, make no difference.
func samePolicy(a, b string) bool {
	x, errX := normalPolicy(a)
	y, errY := normalPolicy(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func normalPolicy(doc string) (any, error) {
	var parsed map[string]any
	if err := json.Unmarshal([]byte(doc), &parsed); err != nil {
		return nil, err
	}
	delete(parsed, "Version")
	if id, ok := parsed["Id"]; ok && id == "" {
		delete(parsed, "Id")
	}
	if one, ok := parsed["Statement"].(map[string]any); ok {
		parsed["Statement"] = []any{one}
	}
	return normal(parsed), nil
}

// normal makes every string a list of one and sorts every list.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
		return v
	case []any:
		texts := make([]string, 0, len(v))
		for _, item := range v {
			if s, ok := item.(string); ok {
				texts = append(texts, strings.TrimSpace(s))
				continue
			}
			// What came out of JSON goes back into it.
			text, _ := json.Marshal(normal(item))
			texts = append(texts, string(text))
		}
		return sorted(texts)
	case string:
		return []string{strings.TrimSpace(v)}
	}
	return fmt.Sprint(value)
}
