package stackit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// denial is a Deny statement of others that applies without a condition. One with
// a condition is left to the endpoint: whether it holds is known only there.
type denial struct {
	name string // how to find it in the document
	rule rule
}

// rule is a statement as far as a denial depends on it.
type rule struct {
	Sid, Effect  string
	Principal    whom
	NotPrincipal whom
	Action       words
	NotAction    words
	Resource     words
	NotResource  words
	Condition    json.RawMessage
}

// words is a string or a list of strings.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

// whom is "*" or an object with the principals.
type whom []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *whom) UnmarshalJSON(text []byte) error {
	var all string
	if json.Unmarshal(text, &all) == nil {
		*w = whom{all}
		return nil
	}
	var some struct{ AWS words }
	err := json.Unmarshal(text, &some)
	*w = whom(some.AWS)
	return err
}

// denials returns the unconditional Deny statements of a document.
func denials(doc string) []denial {
	if doc == "" {
		return nil
	}
	l, err := readLayout(doc)
	if err != nil {
		return nil
	}
	var all []denial
	for i, s := range l.statements {
		var r rule
		if json.Unmarshal([]byte(doc[s.start:s.end]), &r) != nil || r.Effect != "Deny" || len(r.Condition) > 0 {
			continue
		}
		name := fmt.Sprintf("statement %d (without a Sid)", i+1)
		if r.Sid != "" {
			name = fmt.Sprintf("statement %q", clip(r.Sid))
		}
		all = append(all, denial{name, r})
	}
	return all
}

// meets reports whether the statement denies the group the action on the resource,
// which is a bucket or <bucket>/<key>.
func (d denial) meets(urn, action, resource string) bool {
	r := d.rule
	switch {
	case len(r.Principal) > 0 && !r.Principal.include(urn), len(r.NotPrincipal) > 0 && r.NotPrincipal.include(urn):
		return false
	case len(r.Action) > 0 && !matched(r.Action, action), len(r.NotAction) > 0 && matched(r.NotAction, action):
		return false
	}
	if len(r.NotResource) > 0 {
		return !matched(r.NotResource.stripped(), resource)
	}
	return matched(r.Resource.stripped(), resource)
}

// include reports whether a group, or the user that stands for its keys, is among
// them.
func (w whom) include(urn string) bool {
	account, name := identity(urn)
	return slices.ContainsFunc(w, func(listed string) bool {
		if listed == "*" || listed == account {
			return true
		}
		a, n := identity(listed)
		return a == account && (n == "root" || n == name || n == strings.Replace(name, "group/", "user/", 1))
	})
}

// identity takes urn:sgws:identity::<account>:<name>, or the same as an ARN, apart.
func identity(urn string) (account, name string) {
	fields := strings.SplitN(urn, ":", 6)
	if len(fields) != 6 {
		return "", ""
	}
	return fields[4], fields[5]
}

func (w words) stripped() words {
	var all words
	for _, resource := range w {
		resource = strings.TrimPrefix(strings.TrimPrefix(resource, "arn:aws:s3:::"), "urn:sgws:s3:::")
		all = append(all, resource)
	}
	return all
}

// matched reports whether one of the patterns, with * and ?, covers the text.
func matched(patterns words, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		found, err := regexp.MatchString(`(?s)^`+quoted+`$`, text)
		return err == nil && found
	})
}

// essentials are the actions without which an access is none. What else others
// deny to everybody, such as deletions, is theirs to decide.
func essentials(mode provider.Mode) (ofBucket, ofObjects []string) {
	switch mode {
	case provider.ReadOnly:
		return []string{"s3:GetBucketLocation", "s3:ListBucket"}, []string{"s3:GetObject"}
	case provider.WriteOnly:
		return []string{"s3:GetBucketLocation"}, []string{"s3:PutObject"}
	}
	return []string{"s3:GetBucketLocation", "s3:ListBucket"}, []string{"s3:GetObject", "s3:PutObject"}
}

// anyKey stands for the keys that no statement singles out.
const anyKey = "/\x7f"

// denied returns the statement of others that denies the group one of the actions
// in the bucket, and the action.
func (b *bucket) denied(urn string, ofBucket, ofObjects []string) (by denial, action string, found bool) {
	for _, d := range denials(b.others) {
		for _, a := range ofBucket {
			if d.meets(urn, a, b.Name) {
				return d, a, true
			}
		}
		for _, a := range ofObjects {
			if d.meets(urn, a, b.Name+anyKey) {
				return d, a, true
			}
		}
	}
	return denial{}, "", false
}

// admits refuses an access that a statement of others shuts out: to allow it
// something would not help, since a Deny wins. The group is made by then, so that
// the remedy can name it.
func (b *bucket) admits(e entry, mode provider.Mode) error {
	ofBucket, ofObjects := essentials(mode)
	by, action, found := b.denied(e.urn, ofBucket, ofObjects)
	if !found {
		return nil
	}
	remedy := "let it name those it is meant for as its Principal"
	if len(by.rule.NotPrincipal) > 0 {
		remedy = "add " + e.urn + " to its NotPrincipal"
	}
	return refuse(provider.ErrPrecondition, "%s of its policy, which is not the driver's, denies %s to the access (credentials group %s); %s and repeat the call, "+
		"or use another bucket", by.name, action, e.urn, remedy)
}

// manageable refuses a bucket whose policy denies the admin what it takes to give
// access to it.
func (b *bucket) manageable() error {
	by, action, found := b.denied(b.adminURN, []string{"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"}, nil)
	if !found {
		return nil
	}
	return refuse(provider.ErrPermissionDenied, "%s of its policy denies %s to the driver's admin group; let its owner exempt %s there",
		by.name, action, b.adminURN)
}
