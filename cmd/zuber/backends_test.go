package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// resolved reads the back ends of a configuration file and an environment.
func resolved(t *testing.T, env environment, file string) ([]backendSpec, string) {
	t.Helper()
	s := backendSettings{DriverName: defaultDriverName}
	if file != "" {
		s.ConfigFile = filepath.Join(t.TempDir(), "zuber.yaml")
		writeFile(t, s.ConfigFile, file)
		writeFile(t, filepath.Join(filepath.Dir(s.ConfigFile), "a.token"), "token-a\n")
	}
	c := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
	specs := s.resolve(c, env)
	text := ""
	if err := c.err(); err != nil {
		text = strings.ReplaceAll(err.Error(), s.ConfigFile, "FILE")
		text = strings.ReplaceAll(text, filepath.Dir(s.ConfigFile), "DIR")
	}
	return specs, text
}

func TestConfigFile(t *testing.T) {
	specs, faults := resolved(t, environment{"TOKEN_B": " token-b "}, `
backends:
  - name: team-a
    provider: cloudscale
    tokenFile: a.token
    apiURL: https://api.example/v1
    endpoints:
      rma: https://s3.example:8443
  - name: b
    provider: cloudscale
    tokenEnv: TOKEN_B
`)
	if faults != "" || len(specs) != 2 {
		t.Fatalf("%d back ends, faults: %s", len(specs), faults)
	}
	a, b := specs[0], specs[1]
	if a.Name != "team-a" || a.Kind != providerCloudscale || a.APIURL != "https://api.example/" || a.Endpoints["rma"] != "https://s3.example:8443" {
		t.Errorf("%+v", a)
	}
	if b.Name != "b" || b.APIURL != "" || b.Endpoints != nil {
		t.Errorf("%+v", b)
	}
	for spec, want := range map[*backendSpec]string{&a: "token-a", &b: "token-b"} {
		if token, err := spec.Token(); err != nil || token.Reveal() != want {
			t.Errorf("%s: token %q, %v", spec.Name, token.Reveal(), err)
		}
	}
}

func TestConfigFileFaults(t *testing.T) {
	const good = "{name: a, provider: cloudscale, tokenFile: a.token}"
	for name, tc := range map[string]struct {
		file string
		env  environment
		want []string
	}{
		"empty":         {"# nothing\n", nil, []string{"FILE: backends: it is missing or empty: list at least one"}},
		"no list":       {"backends: []", nil, []string{"FILE: backends: it is missing or empty: list at least one"}},
		"two documents": {"backends: [" + good + "]\n---\nbackends: [" + good + "]", nil, []string{"FILE: it holds more than one YAML document"}},
		"no YAML":       {"backends: [", nil, []string{"FILE: line 1: did not find expected node content"}},
		"cluster ID":    {"clusterID: Prod\nbackends: [" + good + "]", nil, []string{`FILE: clusterID: cluster ID "Prod": want at most 63 characters of a-z, 0-9, "." and "-", starting and ending with a letter or digit`}},
		"duplicate key": {"backends: [" + good + "]\nbackends: [" + good + "]", nil,
			[]string{`FILE: line 2: mapping key "backends" already defined at line 1`}},
		"unknown keys": {"backends:\n  - name: a\n    kind: cloudscale\n    token: s3cr3t\nbackend: x", nil, []string{
			`FILE:3: unknown key "kind": the keys here are name, provider, tokenFile, tokenEnv, apiURL, endpoints, and for STACKIT keyFile, serviceAccountEmail, federatedTokenFile, projectID, regions, tokenURL, adminGroupID, adminKeyFile, adminKeyTTL`,
			`FILE:4: unknown key "token": a token does not belong into this file: put it into a file of its own and name that with tokenFile, or name a variable with tokenEnv`,
			`FILE:5: unknown key "backend": the keys here are backends and clusterID`,
		}},
		"wrong kinds": {"backends:\n  - name: [a]\n    endpoints: s3cr3t", nil, []string{
			"FILE:2: a value of another kind than !!seq is wanted here",
			"FILE:3: a value of another kind than !!str is wanted here",
		}},
		"every value": {`backends:
  - {name: A, provider: aws, tokenFile: a.token, tokenEnv: X}
  - {name: b, provider: cloudscale}
  - {name: b, provider: cloudscale, tokenEnv: s3cr3t-value, apiURL: "ftp://x", endpoints: {rma: "https://x/path", lpg: "https://u:s3cr3t@x"}}
`, nil, []string{
			`FILE: backends[0].name: "A": want 1 to 63 of a-z, 0-9 and '-', with '-' neither first nor last`,
			`FILE: backends[0].provider: "aws": want cloudscale or stackit`,
			`FILE: backends[0]: tokenFile and tokenEnv exclude each other`,
			`FILE: backends[1]: the token is missing: set tokenFile or tokenEnv`,
			`FILE: backends[2].name: "b" is the name of backends[1] too`,
			`FILE: backends[2].tokenEnv: want the name of an environment variable, not the token itself`,
			`FILE: backends[2].apiURL: "ftp://x": want http:// or https://`,
			`FILE: backends[2].endpoints.lpg: (not shown, it holds an @): want scheme://host[:port] and nothing else`,
			`FILE: backends[2].endpoints.rma: "https://x/path": want scheme://host[:port] and nothing else`,
			`FILE: back end b: the variable that tokenEnv names: it is empty`,
		}},
		"regions of endpoints": {`backends:
  - {name: a, provider: cloudscale, tokenEnv: T, endpoints: {rmaa: "https://x", LPG: "https://x", "r m": "https://x", zrh: "https://x", rma: "https://x"}}
  - {name: b, provider: stackit, serviceAccountEmail: a@b.c, projectID: 11111111-2222-4333-8444-555555555555, endpoints: {eu1: "https://x", eu02: "https://x"}}
`, environment{"T": "abc"}, []string{
			`FILE: backends[0].endpoints.LPG: it is not the name of a region: want one such as lpg or rma (did you mean "lpg"?)`,
			`FILE: backends[0].endpoints.r m: it is not the name of a region: want one such as lpg or rma (did you mean "rma"?)`,
			`FILE: backends[0].endpoints.rmaa: it is not the name of a region: want one such as lpg or rma (did you mean "rma"?)`,
			`FILE: backends[1].endpoints.eu1: the back end has no such region: want eu01 or eu02 (did you mean "eu01"?)`,
		}},
		"tokens": {"backends: [{name: a, provider: cloudscale, tokenFile: none.token}, {name: b, provider: cloudscale, tokenEnv: T}]",
			environment{"T": "no token"}, []string{
				"FILE: back end a: unauthenticated: the token file DIR/none.token: no such file or directory",
				"FILE: back end b: the variable that tokenEnv names: it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line",
			}},
		"credentials twice": {"backends: [" + good + "]", environment{envToken: "abc", envTokenFile: "/x"}, []string{
			"--config and CLOUDSCALE_API_TOKEN exclude each other: name the variable in the file with tokenEnv, or unset one of the two",
			"--config and CLOUDSCALE_API_TOKEN_FILE exclude each other: name the token's file with tokenFile and unset the variable",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := resolved(t, tc.env, tc.file)
			if want := strings.Join(tc.want, "\n"); faults != want {
				t.Errorf("faults:\n%s\nwant:\n%s", faults, want)
			}
			if strings.Contains(faults, "s3cr3t") {
				t.Errorf("a value that may be a secret is shown:\n%s", faults)
			}
		})
	}
}

