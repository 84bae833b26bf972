package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// TestOrphansEnd: a process that is to end does not wait for an API server that does not
// answer, and audits go on without it.
func TestOrphansEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer mute.Close()
	if _, err := objectsInCluster(ctx, &rest.Config{Host: mute.URL, Timeout: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	settings := serveSettings{companionSettings: companionSettings{Companion: companionAuto, Kubeconfig: newAPIServer(t, "v1alpha1").kubeconfig(t)}}
	if o := newOrphans(nil, settings, prometheus.NewRegistry(), klog.Background()); o.config.Timeout == 0 {
		t.Error("a call of the API server may last for ever")
	}
}

// TestOrphansMetric: orphans are counted as zuber gc lists them, once they are old
// enough, and are not known while the cluster cannot be read.
func TestOrphansMetric(t *testing.T) {
	y := newYard(t, "v1alpha1")
	var backends []driver.Backend
	for name, p := range y.providers() {
		backends = append(backends, driver.Backend{Name: name, Provider: p})
	}
	registry := prometheus.NewRegistry()
	settings := serveSettings{companionSettings: companionSettings{Companion: companionAuto, Kubeconfig: y.cluster.kubeconfig(t)}}
	settings.DriverName = defaultDriverName
	o := newOrphans(backends, settings, registry, klog.Background())
	counted := func() []string {
		t.Helper()
		for _, b := range backends {
			o.look(t.Context(), b)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				kind := "unknown"
				if labels := m.GetLabel(); len(labels) > 1 {
					kind = labels[1].GetValue()
				}
				all = append(all, fmt.Sprint(m.GetLabel()[0].GetValue(), " ", kind, " ", m.GetGauge().GetValue()))
			}
		}
		return all
	}
	want := []string{"cs access 0", "cs bucket 0", "cs owner 0", "st access 0", "st bucket 0", "st owner 0", "cs unknown 0", "st unknown 0"}
	if got := counted(); !slices.Equal(got, want) {
		t.Errorf("young ones: %q, want %q", got, want)
	}
	o.age = 0
	want = []string{"cs access 1", "cs bucket 1", "cs owner 1", "st access 1", "st bucket 1", "st owner 0", "cs unknown 0", "st unknown 0"}
	if got := counted(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	y.cluster.mu.Lock()
	y.cluster.fault = func(w http.ResponseWriter, _ string, _ int) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	y.cluster.mu.Unlock()
	want = []string{"cs unknown 1", "st unknown 1"}
	if got := counted(); !slices.Equal(got, want) {
		t.Errorf("without the cluster there is %q, want %q", got, want)
	}
	settings.Companion = companionOff
	if newOrphans(backends, settings, prometheus.NewRegistry(), klog.Background()) != nil {
		t.Error("the cluster is read although the companion is off")
	}
}
