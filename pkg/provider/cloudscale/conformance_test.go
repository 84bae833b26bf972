package cloudscale

import (
	"context"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
	"github.com/zuber-storage/zuber/pkg/s3"
)

func TestConformance(t *testing.T) {
	late := map[string]emulator.Delay{"lpg": {Max: 80 * time.Millisecond}}
	for name, tc := range map[string]struct {
		region  string
		options emulator.Options
		tenant  string
	}{
		// Where keys may be late, some are not.
		"rma":                            {"rma", emulator.Options{}, ""},
		"lpg with late keys":             {"lpg", emulator.Options{KeyDelay: late}, ""},
		"rma on Tentacle":                {"rma", emulator.Options{RGWRelease: objectstore.Tentacle}, ""},
		"lpg on Tentacle with late keys": {"lpg", emulator.Options{RGWRelease: objectstore.Tentacle, KeyDelay: late}, ""},
		// Every check, with all its buckets those of one tenant.
		"for a tenant in lpg with late keys": {"lpg", emulator.Options{KeyDelay: late}, "team-a"},
	} {
		if testing.Short() && tc.tenant == "" && (tc.region == "rma") != (tc.options.RGWRelease == objectstore.Tentacle) {
			continue
		}
		c := newCloud(t, tc.options)
		owner := func(_ context.Context, b provider.Bucket) (*s3.Client, error) { return c.clientOf(c.Provider, b), nil }
		foreign := func(_ context.Context, bucket string) (*s3.Client, func(context.Context) error, error) {
			client, remove := c.person(bucket, tc.region)
			return client, remove, nil
		}
		cluster := func(_ context.Context, id string) (provider.Provider, error) {
			return c.provider(func(config *Config) { config.ClusterID = id }), nil
		}
		for _, check := range conformance.Checks(conformance.Options{Region: tc.region, Tenant: tc.tenant, Owner: owner, Foreign: foreign, Cluster: cluster}) {
			t.Run(name+"/"+check.Name, func(t *testing.T) {
				if err := check.Run(t.Context(), c.Provider); err != nil {
					t.Error(err)
				}
			})
		}
		c.wantLeft()
	}
}
