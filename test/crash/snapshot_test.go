package crash

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// snapshot is a cloud in words that are the same for any two clouds in the same
// state: what the cloud draws at random is replaced by what it stands for.
type snapshot struct {
	lines []string
	// keys counts the access keys of identities that may have several.
	keys map[string]int
	// raw is the same as it is.
	raw []string
	// probes are the buckets of probes that were cut short. A later process
	// removes them once no probe can be running in them.
	probes []string
}

func (s snapshot) String() string { return strings.Join(s.lines, "\n") }

// same reports whether two moments of one cloud are the same to whoever comes next.
func (s snapshot) same(o snapshot) bool { return slices.Equal(s.raw, o.raw) }

// names turns IDs into what they stand for.
type names struct {
	pairs []string
	count map[string]int
}

// add gives an identity its symbol and replaces all forms of its ID by it. Two of
// the same kind are told apart, because there should not be two.
func (n *names) add(symbol string, forms ...string) string {
	n.count[symbol]++
	if c := n.count[symbol]; c > 1 {
		symbol = fmt.Sprintf("%s#%d", symbol, c)
	}
	for _, f := range forms {
		n.pairs = append(n.pairs, f, "<"+symbol+">")
	}
	return symbol
}

// goneUser is the ID of an objects user that does not exist: a policy may go on to
// shut it out.
var goneUser = regexp.MustCompile(`[0-9a-f]{64}`)

func (n *names) replace(text string) string {
	return goneUser.ReplaceAllString(strings.NewReplacer(n.pairs...).Replace(text), "<gone>")
}

// state implements cloud. Other drivers' users are not drawn; those of nobody are.
func (c rgw) state(driver string) snapshot {
	s := snapshot{keys: map[string]int{}}
	n := &names{count: map[string]int{}}
	n.pairs = append(n.pairs, driver, "<driver>")
	var users []emulator.User
	symbols, probes := map[string]string{}, map[string]bool{}
	for _, u := range c.Users() {
		s.raw = append(s.raw, fmt.Sprintf("%+v", u))
		switch {
		case u.Tags["zuber_managed_by"] == "":
			s.lines = append(s.lines, "a user without a mark: "+u.DisplayName)
			continue
		case u.Tags["zuber_managed_by"] != driver:
			continue
		case u.Tags["zuber_purpose"] == "probe":
			for _, b := range bucketsOf(u) {
				probes[b] = true
			}
			continue
		}
		users = append(users, u)
	}
	// Rotations give an account several users, one after the other.
	slices.SortStableFunc(users, func(a, b emulator.User) int { return rotationOf(a) - rotationOf(b) })
	for _, u := range users {
		sum := sha256.Sum256([]byte(u.ID))
		symbol := u.Tags["zuber_role"] + " " + u.Tags["zuber_bucket"] + u.Tags["zuber_account"] + u.Tags["zuber_tenant"]
		symbols[u.ID] = n.add(symbol, u.ID, hex.EncodeToString(sum[:])[:32], hex.EncodeToString(sum[:])[:16])
	}
	for _, u := range users {
		if rotationOf(u) > 0 {
			// One that was cut short may have counted, too.
			u.Tags[tagRotation] = "some"
		}
		s.lines = append(s.lines, fmt.Sprintf("user <%s> %s %s %s", symbols[u.ID], u.DisplayName, u.Project, n.replace(sorted(u.Tags))))
	}
	for _, b := range c.Inspect() {
		s.raw = append(s.raw, fmt.Sprintf("%+v", b))
		if !probes[b.Name] {
			s.lines = append(s.lines, drawBucket(b, n)...)
		}
	}
	s.probes = slices.Sorted(maps.Keys(probes))
	slices.Sort(s.lines)
	return s
}

const tagRotation = "zuber_rotation"

// rotationOf returns which of its account's users it is, 0 for the first one.
func rotationOf(u emulator.User) int {
	n, _ := strconv.Atoi(u.Tags[tagRotation])
	return n
}

// bucketsOf returns the buckets that a user's tags name: an owner has one tag for
// its bucket, an access and the owner of a tenant one for each.
func bucketsOf(u emulator.User) []string {
	var all []string
	for k, v := range u.Tags {
		if strings.HasPrefix(k, "zuber_bucket") {
			all = append(all, v)
		}
	}
	return all
}

