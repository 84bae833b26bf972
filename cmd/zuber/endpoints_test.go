package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// TestServeTellsOfAnOutage: errors, log and metrics say which endpoint is down
// and since when, and that it is back.
func TestServeTellsOfAnOutage(t *testing.T) {
	cloud := newCloud(t)
	api, err := url.Parse(cloud.Cloudscale().APIURL)
	if err != nil {
		t.Fatal(err)
	}
	r := serving(t, nil, "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--max-concurrent-requests", "3")
	r.wantReady(t, "ok")
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)
	create := func() error {
		_, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{
			Name: "photos", Parameters: map[string]string{"region": "rma"},
		})
		return err
	}
	series := func(name, more string) string {
		return fmt.Sprintf(`%s{backend="a",endpoint=%q,plane="control"%s} `, name, api.Host, more)
	}
	_, metrics := r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, series("zuber_backend_circuit_open", "")+"0", series("zuber_backend_pauses_total", "")+"0",
		series("zuber_backend_requests_refused_total", `,reason="circuit"`)+"0", series("zuber_backend_requests_refused_total", `,reason="pause"`)+"0")

	heal := cloud.Inject(emulator.Fault{Plane: emulator.PlaneControl, Status: http.StatusServiceUnavailable})
	eventually(t, "the circuit is open", func() bool {
		err = create()
		return strings.Contains(fmt.Sprint(err), "cloud API "+api.Host+" unavailable since ")
	})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "it answered 503 Service Unavailable; next try in ") {
		t.Error(err)
	}
	_, metrics = r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, series("zuber_backend_circuit_open", "")+"1")
	if strings.Contains(metrics, series("zuber_backend_requests_refused_total", `,reason="circuit"`)+"0") {
		t.Error("the refusal is not counted")
	}

	heal()
	eventually(t, "the bucket is made", func() bool { return create() == nil })
	r.stderr.line(t, "Endpoint answers again")
	_, metrics = r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, series("zuber_backend_circuit_open", "")+"0")
	for _, line := range []string{"endpoint unavailable", "Endpoint answers again"} {
		if n := strings.Count(r.stderr.String(), line); n != 1 {
			t.Errorf("%d lines of the log say %q, want 1", n, line)
		}
	}

	cloud.Inject(emulator.Fault{Plane: emulator.PlaneControl, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}}})
	for range 2 {
		err = create()
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "cloud API "+api.Host+" is to be left alone until ") {
		t.Error(err)
	}
	_, metrics = r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, series("zuber_backend_pauses_total", "")+"1",
		series("zuber_backend_requests_refused_total", `,reason="pause"`)+"1", series("zuber_backend_circuit_open", "")+"0")
}
