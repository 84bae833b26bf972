package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/companion"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// zurichFigures are what cloudscale.ch says of its buckets.
const zurichFigures = `{"start": "2025-12-31T23:00:00Z", "end": "2026-01-01T23:00:00Z", "data": [
{"subject": {"name": "acme-prod-photos", "objects_user_id": "u"}, "time_series": [
	{"start": "2025-12-31T23:00:00Z", "end": "2026-01-01T23:00:00Z", "usage": {"object_count": 1, "storage_bytes": 1234567890123}}]},
{"subject": {"name": "without-claim-cloudscale", "objects_user_id": "u"}, "time_series": [
	{"start": "2025-12-31T23:00:00Z", "end": "2026-01-01T23:00:00Z", "usage": {"object_count": 1, "storage_bytes": 1}}]}]}`

// usageConfig makes in each cloud the bucket that statusWorld has a claim of, and one
// without a claim, puts data into them, and writes a configuration with both.
func usageConfig(t *testing.T) (cloud *emulator.Emulator, config string) {
	t.Helper()
	cloud = newCloud(t)
	settleAdmin(t, cloud)
	cs := cloud.Cloudscale()
	specs := []backendSpec{emulatedStackit(cloud.Stackit()), {
		Name: providerCloudscale, Kind: providerCloudscale, APIURL: cs.APIURL, Endpoints: cs.Endpoints, Token: staticToken(provider.NewSecret(cs.Token)),
	}}
	backends, err := openAll(specs, wiring{DriverName: defaultDriverName})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backends {
		fillBucket(t, b, map[string]string{providerCloudscale: "acme-prod-photos", providerStackit: "acme-dev-photos"}[b.Kind], 1234567)
		fillBucket(t, b, "without-claim-"+b.Kind, 1)
	}
	config = bothConfig(t, cloud)
	raw, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, strings.NewReplacer(`"name":"cs"`, `"name":"cloudscale"`, `"name":"st"`, `"name":"stackit"`).Replace(string(raw)))
	// The day that a bucket is made on has no figures, so the cloud tells those of another.
	cloud.Inject(emulator.Fault{Cloud: emulator.CloudCloudscale, Operation: "GetBucketMetrics", Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: zurichFigures})
	cloud.ResetCalls()
	return cloud, config
}

// fillBucket makes a bucket with one object of that size.
func fillBucket(t *testing.T, b driver.Backend, name string, size int) {
	t.Helper()
	region := map[string]string{providerCloudscale: "rma", providerStackit: emulatedRegion}[b.Kind]
	made, err := b.Provider.CreateBucket(t.Context(), provider.BucketSpec{Name: name, Region: region})
	if err != nil {
		t.Fatal(err)
	}
	access, err := b.Provider.GrantAccess(t.Context(), provider.AccessSpec{Account: "ba-" + name, Buckets: []provider.BucketAccess{{BucketRef: made.BucketRef}}})
	if err != nil {
		t.Fatal(err)
	}
	key := access.Credentials
	client, err := s3.New(s3.Config{Endpoint: made.Endpoint, AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal, SigningRegion: made.SigningRegion})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.PutObject(t.Context(), name, "object", make([]byte, size)); err != nil {
		t.Fatal(err)
	}
}

// listed are the buckets whose objects were listed in STACKIT's cloud.
func listed(cloud *emulator.Emulator) string {
	var all []string
	for _, c := range cloud.Calls() {
		if c.Cloud == emulator.CloudStackit && (c.Operation == "ListObjectVersions" || c.Operation == "ListObjects" || c.Operation == "ListObjectsV2") {
			all = append(all, strings.Trim(c.Path, "/"))
		}
	}
	return strings.Join(all, " ")
}

