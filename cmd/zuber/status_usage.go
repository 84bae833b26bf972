package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"github.com/zuber-storage/zuber/pkg/companion"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// addUsage fills in what the clouds say of the buckets of a report, and why what is
// missing is. Clouds do not wait for each other.
func (s *meterSettings) addUsage(ctx context.Context, r *companion.Report, backends []driver.Backend) {
	buckets := map[string]map[provider.BucketRef][]*companion.BucketReport{} // by back end
	for i := range r.Claims {
		b := &r.Claims[i].Bucket
		if b.Backend == "" || b.Name == "" {
			continue
		}
		if buckets[b.Backend] == nil {
			buckets[b.Backend] = map[provider.BucketRef][]*companion.BucketReport{}
		}
		ref := provider.BucketRef{Name: b.Name, Region: b.Region}
		buckets[b.Backend][ref] = append(buckets[b.Backend][ref], b)
	}
	var mu sync.Mutex // of r
	var group sync.WaitGroup
	for _, b := range backends {
		shown := buckets[b.Name]
		delete(buckets, b.Name)
		for _, all := range shown {
			for _, one := range all {
				one.Provider = b.Kind
			}
		}
		group.Go(func() {
			reason := s.ask(ctx, b, shown)
			mu.Lock()
			defer mu.Unlock()
			if reason != "" {
				r.NoUsage = append(r.NoUsage, companion.NoUsage{Backend: b.Name, Reason: reason})
			}
		})
	}
	group.Wait()
	for backend := range buckets {
		r.NoUsage = append(r.NoUsage, companion.NoUsage{Backend: backend, Reason: "the configuration does not have it"})
	}
	slices.SortFunc(r.NoUsage, func(a, b companion.NoUsage) int { return strings.Compare(a.Backend, b.Backend) })
}

// ask asks one cloud for the usage of buckets. It returns why something is missing.
func (s *meterSettings) ask(ctx context.Context, b driver.Backend, buckets map[provider.BucketRef][]*companion.BucketReport) string {
	// A bucket that somebody else made is none of those that the driver can tell of.
	wanted := func(ref provider.BucketRef) bool {
		return slices.ContainsFunc(buckets[ref], func(b *companion.BucketReport) bool { return !b.Existing })
	}
	some := false
	for ref := range buckets {
		some = some || wanted(ref)
	}
	meter, ok := b.Provider.(provider.Meter)
	switch {
	case !some:
		return ""
	case !ok:
		return "its cloud has no figures"
	case meter.UsageByListing() && !s.UsageByListing:
		return "its cloud has no figures; --" + flagUsageByListing + " lists every object, which may cost money"
	}
	price, priced := s.prices[b.Name]
	for u, err := range meter.Usage(transport.WithBudget(ctx, s.UsageCallBudget), wanted) {
		if err != nil {
			return err.Error()
		}
		for _, report := range buckets[provider.BucketRef{Name: u.Name, Region: u.Region}] {
			report.Usage = &companion.UsageReport{Bytes: u.Bytes, Objects: u.Objects, At: u.At.UTC()}
			if priced {
				cost := price.of(u.Bytes)
				report.Usage.Cost, report.Usage.Currency = &cost, price.currency
			}
		}
	}
	return ""
}

// briefUsage is usage in a few words.
func briefUsage(u *companion.UsageReport) string {
	if u == nil {
		return ""
	}
	text := sizeOf(u.Bytes)
	if u.Cost != nil {
		text += ", " + costOf(*u)
	}
	return text
}

func (s statusText) describeUsage(d description, u *companion.UsageReport) {
	if u == nil {
		d.line("Usage", "not known")
		return
	}
	objects := fmt.Sprintf("%d objects", u.Objects)
	if u.Objects == 1 {
		objects = "1 object"
	}
	d.line("Usage", fmt.Sprintf("%s in %s, %s", sizeOf(u.Bytes), objects, s.ago(&u.At)))
	if u.Cost != nil {
		d.line("Estimated cost", costOf(*u))
	}
}

// sizeOf has the units that prices have: a gigabyte is 10⁹ bytes.
func sizeOf(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) } // #nosec G115 -- not negative

func costOf(u companion.UsageReport) string {
	return strings.TrimSpace(fmt.Sprintf("%.2f %s", *u.Cost, u.Currency)) + " a month"
}
