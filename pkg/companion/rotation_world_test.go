package companion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const rotatingDriver = "cosi.zuber.dev"

func clouds() []string { return []string{emulator.CloudCloudscale, emulator.CloudStackit} }

func startEmulator(t *testing.T) *emulator.Emulator {
	t.Helper()
	e, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// rotating is an access that is granted in an emulated cloud, as COSI has it, and
// an API server that holds what COSI wrote for it.
type rotating struct {
	*testing.T
	emu     *emulator.Emulator
	cloud   string
	version string
	uid     string
	server  *apiServer
	config  *rest.Config
	buckets []string // IDs
	names   []string // of the buckets at the cloud, and of all their objects
	grant   driver.Grant
	first   *rotator // the process that granted it
	// now is the clock of the companion.
	now time.Time
	// dying are crashed processes that have not noticed yet.
	dying *sync.WaitGroup
}

// newRotating grants an access to buckets, which the class gives parameters.
func newRotating(t *testing.T, e *emulator.Emulator, cloud, version string, buckets int, parameters map[string]string) *rotating {
	t.Helper()
	r := &rotating{T: t, emu: e, cloud: cloud, version: version, uid: newUID(t), now: time.Now().Truncate(time.Second), dying: &sync.WaitGroup{}}
	r.server, r.config = newAPIServer(t)
	r.config.QPS = -1
	r.server.version = version
	r.first = r.start()
	for i := range buckets {
		name := fmt.Sprintf("b%d-%s", i, r.uid)
		made, err := r.first.keys.CreateBucket(r.quiet(), name, map[string]string{"region": r.region()})
		if err != nil {
			t.Fatal(err)
		}
		r.names, r.buckets = append(r.names, name), append(r.buckets, made.ID)
	}
	request := driver.GrantRequest{Account: "ba-" + r.uid}
	for _, id := range r.buckets {
		request.Buckets = append(request.Buckets, driver.GrantBucket{ID: id})
	}
	var err error
	if r.grant, err = r.first.keys.GrantAccess(r.quiet(), request); err != nil {
		t.Fatal(err)
	}
	r.writeObjects(parameters)
	return r
}

// quiet is the test's context without a log.
func (r *rotating) quiet() context.Context {
	return klog.NewContext(r.Context(), logr.Discard())
}

func (r *rotating) region() string {
	return map[string]string{emulator.CloudCloudscale: "rma", emulator.CloudStackit: "eu01"}[r.cloud]
}

// rotator is one run of the companion and of the driver in its process.
type rotator struct {
	*accesses
	wire *crashWire
	ctx  context.Context //nolint:containedctx // the process's life
}

// start makes a process, which knows what it finds out once in its life.
func (r *rotating) start() *rotator {
	r.Helper()
	ctx, end := context.WithCancel(r.quiet())
	r.Cleanup(end)
	w := &crashWire{next: &http.Transport{DisableKeepAlives: true}, end: end}
	var p provider.Provider
	var err error
	if r.cloud == emulator.CloudStackit {
		c := r.emu.Stackit()
		p, err = stackit.New(stackit.Config{
			DriverName: rotatingDriver, APIURL: c.APIURL, Endpoints: c.Endpoints, Regions: []string{r.region()}, Transport: w, ListingWait: 5 * time.Millisecond,
			Credentials: stackit.Credentials{Key: func() (provider.Secret, error) { return provider.NewSecret(c.ServiceAccountKey()), nil }},
		})
	} else {
		c := r.emu.Cloudscale()
		var made *cloudscale.Provider
		made, err = cloudscale.New(cloudscale.Config{
			DriverName: rotatingDriver, APIURL: c.APIURL, Endpoints: c.Endpoints, Transport: w,
			Token: func() (provider.Secret, error) { return provider.NewSecret(c.Token), nil },
		})
		if err == nil {
			_, err = made.ProbePolicies(ctx, r.region(), "")
		}
		p = made
	}
	if err != nil {
		r.Fatal(err)
	}
	d, err := driver.New(driver.Config{Name: rotatingDriver, AllowDeleteAll: true, RevokeGrace: -1,
		Backends: []driver.Backend{{Name: r.cloud, Kind: r.cloud, Provider: p}}})
	if err != nil {
		r.Fatal(err)
	}
	c, err := client.New(r.config, client.Options{Scheme: scheme.Scheme, HTTPClient: &http.Client{Transport: w}})
	if err != nil {
		r.Fatal(err)
	}
	clock := func() time.Time { return r.now }
	live := view{r.version, c}
	return &rotator{wire: w, ctx: ctx, accesses: &accesses{
		view: live, live: live, secrets: &secrets{client: c, live: c, subject: "--user=me"}, news: newNews(clock),
		record: &recorder{client: c, now: clock, told: map[string]time.Time{}}, driver: rotatingDriver, keys: d, now: clock, metrics: NewMetrics(),
	}}
}

// noted is what the process shows of the rotations of the access.
func (p *rotator) noted() (rotations, bool) {
	p.metrics.mu.Lock()
	defer p.metrics.mu.Unlock()
	r, known := p.metrics.rotations[client.ObjectKey{Namespace: "ns", Name: "photos"}]
	return r, known
}

// look lets the process look at the access, and returns as soon as it has crashed.
func (r *rotating) look(p *rotator) (reconcile.Result, error) {
	type answer struct {
		reconcile.Result
		error
	}
	done := make(chan answer, 1)
	r.dying.Go(func() {
		result, err := p.Reconcile(p.ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "photos"}})
		done <- answer{result, err}
	})
	select {
	case a := <-done:
		if p.wire.dead() {
			return a.Result, errCrash
		}
		return a.Result, a.error
	case <-p.ctx.Done():
		return reconcile.Result{}, errCrash
	}
}