// state implements cloud. Admin groups are not drawn: a driver has one for ever.
func (c grid) state(driver string) snapshot {
	s := snapshot{keys: map[string]int{}}
	n := &names{count: map[string]int{}}
	n.pairs = append(n.pairs, driver, "<driver>")
	for _, g := range c.Groups() {
		s.raw = append(s.raw, fmt.Sprintf("%+v", g))
		symbol, forms := "group "+g.DisplayName, []string{g.URN, strings.Replace(g.URN, ":group/", ":user/", 1), g.ID}
		if raw, err := hex.DecodeString(strings.ReplaceAll(g.ID, "-", "")); err == nil {
			forms = append(forms, base64.RawURLEncoding.EncodeToString(raw))
		}
		_, urn, _ := strings.Cut(g.URN, "credentials-group-")
		forms = append(forms, urn)
		if isAdmin(g, driver) {
			n.add("admin", forms...)
			continue
		}
		if g.Project != c.ProjectID || adminPattern.MatchString(g.DisplayName) {
			n.add("another's "+g.DisplayName, forms...)
			continue
		}
		symbol = n.add(symbol, forms...)
		s.keys[symbol] = g.Keys
		s.lines = append(s.lines, fmt.Sprintf("%s in %s with keys: %t", symbol, g.Region, g.Keys > 0))
	}
	if admins := n.count["admin"]; admins > 1 {
		s.lines = append(s.lines, fmt.Sprintf("%d admin groups", admins))
	}
	for _, b := range c.Inspect() {
		s.raw = append(s.raw, fmt.Sprintf("%+v", b))
		n.pairs = append(n.pairs, b.OwnerUID, "<tenant>")
		s.lines = append(s.lines, drawBucket(b, n)...)
	}
	slices.Sort(s.lines)
	return s
}

// drawBucket writes all that is known of a bucket, a line for each thing.
func drawBucket(b objectstore.BucketState, n *names) []string {
	prefix := "bucket " + b.Name + " "
	lines := []string{
		fmt.Sprintf("%sin %s owner %s versioning %q", prefix, b.Region, n.replace(b.OwnerUID), b.Versioning),
		fmt.Sprintf("%sACL %s", prefix, n.replace(strings.Join(b.ACL, ", "))),
		fmt.Sprintf("%spublic access block %s", prefix, b.PublicAccessBlock),
		fmt.Sprintf("%spolicy %s", prefix, ordered(n.replace(b.Policy))),
		fmt.Sprintf("%suploads %q", prefix, b.Uploads),
	}
	for _, v := range b.Versions {
		lines = append(lines, prefix+"version "+n.replace(v))
	}
	for word, text := range b.Config {
		if word == "tagging" {
			text = tagsOf(text, n)
		}
		lines = append(lines, prefix+word+" "+n.replace(text))
	}
	return lines
}

// ordered writes a JSON document with all lists sorted: the order of members
// follows their IDs. That it shuts users out who are gone makes no difference.
func ordered(doc string) string {
	var value any
	if json.Unmarshal([]byte(doc), &value) != nil {
		return doc
	}
	if policy, ok := value.(map[string]any); ok {
		if all, ok := policy["Statement"].([]any); ok {
			policy["Statement"] = slices.DeleteFunc(all, func(s any) bool {
				text := string(marshal(s))
				return strings.Contains(text, `"Effect":"Deny"`) && strings.Contains(text, `user/\u003cgone\u003e"`)
			})
		}
	}
	return string(marshal(sortLists(value)))
}

func sortLists(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = sortLists(v[k])
		}
	case []any:
		for i := range v {
			v[i] = sortLists(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(string(marshal(a)), string(marshal(b))) })
	}
	return value
}

// marshal writes what was read from JSON, which always marshals.
func marshal(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}

// tagsOf reads the tags of a bucket. Which keys an access has is counted and not
// compared, so the ledger's fingerprints of them are left out.
func tagsOf(doc string, n *names) string {
	var set struct {
		Tags []struct {
			Key   string `xml:"Key"`
			Value string `xml:"Value"`
		} `xml:"TagSet>Tag"`
	}
	if xml.Unmarshal([]byte(doc), &set) != nil {
		return doc
	}
	tags := map[string]string{}
	for _, t := range set.Tags {
		if strings.HasPrefix(t.Key, "zuber_access_") {
			t.Value = ledger(t.Value)
		}
		tags[t.Key] = n.replace(t.Value)
	}
	return sorted(tags)
}

// ledger hides the fourth field of each entry, unless there is none.
func ledger(value string) string {
	entries := strings.Split(value, "@")
	for i, e := range entries {
		fields := strings.SplitN(e, ":", 5)
		if len(fields) == 5 && fields[3] != "" {
			fields[3] = "keys"
		}
		entries[i] = strings.Join(fields, ":")
	}
	return strings.Join(entries, "@")
}

func sorted(tags map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, k+"="+tags[k])
	}
	return strings.Join(all, " ")
}

// differences lists what is in one of two snapshots alone.
func differences(got, want snapshot) string {
	var all []string
	for _, l := range got.lines {
		if !slices.Contains(want.lines, l) {
			all = append(all, "  got  "+l)
		}
	}
	for _, l := range want.lines {
		if !slices.Contains(got.lines, l) {
			all = append(all, "  want "+l)
		}
	}
	return strings.Join(all, "\n")
}
