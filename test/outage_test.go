package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

const (
	claims   = 200 // that wait during an outage
	limit    = 8   // concurrent requests to an endpoint
	tries    = 3   // of a request, without a circuit breaker
	tripped  = 10  // failures in a row that open the circuit
	cooldown = 250 * time.Millisecond
	ample    = 5 * time.Minute // of an RPC that waits for nothing but its turn
)

// crowd counts the requests that are under way at each host: from the moment
// they leave until their answer has begun.
type crowd struct {
	base *http.Transport
	mu   sync.Mutex
	now  map[string]int
	most int // at one host
}

func (c *crowd) RoundTrip(req *http.Request) (*http.Response, error) {
	c.add(req.URL.Host, 1)
	defer c.add(req.URL.Host, -1)
	return c.base.RoundTrip(req)
}

func (c *crowd) add(host string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[host] += n
	c.most = max(c.most, c.now[host])
}

// outage is a driver for one emulated cloud, with many claims.
type outage struct {
	*emulator.Emulator
	driver *driver.Driver
	crowd  *crowd
	cloud  string
	region string
}

// newOutage starts an emulated cloud and a driver that gives up on an answer after
// the time-out.
func newOutage(t *testing.T, cloud string, timeout time.Duration) *outage {
	t.Helper()
	e, err := emulator.Start(emulator.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	base := &http.Transport{ResponseHeaderTimeout: timeout, MaxIdleConnsPerHost: limit}
	t.Cleanup(base.CloseIdleConnections)
	o := &outage{Emulator: e, crowd: &crowd{base: base, now: map[string]int{}}, cloud: cloud}
	pacing := transport.Pacing{MaxConcurrent: limit, Cooldown: cooldown}
	var p provider.Provider
	if cloud == emulator.CloudCloudscale {
		cs := e.Cloudscale()
		o.region = "rma"
		p, err = cloudscale.New(cloudscale.Config{
			DriverName: "cosi.zuber.dev", APIURL: cs.APIURL, Endpoints: cs.Endpoints, Transport: o.crowd, Pacing: pacing,
			Token: func() (provider.Secret, error) { return provider.NewSecret(cs.Token), nil },
		})
	} else {
		st := e.Stackit()
		o.region = "eu01"
		p, err = stackit.New(stackit.Config{
			DriverName: "cosi.zuber.dev", APIURL: st.APIURL, Endpoints: st.Endpoints, Regions: []string{o.region}, Transport: o.crowd, Pacing: pacing,
			Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(st.ServiceAccountKey()), nil }},
			ListingWait: 10 * time.Millisecond,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	o.driver, err = driver.New(driver.Config{Name: "cosi.zuber.dev", Backends: []driver.Backend{{Name: cloud, Kind: cloud, Provider: p}}})
	if err != nil {
		t.Fatal(err)
	}
	// What all calls share is there before: STACKIT's access token, which has an
	// endpoint of its own, and the admin group.
	if err := o.create(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	return o
}

// bucketID is that of the n-th claim's bucket without its owner, which the
// driver finds by itself.
func (o *outage) bucketID(n int) string { return fmt.Sprintf("%s/%s/bucket-%d", o.cloud, o.region, n) }

// create is the RPC of the n-th claim.
func (o *outage) create(ctx context.Context, n int) error {
	_, err := o.driver.CreateBucket(ctx, fmt.Sprintf("bucket-%d", n), map[string]string{"region": o.region})
	return err
}

// grant is the RPC of the n-th access.
func (o *outage) grant(ctx context.Context, n int) error {
	_, err := o.driver.GrantAccess(ctx, driver.GrantRequest{
		Account: fmt.Sprintf("ba-%08d-0000-4000-8000-000000000000", n), Buckets: []driver.GrantBucket{{ID: o.bucketID(n)}},
	})
	return err
}

// all calls rpc for each of the claims that are left, all at the same time, and
// returns those that failed, and why.
func all(ctx context.Context, left []int, limit time.Duration, rpc func(context.Context, int) error) map[int]error {
	var group sync.WaitGroup
	var mu sync.Mutex
	failed := map[int]error{}
	for _, n := range left {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			if err := rpc(ctx, n); err != nil {
				mu.Lock()
				failed[n] = err
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return failed
}

func everyClaim() []int {
	numbers := make([]int, claims)
	for n := range numbers {
		numbers[n] = n
	}
	return numbers
}

// TestOutageDoesNotMultiplyCalls: while an endpoint is down, many calls that are
// repeated cost it a handful of requests; when it is back, all of them finish in
// the same process, and never more than the limit at a time.
func TestOutageDoesNotMultiplyCalls(t *testing.T) {
	for name, c := range map[string]struct {
		cloud, plane string
		fault        emulator.Fault
		cause        string
	}{
		"cloudscale control 503":  {emulator.CloudCloudscale, emulator.PlaneControl, emulator.Fault{Status: 503}, "it answered 503 Service Unavailable"},
		"cloudscale control hang": {emulator.CloudCloudscale, emulator.PlaneControl, emulator.Fault{Latency: time.Hour}, "timeout awaiting response headers"},
		"stackit control cut":     {emulator.CloudStackit, emulator.PlaneControl, emulator.Fault{CutConnection: true}, "no answer: "},
		"stackit S3 502":          {emulator.CloudStackit, emulator.PlaneS3, emulator.Fault{Status: 502}, "it answered 502 Bad Gateway"},
		"stackit S3 hang":         {emulator.CloudStackit, emulator.PlaneS3, emulator.Fault{Latency: time.Hour}, "timeout awaiting response headers"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := ample
			if c.fault.Latency > 0 {
				timeout = time.Second
			}
			o := newOutage(t, c.cloud, timeout)
			c.fault.Plane = c.plane
			rpcs := []func(context.Context, int) error{o.create, o.grant}
			if c.fault.Latency > 0 {
				rpcs = rpcs[:1] // a grant hangs no other way than a creation
			}
			for _, rpc := range rpcs {
				o.during(t, c.fault, c.cause, rpc)
				o.recovers(t, rpc)
			}
			if o.crowd.most > limit {
				t.Errorf("%d requests were under way at one endpoint, the limit is %d", o.crowd.most, limit)
			}
		})
	}
}

// during repeats the RPCs while the fault lasts and counts what reaches the
// endpoint.
func (o *outage) during(t *testing.T, fault emulator.Fault, cause string, rpc func(context.Context, int) error) {
	t.Helper()
	heal := o.Inject(fault)
	o.ResetCalls()
	began := time.Now()
	const rounds = 5
	var last map[int]error
	for range rounds {
		last = all(t.Context(), everyClaim(), ample, rpc)
		if len(last) != claims {
			t.Fatalf("%d of %d calls failed in the outage", len(last), claims)
		}
	}
	trials := int(time.Since(began)/(cooldown-cooldown/5)) + 1
	heal()
	reached := 0
	for _, call := range o.Calls() {
		if call.Plane == fault.Plane {
			reached++
		}
	}
	row := tripped
	if fault.Plane == emulator.PlaneS3 {
		row *= tries // those of one bucket count as one failure
	}
	if fault.CutConnection {
		row += limit // net/http repeats a request by itself on a connection that was idle
	}
	most := row + limit + trials
	if reached > most {
		t.Errorf("%d requests reached the endpoint, want %d at most", reached, most)
	}
	t.Logf("%d calls of %d claims: %d requests reached the endpoint, at most %d may; without the circuit it could be %d",
		rounds*claims, claims, reached, most, rounds*claims*tries)
	said := 0
	for _, err := range last {
		if !errors.Is(err, provider.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if strings.Contains(err.Error(), "unavailable since ") && strings.Contains(err.Error(), cause) {
			said++
		}
	}
	// The others had an answer of their own, or waited for one.
	if said < claims/2 {
		t.Errorf("%d of %d errors say since when and why: %v", said, claims, last[0])
	}
}

// recovers repeats the RPCs, as the sidecar does, until all have succeeded.
func (o *outage) recovers(t *testing.T, rpc func(context.Context, int) error) {
	t.Helper()
	left := everyClaim()
	for began := time.Now(); len(left) > 0; {
		failed := all(t.Context(), left, ample, rpc)
		left = left[:0]
		for n, err := range failed {
			left = append(left, n)
			if time.Since(began) > ample || !errors.Is(err, provider.ErrUnavailable) {
				t.Fatalf("%d calls are left after %s: %v", len(failed), time.Since(began), err)
			}
		}
	}
}

// TestRateLimitHoldsEverybody: one 429 with Retry-After stops all calls until
// then, those that cannot wait so long at once, and then all go on by
// themselves.
func TestRateLimitHoldsEverybody(t *testing.T) {
	for _, cloud := range []string{emulator.CloudCloudscale, emulator.CloudStackit} {
		t.Run(cloud, func(t *testing.T) {
			o := newOutage(t, cloud, ample)
			o.ResetCalls()
			const asked = 8 * time.Second
			heal := o.Inject(emulator.Fault{Plane: emulator.PlaneControl, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"8"}}})
			began := time.Now()
			rounds := 0
			for ; time.Since(began) < asked/8; rounds++ {
				failed := all(t.Context(), everyClaim(), asked/4, o.create)
				if len(failed) != claims {
					t.Fatalf("%d of %d calls failed", len(failed), claims)
				}
				said := 0
				for _, err := range failed {
					if !errors.Is(err, provider.ErrUnavailable) {
						t.Errorf("got %v, want ErrUnavailable", err)
					}
					if strings.Contains(err.Error(), " is to be left alone until ") {
						said++
					}
				}
				if said < claims-limit*tries {
					t.Errorf("%d of %d errors say until when: %v", said, claims, failed[0])
				}
			}
			calls := len(o.Calls())
			t.Logf("%d calls in %s: %d requests", rounds*claims, time.Since(began), calls)
			if calls > limit {
				t.Errorf("%d requests were made, want %d at most", calls, limit)
			}
			heal()
			if failed := all(t.Context(), everyClaim(), ample, o.create); len(failed) != 0 {
				t.Errorf("%d of %d calls failed after the pause: %v", len(failed), claims, failed)
			}
			if waited := time.Since(began); waited < asked {
				t.Errorf("all was done after %s, want %s at least", waited, asked)
			}
			if o.crowd.most > limit {
				t.Errorf("%d requests were under way at one endpoint, the limit is %d", o.crowd.most, limit)
			}
		})
	}
}
