package monitoring

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

// alert is one of config/monitoring/prometheusrule.yaml.
type alert struct {
	Alert, Expr         string
	For                 time.Duration
	Labels, Annotations map[string]string
}

// instance is an alert that fires.
type instance struct{ labels, annotations map[string]string }

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	var rule struct {
		Spec struct {
			Groups []struct{ Rules []alert }
		}
	}
	if err := yaml.Unmarshal(read(t, "config", "monitoring", "prometheusrule.yaml"), &rule); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, g := range rule.Spec.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r
		}
	}
	return all
}

// firing evaluates the alert every minute up to a time, as Prometheus does, and
// returns what fires then.
func (a alert) firing(t *testing.T, w world, until time.Duration) []instance {
	t.Helper()
	engine := newEngine()
	since := map[string]time.Duration{}
	var last promql.Vector
	for at := time.Duration(0); at <= until; at += time.Minute {
		last = w.ask(t.Context(), t, engine, a.Expr, at)
		active := map[string]time.Duration{}
		for _, s := range last {
			key := s.Metric.String()
			if begun, known := since[key]; known {
				active[key] = begun
			} else {
				active[key] = at
			}
		}
		since = active
	}
	var all []instance
	for _, s := range last {
		if until-since[s.Metric.String()] < a.For {
			continue
		}
		of := s.Metric.Map()
		delete(of, model.MetricNameLabel)
		made := instance{maps.Clone(of), map[string]string{}}
		maps.Copy(made.labels, a.Labels)
		for name, text := range a.Annotations {
			data := template.AlertTemplateData(of, nil, "", promql.Sample{F: s.F, Metric: s.Metric})
			const variables = `{{$labels := .Labels}}{{$value := .Value}}`
			out, err := template.NewTemplateExpander(t.Context(), variables+text, a.Alert, data, model.Time(until.Milliseconds()), nil, &url.URL{}, nil).Expand()
			if err != nil {
				t.Errorf("%s of %s: %v", name, a.Alert, err)
			}
			made.annotations[name] = out
		}
		all = append(all, made)
	}
	return all
}

// TestAlerts runs the cases of cases.yaml. Each alert has one in which it fires and is
// quiet until then, and one in which it never does.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Alert  string
		Series map[string]string
		Quiet  time.Duration // it does not fire at that time
		Fires  time.Duration // it fires at that time; 0 is never
		Labels map[string]string
		// Summary is that of the only instance that fires.
		Summary string
	}
	if err := yaml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	all := alerts(t)
	fired, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		a, known := all[c.Alert]
		if !known || c.Quiet == 0 {
			t.Errorf("a case is of %q, which there is not, or says not when it is quiet", c.Alert)
			continue
		}
		w := newWorld(t, c.Series)
		if got := a.firing(t, w, c.Quiet); len(got) != 0 {
			t.Errorf("%s fires after %s: %v\nwith %v", c.Alert, c.Quiet, got, c.Series)
		}
		if c.Fires == 0 {
			quiet[c.Alert] = true
			continue
		}
		fired[c.Alert] = true
		got := a.firing(t, w, c.Fires)
		if len(got) != 1 {
			t.Errorf("%s fires %d times after %s, with %v", c.Alert, len(got), c.Fires, c.Series)
			continue
		}
		want := map[string]string{"severity": a.Labels["severity"]}
		maps.Copy(want, c.Labels)
		if !maps.Equal(got[0].labels, want) || got[0].annotations["summary"] != c.Summary {
			t.Errorf("%s has the labels %v and says %q; want %v and %q", c.Alert, got[0].labels, got[0].annotations["summary"], want, c.Summary)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !fired[name] || !quiet[name] {
			t.Errorf("%s: a case in which it fires: %v, one in which it does not: %v", name, fired[name], quiet[name])
		}
	}
}

// TestAlertQueries: they ask for metrics and labels that there are.
func TestAlertQueries(t *testing.T) {
	known := metrics(t)
	for name, a := range alerts(t) {
		for _, fault := range faults(known, a.Expr) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}
