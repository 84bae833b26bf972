package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEmulate takes the printed lines at their word: the configuration in them
// must make the self-test pass.
func TestEmulate(t *testing.T) {
	b := start(t, nil, "emulate", "--listen", "127.0.0.1:0", "--token", "the-token")
	b.stdout.line(t, "Interrupt (Ctrl-C) ends it.")
	printed := b.stdout.String()
	wantLines(t, "stdout", printed, "the-token", "aws --endpoint-url http://127.0.0.1:", "rclone mkdir", "printf '%s' 'the-token' > emulator.token",
		"STACKIT Object Storage, emulated\n", "export STACKIT_SERVICE_ACCOUNT_KEY='{")

	key := regexp.MustCompile(`printf '%s' '(\{.*\})' > emulator\.key\.json\n`).FindStringSubmatch(printed)
	config := regexp.MustCompile(`(?s)<<'END'\n(.*?)\nEND\n`).FindStringSubmatch(printed)
	if config == nil || key == nil {
		t.Fatalf("no configuration is printed:\n%s", printed)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "emulator.token"), "the-token")
	writeFile(t, filepath.Join(dir, "emulator.key.json"), key[1])
	path := filepath.Join(dir, "emulator.yaml")
	writeFile(t, path, config[1])
	got := command(t, nil, "selftest", "--config", path)
	if got.code != exitOK {
		t.Error(got)
	}
	wantLines(t, "stdout", got.stdout, "back end emulated (cloudscale), region lpg\n", "back end emulated (cloudscale), region rma\n",
		"back end emulated-stackit (stackit), region eu01\n")

	if code := b.stop(t); code != exitOK || b.stderr.String() != "" {
		t.Errorf("exit code %d, stderr:\n%s", code, b.stderr)
	}
}

func TestEmulateElsewhere(t *testing.T) {
	b := start(t, environment{"ZUBER_LISTEN": "[::]:0"}, "emulate", "--allow-remote")
	b.stdout.line(t, "Interrupt (Ctrl-C) ends it.")
}

func TestEmulateOnTakenPort(t *testing.T) {
	cloud := newCloud(t)
	address := strings.TrimSuffix(strings.TrimPrefix(cloud.Cloudscale().APIURL, "http://"), "/")
	got := command(t, nil, "emulate", "--listen", address)
	if got.code != exitFailed || got.stdout != "" {
		t.Error(got)
	}
	wantLines(t, "stderr", got.stderr, "zuber: emulator: listen: ")
}

// TestEmulateRelease takes the release from the gateway itself.
func TestEmulateRelease(t *testing.T) {
	for release, want := range map[string]string{"reef": "", "tentacle": "Ceph Object Gateway (tentacle)"} {
		b := start(t, environment{"ZUBER_RGW_RELEASE": release}, "emulate", "--listen", "127.0.0.1:0")
		b.stdout.line(t, "Interrupt (Ctrl-C) ends it.")
		wantLines(t, "stdout", b.stdout.String(), "("+release+")\n")
		endpoint := regexp.MustCompile(`aws --endpoint-url (http://\S+) `).FindStringSubmatch(b.stdout.String())
		if endpoint == nil {
			t.Fatalf("no S3 endpoint is printed:\n%s", b.stdout)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Server"); got != want {
			t.Errorf("%s: the server calls itself %q, want %q", release, got, want)
		}
	}
}

// TestEmulateKeyDelay reads the delays in force from the emulator itself.
func TestEmulateKeyDelay(t *testing.T) {
	for choice, delayed := range map[string]bool{delayNone: false, delayRealistic: true} {
		b := start(t, nil, "emulate", "--listen", "127.0.0.1:0", "--key-delay", choice)
		b.stdout.line(t, "Interrupt (Ctrl-C) ends it.")
		url := regexp.MustCompile(`curl -sS (http://\S+/_emulator/)\n`).FindStringSubmatch(b.stdout.String())
		if url == nil {
			t.Fatalf("no admin endpoint is printed:\n%s", b.stdout)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url[1]+"key-delay", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var delays struct {
			Regions map[string]struct{ Max string }
		}
		err = json.NewDecoder(resp.Body).Decode(&delays)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := delays.Regions["lpg"].Max == "20s"; got != delayed {
			t.Errorf("%s: %+v", choice, delays)
		}
	}
}
