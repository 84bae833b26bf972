package main

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no command":      {nil, "zuber: a command is missing: one of audit, emulate, gc, selftest, serve, status, version\n"},
		"unknown command": {[]string{"server"}, `zuber: unknown command "server": the commands are audit, emulate, gc, selftest, serve, status, version`},
		"argument":        {[]string{"serve", "now"}, `zuber: unexpected argument "now": zuber serve takes flags only`},
		"unknown flag":    {[]string{"serve", "--socket", "x"}, "zuber: unknown flag: --socket\nSee 'zuber serve --help'.\n"},
		"no value":        {[]string{"emulate", "--listen"}, "zuber: flag needs an argument: --listen"},
		"version format":  {[]string{"version", "--output", "xml"}, `zuber: --output "xml": want text or json`},
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t, nil, tc.args...)
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("%v, want exit code %d and nothing on stdout", got, exitUsage)
			}
			wantLines(t, "stderr", got.stderr, tc.want)
		})
	}
}

func TestHelpIsNoFault(t *testing.T) {
	got := command(t, nil, "serve", "--help")
	if got.code != exitOK || got.stderr != "" {
		t.Error(got)
	}
	wantLines(t, "stdout", got.stdout, "--driver-name string", "--emulate")
}

func TestVersion(t *testing.T) {
	got := command(t, nil, "version")
	if got.code != exitOK {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout, "zuber ", "\ncommit ", "\n"+runtime.Version()+" ")

	got = command(t, nil, "version", "--output", "json")
	var b buildInfo
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil || b.Version == "" || b.Go != runtime.Version() {
		t.Errorf("%v: %v", err, got)
	}
}

