package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

const (
	aProject      = "11111111-2222-3333-4444-555555555555"
	adminGroup    = "66666666-7777-8888-9999-000000000000"
	aServiceMail  = "zuber@sa.stackit.cloud"
	notJSON       = "the service account key is not JSON of the expected form; use the JSON that the portal exports, unchanged"
	environmental = "the stackit back end of the environment: "
)

// stackitKey is a real key, of an emulator that has ended.
func stackitKey(t *testing.T) string {
	t.Helper()
	cloud, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cloud.Close() }()
	return cloud.Stackit().ServiceAccountKey()
}

// keyPart is what no message may hold of a key.
func keyPart(t *testing.T, key string) string {
	t.Helper()
	var k struct{ Credentials struct{ PrivateKey string } }
	if err := json.Unmarshal([]byte(key), &k); err != nil {
		t.Fatal(err)
	}
	return strings.Split(k.Credentials.PrivateKey, "\n")[1]
}

func TestStackitEnvironment(t *testing.T) {
	key := stackitKey(t)
	path := filepath.Join(t.TempDir(), "key.json")
	writeFile(t, path, key+"\n")
	for name, tc := range map[string]struct {
		env   environment
		check func(c stackit.Config) bool
	}{
		"key": {
			environment{envStackitKey: key, envStackitTokenURL: "https://token.example/x", envStackitFederationURL: "https://other.example"},
			func(c stackit.Config) bool {
				secret, err := c.Credentials.Key()
				return err == nil && secret.Reveal() == key && c.TokenURL == "https://token.example/x" && c.Regions == nil && c.ProjectID == ""
			},
		},
		"key file": {
			environment{envStackitKeyPath: path, envStackitProject: aProject, envStackitRegion: "eu02"},
			func(c stackit.Config) bool {
				secret, err := c.Credentials.Key()
				return err == nil && secret.Reveal() == key && c.ProjectID == aProject && len(c.Regions) == 1 && c.Regions[0] == "eu02"
			},
		},
		"federation": {
			environment{envStackitEmail: aServiceMail, envStackitFederatedToken: "/run/token", envStackitProject: aProject,
				envStackitFederationURL: "https://token.example", envStackitTokenURL: "https://other.example"},
			func(c stackit.Config) bool {
				return c.Credentials.Key == nil && c.Credentials.FederationEmail == aServiceMail &&
					c.Credentials.FederatedTokenFile == "/run/token" && c.TokenURL == "https://token.example"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.env[envStackitAPIURL] = "https://api.example/"
			specs, faults := resolved(t, tc.env, "")
			if faults != "" || len(specs) != 1 {
				t.Fatalf("%d back ends, faults: %s", len(specs), faults)
			}
			s := specs[0]
			if s.Name != "stackit" || s.Kind != "stackit" || s.APIURL != "https://api.example/" || !tc.check(*s.Stackit) {
				t.Errorf("%+v, %+v", s, s.Stackit)
			}
		})
	}
	specs, faults := resolved(t, environment{envToken: "abc", envStackitKey: key}, "")
	if faults != "" || len(specs) != 2 || specs[0].Name != "cloudscale" || specs[1].Name != "stackit" {
		t.Errorf("both: %+v, faults: %s", specs, faults)
	}
	for _, env := range []environment{
		{envStackitProject: aProject, envStackitRegion: "eu01", envStackitFederatedToken: "/run/token"},
		{envStackitKey: "", envStackitKeyPath: "", envStackitEmail: ""},
	} {
		if specs, faults := resolved(t, env, ""); len(specs) != 0 || faults != "" {
			t.Errorf("without credentials: %+v, faults: %s", specs, faults)
		}
	}
}

func TestStackitConfigFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "key.json"), stackitKey(t))
	writeFile(t, filepath.Join(dir, "admin.json"), `{"accessKeyID": "AK", "secretAccessKey": "s"}`)
	path := filepath.Join(dir, "zuber.yaml")
	writeFile(t, path, `
backends:
  - name: with-key
    provider: stackit
    keyFile: key.json
    projectID: `+aProject+`
    regions: [eu01]
    apiURL: https://api.example
    tokenURL: https://token.example/oauth
    endpoints: {eu01: "https://s3.example:8443/"}
    adminGroupID: `+adminGroup+`
    adminKeyFile: admin.json
    adminKeyTTL: 36h
  - name: federated
    provider: stackit
    serviceAccountEmail: `+aServiceMail+`
    federatedTokenFile: token
    projectID: `+aProject+`
`)
	c := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
	// A cluster sets the address of federation by itself.
	specs := (&backendSettings{ConfigFile: path}).resolve(c, environment{envStackitEmail: aServiceMail})
	if err := c.err(); err != nil || len(specs) != 2 {
		t.Fatalf("%d back ends, %v", len(specs), err)
	}
	a, b := specs[0], specs[1]
	admin, err := a.Stackit.AdminKey()
	if err != nil || admin.AccessKeyID != "AK" || admin.SecretAccessKey.Reveal() != "s" {
		t.Errorf("admin key %+v, %v", admin, err)
	}
	if a.Name != "with-key" || a.APIURL != "https://api.example/" || a.Endpoints["eu01"] != "https://s3.example:8443/" ||
		a.Stackit.TokenURL != "https://token.example/oauth" || a.Stackit.AdminGroupID != adminGroup || a.Stackit.AdminKeyTTL != 36*time.Hour ||
		a.Stackit.ProjectID != aProject || len(a.Stackit.Regions) != 1 {
		t.Errorf("%+v, %+v", a, a.Stackit)
	}
	if b.Stackit.Credentials.FederatedTokenFile != filepath.Join(dir, "token") || b.Stackit.Credentials.FederationEmail != aServiceMail {
		t.Errorf("%+v", b.Stackit)
	}
	if _, err := openAll(specs, wiring{DriverName: defaultDriverName}); err != nil {
		t.Error(err)
	}
}