// secretName is the Secret that COSI wrote for the i-th bucket.
func (r *rotating) secretName(i int) string { return fmt.Sprintf("cosi-%d", i) }

func (r *rotating) path(kind, name string) string {
	path := strings.ReplaceAll(cosiPath, v1alpha1, r.version)
	if kind == "bucketclaims" || kind == "bucketaccesses" {
		path += "/namespaces/ns"
	}
	return path + "/" + kind + "/" + name
}

// key reads the key in a Secret, whichever has written it.
func (r *rotating) key(secret string) (provider.Credentials, error) {
	data := r.data(secret)
	if id := data["AWS_ACCESS_KEY_ID"]; id != nil {
		return provider.Credentials{AccessKeyID: string(id), SecretAccessKey: provider.NewSecret(string(data["AWS_SECRET_ACCESS_KEY"]))}, nil
	}
	c, err := readCredentials(access{meta: meta{version: r.version, uid: r.uid}}, data)
	return provider.Credentials{AccessKeyID: c.accessKeyID, SecretAccessKey: c.secretAccessKey}, err
}

// data is that of a Secret; nil is of none.
func (r *rotating) data(secret string) map[string][]byte {
	var s struct{ Data map[string][]byte }
	if text := r.server.get(secretsPath + "/" + secret); text == "" || json.Unmarshal([]byte(text), &s) != nil {
		return nil
	}
	return s.Data
}

// secretNames are the Secrets with keys that there are.
func (r *rotating) secretNames() []string {
	var names []string
	for i := range r.buckets {
		names = append(names, r.secretName(i))
	}
	if r.data("photos-env") != nil {
		names = append(names, "photos-env")
	}
	return names
}

// opens reports whether a key opens every bucket.
func (r *rotating) opens(key provider.Credentials) error {
	for i, name := range r.names {
		c, err := s3.New(s3.Config{Endpoint: r.grant.Buckets[i].Bucket.Endpoint, AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey.Reveal})
		if err == nil {
			_, err = c.ListObjects(r.Context(), name, "")
		}
		if err != nil {
			return fmt.Errorf("key %s in bucket %s: %w", key.AccessKeyID, name, err)
		}
	}
	return nil
}

// usable checks that every Secret holds a key that works.
func (r *rotating) usable() error {
	var all []error
	for _, name := range r.secretNames() {
		key, err := r.key(name)
		if err == nil {
			err = r.opens(key)
		}
		if err != nil {
			all = append(all, fmt.Errorf("Secret %s: %w", name, err))
		}
	}
	return errors.Join(all...)
}

// keysAtCloud counts the keys of the access.
func (r *rotating) keysAtCloud() int {
	n := 0
	if r.cloud == emulator.CloudStackit {
		for _, g := range r.emu.Stackit().Groups() {
			if g.DisplayName == strings.ReplaceAll(r.uid, "-", "") {
				n += g.Keys
			}
		}
		return n
	}
	for _, u := range r.emu.Cloudscale().Users() {
		if u.Tags["zuber_account"] == "ba-"+r.uid {
			n++
		}
	}
	return n
}

// remembered is the journal.
func (r *rotating) remembered() journal {
	var j journal
	_ = json.Unmarshal(r.data("zuber-rotation-" + r.uid)[journalKey], &j)
	return j
}

// told lists the events with a reason; an empty one is any.
func (r *rotating) told(reason string) []string {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	var all []string
	for _, o := range r.server.objects {
		if o["kind"] == "Event" && (reason == "" || o["reason"] == reason) {
			all = append(all, fmt.Sprint(o["message"]))
		}
	}
	slices.Sort(all)
	return all
}
