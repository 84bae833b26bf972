package companion

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func source(claim, bucket, endpoint string) envSource {
	return envSource{
		credentials: credentials{accessKeyID: "K-" + claim, secretAccessKey: provider.NewSecret("S-" + claim), endpoint: endpoint, region: "r1"},
		claim:       claim, bucket: bucket,
	}
}

func readable(data map[string][]byte) map[string]string {
	all := map[string]string{}
	for key, value := range data {
		all[key] = string(value)
	}
	return all
}

func TestRenderEnvOfOneBucket(t *testing.T) {
	one := source("photos", "b1", "https://o.example:8443")
	data, err := renderEnv(defaultKeys(), []envSource{one})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"AWS_ACCESS_KEY_ID": "K-photos", "AWS_SECRET_ACCESS_KEY": "S-photos", "AWS_REGION": "r1", "AWS_ENDPOINT_URL_S3": "https://o.example:8443",
		"S3_BUCKET": "b1", "S3_REGION": "r1", "S3_ENDPOINT": "o.example:8443", "S3_ENDPOINT_URL": "https://o.example:8443",
		"S3_BUCKET_URL": "https://o.example:8443/b1",
	}
	if got := readable(data); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	one.virtualHosted = true
	if data, err = renderEnv(defaultKeys(), []envSource{one}); err != nil || string(data["S3_BUCKET_URL"]) != "https://b1.o.example:8443" {
		t.Errorf("as a host name: %q, %v", data["S3_BUCKET_URL"], err)
	}
}

func TestRenderEnvOfSeveralBuckets(t *testing.T) {
	data, err := renderEnv(defaultKeys(), []envSource{source("photos", "b1", "https://one"), source("old.archive-2", "b2", "https://two")})
	if err != nil {
		t.Fatal(err)
	}
	got := readable(data)
	for key, want := range map[string]string{
		"S3_BUCKET": "b1", "S3_BUCKET_PHOTOS": "b1", "S3_BUCKET_OLD_ARCHIVE_2": "b2",
		"AWS_ENDPOINT_URL_S3": "https://one", "AWS_ENDPOINT_URL_S3_OLD_ARCHIVE_2": "https://two",
		"AWS_ACCESS_KEY_ID": "K-photos", "AWS_ACCESS_KEY_ID_OLD_ARCHIVE_2": "K-old.archive-2",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if len(got) != 3*len(EnvKeyTable()) {
		t.Errorf("%d keys: %v", len(got), slices.Sorted(maps.Keys(got)))
	}
	for _, sources := range [][]envSource{
		{source("a-b", "b1", "https://one"), source("a.b", "b2", "https://two")},
	} {
		if _, err := renderEnv(defaultKeys(), sources); err == nil || !strings.Contains(err.Error(), "two values") {
			t.Errorf("claims with one name as a variable: %v", err)
		}
	}
	long := source(strings.Repeat("a", 253), "b1", "https://one")
	if _, err := renderEnv(defaultKeys(), []envSource{long, source("b", "b2", "https://two")}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a claim with a long name: %v", err)
	}
	keys, err := parseEnvKeys("bucket=S3_REGION_PHOTOS")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renderEnv(keys, []envSource{source("photos", "b1", "https://one"), source("x", "b2", "https://two")}); err == nil {
		t.Error("a renamed key that is another's with the suffix is accepted")
	}
}

func TestEndpointThatIsNoURL(t *testing.T) {
	for _, endpoint := range []string{"", "o.example", "::", "https://", hidden, "https://" + hidden + "@"} {
		_, err := renderEnv(defaultKeys(), []envSource{source("photos", "b1", endpoint)})
		if err == nil || strings.Contains(err.Error(), hidden) || !strings.Contains(err.Error(), "photos") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestEnvSecretName(t *testing.T) {
	a := access{meta: meta{name: "photos"}, targets: []target{{claim: "photos", secret: "photos-cosi"}}}
	for _, c := range []struct {
		annotation, suffix, want string
		bad                      bool
	}{
		{"", "", "", false},
		{"mine", "", "mine", false},
		{"mine", "-env", "mine", false},
		{"", "-env", "photos-env", false},
		{"photos-cosi", "", "", true},
		{"", "-cosi", "", true},
		{"Mine", "", "", true},
		{"../mine", "", "", true},
		{strings.Repeat("a", 254), "", "", true},
	} {
		a.annotations = map[string]string{}
		if c.annotation != "" {
			a.annotations[AnnotationEnvSecret] = c.annotation
		}
		got, err := envSecretName(a, map[string]string{EnvSecretSuffix: c.suffix})
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	a.annotations = map[string]string{AnnotationEnvSecret: ""}
	if _, err := envSecretName(a, nil); err == nil {
		t.Error("an empty name is accepted")
	}
}