func TestConfigFileMayNameTheUsualVariable(t *testing.T) {
	specs, faults := resolved(t, environment{envToken: "abc"}, "backends: [{name: a, provider: cloudscale, tokenEnv: CLOUDSCALE_API_TOKEN}]")
	if faults != "" || len(specs) != 1 {
		t.Errorf("%v, faults: %s", specs, faults)
	}
}

func TestMissingConfigFile(t *testing.T) {
	got := command(t, nil, "serve", "--config", "/nowhere/zuber.yaml")
	if got.code != exitUsage {
		t.Error(got)
	}
	wantLines(t, "stderr", got.stderr, "zuber: --config: open /nowhere/zuber.yaml: no such file or directory\n")
}

func TestEnvironmentBackend(t *testing.T) {
	specs, faults := resolved(t, environment{envToken: "abc", envAPIURL: "http://127.0.0.1:1/v1/"}, "")
	if faults != "" || len(specs) != 1 {
		t.Fatalf("%v, faults: %s", specs, faults)
	}
	if s := specs[0]; s.Name != "cloudscale" || s.Kind != "cloudscale" || s.APIURL != "http://127.0.0.1:1/" {
		t.Errorf("%+v", s)
	}
	if specs, faults = resolved(t, nil, ""); specs != nil || faults != "" {
		t.Errorf("without credentials: %v, faults: %s", specs, faults)
	}
}

func TestEmulatorUsesNoCredentials(t *testing.T) {
	c := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
	s := backendSettings{Emulate: true}
	if specs := s.resolve(c, environment{envToken: "abc", envTokenFile: "/nowhere"}); specs != nil || c.err() != nil {
		t.Errorf("%v, %v", specs, c.err())
	}
}

func TestWithoutTLS(t *testing.T) {
	got := withoutTLS([]backendSpec{{APIURL: "http://api.example/", Endpoints: map[string]string{"a": "http://127.0.0.1:1", "b": "https://s3.example"}},
		{APIURL: "http://[::1]:1/", Endpoints: map[string]string{"a": "http://x.localhost", "b": "http://s3.example"}}, {}})
	if strings.Join(got, " ") != "http://api.example/ http://s3.example" {
		t.Errorf("%q", got)
	}
}
