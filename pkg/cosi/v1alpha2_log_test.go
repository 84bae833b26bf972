package cosi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
)

// TestV1alpha2Lines: one line per call that names buckets and account, and nothing
// that was secret.
func TestV1alpha2Lines(t *testing.T) {
	const parameterSecret = "hunter2hunter2"
	o, logs := options(t, newDriver(t, &fake{}))
	c, ctx := inProcess(t, o).Speaking(V1alpha2), t.Context()
	id, err := c.CreateBucket(ctx, "bucket-1", rma())
	if err != nil {
		t.Fatal(err)
	}
	var many []driver.GrantBucket
	for i := range 40 {
		many = append(many, driver.GrantBucket{ID: fmt.Sprintf("rma/many-%d", i)})
	}
	calls := []struct {
		do   func() error
		want string
	}{
		{func() error { _, err := c.ExistingBucket(ctx, "rma/bucket-1", nil); return err }, `method="DriverGetExistingBucket" bucket="rma/bucket-1" code="OK"`},
		{func() error {
			req := &v1alpha2pb.DriverGetExistingBucketRequest{ExistingBucketId: "rma/bucket-2"}
			return c.process.conn.Invoke(ctx, "/sigs.k8s.io.cosi.v1alpha2.Provisioner/DriverGetBucket", req, &v1alpha2pb.DriverGetExistingBucketResponse{})
		}, `method="DriverGetBucket" bucket="rma/bucket-2" code="OK"`},
		{func() error { _, err := c.GrantAccess(ctx, id, "ba-1", nil); return err }, `method="DriverGrantBucketAccess" bucket="` + id + `" account="ba-1" code="OK"`},
		{func() error { _, err := c.GrantBuckets(ctx, "ba-2", many, nil); return err },
			`buckets=["rma/many-0","rma/many-1","rma/many-2","rma/many-3","rma/many-4"] bucketCount=40 account="ba-2" code="OK"`},
		{func() error { return c.RevokeBuckets(ctx, "cloudscale/ba-2", "rma/many-0", "rma/many-1") },
			`method="DriverRevokeBucketAccess" buckets=["rma/many-0","rma/many-1"] bucketCount=2 account="cloudscale/ba-2" code="OK"`},
		{func() error { return c.RevokeBuckets(ctx, "cloudscale/ba-2") }, `buckets=[] bucketCount=0 account="cloudscale/ba-2"`},
		{func() error { return c.DeleteBucket(ctx, "rma/bucket-2", rma()) }, `method="DriverDeleteBucket" bucket="rma/bucket-2" code="OK"`},
		{func() error {
			_, err := c.GrantAccess(ctx, strings.Repeat("y", 100_000), "ba-1", map[string]string{"apiToken": parameterSecret})
			wasRefused(t, err)
			return nil
		}, `code="InvalidArgument"`},
	}
	for _, call := range calls {
		before := len(logs.String())
		if err := call.do(); err != nil {
			t.Fatal(err)
		}
		line := logs.String()[before:]
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `apiVersion="v1alpha2"`) || !strings.Contains(line, call.want) || len(line) > 2000 {
			t.Errorf("want one line with %s, got %.3000s", call.want, line)
		}
	}
	for _, secret := range []string{fakeSecret, parameterSecret} {
		if strings.Contains(logs.String(), secret) {
			t.Errorf("%q was logged", secret)
		}
	}
}

// TestInfoNamesTheSidecar: the first line of a sidecar says whether it is the right one.
func TestInfoNamesTheSidecar(t *testing.T) {
	o, logs := options(t, newDriver(t, &fake{}))
	c := inProcess(t, o)
	for v, want := range map[APIVersion][]string{V1alpha1: {"v0.2.2"}, V1alpha2: {"March 2026", "none with two-phase IDs"}} {
		before := len(logs.String())
		if _, err := c.Speaking(v).Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		line := logs.String()[before:]
		for _, w := range append(want, `method="DriverGetInfo"`, "fittingSidecar=", `apiVersion="`+string(v)+`"`) {
			if !strings.Contains(line, w) {
				t.Errorf("%s: %q lacks %q", v, line, w)
			}
		}
	}
}

// TestMetricsByVersion: the two faces are told apart.
func TestMetricsByVersion(t *testing.T) {
	registry := prometheus.NewRegistry()
	o, _ := options(t, newDriver(t, &fake{}))
	o.Registerer = registry
	c := inProcess(t, o)
	for v, calls := range map[APIVersion]int{V1alpha1: 1, V1alpha2: 3} {
		for range calls {
			if _, err := c.Speaking(v).CreateBucket(t.Context(), "bucket-1", rma()); err != nil {
				t.Fatal(err)
			}
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "api_version" {
					got[l.GetValue()] += m.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	if got["v1alpha1"] != 1 || got["v1alpha2"] != 3 {
		t.Errorf("calls by version: %v", got)
	}
}
