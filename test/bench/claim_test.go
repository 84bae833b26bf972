package bench

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

const (
	api = "/apis/objectstorage.k8s.io/v1alpha1/"
	// grace is how long nothing may happen before a claim counts as lost.
	grace = 5 * time.Second
)

// bed is a cluster with one driver, and the classes for it.
type bed struct {
	*testing.B
	*cluster.Cluster
	rounds int
}

// newBed starts a cluster whose clouds answer at once. An empty program is zuber.
func newBed(b *testing.B, qps int, program, driver string, parameters map[string]string) *bed {
	b.Helper()
	c, err := cluster.Start(b.Context(), cluster.Options{Root: "../..", Log: os.Stderr, QPS: qps, Driver: program})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	d := &bed{B: b, Cluster: c}
	d.send(http.MethodPost, api+"bucketclasses", "BucketClass", "class", map[string]any{"driverName": driver, "deletionPolicy": "Delete", "parameters": parameters})
	d.send(http.MethodPost, api+"bucketaccessclasses", "BucketAccessClass", "class", map[string]any{"driverName": driver, "authenticationType": "Key"})
	return d
}

func (d *bed) send(method, path, kind, name string, fields map[string]any) {
	d.Helper()
	body := map[string]any{"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}}
	if kind == "Namespace" {
		body["apiVersion"] = "v1"
	}
	for key, value := range fields {
		body[key] = value
	}
	if _, err := d.Send(d.Context(), method, path, body); err != nil {
		d.Fatal(err)
	}
}

// items lists objects by their names.
func (d *bed) items(path string) map[string]map[string]any {
	d.Helper()
	list, err := d.Get(d.Context(), path)
	if err != nil {
		d.Fatal(err)
	}
	all, _ := list["items"].([]any)
	byName := map[string]map[string]any{}
	for _, one := range all {
		o, _ := one.(map[string]any)
		byName[part(o, "metadata")["name"].(string)] = o
	}
	return byName
}

// part is a map in an object, nil if there is none.
func part(o map[string]any, key string) map[string]any {
	m, _ := o[key].(map[string]any)
	return m
}

// round makes claims with an access each, all at once, in a namespace of their
// own, and returns after which time the last has its Secret. Claims that
// upstream's controller loses are repaired and counted, and not in that time.
func (d *bed) round(n int) (last time.Duration, lost int) {
	d.Helper()
	d.rounds++
	ns := fmt.Sprintf("round-%d", d.rounds)
	d.send(http.MethodPost, "/api/v1/namespaces", "Namespace", ns, nil)
	path := api + "namespaces/" + ns + "/"
	start := time.Now()
	for i := range n {
		name := fmt.Sprintf("claim-%d", i)
		d.send(http.MethodPost, path+"bucketclaims", "BucketClaim", name, map[string]any{"spec": map[string]any{"bucketClassName": "class", "protocols": []string{"S3"}}})
		d.send(http.MethodPost, path+"bucketaccesses", "BucketAccess", name, map[string]any{"spec": map[string]any{
			"bucketClaimName": name, "bucketAccessClassName": "class", "protocol": "S3", "credentialsSecretName": name,
		}})
	}
	granted, repaired, since := map[string]bool{}, map[string]bool{}, start
	for ticker := time.NewTicker(20 * time.Millisecond); len(granted) < n; <-ticker.C {
		for name, access := range d.items(path + "bucketaccesses") {
			if part(access, "status")["accessGranted"] != true || granted[name] {
				continue
			}
			granted[name], since = true, time.Now()
			if !repaired[name] {
				last = time.Since(start)
			}
		}
		if len(granted) < n && time.Since(since) > grace {
			d.repair(path, repaired)
			since = time.Now()
		}
	}
	return last, len(repaired)
}

// repair does what docs/upstream.md says for claims whose Bucket is ready and
// whose status does not say so, as far as a Secret needs it.
func (d *bed) repair(path string, repaired map[string]bool) {
	d.Helper()
	buckets := d.items(api + "buckets")
	for name, claim := range d.items(path + "bucketclaims") {
		bucket := fmt.Sprintf("bucket-%s", part(claim, "metadata")["uid"])
		status := part(claim, "status")
		whole := status["bucketReady"] == true && status["bucketName"] == bucket
		if whole || part(buckets[bucket], "status")["bucketReady"] != true {
			continue
		}
		repaired[name] = true
		fixed := map[string]any{"status": map[string]any{"bucketReady": true, "bucketName": bucket}}
		d.send(http.MethodPatch, path+"bucketclaims/"+name+"/status", "BucketClaim", name, fixed)
	}
}

// timed repeats a round until one has a claim that was not lost.
func (d *bed) timed(n int) (last time.Duration, lost int) {
	d.Helper()
	for range 20 {
		took, gone := d.round(n)
		lost += gone
		if took > 0 {
			return took, lost
		}
	}
	d.Fatalf("upstream's controller has lost all of %d claims", lost)
	return 0, 0
}

// BenchmarkClaimToSecret measures the time from the claims to the last Secret,
// also as a multiple of the same with a driver that does nothing, in a cluster
// beside it. The clouds answer at once, because their latency is not the
// driver's; upstream's controller loses claims with a bucket so fast, and with
// the stub more of them, so those are counted and left out of the time.
//
// Upstream's controller and sidecar send 5 requests a second, which is most of
// the time of many claims (give -timeout 2h); without that limit it is the
// machine's, and more of it the driver's.
func BenchmarkClaimToSecret(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, limit := range []struct {
		name string
		qps  int
	}{{"upstream", 0}, {"none", -1}} {
		b.Run("limit="+limit.name, func(b *testing.B) {
			zuber := newBed(b, limit.qps, "", "cosi.zuber.dev", map[string]string{"backend": "cloudscale", "region": "rma"})
			stub := newBed(b, limit.qps, self, stubName, nil)
			zuber.round(1) // the driver probes the region once
			stub.round(1)
			for _, n := range []int{1, 200} {
				b.Run(fmt.Sprintf("claims=%d", n), func(b *testing.B) {
					var ours, theirs time.Duration
					var ourLost, theirLost int
					rounds := 0
					for b.Loop() {
						took, lost := zuber.timed(n)
						ours, ourLost = ours+took, ourLost+lost
						took, lost = stub.timed(n)
						theirs, theirLost = theirs+took, theirLost+lost
						rounds++
					}
					b.ReportMetric(ours.Seconds()/float64(rounds), "s/zuber")
					b.ReportMetric(theirs.Seconds()/float64(rounds), "s/stub")
					b.ReportMetric(float64(ours)/float64(theirs), "x/stub")
					b.ReportMetric(float64(ourLost)/float64(rounds), "lost/zuber")
					b.ReportMetric(float64(theirLost)/float64(rounds), "lost/stub")
				})
			}
		})
	}
}
