package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestParametersAreRead(t *testing.T) {
	got, err := parseParameters(BucketClass, map[string]string{
		"backend": "cloudscale", "region": "lpg", "endpointURL": "HTTPS://Objects.Example:443",
		"bucketDeletionPolicy": "DeleteAll", "s3PathStyle": "false", "sharedCredentials": "forbidden",
	}, true)
	want := parameters{
		backend: "cloudscale", region: "lpg", endpoint: "https://objects.example", policy: provider.DeleteAll, pathStyle: "false",
		shared: provider.SharedForbidden,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// TestBadParameters: a message names key, value and what is allowed.
func TestBadParameters(t *testing.T) {
	for _, c := range []struct {
		kind  ParameterKind
		key   string
		value string
		want  []string
	}{
		{BucketClass, "region", "", []string{"region", "empty"}},
		{BucketClass, "region", "r/ma", []string{`region = "r/ma"`, "a-z"}},
		{BucketClass, "Region", "rma", []string{`"Region" = "rma"`, "unknown", "region", `did you mean "region"?`, "region is missing"}},
		{BucketClass, "regoin", "rma", []string{`did you mean "region"?`}},
		{BucketClass, "endpoint-url", "x", []string{`did you mean "endpointURL"?`}},
		{BucketClass, "colour", "red", []string{`"colour" = "red"`, "known are backend, region, endpointURL, bucketDeletionPolicy, s3PathStyle"}},
		{BucketClass, "bucketDeletionPolicy", "deleteall", []string{`bucketDeletionPolicy = "deleteall"`, "DeleteIfEmpty or DeleteAll", `did you mean "DeleteAll"?`}},
		{BucketClass, "bucketDeletionPolicy", "Retain", []string{"DeleteIfEmpty or DeleteAll"}},
		{BucketClass, "s3PathStyle", "True", []string{`s3PathStyle = "True"`, "true or false", `did you mean "true"?`}},
		{BucketClass, "backend", "", []string{"backend", "empty"}},
		{BucketClass, "endpointURL", "objects.example", []string{`endpointURL = "objects.example"`, "scheme http or https"}},
		{BucketAccessClass, "region", "rma", []string{"it is a parameter of the BucketClass"}},
		{BucketAccessClass, "authenticationType", "Key", []string{"field of the BucketAccessClass"}},
		{BucketAccessClass, "foo", "bar", []string{`"foo" = "bar"`, "known are accessMode"}},
		{BucketAccessClass, "accessMode", "readwrite", []string{"accessMode", `"readwrite"`, "ReadWrite or ReadOnly or WriteOnly", `did you mean`}},
		{BucketAccessClass, "credentials", "Shared", []string{"credentials", "perAccess or shared", `did you mean "shared"?`}},
		{BucketAccessClass, "ownBuckets", "keep", []string{`ownBuckets = "keep"`, "refuse or purge"}},
		{BucketAccessClass, "sharedCredentials", "forbidden", []string{"it is a parameter of the BucketClass"}},
		{BucketClass, "sharedCredentials", "no", []string{"allowed or forbidden"}},
		{BucketAccessClass, "accessMode", "", []string{"accessMode", "empty"}},
	} {
		_, err := parseParameters(c.kind, map[string]string{c.key: c.value}, true)
		if !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%s = %q: %v", c.key, c.value, err)
			continue
		}
		for _, w := range append(c.want, string(c.kind)) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s = %q: %q does not say %q", c.key, c.value, err, w)
			}
		}
	}
}

func TestNoSuggestionFarOff(t *testing.T) {
	_, err := parseParameters(BucketClass, map[string]string{"region": "rma", "bucketDeletionPolicy": "Retain", "colour": "red", "": "x"}, true)
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := parseParameters(BucketClass, map[string]string{"s3PathStyle": "no", "bucketDeletionPolicy": "x", "zone": "1"}, true)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, w := range []string{"region is missing", "s3PathStyle", "bucketDeletionPolicy", "zone"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the message has several lines")
	}
}