// TestFaults expects every fault of a configuration at once: exactly these
// lines and the hint at the help.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  environment
		want []string
	}{
		"many at once": {
			args: []string{"serve", "--endpoint", "tcp://x", "--driver-name", "Cosi.Zuber", "--cluster-id", "Prod", "--emulate=perhaps",
				"--metrics-address", "8080", "--log-format", "xml", "--rpc-timeout", "0s", "-v", "11", "--shutdown-timeout", "soon",
				"--max-concurrent-requests", "0"},
			env: environment{"ZUBER_REVOKE_GRACE": "-1s", envToken: "two words", "ZUBER_KEY_DELAY": "long"},
			want: []string{
				`--emulate "perhaps": want true or false`,
				`--shutdown-timeout "soon": want a duration such as 30s`,
				`--driver-name "Cosi.Zuber": want at most 63 characters in lower-case DNS labels that begin with a letter, such as cosi.zuber.dev`,
				`--cluster-id: cluster ID "Prod": want at most 63 characters of a-z, 0-9, "." and "-", starting and ending with a letter or digit`,
				`--key-delay "long": want none or realistic`,
				`--log-format "xml": want text or json`,
				`--v is 11: it goes from 0 to 10`,
				`--endpoint "tcp://x": want unix:// and an absolute path`,
				`--metrics-address "8080": want host:port (0 turns it off)`,
				`--rpc-timeout is 0s: it must be more than 0`,
				`--max-concurrent-requests is 0: it goes from 1 to 1000`,
				`--revoke-grace is -1s: it cannot be negative`,
				`CLOUDSCALE_API_TOKEN: it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line`,
			},
		},
		"values of variables": {
			args: []string{"serve"},
			env:  environment{"ZUBER_EMULATE": "si", "ZUBER_V": "loud", "ZUBER_ENDPOINT": "unix:///x", "COSI_ENDPOINT": "unix:///var/lib/cosi/cosi.sock"},
			want: []string{
				`ZUBER_EMULATE "si": want true or false`,
				`ZUBER_V "loud": want a number`,
				`--endpoint "unix:///x": the socket's name must end in .sock`,
			},
		},
		"COSI's own variable": {
			args: []string{"serve"},
			env:  environment{"COSI_ENDPOINT": "unix://relative.sock"},
			want: []string{`--endpoint "unix://relative.sock": the path after unix:// must be absolute`},
		},
		"long socket": {
			args: []string{"serve", "--endpoint", "unix:///" + strings.Repeat("s", 110) + ".sock"},
			want: []string{`--endpoint "unix:///` + strings.Repeat("s", 110) + `.sock": the path has 116 characters: a unix socket's has at most 107`},
		},
		"both tokens": {
			args: []string{"serve"},
			env:  environment{envToken: "abc", envTokenFile: "/nowhere"},
			want: []string{"CLOUDSCALE_API_TOKEN and CLOUDSCALE_API_TOKEN_FILE exclude each other: set one"},
		},
		"missing token file": {
			args: []string{"serve"},
			env:  environment{envTokenFile: "/nowhere/token"},
			want: []string{"CLOUDSCALE_API_TOKEN_FILE: unauthenticated: the token file /nowhere/token: no such file or directory"},
		},
		"API URL": {
			args: []string{"selftest"},
			env:  environment{envToken: "abc", envAPIURL: "api.cloudscale.ch"},
			want: []string{`CLOUDSCALE_API_URL "api.cloudscale.ch": want http:// or https://`},
		},
		"a port that is none": {
			args: []string{"selftest", "--emulate", "--region", "rma", "--endpoint-url", "https://x:99999"},
			want: []string{`--endpoint-url "https://x:99999": the port is not from 1 to 65535`},
		},
		"emulator and configuration": {
			args: []string{"selftest", "--emulate", "--config", "/nowhere"},
			want: []string{"--emulate and --config exclude each other: the emulator brings its own back ends"},
		},
		"self-test without credentials": {
			args: []string{"selftest"},
			want: []string{"no credentials: set CLOUDSCALE_API_TOKEN, CLOUDSCALE_API_TOKEN_FILE, STACKIT_SERVICE_ACCOUNT_KEY or STACKIT_SERVICE_ACCOUNT_KEY_PATH, or name a file with --config, or use --emulate, which needs no account"},
		},
		"self-test": {
			args: []string{"selftest", "--emulate", "--region", "rma,,lpg", "--endpoint-url", "ftp://x", "--timeout", "-1s", "--output", "yaml", "-v", "-1"},
			want: []string{
				`--output "yaml": want text or json`,
				`--timeout is -1s: it must be more than 0`,
				`--v is -1: it goes from 0 to 10`,
				`--region: a region has no name`,
				`--endpoint-url "ftp://x": want http:// or https://`,
				`--endpoint-url belongs to one region: name it with --region`,
			},
		},
		"unknown back end": {
			args: []string{"selftest", "--emulate", "--backend", "minio"},
			want: []string{`--backend "minio": there is no such back end: want cloudscale or stackit`},
		},
		"emulator for all": {
			args: []string{"emulate", "--listen", "0.0.0.0:0", "--token", "a b", "--seed", "-3"},
			want: []string{
				`--seed "-3": want a number`,
				`--token: it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line`,
				`--listen "0.0.0.0:0" is not a loopback address: use 127.0.0.1, or --allow-remote if others may reach the emulator`,
			},
		},
		"emulator's port": {
			args: []string{"emulate", "--listen", "127.0.0.1:http9", "--key-delay", "slow", "--rgw-release", "squid"},
			want: []string{
				`--key-delay "slow": want none or realistic`,
				`--rgw-release "squid": want reef or tentacle`,
				`--listen "127.0.0.1:http9": "http9" is not a port from 0 to 65535`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := command(t, tc.env, tc.args...)
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("%v, want exit code %d and nothing on stdout", got, exitUsage)
			}
			want := ""
			for _, line := range tc.want {
				want += "zuber: " + line + "\n"
			}
			want += "See 'zuber " + tc.args[0] + " --help'.\n"
			if got.stderr != want {
				t.Errorf("stderr:\n%s\nwant:\n%s", got.stderr, want)
			}
		})
	}
}

