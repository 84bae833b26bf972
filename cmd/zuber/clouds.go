package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// clouds counts what is asked of the clouds. It is safe for concurrent use, and a
// nil *clouds ignores all.
type clouds struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	retries  *prometheus.CounterVec
	keys     *prometheus.HistogramVec
	objects  *prometheus.CounterVec
	bytes    *prometheus.CounterVec
}

// The values of the label outcome of a wait for a key.
const (
	keyWorks   = "works"
	keyGivenUp = "given_up"
)

func newClouds(registerer prometheus.Registerer) *clouds {
	labels := []string{"backend", "plane", "operation"}
	c := &clouds{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_cloud_requests_total",
			Help: "Requests to a cloud (plane control, token or s3) by operation, a route of its API or S3's name for it, and outcome: " +
				"ok, client_error (3xx and 4xx; a 404 may be the answer wanted), throttled (429), server_error (5xx), no_answer, canceled, or refused, which was not sent. Each retry is one.",
		}, append(labels, "outcome")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "zuber_cloud_request_duration_seconds",
			Help:    "Time from sending a request to a cloud to the header of its answer, or to giving up; without the wait for its turn.",
			Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, labels),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_cloud_retries_total",
			Help: "Those requests to a cloud that repeated one which failed.",
		}, labels[:2]),
		keys: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "zuber_key_propagation_seconds",
			Help:    "How long a key that a region's S3 did not know at once was waited for, by outcome: works or given_up.",
			Buckets: []float64{0.5, 1, 2, 4, 8, 12, 16, 20, 25, 30, 45, 60},
		}, []string{"backend", "region", "outcome"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_purged_objects_total",
			Help: "Objects, old versions and delete markers that were deleted to delete their bucket.",
		}, []string{"backend"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zuber_purged_bytes_total",
			Help: "Bytes of the objects that were deleted to delete their bucket.",
		}, []string{"backend"}),
	}
	registerer.MustRegister(c.requests, c.duration, c.retries, c.keys, c.objects, c.bytes)
	return c
}

// known makes the counters of a back end that have no other label begin at 0, so
// that the first event is an increase.
func (c *clouds) known(backend string) {
	if c == nil {
		return
	}
	c.objects.WithLabelValues(backend)
	c.bytes.WithLabelValues(backend)
}

// called counts a request.
func (c *clouds) called(backend string, call transport.Call) {
	if c == nil {
		return
	}
	plane := string(call.Endpoint.Plane)
	c.requests.WithLabelValues(backend, plane, call.Operation, string(call.Outcome)).Inc()
	if call.Outcome != transport.OutcomeRefused {
		c.duration.WithLabelValues(backend, plane, call.Operation).Observe(call.Took.Seconds())
	}
	retries := c.retries.WithLabelValues(backend, plane)
	if call.Retry {
		retries.Inc()
	}
}

// keyWaited counts a wait for a key.
func (c *clouds) keyWaited(backend, region string, waited time.Duration, works bool) {
	if c == nil {
		return
	}
	outcome := keyGivenUp
	if works {
		outcome = keyWorks
	}
	c.keys.WithLabelValues(backend, region, outcome).Observe(waited.Seconds())
}

// purged counts what a step of a purge has deleted.
func (c *clouds) purged(backend string, objects, bytes int64) {
	if c == nil {
		return
	}
	c.objects.WithLabelValues(backend).Add(float64(objects))
	c.bytes.WithLabelValues(backend).Add(float64(bytes))
}
