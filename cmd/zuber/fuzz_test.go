package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzConfigFile: a file is read or refused, without a panic, and no word of it that
// looks like a token is repeated. Each back end of an accepted file can be opened or is
// refused by its adapter.
func FuzzConfigFile(f *testing.F) {
	const entry = "backends: [{name: a, provider: cloudscale, "
	for _, v := range []string{
		"", "a", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 2048), "bücket", "日本", "%2f", "a/b", "../..", "..", "'a\nb'", "\"a\\0b\"", "192.168.1.1",
		"TOKEN", "*TOKEN", "&TOKEN", "!TOKEN", "!!int TOKEN", "{TOKEN: TOKEN}", "[TOKEN]", "https://u:TOKEN@h", "https://h/?t=TOKEN", "null", "1e9", "true", "\t", "\xff",
	} {
		f.Add(entry + "tokenFile: " + v + "}]")
		f.Add(entry + "tokenEnv: " + v + "}]")
		f.Add(entry + v + ": x}]")
		f.Add("backends: [{name: " + v + ", provider: stackit, keyFile: " + v + ", adminKeyTTL: " + v + ", regions: [" + v + "]}]")
		f.Add("backends: [{name: a, provider: stackit, apiURL: " + v + ", endpoints: {" + v + ": " + v + "}}]")
		f.Add(v)
	}
	f.Add("a: &a [x]\nb: *a\n---\nc: d")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "zuber.yaml")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "TOKEN", aToken)), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := readConfigFile(path)
		if err == nil && len(file.Backends) == 0 {
			t.Errorf("accepted without a back end")
		}
		c := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
		specs := (&backendSettings{DriverName: defaultDriverName, ConfigFile: path}).resolve(c, nil)
		all := c.err()
		if (err != nil) && all == nil {
			t.Errorf("%v is forgotten", err)
		}
		if all == nil {
			if _, err := openAll(specs, wiring{DriverName: defaultDriverName}); err != nil {
				all = err
			}
		}
		// A name, a provider and a path are repeated on purpose, as they stand.
		if all != nil && strings.Count(text, "TOKEN") == strings.Count(text, "tokenEnv: TOKEN")+strings.Count(text, "*TOKEN")+strings.Count(text, "TOKEN: x") && strings.Contains(all.Error(), aToken) {
			t.Errorf("a token is shown: %v", all)
		}
	})
}

// FuzzToken: a token is taken as it stands but for the space around it, or refused
// without a word of it.
func FuzzToken(f *testing.F) {
	for _, v := range []string{"", " ", "a", " a \n", "a b", "a\nb", "ä", "\x00", strings.Repeat("a", 2048), aToken, "\"" + aToken + "\"", "Bearer " + aToken} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		token, err := parseToken(raw)
		switch {
		case err == nil && (token.Reveal() != strings.TrimSpace(raw) || strings.ContainsAny(token.Reveal(), " \n\r\x00:/@")):
			t.Errorf("%q is read as %q", raw, token.Reveal())
		case err != nil && len(raw) > windowOf && strings.Contains(err.Error(), strings.TrimSpace(raw)) && strings.TrimSpace(raw) != "":
			t.Errorf("%q is shown: %v", raw, err)
		}
	})
}
