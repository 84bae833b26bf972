package test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

var runs = flag.Int("conformance-runs", 2, "how often TestConformanceInAStorm runs the list over each provider")

// delayed is a delay in the proportions of the clouds, a hundred times faster.
func delayed(most time.Duration) emulator.Delay { return emulator.Delay{Max: most / 100} }

// TestConformanceInAStorm runs the conformance list over both adapters while
// lists lag, policies and keys are late and one call in twenty fails. The
// adapter of cloudscale.ch goes through it on each release of the gateway.
func TestConformanceInAStorm(t *testing.T) {
	for _, release := range objectstore.Releases() {
		t.Run(string(release), func(t *testing.T) { storm(t, release) })
	}
}

func storm(t *testing.T, release objectstore.Release) {
	t.Helper()
	e, err := emulator.Start(emulator.Options{
		Seed:       1,
		RGWRelease: release,
		KeyDelay:   map[string]emulator.Delay{"lpg": delayed(20 * time.Second)},
		Stackit: emulator.StackitOptions{
			ListDelay: delayed(5 * time.Second), PolicyDelay: delayed(8 * time.Second), KeyDelay: delayed(5 * time.Second),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	cs, st := e.Cloudscale(), e.Stackit()
	one, err := cloudscale.New(cloudscale.Config{
		DriverName: "cosi.zuber.dev", APIURL: cs.APIURL, Endpoints: cs.Endpoints,
		Token: func() (provider.Secret, error) { return provider.NewSecret(cs.Token), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	two, err := stackit.New(stackit.Config{
		DriverName: "cosi.zuber.dev", APIURL: st.APIURL, Endpoints: st.Endpoints, Regions: []string{"eu01"},
		Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(st.ServiceAccountKey()), nil }},
		ListingWait: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	providers, groups := map[string]provider.Provider{"rma": one, "lpg": one}, 0
	if release == objectstore.Reef {
		// Once is enough: STACKIT's gateway has no releases. Its admin group stays.
		providers["eu01"], groups = two, 1
	}
	e.Inject(emulator.Fault{Probability: 0.05, Status: http.StatusServiceUnavailable})

	t.Run("runs", func(t *testing.T) {
		for run := range *runs {
			for region, p := range providers {
				for _, check := range conformance.Checks(conformance.Options{Region: region, Transport: stubborn{}}) {
					t.Run(fmt.Sprintf("%s/%d/%s", region, run+1, check.Name), func(t *testing.T) {
						t.Parallel()
						ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
						defer cancel()
						if err := check.Run(ctx, p); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	})
	for _, u := range cs.Users() {
		t.Errorf("objects user %s is left over", u.DisplayName)
	}
	for _, b := range append(cs.Buckets(), st.Buckets()...) {
		t.Errorf("bucket %s is left over", b.Name)
	}
	if left := st.Groups(); len(left) != groups {
		t.Errorf("want %d groups, the admin group alone, got %+v", groups, left)
	}
}

// stubborn carries the checks' own S3 calls out in spite of the faults, which
// refuse a call before it is carried out.
type stubborn struct{}

func (stubborn) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		try := req.Clone(req.Context())
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			try.Body = body
		}
		resp, err := http.DefaultTransport.RoundTrip(try)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