// bound returns the settings of serve as a command line and an environment make
// them.
func bound(t *testing.T, env environment, args ...string) serveSettings {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	var s serveSettings
	s.bind(fs)
	c := collect(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	c.apply(env)
	s.check(c, env)
	if err := c.err(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPrecedence(t *testing.T) {
	const other, third = "unix:///run/other.sock", "unix:///run/third.sock"
	for name, tc := range map[string]struct {
		env  environment
		args []string
		want string
	}{
		"default":                      {nil, nil, "unix:///var/lib/cosi/cosi.sock"},
		"variable beats default":       {environment{"ZUBER_ENDPOINT": other}, nil, other},
		"COSI's variable":              {environment{"COSI_ENDPOINT": other}, nil, other},
		"ours beats COSI's":            {environment{"ZUBER_ENDPOINT": other, "COSI_ENDPOINT": third}, nil, other},
		"flag beats variable":          {environment{"ZUBER_ENDPOINT": third}, []string{"--endpoint", other}, other},
		"an empty variable is not set": {environment{"ZUBER_ENDPOINT": "", "COSI_ENDPOINT": other}, nil, other},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bound(t, tc.env, tc.args...).Endpoint; got != tc.want {
				t.Errorf("endpoint %q, want %q", got, tc.want)
			}
		})
	}
}

// TestNamesOfVariables holds the rule that COSI's prefix is COSI's.
func TestNamesOfVariables(t *testing.T) {
	for _, cmd := range newRoot(&app{stdout: io.Discard, stderr: io.Discard}).Commands() {
		for _, f := range flags(cmd) {
			if name := envName(f.Name); !strings.HasPrefix(name, "ZUBER_") || strings.ToUpper(name) != name || strings.Contains(name, "-") {
				t.Errorf("--%s has the variable %q", f.Name, name)
			}
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	env := environment{
		"ZUBER_METRIC_ADDRESS":      "x",
		"ZUBER_NOTHING_LIKE_IT":     "x",
		"ZUBER_REGION":              "rma",
		"ZUBER_SERVICE_HOST":        "10.0.0.1",
		"ZUBER_SERVICE_PORT":        "8080",
		"ZUBER_SERVICE_PORT_HTTP":   "8080",
		"ZUBER_PORT":                "tcp://10.0.0.1:8080",
		"ZUBER_PORT_8080_TCP":       "tcp://10.0.0.1:8080",
		"ZUBER_PORT_8080_TCP_ADDR":  "10.0.0.1",
		"ZUBER_WEB_PORT_443_UDP":    "udp://10.0.0.1:443",
		"ZUBER_METRICS_PORT":        "tcp://10.0.0.1:8080",
		"ZUBER_OTHER_PORT":          "8080",
		"UNRELATED":                 "x",
		"CLOUDSCALE_SOMETHING_ELSE": "x",
	}
	var out bytes.Buffer
	warnUnknown(&out, newRoot(&app{stdout: io.Discard, stderr: io.Discard}), env)
	want := `zuber: warning: the variable ZUBER_METRIC_ADDRESS is not known and has no effect; did you mean ZUBER_METRICS_ADDRESS?
zuber: warning: the variable ZUBER_NOTHING_LIKE_IT is not known and has no effect
zuber: warning: the variable ZUBER_OTHER_PORT is not known and has no effect
`
	if out.String() != want {
		t.Errorf("warnings:\n%s\nwant:\n%s", &out, want)
	}
}

func TestEnviron(t *testing.T) {
	env := environ([]string{"A=1", "B=x=y", "C=", "nonsense"})
	if len(env) != 3 || env["A"] != "1" || env["B"] != "x=y" {
		t.Errorf("%v", env)
	}
}

func TestEditDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"METRIC", "METRICS", 1}, {"flaw", "lawn", 2}} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
