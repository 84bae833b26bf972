package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// drift takes the policies of the live buckets away in both clouds, and returns
// whether they are there.
func (y *yard) drift() (restored func() bool) {
	y.Helper()
	cs, st := y.cloud.Cloudscale(), y.cloud.Stackit()
	first, err := cs.BucketSettings("live-cs")
	if err != nil {
		y.Fatal(err)
	}
	second, err := st.BucketSettings(emulatedRegion, "live-st")
	if err != nil {
		y.Fatal(err)
	}
	gone, goneToo := first, second
	gone.Policy, goneToo.Policy = "", ""
	if err := cs.SetBucketSettings("live-cs", gone); err != nil {
		y.Fatal(err)
	}
	if err := st.SetBucketSettings(emulatedRegion, "live-st", goneToo); err != nil {
		y.Fatal(err)
	}
	return func() bool {
		a, err := cs.BucketSettings("live-cs")
		if err != nil {
			y.Fatal(err)
		}
		b, err := st.BucketSettings(emulatedRegion, "live-st")
		if err != nil {
			y.Fatal(err)
		}
		return a == first && b == second
	}
}

// TestAudit: drift is listed and stays; with --repair it is put right, and then
// nothing is wrong.
func TestAudit(t *testing.T) {
	y := newYard(t, "v1alpha1")
	audit := func(args ...string) outcomeOf {
		return command(t, nil, append([]string{"audit", "--config", y.config}, args...)...)
	}
	if got := audit(); got.code != exitOK || !strings.Contains(got.stdout, "0 findings") {
		t.Fatal(got)
	}
	restored := y.drift()
	got := audit()
	if got.code != exitFailed || restored() {
		t.Error(got)
	}
	wantLines(t, "the table", got.stdout, "live-cs", "live-st", "policy", "its policy is gone", "run zuber audit --repair", "2 findings, 0 repaired")

	var r auditReport
	got = audit("--output", "json", "--backend", "cs")
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != exitFailed || len(r.Findings) != 1 || r.Findings[0].Drift != "policy" || !r.Findings[0].Repairable {
		t.Errorf("%v: %s", err, got)
	}
	remove := y.cloud.Inject(emulator.Fault{Operation: "PutBucketPolicy", Status: http.StatusForbidden})
	if got = audit("--repair"); got.code != exitFailed || !strings.Contains(got.stdout, "not repaired: ") || restored() {
		t.Error(got)
	}
	remove()
	if got = audit("--repair"); got.code != exitOK || !strings.Contains(got.stdout, "2 findings, 2 repaired") || !restored() {
		t.Error(got)
	}
	if got = audit(); got.code != exitOK || !strings.Contains(got.stdout, "0 findings") {
		t.Error(got)
	}
	y.cloud.Inject(emulator.Fault{Cloud: emulator.CloudStackit, Operation: "ListBuckets", Plane: emulator.PlaneControl, Status: http.StatusForbidden})
	if got = audit("--backend", "st"); got.code != exitFailed || !strings.Contains(got.stderr, "back end st: audit of region") {
		t.Error(got)
	}
}

// TestServeAudits: a driver that serves says once what drifts and once that it is
// gone, counts it, and repairs nothing.
func TestServeAudits(t *testing.T) {
	y := newYard(t, "v1alpha1")
	restored := y.drift()
	r := serving(t, nil, "--config", y.config, "--audit-interval", "20ms", "--audit-call-budget", "1000000")
	told := func() int { return strings.Count(r.stderr.String(), "Audit found drift") }
	eventually(t, "both are told", func() bool { return told() == 2 })
	gauge := func(value string) func() bool {
		return func() bool {
			_, metrics := r.get(t, "/metrics")
			return strings.Contains(metrics, `zuber_audit_findings{backend="st",kind="policy"} `+value+"\n")
		}
	}
	eventually(t, "drift is counted", gauge("1"))
	if restored() {
		t.Error("it was repaired")
	}
	if got := command(t, nil, "audit", "--config", y.config, "--repair"); got.code != exitOK || !restored() {
		t.Error(got)
	}
	r.stderr.line(t, "Drift is gone")
	eventually(t, "nothing is counted", gauge("0"))
	r.stop(t)
	if n := told(); n != 2 {
		t.Errorf("two findings were told %d times:\n%s", n, r.stderr)
	}
}

// TestPatrolOff: an interval of 0 asks nothing.
func TestPatrolOff(t *testing.T) {
	cloud := newCloud(t)
	backends := []driver.Backend{{Name: "a", Provider: broken{}}}
	newPatrol(backends, serveSettings{AuditCallBudget: 1}, prometheus.NewRegistry(), klog.Background()).run(t.Context())
	if calls := cloud.Calls(); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
}

// broken is a provider whose every call is a mistake.
type broken struct{ provider.Provider }

// TestPatrolCounts: every kind of drift has a value, from the first audit on.
func TestPatrolCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := newPatrol(nil, serveSettings{}, registry, klog.Background())
	known := p.tell("a", nil, []provider.Finding{{Drift: provider.DriftTags}})
	if len(known) != 1 {
		t.Fatalf("%v", known)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "zuber_audit_findings" {
			continue
		}
		for _, m := range f.GetMetric() {
			found[labelOf(m, "kind")] = m.GetGauge().GetValue()
		}
	}
	if len(found) != len(provider.Drifts()) || found["tags"] != 1 || found["policy"] != 0 {
		t.Errorf("%v", found)
	}
}

// TestPatrolNeverSucceeds: an audit that has not succeeded yet has a time to go by, and
// one that is off has none.
func TestPatrolNeverSucceeds(t *testing.T) {
	backends := []driver.Backend{{Name: "a", Provider: broken{}}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for interval, want := range map[time.Duration]int{time.Hour: 1, 0: 0} {
		p := newPatrol(backends, serveSettings{AuditInterval: interval, AuditCallBudget: 1}, prometheus.NewRegistry(), klog.Background())
		p.run(ended)
		if n := testutil.CollectAndCount(p.last); n != want {
			t.Errorf("every %s there are %d times, want %d", interval, n, want)
		}
	}
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
