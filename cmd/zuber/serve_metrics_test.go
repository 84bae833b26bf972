package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// TestServeMetricsOfClouds: after the life of a bucket in both clouds, /metrics has what was
// asked of them, what became of the access and what was purged, the object of a probe included, and every call has
// a name.
func TestServeMetricsOfClouds(t *testing.T) {
	r := serving(t, nil, "--emulate", "--revoke-grace", "0s", "--companion", "off")
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)
	for backend, region := range map[string]string{"cloudscale": "lpg", "stackit": "eu01"} {
		parameters := map[string]string{"backend": backend, "region": region, "bucketDeletionPolicy": "DeleteAll"}
		created, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{Name: "photos-" + backend, Parameters: parameters})
		if err != nil {
			t.Fatal(err)
		}
		granted, err := provisioner.DriverGrantBucketAccess(t.Context(), &cosiv1alpha1.DriverGrantBucketAccessRequest{
			BucketId: created.GetBucketId(), Name: "ba-1", AuthenticationType: cosiv1alpha1.AuthenticationType_Key,
		})
		if err != nil {
			t.Fatal(err)
		}
		key := granted.GetCredentials()["s3"].GetSecrets()
		client, err := s3.New(s3.Config{
			Endpoint: key["endpoint"], AccessKeyID: key["accessKeyID"], SecretAccessKey: func() string { return key["accessSecretKey"] }, SigningRegion: key["region"],
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.PutObject(t.Context(), "photos-"+backend, "cat", bytes.Repeat([]byte("m"), 1000)); err != nil {
			t.Fatal(err)
		}
		_, err = provisioner.DriverRevokeBucketAccess(t.Context(), &cosiv1alpha1.DriverRevokeBucketAccessRequest{BucketId: created.GetBucketId(), AccountId: granted.GetAccountId()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provisioner.DriverDeleteBucket(t.Context(), &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: created.GetBucketId(), DeleteContext: parameters}); err != nil {
			t.Fatal(err)
		}
	}
	_, text := r.get(t, "/metrics")
	metrics := strings.Join(regexp.MustCompile(`(?m)^zuber_.*`).FindAllString(text, -1), "\n")
	wantLines(t, "/metrics", metrics,
		`zuber_access_changes_total{backend="cloudscale",change="grant",outcome="ok"} 1`,
		`zuber_access_changes_total{backend="stackit",change="revoke",outcome="ok"} 1`,
		`zuber_access_changes_total{backend="stackit",change="rotate",outcome="ok"} 0`,
		`zuber_purged_bytes_total{backend="cloudscale"} 10`, `zuber_purged_bytes_total{backend="stackit"} 1000`,
		`zuber_purged_objects_total{backend="cloudscale"} `,
		`zuber_cloud_requests_total{backend="cloudscale",operation="POST /v1/objects-users",outcome="ok",plane="control"} `,
		`zuber_cloud_requests_total{backend="stackit",operation="POST /v2/project/{project}/regions/{region}/bucket/{bucket}",outcome="ok",plane="control"} 1`,
		`zuber_cloud_requests_total{backend="stackit",operation="token",outcome="ok",plane="token"} `,
		`zuber_cloud_requests_total{backend="cloudscale",operation="DeleteObjects",outcome="ok",plane="s3"} `,
		`zuber_cloud_request_duration_seconds_count{backend="cloudscale",operation="CreateBucket",plane="s3"} `,
		`zuber_cloud_retries_total{backend="cloudscale",plane="control"} 0`,
		`zuber_lock_wait_seconds_count{outcome="taken"} `, "zuber_locks_held 0",
	)
	if strings.Contains(metrics, `operation="other"`) {
		t.Errorf("calls without a name: %s", regexp.MustCompile(`.*operation="other".*`).FindString(metrics))
	}
	if found := regexp.MustCompile(`.*photos.*`).FindString(metrics); found != "" {
		t.Errorf("a metric holds the name of a bucket: %s", found)
	}
}

// TestServeMetricsOfUsage: the bytes of buckets are shown where that is asked for, with
// what they cost, and a bucket that is gone is not.
func TestServeMetricsOfUsage(t *testing.T) {
	r := serving(t, nil, "--emulate", "--revoke-grace", "0s", "--companion", "off", "--usage-interval", "1m", "--usage-price", "stackit=0.03:EUR")
	_, text := r.get(t, "/metrics")
	if strings.Contains(text, "zuber_bucket_usage_bytes{") {
		t.Error("there is a bucket before there is one")
	}
	eventually(t, "cloudscale.ch is asked", func() bool {
		_, text = r.get(t, "/metrics")
		return strings.Contains(text, `zuber_cloud_requests_total{backend="cloudscale",operation="GET /v1/metrics/buckets",outcome="ok"`)
	})
	wantLines(t, "what it is stale by", text, `zuber_usage_last_success_timestamp_seconds{backend="cloudscale"} `)
	if strings.Contains(text, `zuber_usage_last_success_timestamp_seconds{backend="stackit"}`) {
		t.Error("buckets are listed without being asked for")
	}
}

// TestUsageFigures: a bucket's figures are shown until there are newer ones, also when the
// cloud does not answer.
func TestUsageFigures(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serveSettings{usageSettings: usageSettings{meterSettings: meterSettings{prices: map[string]price{"a": {0.03, "CHF"}}}}}
	u := newUsage(nil, s, registry, klog.Background())
	meter := &fakeMeter{usage: []provider.Usage{
		{BucketRef: provider.BucketRef{Name: "x", Region: "r"}, Bytes: 2e9, Objects: 7, At: time.Unix(1000, 0)},
		{BucketRef: provider.BucketRef{Name: "x", Region: "r", OwnerID: "o"}, Bytes: 1, At: time.Unix(1000, 0)},
		{BucketRef: provider.BucketRef{Name: "y", Region: "r"}, Objects: 0, At: time.Unix(1000, 0)},
	}}
	shown := func() []string {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "zuber_usage_last_success_timestamp_seconds" {
					continue
				}
				line := f.GetName()
				for _, l := range m.GetLabel() {
					line += " " + l.GetValue()
				}
				all = append(all, fmt.Sprint(line, " ", m.GetGauge().GetValue()))
			}
		}
		return all
	}
	want := []string{
		"zuber_bucket_estimated_monthly_cost a x CHF r 0.06", "zuber_bucket_estimated_monthly_cost a y CHF r 0",
		"zuber_bucket_usage_bytes a x r 2e+09", "zuber_bucket_usage_bytes a y r 0",
		"zuber_bucket_usage_objects a x r 7", "zuber_bucket_usage_objects a y r 0",
		"zuber_bucket_usage_timestamp_seconds a x r 1000", "zuber_bucket_usage_timestamp_seconds a y r 1000",
	}
	if err := u.ask(t.Context(), "a", meter); err != nil || !slices.Equal(shown(), want) {
		t.Errorf("%v: %q", err, shown())
	}
	meter.err = errors.New("no")
	if err := u.ask(t.Context(), "a", meter); err == nil || !slices.Equal(shown(), want) {
		t.Errorf("after an error: %v: %q", err, shown())
	}
	meter.err, meter.usage = nil, nil
	if err := u.ask(t.Context(), "a", meter); err != nil || len(shown()) != 0 {
		t.Errorf("after the buckets are gone: %v: %q", err, shown())
	}
}