// TestStatusOfUsage: the clouds are asked when there is a configuration, STACKIT lists
// when it is let to and only what is shown, and a cloud that does not say hides nothing.
func TestStatusOfUsage(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			server := newObjectServer(t, version)
			world := newStatusWorld(t, server, version)
			world.fill()
			cloud, config := usageConfig(t)
			ask := func(args ...string) string {
				t.Helper()
				return shows(t, exitOK, append([]string{"--kubeconfig", server.kubeconfig(t)}, args...)...).stdout
			}

			if plain := ask("-A"); strings.Contains(plain, "USAGE") || len(cloud.Calls()) != 0 {
				t.Errorf("without a configuration there are %v, and %s", cloud.Calls(), plain)
			}
			got := ask("-A", "--config", config, "--usage-price", "cloudscale=0.03:CHF", "-o", "json")
			golden(t, version+"-usage.json", world.settle(got))
			if listed(cloud) != "" {
				t.Errorf("objects of %s are listed without being asked for", listed(cloud))
			}
			wantLines(t, "one claim", ask("-n", "prod", "photos", "--config", config), "Provider:            cloudscale", "Usage:               1.2 TB in 1 object, ")

			got = ask("-A", "--config", config, "--usage-by-listing")
			wantLines(t, "the table", got, "USAGE ")
			if strings.Count(got, "1.2 TB") != 1 || strings.Count(got, "1.2 MB") != 1 || strings.Contains(got, "Usage that is not known") || strings.Contains(got, "a month") {
				t.Errorf("both clouds say how much: %s", got)
			}
			if listed(cloud) != "acme-dev-photos" {
				t.Errorf("objects of %q are listed, want only those of the bucket with a claim", listed(cloud))
			}

			defer cloud.Inject(emulator.Fault{Cloud: emulator.CloudCloudscale, Plane: emulator.PlaneControl, Status: http.StatusForbidden, Body: `{"detail": "no"}`})()
			got = ask("-A", "--config", config, "--usage-by-listing")
			wantLines(t, "a cloud that refuses", got, "Usage that is not known:\n  back end cloudscale: inventory: permission denied: ", "EnvSecretRefused", "1.2 MB")
			var r companion.Report
			if err := json.Unmarshal([]byte(ask("-n", "prod", "photos", "--config", config, "-o", "json")), &r); err != nil {
				t.Fatal(err)
			}
			if len(r.NoUsage) != 1 || r.NoUsage[0].Backend != "cloudscale" || r.Claims[0].Bucket.Usage != nil || r.Claims[0].State != companion.StateReady {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestStatusOfUsageByVariables: --usage asks with the variables of the other commands, and
// a back end that they do not make is told.
func TestStatusOfUsageByVariables(t *testing.T) {
	server := newObjectServer(t, "v1alpha1")
	newStatusWorld(t, server, "v1alpha1").fill()
	cloud, _ := usageConfig(t)
	kubeconfig := server.kubeconfig(t)
	env := environment{envToken: cloud.Cloudscale().Token, envAPIURL: cloud.Cloudscale().APIURL}
	got := command(t, env, "status", "--kubeconfig", kubeconfig, "-A", "--usage")
	if got.code != exitOK {
		t.Fatal(got)
	}
	wantLines(t, "the table", got.stdout, "1.2 TB", "back end stackit: the configuration does not have it")
	if got = command(t, env, "status", "--kubeconfig", kubeconfig, "-A"); got.code != exitOK || strings.Contains(got.stdout, "USAGE") {
		t.Errorf("credentials alone ask nobody: %s", got)
	}
	for want, args := range map[string][]string{
		"no credentials":            {"--usage"},
		"--usage-price \"x\"":       {"--usage", "--usage-price", "x"},
		"--usage-call-budget is 0":  {"--usage", "--usage-call-budget", "0"},
		"no such file or directory": {"--config", filepath.Join(t.TempDir(), "none.yaml")},
	} {
		wantLines(t, want, shows(t, exitUsage, append(args, "--kubeconfig", kubeconfig)...).stderr, want)
	}
}
