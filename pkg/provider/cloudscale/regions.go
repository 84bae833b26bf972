package cloudscale

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const (
	// regionsAge is how long the list of regions is trusted.
	regionsAge = 10 * time.Minute
	// regionsRetry is how old a list must be before an unknown name asks anew.
	regionsRetry = 30 * time.Second
)

// KnownRegions returns the regions that the cloud is known to have without asking
// it. It may have more.
func KnownRegions() []string { return []string{"lpg", "rma"} }

// regionCache is the list of regions as last read.
type regionCache struct {
	mu     sync.Mutex
	slugs  []string
	readAt time.Time
}

// get returns the cached list if it is younger than the age.
func (c *regionCache) get(age time.Duration) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slugs, len(c.slugs) > 0 && time.Since(c.readAt) < age
}

func (c *regionCache) set(slugs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slugs, c.readAt = slugs, time.Now()
}

// Regions implements provider.Provider.
func (p *Provider) Regions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.listRegions(ctx, regionsAge)
}

// listRegions returns a list that is no older than the age.
func (p *Provider) listRegions(ctx context.Context, age time.Duration) ([]string, error) {
	if slugs, fresh := p.regions.get(age); fresh {
		return slices.Clone(slugs), nil
	}
	list, err := p.api.Regions.List(ctx)
	if err != nil {
		return nil, listError(ctx, "list regions", err)
	}
	if len(list) == 0 {
		// Whatever region is asked for would be refused for good.
		return nil, refuse(provider.ErrUnavailable, "list regions: the API names none; check the API URL")
	}
	slugs := make([]string, 0, len(list))
	for _, r := range list {
		slugs = append(slugs, r.Slug)
	}
	slices.Sort(slugs)
	p.regions.set(slugs)
	return slices.Clone(slugs), nil
}

// checkRegion refuses a region that the cloud does not have and names those it
// has. A name that an older list lacks may be a new region.
func (p *Provider) checkRegion(ctx context.Context, region string) error {
	var slugs []string
	for _, age := range []time.Duration{regionsAge, regionsRetry} {
		var err error
		if slugs, err = p.listRegions(ctx, age); err != nil {
			return err
		}
		if slices.Contains(slugs, region) {
			return nil
		}
	}
	return refuse(provider.ErrInvalidArgument, "region %q does not exist; allowed are %s", region, strings.Join(slugs, ", "))
}

// defaultEndpoint is the S3 endpoint of a region when none is asked for.
func (p *Provider) defaultEndpoint(region string) string {
	if e, ok := p.endpoints[region]; ok {
		return e
	}
	return "https://objects." + region + ".cloudscale.ch"
}
