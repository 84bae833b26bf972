package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts: every alert asks for metrics that there are, has a severity and a
// summary, and leads to the part of docs/alerts.md that is about it; and that page
// is about no other.
func TestAlerts(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(path ...string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr         string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(read("config", "monitoring", "prometheusrule.yaml"), &rule); err != nil {
		t.Fatal(err)
	}
	metrics, err := metricsMarkdown()
	if err != nil {
		t.Fatal(err)
	}
	page := string(read("docs", "alerts.md"))
	var names []string
	for _, g := range rule.Spec.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, r.Labels["severity"], r.Annotations["summary"])
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(r.Alert)) || !strings.Contains(page, "\n## "+r.Alert+"\n") {
				t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
			}
			used := regexp.MustCompile(`zuber_\w+`).FindAllString(r.Expr, -1)
			if len(used) == 0 {
				t.Errorf("%s asks for no metric", r.Alert)
			}
			for _, metric := range used {
				if !strings.Contains(string(metrics), "| `"+metric+"` |") && !strings.Contains(string(metrics), "| `"+strings.TrimSuffix(metric, "_count")+"` | histogram") {
					t.Errorf("%s asks for %s, which there is not", r.Alert, metric)
				}
			}
		}
	}
	if sections := strings.Count(page, "\n## "); len(names) < 5 || sections != len(names) {
		t.Errorf("docs/alerts.md has %d parts, and there are %d alerts", sections, len(names))
	}
}
