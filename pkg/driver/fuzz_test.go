package driver

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// hostile are names at the limits, and what looks like something else.
func hostile() []string {
	return []string{
		"", "ab", "abc", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("a", 2048), strings.Repeat("a", 2049),
		"bücket", "日本語", "\U0001F4E6", "e\u0301", "\u202eabc", "a%2fb", "%", "%00", "a/b", "/", "//", "../..", ".", "..", "a..b", "a.-b", "a\nb", "a\r\nb", "a\x00b", "\x1b[2J", "\xff",
		"192.168.1.1", "::1", "1.2.3", "a b", "a\tb", "-a", "a-", "A", `"`, "'", "{}", "$(id)", "<a>", "true", "rma", "accessOnly",
	}
}

// fitForPeople fails the test unless an error is one short line of text.
func fitForPeople(t *testing.T, err error, value string) {
	t.Helper()
	text := err.Error()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > 20*quoteLimit*4 {
		t.Errorf("of %.200q came %d bytes: %.300q", value, len(text), text)
	}
}

// FuzzParameters: parameters are read as they stand or refused in words that name
// them.
func FuzzParameters(f *testing.F) {
	for _, v := range hostile() {
		for _, r := range parameterRows() {
			f.Add(string(r.Kind), r.Name, v, true)
		}
		f.Add(string(BucketClass), v, v, false)
	}
	f.Fuzz(func(t *testing.T, kind, key, value string, demand bool) {
		p, err := parseParameters(ParameterKind(kind), map[string]string{key: value}, demand)
		if err != nil {
			if !errors.Is(err, provider.ErrInvalidArgument) || p != (parameters{}) {
				t.Errorf("%q = %q: %+v, %v", key, value, p, err)
			}
			if named := strings.Trim(quote(key), `"…`); !strings.Contains(err.Error(), named) && !strings.Contains(err.Error(), "is missing") {
				t.Errorf("%q is not named in %v", key, err)
			}
			fitForPeople(t, err, value)
			return
		}
		if p == (parameters{}) && key != "envSecretSuffix" && key != "rotateEvery" { // which the companion reads
			t.Errorf("%q = %q is taken and means nothing", key, value)
		}
		if p.region != "" && !goodPart(p.region) || p.endpoint != "" && strings.ContainsAny(p.endpoint, "@?# \n") {
			t.Errorf("%q = %q: %+v", key, value, p)
		}
	})
}

// FuzzNames: a name that is taken fits into an ID and into every cloud.
func FuzzNames(f *testing.F) {
	for _, v := range hostile() {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := checkBucketName(name); err == nil {
			if len(name) < 3 || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.ContainsAny(name[:1]+name[len(name)-1:], ".-") {
				t.Errorf("bucket name %q is accepted", name)
			}
			if _, err := (BucketID{Backend: "b", Region: "r", Bucket: name}).Format(); err != nil {
				t.Error(err)
			}
		} else {
			fitForPeople(t, err, name)
		}
		if err := checkAccountName(name); err == nil {
			if id, err := (AccountID{Backend: "b", Account: name}).Format(); err != nil || strings.Count(id, "/") != 1 {
				t.Errorf("%q, %v", id, err)
			}
		} else {
			fitForPeople(t, err, name)
		}
	})
}
