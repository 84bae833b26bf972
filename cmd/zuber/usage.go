package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// bytesOfPrice is the gigabyte that a price is for.
const bytesOfPrice = 1e9

// price is what storage costs.
type price struct {
	perMonth float64 // of a gigabyte
	currency string
}

// of is what so many bytes cost a month.
func (p price) of(bytes int64) float64 { return p.perMonth * float64(bytes) / bytesOfPrice }

// usage asks the clouds at an interval how much the buckets hold, and shows what they
// said last. A scrape asks nobody. It implements prometheus.Collector.
type usage struct {
	backends  []driver.Backend
	interval  time.Duration // 0 is off
	byListing bool
	budget    int // calls a minute
	prices    map[string]price
	logger    klog.Logger

	bytes, objects, at, cost, last *prometheus.Desc

	mu    sync.Mutex
	known map[string]amounts // by back end
}

// amounts are the figures of a back end, and when they were got.
type amounts struct {
	buckets []provider.Usage
	at      time.Time
}

func newUsage(backends []driver.Backend, s serveSettings, registerer prometheus.Registerer, logger klog.Logger) *usage {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	u := &usage{
		backends: backends, interval: s.UsageInterval, byListing: s.UsageByListing, budget: s.UsageCallBudget, prices: s.prices, logger: logger,
		bytes:   desc("zuber_bucket_usage_bytes", "Bytes that the bucket held at the time of the figure; absent unless --"+flagUsageInterval+" is set.", "backend", "region", "bucket"),
		objects: desc("zuber_bucket_usage_objects", "Objects that the bucket held at the time of the figure.", "backend", "region", "bucket"),
		at:      desc("zuber_bucket_usage_timestamp_seconds", "Time of the figure, in seconds since 1970.", "backend", "region", "bucket"),
		cost: desc("zuber_bucket_estimated_monthly_cost",
			"What the bucket's bytes cost a month by --"+flagUsagePrice+", without requests and traffic; absent without a price.", "backend", "region", "bucket", "currency"),
		last:  desc("zuber_usage_last_success_timestamp_seconds", "When the figures of the back end were last got, and until then when the driver began to ask, in seconds since 1970.", "backend"),
		known: map[string]amounts{},
	}
	registerer.MustRegister(u)
	return u
}

// Describe implements prometheus.Collector.
func (u *usage) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{u.bytes, u.objects, u.at, u.cost, u.last} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (u *usage) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for backend, of := range u.known {
		gauge(u.last, float64(of.at.Unix()), backend)
		for _, b := range of.buckets {
			gauge(u.bytes, float64(b.Bytes), backend, b.Region, b.Name)
			gauge(u.objects, float64(b.Objects), backend, b.Region, b.Name)
			gauge(u.at, float64(b.At.Unix()), backend, b.Region, b.Name)
			if p, priced := u.prices[backend]; priced {
				gauge(u.cost, p.of(b.Bytes), backend, b.Region, b.Name, p.currency)
			}
		}
	}
}

// run asks until ctx ends. Back ends do not wait for each other.
func (u *usage) run(ctx context.Context) {
	if u.interval == 0 {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, b := range u.backends {
		meter, ok := b.Provider.(provider.Meter)
		if ok && (u.byListing || !meter.UsageByListing()) {
			group.Go(func() { u.watch(ctx, b.Name, meter) })
		}
	}
}

func (u *usage) watch(ctx context.Context, backend string, meter provider.Meter) {
	failed := false
	u.begin(backend)
	ctx = transport.WithBudget(ctx, u.budget)
	for {
		err := u.ask(ctx, backend, meter)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			u.logger.Error(err, "Usage is not known, it will be asked for again", "backend", backend)
		}
		failed = err != nil
		// Several drivers that start at once must not ask a cloud at once for ever.
		if !pause(ctx, u.interval*9/10+rand.N(u.interval/5)) { // #nosec G404 -- nothing secret
			return
		}
	}
}

// begin has what never succeeds be noticed as well as what does no longer.
func (u *usage) begin(backend string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[backend] = amounts{at: time.Now()}
}

// ask gets the figures of a back end. Half of them would look like the loss of the
// other buckets, so that an error leaves the old ones.
func (u *usage) ask(ctx context.Context, backend string, meter provider.Meter) error {
	found := amounts{at: time.Now()}
	seen := map[[2]string]bool{} // by what labels tell apart
	for b, err := range meter.Usage(ctx, nil) {
		if err != nil {
			return err
		}
		series := [2]string{b.Region, b.Name}
		if !seen[series] { // the same series twice would fail every scrape
			found.buckets = append(found.buckets, b)
		}
		seen[series] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[backend] = found
	return nil
}

// parsePrices reads BACKEND=PRICE and BACKEND=PRICE:CURRENCY.
func parsePrices(c *collector, values []string) map[string]price {
	prices := map[string]price{}
	for _, value := range values {
		backend, rest, found := strings.Cut(value, "=")
		amount, currency, _ := strings.Cut(rest, ":")
		perMonth, err := strconv.ParseFloat(amount, 64)
		if !found || backend == "" || err != nil || !(perMonth >= 0 && perMonth <= 1e6) || len(currency) > 8 {
			c.addf("--%s %q: want BACKEND=PRICE or BACKEND=PRICE:CURRENCY, such as cloudscale=0.03:CHF", flagUsagePrice, value)
			continue
		}
		if _, twice := prices[backend]; twice {
			c.addf("--%s: back end %q has two prices", flagUsagePrice, backend)
		}
		prices[backend] = price{perMonth, currency}
	}
	return prices
}

// meterSettings says how usage is found out, and what it costs.
type meterSettings struct {
	UsageByListing  bool
	UsageCallBudget int // calls a minute
	UsagePrices     []string

	prices map[string]price // by back end
}

func (s *meterSettings) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&s.UsageByListing, flagUsageByListing, false,
		"find out how much buckets hold by listing every object where the cloud has no figures, as on STACKIT; a call for each thousand objects, which may cost money")
	fs.IntVar(&s.UsageCallBudget, flagUsageCallBudget, 60, "how many calls a minute the question for usage makes of a back end's cloud, on average")
	fs.StringSliceVar(&s.UsagePrices, flagUsagePrice, nil,
		"BACKEND=PRICE[:CURRENCY] of a gigabyte (10⁹ bytes) a month, for the estimated cost; may be repeated")
}

func (s *meterSettings) check(c *collector) {
	if s.UsageCallBudget < 1 {
		c.addf("--%s is %d: it must be at least 1", flagUsageCallBudget, s.UsageCallBudget)
	}
	s.prices = parsePrices(c, s.UsagePrices)
}

// usageSettings says whether and how the driver asks for usage.
type usageSettings struct {
	UsageInterval time.Duration // 0 is never
	meterSettings
}

func (s *usageSettings) bind(fs *pflag.FlagSet) {
	fs.DurationVar(&s.UsageInterval, flagUsageInterval, 0,
		"how often each back end is asked how much its buckets hold, for metrics that have the names of buckets; at least 1m, and cloudscale.ch has new figures once a day; 0 turns it off")
	s.meterSettings.bind(fs)
}

func (s *usageSettings) check(c *collector) {
	if s.UsageInterval != 0 && s.UsageInterval < time.Minute {
		c.addf("--%s is %s: it must be at least 1m (0 turns it off)", flagUsageInterval, s.UsageInterval)
	}
	s.meterSettings.check(c)
}