// TestStackitFaults: every fault is named at the start, together with those of
// other parts, and none shows a key.
func TestStackitFaults(t *testing.T) {
	key := stackitKey(t)
	hidden := keyPart(t, key)
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.json")
	writeFile(t, garbage, `{"credentials": `+hidden)
	good := filepath.Join(dir, "key.json")
	writeFile(t, good, key)
	large := filepath.Join(dir, "large.json")
	writeFile(t, large, strings.Repeat("x", keyLimit+1))
	for name, tc := range map[string]struct {
		env  environment
		file string // of back ends, in YAML flow form
		want []string
	}{
		"together with others": {
			env: environment{envToken: "two words", envStackitKey: hidden, "ZUBER_RPC_TIMEOUT": "soon"},
			want: []string{`ZUBER_RPC_TIMEOUT "soon": want a duration such as 30s`,
				"CLOUDSCALE_API_TOKEN: it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line",
				environmental + notJSON},
		},
		"a malformed key file": {env: environment{envStackitKeyPath: garbage}, want: []string{environmental + notJSON}},
		"a large key file": {env: environment{envStackitKeyPath: large}, want: []string{
			environmental + "the service account key cannot be read: " + large + " is larger than 65536 bytes: it is no key"}},
		"no key file": {env: environment{envStackitKeyPath: "/nowhere/key"}, want: []string{
			environmental + "the service account key cannot be read: open /nowhere/key: no such file or directory"}},
		"a key for a path": {env: environment{envStackitKeyPath: key}, want: []string{
			"STACKIT_SERVICE_ACCOUNT_KEY_PATH: want the path of a file, not what is in it"}},
		"a token for a path": {env: environment{envStackitEmail: aServiceMail, envStackitProject: aProject, envStackitFederatedToken: "eyJ" + hidden}, want: []string{
			"STACKIT_FEDERATED_TOKEN_FILE: want the path of a file, not what is in it"}},
		"a token with a slash for a path": {env: environment{envStackitEmail: aServiceMail, envStackitProject: aProject, envStackitFederatedToken: "eyJ/" + hidden}, want: []string{
			"STACKIT_FEDERATED_TOKEN_FILE: want the path of a file, not what is in it"}},
		"a project that is no UUID": {env: environment{envStackitKey: key, envStackitProject: "my-project"}, want: []string{
			environmental + `project ID "my-project" is not a UUID`}},
		"a malformed region": {env: environment{envStackitKey: key, envStackitRegion: "EU 01", envStackitProject: "x"}, want: []string{
			environmental + `project ID "x" is not a UUID`,
			environmental + `region "EU 01" is malformed`}},
		"two credentials": {env: environment{envStackitKey: key, envStackitKeyPath: good}, want: []string{
			"STACKIT_SERVICE_ACCOUNT_KEY and STACKIT_SERVICE_ACCOUNT_KEY_PATH exclude each other: set one"}},
		"three credentials": {env: environment{envStackitKey: key, envStackitKeyPath: good, envStackitEmail: aServiceMail}, want: []string{
			"STACKIT_SERVICE_ACCOUNT_KEY and STACKIT_SERVICE_ACCOUNT_KEY_PATH and STACKIT_SERVICE_ACCOUNT_EMAIL exclude each other: set one"}},
		"federation without project": {env: environment{envStackitEmail: aServiceMail}, want: []string{
			environmental + "federation needs a project ID"}},
		"malformed URLs": {
			env: environment{envStackitKey: key, envStackitAPIURL: "api.example"},
			want: []string{
				`STACKIT_OBJECTSTORAGE_CUSTOM_ENDPOINT "api.example": want http:// or https://`},
		},
		"a malformed token URL": {env: environment{envStackitKey: key, envStackitTokenURL: "https://u:" + hidden + "@x"}, want: []string{
			environmental + "token URL: it is not of the form https://host[:port][/path]"}},
		"a file with many": {file: `
  - {name: a, provider: stackit}
  - {name: b, provider: stackit, keyFile: key.json, serviceAccountEmail: ` + aServiceMail + `}
  - {name: c, provider: stackit, keyFile: key.json, federatedTokenFile: token}
  - {name: d, provider: stackit, keyFile: key.json, tokenFile: x}
  - {name: e, provider: cloudscale, tokenFile: ` + good + `, keyFile: key.json, regions: [eu01]}
  - {name: f, provider: stackit, keyFile: key.json, apiURL: ftp://x, endpoints: {eu01: "https://x/path"}, tokenURL: nonsense, projectID: x}
  - {name: g, provider: stackit, keyFile: none.json}
  - {name: h, provider: stackit, keyFile: garbage.json}
  - {name: i, provider: stackit, keyFile: '{"privateKey": "` + hidden + `"}'}
  - {name: j, provider: stackit, serviceAccountEmail: ` + aServiceMail + `, federatedTokenFile: eyJ` + hidden + `}
  - {name: k, provider: stackit, keyFile: key.json, adminKeyFile: garbage.json, regions: [eu01], adminKeyTTL: 1m}
  - {name: l, provider: stackit, keyFile: key.json, adminKeyFile: none.json, adminGroupID: x}
`, env: environment{envStackitKey: key}, want: []string{
			"FILE: backends[0]: the credentials are missing: set keyFile or serviceAccountEmail",
			"FILE: backends[1]: keyFile and serviceAccountEmail exclude each other",
			"FILE: backends[2]: federatedTokenFile belongs to serviceAccountEmail, not to keyFile",
			"FILE: backends[3]: tokenFile and tokenEnv are for cloudscale, but the provider is stackit",
			"FILE: backends[4].keyFile: it is for stackit, but the provider is cloudscale",
			"FILE: backends[4].regions: it is for stackit, but the provider is cloudscale",
			`FILE: backends[5].apiURL: "ftp://x": want http:// or https://`,
			`FILE: backends[5].endpoints.eu01: "https://x/path": want scheme://host[:port] and nothing else`,
			"FILE: backends[8]: keyFile, federatedTokenFile and adminKeyFile: want the path of a file, not what is in it",
			"FILE: backends[9]: keyFile, federatedTokenFile and adminKeyFile: want the path of a file, not what is in it",
			"FILE: back end e: unauthenticated: the token file " + good + ": it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line",
			`FILE: back end f: project ID "x" is not a UUID`,
			"FILE: back end f: token URL: it is not of the form https://host[:port][/path]",
			"FILE: back end g: the service account key cannot be read: open DIR/none.json: no such file or directory",
			"FILE: back end h: " + notJSON,
			`FILE: back end k: the admin key: DIR/garbage.json: want {"accessKeyID": "…", "secretAccessKey": "…"}`,
			"FILE: back end k: the life of admin keys, 1m0s, is below 15m0s",
			"FILE: back end l: the admin key: open DIR/none.json: no such file or directory",
			`FILE: back end l: admin group ID "x" is not a UUID`,
			"FILE: back end l: an admin group or key of your own lives in one region, and 2 are configured; set the regions to that one",
			"--config and STACKIT_SERVICE_ACCOUNT_KEY exclude each other: name the key in the file with keyFile, or unset one of the two",
		}},
		"a file with the key in it": {file: "\n  - name: a\n    provider: stackit\n    key: " + hidden + "\n    adminKeyTTL: " + hidden + "\n", want: []string{
			`FILE:4: unknown key "key": a key does not belong into this file: put it into a file of its own and name that with keyFile`,
			"FILE:5: a duration such as 24h is wanted here",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"serve", "--endpoint", "unix:///nowhere/cosi.sock", "--metrics-address", "0"}
			path := filepath.Join(dir, "zuber.yaml")
			if tc.file != "" {
				writeFile(t, path, "backends:"+tc.file)
				args = append(args, "--config", path)
			}
			got := command(t, tc.env, args...)
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("%v, want exit code %d and nothing on stdout", got, exitUsage)
			}
			want := ""
			for _, line := range tc.want {
				line = strings.ReplaceAll(line, "DIR", dir)
				if rest, found := strings.CutPrefix(line, "FILE:"); found {
					line = path + ":" + rest
				}
				want += "zuber: " + line + "\n"
			}
			want += "See 'zuber serve --help'.\n"
			if got.stderr != want {
				t.Errorf("stderr:\n%s\nwant:\n%s", got.stderr, want)
			}
			if strings.Contains(got.stderr, hidden) {
				t.Errorf("a key is shown:\n%s", got.stderr)
			}
		})
	}
}

// TestOpenFaultIsUsage: a key that was taken away between check and use is still
// the configuration's fault.
func TestOpenFaultIsUsage(t *testing.T) {
	spec := stackitEntry{KeyFile: "/nowhere/key"}.spec("a")
	_, err := openAll([]backendSpec{spec}, wiring{DriverName: defaultDriverName})
	var usage *usageError
	if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "back end a: stackit: ") {
		t.Errorf("%v", err)
	}
}

func TestStackitWithoutTLS(t *testing.T) {
	spec := stackitEntry{TokenURL: "http://token.example"}.spec("a")
	spec.APIURL = "http://api.example/"
	if got := withoutTLS([]backendSpec{spec}); strings.Join(got, " ") != "http://api.example/ http://token.example" {
		t.Errorf("%q", got)
	}
}
