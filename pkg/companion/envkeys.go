package companion

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxEnvKey bounds a key of a Secret.
const maxEnvKey = 253

// envKey is what every shell and envFrom take for a variable's name.
var envKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// defaultKeys are the keys of an env Secret by field.
func defaultKeys() map[string]string {
	keys := map[string]string{}
	for _, k := range EnvKeyTable() {
		keys[k.Field] = k.Key
	}
	return keys
}

// parseEnvKeys reads the annotation AnnotationEnvKeys and returns the key of
// every field. It reports the first fault, in words for the user.
func parseEnvKeys(value string) (map[string]string, error) {
	keys := defaultKeys()
	if strings.TrimSpace(value) == "" {
		return keys, nil
	}
	given := map[string]bool{}
	for entry := range strings.SplitSeq(value, ",") {
		field, key, found := strings.Cut(entry, "=")
		field, key = strings.TrimSpace(field), strings.TrimSpace(key)
		_, known := keys[field]
		switch {
		case !found:
			return nil, fmt.Errorf("%s: want field=KEY", quote(entry))
		case !known:
			return nil, fmt.Errorf("there is no field %s: want one of %s", quote(field), strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		case given[field]:
			return nil, fmt.Errorf("the field %s is named twice", field)
		case key == "":
			return nil, fmt.Errorf("the field %s has no key", field)
		case len(key) > maxEnvKey || !envKey.MatchString(key):
			return nil, fmt.Errorf("the field %s: the key %s is no variable's name: want letters, digits and _, and no digit first", field, quote(key))
		}
		given[field], keys[field] = true, key
	}
	fields := map[string]string{}
	for _, field := range slices.Sorted(maps.Keys(keys)) {
		if other, taken := fields[keys[field]]; taken {
			return nil, fmt.Errorf("the fields %s and %s both have the key %s", other, field, keys[field])
		}
		fields[keys[field]] = field
	}
	return keys, nil
}

// claimSuffix is what the keys of one bucket of several end in: the claim's name
// as a variable's name has it.
func claimSuffix(claim string) string {
	return "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(claim))
}

// quoteLimit bounds what an event repeats of a value.
const quoteLimit = 100

// quote makes a value from outside fit for an event.
func quote(s string) string {
	if len(s) > quoteLimit {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:quoteLimit], ""))
	}
	return fmt.Sprintf("%q", s)
}