// TestMistakenSecretIsNotRepeated: people put keys where they do not belong.
func TestMistakenSecretIsNotRepeated(t *testing.T) {
	const secret = "hunter2hunter2"
	for key, value := range map[string]string{
		"secretAccessKey": secret, "apiToken": secret, "PASSWORD": secret,
		"endpointURL": "https://user:" + secret + "@objects.example",
	} {
		_, err := parseParameters(BucketClass, map[string]string{"region": "rma", key: value}, true)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestLongValueIsCut(t *testing.T) {
	_, err := parseParameters(BucketClass, map[string]string{"region": strings.Repeat("ä", 5000)}, true)
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("message of %d bytes", len(err.Error()))
	}
}

func TestRequiredOnlyOnDemand(t *testing.T) {
	if _, err := parseParameters(BucketClass, nil, false); err != nil {
		t.Error(err)
	}
	if _, err := parseParameters(BucketClass, nil, true); err == nil {
		t.Error("a bucket was made without a region")
	}
}

// TestParameterTableIsWhole: what documents say agrees with what is parsed.
func TestParameterTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for i, p := range ParameterTable() {
		if p.Name == "" || p.Kind == "" || p.Allowed == "" || p.Description == "" || p.Required == (p.Default != "") {
			t.Errorf("row %d is not whole: %+v", i, p)
		}
		if seen[string(p.Kind)+p.Name] {
			t.Errorf("%s appears twice", p.Name)
		}
		seen[string(p.Kind)+p.Name] = true
		row := parameterRows()[i]
		for _, v := range row.values {
			if !strings.Contains(p.Allowed, v) {
				t.Errorf("%s: %q is accepted and not documented", p.Name, v)
			}
			if _, err := parseParameters(p.Kind, map[string]string{p.Name: v}, false); err != nil {
				t.Errorf("%s: %q is documented and refused: %v", p.Name, v, err)
			}
		}
		if row.values != nil && p.Default != "" {
			if _, err := parseParameters(p.Kind, map[string]string{p.Name: p.Default}, false); err != nil {
				t.Errorf("%s: the default is refused: %v", p.Name, err)
			}
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"https://objects.example":      "https://objects.example",
		"https://objects.example:443":  "https://objects.example",
		"http://127.0.0.1:8333":        "http://127.0.0.1:8333",
		"http://objects.example:80":    "http://objects.example",
		"http://[::1]:9000":            "http://[::1]:9000",
		"https://objects.example:8443": "https://objects.example:8443",
	} {
		if got, err := parseEndpoint(in); err != nil || got != want {
			t.Errorf("parseEndpoint(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"objects.example", "ftp://x", "https://", "https://x/", "https://x/path", "https://x?q=1", "https://x?", "https://x#f", "https://x#",
		"https://u@x", "https://x:", "https://x:0", "https://x:70000", "https://x:a", "https://a_b", "https://-x", "https://a..b", "https://a b",
		"//x", "https:x", "https://[::g]",
	} {
		if got, err := parseEndpoint(in); err == nil {
			t.Errorf("parseEndpoint(%q) = %q", in, got)
		}
	}
}

func TestEnvSecretSuffix(t *testing.T) {
	for in, ok := range map[string]bool{
		"-env": true, ".env": true, "env": true, "--a": true, "1": true, "-a.b-c": true, strings.Repeat("a", 63): true,
		"": false, "-": false, ".": false, "env-": false, "-.env": false, "..env": false, "a..b": false, "a.-b": false, "-Env": false, "-ä": false,
		"a/b": false, "a\n": false, strings.Repeat("a", 64): false,
	} {
		_, err := parseParameters(BucketAccessClass, map[string]string{"envSecretSuffix": in}, true)
		if (err == nil) != ok || !ok && !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestRotateEvery(t *testing.T) {
	for in, ok := range map[string]bool{
		"1h": true, "720h": true, "90m": true, "59m59s": false, "0": false, "-720h": false, "30d": false, "720": false, "": false, "monthly": false,
	} {
		_, err := parseParameters(BucketAccessClass, map[string]string{"rotateEvery": in}, true)
		if (err == nil) != ok || !ok && !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestManyBadParametersAreCutShort(t *testing.T) {
	in := map[string]string{"region": "rma"}
	for i := range 60_000 {
		in[fmt.Sprintf("unknown%d", i)] = "x"
	}
	_, err := parseParameters(BucketClass, in, true)
	if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), "parameters more") || strings.Count(err.Error(), "is unknown") > maxFaults {
		t.Errorf("got %.300v", err)
	}
}
