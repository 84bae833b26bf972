package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// read reads a file of the repository.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// world is series over time, from 1970 on.
type world []storage.Series

// newWorld makes series of promtool's notation, with a value a minute.
func newWorld(t *testing.T, notation map[string]string) world {
	t.Helper()
	var all world
	for name, values := range notation {
		series, sequence, err := newParser().ParseSeriesDesc(name + " " + values)
		if err != nil {
			t.Fatalf("%s %s: %v", name, values, err)
		}
		made := promql.Series{Metric: series}
		for i, v := range sequence {
			if !v.Omitted {
				made.Floats = append(made.Floats, promql.FPoint{T: int64(i) * time.Minute.Milliseconds(), F: v.Value})
			}
		}
		all = append(all, promql.NewStorageSeries(made))
	}
	return all
}

// Querier implements storage.Queryable.
func (w world) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &set{at: -1}
		for _, series := range w {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }) {
				found.series = append(found.series, series)
			}
		}
		return found
	}}, nil
}

// set is a storage.SeriesSet.
type set struct {
	series world
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableNegativeOffset: true, Parser: newParser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
}

// ask evaluates a query at a time.
func (w world) ask(ctx context.Context, t *testing.T, e *promql.Engine, query string, at time.Duration) promql.Vector {
	t.Helper()
	q, err := e.NewInstantQuery(ctx, w, nil, query, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(ctx).Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return slices.Clone(v)
}

// metric is a row of docs/metrics.md.
type metric struct {
	kind   string
	labels []string
}

// metrics are those of docs/metrics.md, under every name that a query may have for
// them.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\|")
	for _, m := range row.FindAllStringSubmatch(string(read(t, "docs", "metrics.md")), -1) {
		found := metric{kind: m[2]}
		for _, l := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1) {
			found.labels = append(found.labels, l[1])
		}
		if found.kind != "histogram" {
			all[m[1]] = found
			continue
		}
		all[m[1]+"_count"], all[m[1]+"_sum"] = found, found
		all[m[1]+"_bucket"] = metric{found.kind, append(slices.Clone(found.labels), "le")}
	}
	if len(all) < 20 {
		t.Fatalf("docs/metrics.md has %d metrics", len(all))
	}
	return all
}

// ofScrape are the labels that Prometheus adds.
func ofScrape() []string { return []string{"namespace", "pod", "instance", "job"} }

// faults says what a query asks for that there is not: metrics, labels of them, and
// labels to group by, and rates of what does not only grow.
func faults(all map[string]metric, query string) []string {
	expr, err := newParser().ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	known := ofScrape()
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, ok := all[v.Name]
		if !ok {
			found = append(found, fmt.Sprintf("there is no metric %q", v.Name))
			return nil
		}
		known = append(known, m.labels...)
		for _, matcher := range v.LabelMatchers {
			if matcher.Name != labels.MetricName && !slices.Contains(append(ofScrape(), m.labels...), matcher.Name) {
				found = append(found, fmt.Sprintf("%s has no label %q", v.Name, matcher.Name))
			}
		}
		for _, above := range path {
			if call, ok := above.(*parser.Call); ok && m.kind == "gauge" && slices.Contains([]string{"rate", "increase", "irate"}, call.Func.Name) {
				found = append(found, fmt.Sprintf("%s of the gauge %s", call.Func.Name, v.Name))
			}
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var names []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			names = n.Grouping
			if n.Without {
				found = append(found, "it groups without labels, so that more of them change it")
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = n.VectorMatching.MatchingLabels
			}
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				found = append(found, fmt.Sprintf("nothing in it has a label %q", name))
			}
		}
		return nil
	})
	return found
}

// TestFaults: the check sees what it is for.
func TestFaults(t *testing.T) {
	all := map[string]metric{"a_total": {"counter", []string{"x"}}, "g": {"gauge", []string{"y"}}}
	for query, want := range map[string]string{
		`sum by (x) (rate(a_total[5m]))`:         "",
		`max by (y, pod) (g{y="1"}) == 1`:        "",
		`sum by (z) (g)`:                         `nothing in it has a label "z"`,
		`g{x="1"}`:                               `g has no label "x"`,
		`b`:                                      `there is no metric "b"`,
		`rate(g[5m])`:                            "rate of the gauge g",
		`g and on (w) a_total`:                   `nothing in it has a label "w"`,
		`sum without (y) (g)`:                    "it groups without labels, so that more of them change it",
		`sum by (x) (rate(a_total[5m]`:           "parse error",
		`g unless on () (max(a_total) > 0)`:      "",
		`topk(3, max by (y) (g)) + on (y) g * 2`: "",
	} {
		if got := strings.Join(faults(all, query), "; "); got != want && (want != "parse error" || !strings.Contains(got, want)) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
