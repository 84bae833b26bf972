package emulator

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
	_ "time/tzdata" // the cloud's days are Zurich's, and the machine may have no zone data

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

func loadZurich() (*time.Location, error) {
	zone, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		return nil, fmt.Errorf("time zone of the metrics: %w", err)
	}
	return zone, nil
}

// watchBuckets notes every bucket as it is made, before its maker is answered:
// metrics go on showing it after it is gone.
func (c *Cloudscale) watchBuckets(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation := c.store.Operation(r)
		h.ServeHTTP(w, r)
		if operation == "CreateBucket" {
			c.noteBuckets()
		}
	})
}

func (c *Cloudscale) noteBuckets() {
	now := c.now()
	buckets := c.store.Buckets()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range buckets {
		subject := metricsSubject{b.Name, b.OwnerUID}
		if _, known := c.seen[subject]; !known {
			c.seen[subject] = now
		}
	}
}

type metricsBody struct {
	Start string              `json:"start"`
	End   string              `json:"end"`
	Data  []bucketMetricsBody `json:"data"`
}

type bucketMetricsBody struct {
	Subject    metricsSubject `json:"subject"`
	TimeSeries []metricsPoint `json:"time_series"`
}

type metricsSubject struct {
	Name          string `json:"name"`
	ObjectsUserID string `json:"objects_user_id"`
}

type metricsPoint struct {
	Start string       `json:"start"`
	End   string       `json:"end"`
	Usage metricsUsage `json:"usage"`
}

// metricsUsage holds the amounts of the moment of the query, whatever day is
// asked for; requests and traffic are not counted.
type metricsUsage struct {
	Requests      int64 `json:"requests"`
	ObjectCount   int64 `json:"object_count"`
	StorageBytes  int64 `json:"storage_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
	SentBytes     int64 `json:"sent_bytes"`
}

// day parses a date as midnight in Zurich at its beginning.
func (c *Cloudscale) day(call cloudscaleCall, field string) (time.Time, *cloudscaleReply) {
	value := call.URL.Query().Get(field)
	if value == "" {
		r := fieldError(field, "This field is required.")
		return time.Time{}, &r
	}
	t, err := time.ParseInLocation(time.DateOnly, value, c.zurich)
	if err != nil {
		r := fieldError(field, "Date has wrong format. Use one of these formats instead: YYYY-MM-DD.")
		return time.Time{}, &r
	}
	return t, nil
}

func (c *Cloudscale) bucketMetrics(call cloudscaleCall) cloudscaleReply {
	first, refusal := c.day(call, "start")
	if refusal != nil {
		return *refusal
	}
	last, refusal := c.day(call, "end")
	if refusal != nil {
		return *refusal
	}
	if last.Before(first) {
		return detail(http.StatusBadRequest, "The end must not lie before the start.")
	}
	// AddDate, not 24 h: two days a year are longer or shorter.
	end := last.AddDate(0, 0, 1)
	if days := end.Sub(first).Hours() / 24; days > maxMetricsDays+1 {
		return detail(http.StatusBadRequest, "At most %d days can be asked for.", maxMetricsDays)
	}
	body := metricsBody{Start: instant(first), End: instant(end), Data: []bucketMetricsBody{}}
	for subject, usage := range c.usage(call, end) {
		var series []metricsPoint
		for t := first; t.Before(end); t = t.AddDate(0, 0, 1) {
			series = append(series, metricsPoint{instant(t), instant(t.AddDate(0, 0, 1)), usage})
		}
		body.Data = append(body.Data, bucketMetricsBody{Subject: subject, TimeSeries: series})
	}
	slices.SortFunc(body.Data, func(a, b bucketMetricsBody) int {
		return cmp.Or(cmp.Compare(a.Subject.Name, b.Subject.Name), cmp.Compare(a.Subject.ObjectsUserID, b.Subject.ObjectsUserID))
	})
	return cloudscaleReply{http.StatusOK, body}
}

// maxMetricsDays bounds the size of an answer.
const maxMetricsDays = 366

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// usage returns what the called project had in buckets before end, deleted
// buckets with zero, filtered by the names and user ids of the query.
func (c *Cloudscale) usage(call cloudscaleCall, end time.Time) map[metricsSubject]metricsUsage {
	query := call.URL.Query()
	wanted := func(filter []string, value string) bool {
		return len(filter) == 0 || slices.Contains(filter, value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	current := map[metricsSubject]objectstore.BucketInfo{}
	for _, b := range c.store.Buckets() {
		current[metricsSubject{b.Name, b.OwnerUID}] = b
	}
	out := map[metricsSubject]metricsUsage{}
	for subject, since := range c.seen {
		if c.projects[subject.ObjectsUserID] != call.grant.project || !since.Before(end) ||
			!wanted(query["bucket_name"], subject.Name) || !wanted(query["objects_user_id"], subject.ObjectsUserID) {
			continue
		}
		b := current[subject]
		out[subject] = metricsUsage{ObjectCount: b.Objects, StorageBytes: b.Bytes}
	}
	return out
}