// fakeMeter says what it is told to, and then fails.
type fakeMeter struct {
	usage []provider.Usage
	err   error
}

func (f *fakeMeter) UsageByListing() bool { return false }

func (f *fakeMeter) Usage(context.Context, func(provider.BucketRef) bool) iter.Seq2[provider.Usage, error] {
	return func(yield func(provider.Usage, error) bool) {
		for i, u := range f.usage {
			if f.err != nil && i == 1 {
				break
			}
			if !yield(u, nil) {
				return
			}
		}
		if f.err != nil {
			yield(provider.Usage{}, f.err)
		}
	}
}

func TestPrices(t *testing.T) {
	c := &collector{}
	got := parsePrices(c, []string{"a=0.03:CHF", "b=2"})
	if want := map[string]price{"a": {0.03, "CHF"}, "b": {2, ""}}; c.err() != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, c.err())
	}
	for _, bad := range []string{"", "a", "=1", "a=", "a=x", "a=-1", "a=NaN", "a=Inf", "a=1:a-currency-that-is-long"} {
		c := &collector{}
		if parsePrices(c, []string{bad}); c.err() == nil || !strings.Contains(c.err().Error(), "--usage-price") {
			t.Errorf("%q: %v", bad, c.err())
		}
	}
	c = &collector{}
	if parsePrices(c, []string{"a=1", "a=2"}); c.err() == nil {
		t.Error("two prices are accepted")
	}
}
