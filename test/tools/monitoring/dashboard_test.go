package monitoring

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// panel is a part of the dashboard.
type panel struct {
	ID      int
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ RefID, Expr, LegendFormat string }
	Panels  []panel
}

// TestDashboard: every query of every panel asks for metrics and labels that there
// are, every label in a legend is in its query's result, and no two panels lie over
// each other.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		UID, Title string
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
		Panels []panel
	}
	text := read(t, "config", "monitoring", "dashboard.json")
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	all := metrics(t)
	variables := []string{"__rate_interval"}
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
		if q, ok := v.Query.(map[string]any); ok {
			m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(q["query"].(string))
			if m == nil || !slices.Contains(all[m[1]].labels, m[2]) {
				t.Errorf("the variable %s asks for %v", v.Name, v.Query)
			}
		}
	}
	queries, used := 0, map[string]bool{}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the ID of another panel", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if under := cells[[2]int{x, y}]; under != "" || x > 23 {
					t.Errorf("%s lies over %s, or beyond the edge", p.Title, under)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title or no query", p.ID, p.Title)
		}
		for _, target := range p.Targets {
			queries++
			for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, v[1]) {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
			query := strings.NewReplacer("$__rate_interval", "5m", "$backend", ".*").Replace(target.Expr)
			for _, fault := range faults(all, query) {
				t.Errorf("%s: %s: %s", p.Title, target.Expr, fault)
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b[^)]*\)`).MatchString(query) {
					t.Errorf("%s: the result of %s has no label %s", p.Title, target.Expr, l[1])
				}
			}
			for name := range all {
				used[name] = used[name] || strings.Contains(query, name)
			}
		}
	}
	if queries < 20 {
		t.Errorf("there are %d queries", queries)
	}
	for name, m := range all {
		base := strings.TrimSuffix(name, "_bucket")
		if m.kind == "histogram" && base == name {
			continue // its buckets stand for it
		}
		if !used[name] && !slices.Contains(unshown(), base) {
			t.Errorf("%s is in no panel", name)
		}
	}
}

// unshown are metrics that are for alerts alone.
func unshown() []string {
	return []string{"zuber_unconfigured", "zuber_rpc_panics_total", "zuber_backend_credentials_reload_ok", "zuber_backend_policies_honoured", "zuber_usage_last_success_timestamp_seconds"}
}
