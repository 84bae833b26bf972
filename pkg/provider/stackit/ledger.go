package stackit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// The ledger is the list of a bucket's accesses. It lies in tags
// zuber_access_00, zuber_access_01, …, several entries a tag:
//
//	entry = mode ":" name ":" ID ":" fingerprints ":" URN
//
// joined by "@". The mode is RW, RO or WO, or NO for an access that has ended here
// and goes on elsewhere. When the access spans several buckets, "+" and the prints
// of all of them follow (span.go). Name and ID are 16 bytes in base64url. A
// fingerprint is three characters, oldest key first. The URN is shortened to what
// follows the part it shares with the admin's. ID and URN are empty while the
// group is being made. Everything stays within the characters that tags may have.
// A bucket without the mark has its ledger in its policy (existing.go).
const (
	tagAccess       = "zuber_access_"
	entrySeparator  = "@"
	fieldSeparator  = ":"
	spanSeparator   = "+"
	tagValueLimit   = 256
	tagCountLimit   = 50
	fingerprintSize = 3
)

// modeEnded is the mode of an access that may do nothing in this bucket any more,
// while its key lives on for others.
const modeEnded provider.Mode = "Ended"

// entry is one access to a bucket.
type entry struct {
	name string // display name of its credentials group, 32 hex digits
	id   string // the group's ID; "" while it is being made
	urn  string // the group's URN; "" while it is being made
	mode provider.Mode
	span []string // prints of the buckets of the access, sorted; none when it has but this one
	keys []string // fingerprints of the keys minted and not yet deleted, oldest first
}

// pending reports whether the group may or may not exist.
func (e entry) pending() bool { return e.id == "" }

func modeCode(m provider.Mode) string {
	switch m {
	case provider.ReadOnly:
		return "RO"
	case provider.WriteOnly:
		return "WO"
	case modeEnded:
		return "NO"
	}
	return "RW"
}

func codeMode(code string) (provider.Mode, bool) {
	for _, m := range append(modes(), modeEnded) {
		if modeCode(m) == code {
			return m, true
		}
	}
	return "", false
}

// stem returns what the URNs of a project's groups have in common.
func stem(adminURN string) string { return adminURN[:strings.LastIndexAny(adminURN, "/-")+1] }

// fingerprint identifies a key among the few of its group.
func fingerprint(keyID string) string {
	sum := sha256.Sum256([]byte(keyID))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:fingerprintSize]
}

func (e entry) encode(adminURN string) (string, error) {
	mode := modeCode(e.mode)
	if len(e.span) > 0 {
		mode += spanSeparator + strings.Join(e.span, "")
	}
	name, err := packHex(e.name)
	if err != nil {
		return "", err
	}
	id, err := packHex(strings.ReplaceAll(e.id, "-", ""))
	if err != nil {
		return "", err
	}
	urn := e.urn
	if short, ok := strings.CutPrefix(urn, stem(adminURN)); ok {
		urn = short
	}
	return strings.Join([]string{mode, name, id, strings.Join(e.keys, ""), urn}, fieldSeparator), nil
}

func decodeEntry(text, adminURN string) (entry, error) {
	fields := strings.SplitN(text, fieldSeparator, 5)
	if len(fields) != 5 {
		return entry{}, fmt.Errorf("an entry has %d fields", len(fields))
	}
	var e entry
	code, prints, spans := strings.Cut(fields[0], spanSeparator)
	var ok bool
	if e.mode, ok = codeMode(code); !ok || spans != (prints != "") || len(prints)%printSize != 0 {
		return entry{}, fmt.Errorf("an entry has the mode %q", clip(fields[0]))
	}
	e.span = pieces(prints, printSize)
	var err error
	if e.name, err = unpackHex(fields[1]); err != nil || e.name == "" {
		return entry{}, fmt.Errorf("an entry has the name %q", clip(fields[1]))
	}
	if e.id, err = unpackHex(fields[2]); err != nil || (e.id == "") != (fields[4] == "") {
		return entry{}, fmt.Errorf("an entry has the ID %q", clip(fields[2]))
	}
	if len(fields[3])%fingerprintSize != 0 {
		return entry{}, fmt.Errorf("an entry has the fingerprints %q", clip(fields[3]))
	}
	e.keys = pieces(fields[3], fingerprintSize)
	if e.id != "" {
		e.id = dashed(e.id)
		e.urn = fields[4]
		if !strings.HasPrefix(e.urn, "urn:") {
			e.urn = stem(adminURN) + e.urn
		}
	}
	return e, nil
}

// pieces cuts a text into pieces of that size.
func pieces(text string, size int) []string {
	var all []string
	for piece := range slices.Chunk([]byte(text), size) {
		all = append(all, string(piece))
	}
	return all
}

// packHex writes 32 hex digits as 22 characters; "" stays "".
func packHex(h string) (string, error) {
	raw, err := hex.DecodeString(h)
	if err != nil || (len(raw) != 16 && len(raw) != 0) {
		return "", fmt.Errorf("%q is not a UUID", clip(h))
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

func unpackHex(s string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || (len(raw) != 16 && len(raw) != 0) {
		return "", fmt.Errorf("%q is not a UUID", clip(s))
	}
	return hex.EncodeToString(raw), nil
}

// encodeLedger returns the entries, ordered by name, as tags.
func encodeLedger(entries []entry, adminURN string) (map[string]string, error) {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
	tags := map[string]string{}
	value := ""
	flush := func() {
		if value != "" {
			tags[fmt.Sprintf("%s%02d", tagAccess, len(tags))] = value
		}
		value = ""
	}
	for _, e := range entries {
		text, err := e.encode(adminURN)
		if err != nil {
			return nil, refuse(provider.ErrUnavailable, "an access cannot be recorded: %s", err)
		}
		if len(text) > tagValueLimit {
			return nil, refuse(provider.ErrUnsupported, "an access cannot be recorded: it takes %d characters and a tag has %d; give it fewer buckets", len(text), tagValueLimit)
		}
		if value != "" && len(value)+len(entrySeparator)+len(text) > tagValueLimit {
			flush()
		}
		if value != "" {
			value += entrySeparator
		}
		value += text
	}
	flush()
	return tags, nil
}

// decodeLedger reads the entries back. The error is the first malformed entry;
// the others are returned beside it.
func decodeLedger(tags map[string]string, adminURN string) ([]entry, error) {
	var entries []entry
	var first error
	for key, value := range tags {
		if !strings.HasPrefix(key, tagAccess) {
			continue
		}
		for text := range strings.SplitSeq(value, entrySeparator) {
			e, err := decodeEntry(text, adminURN)
			if err == nil {
				entries = append(entries, e)
			} else if first == nil {
				first = refuse(provider.ErrPrecondition, "the tag %s is malformed (%s); restore it, or delete the accesses and the tag", key, err)
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, first
}
