package cloudscale

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

const (
	// refusalAge is how long an endpoint that does not honour policies is not
	// asked again; a new release may.
	refusalAge = 10 * time.Minute
	// probeSettle is how long a change of a policy may take to count.
	probeSettle = 5 * time.Second
	// probeAge is how old what a probe made must be before somebody else removes
	// it: longer than any probe takes.
	probeAge = 3 * time.Minute
	// probePrefix begins the name of a bucket that a probe makes; what follows is
	// the time in seconds, to the base 36, and a random part.
	probePrefix = "zuber-probe-"
)

// Verdict is what a probe found out about an S3 endpoint.
type Verdict struct {
	Region   string
	Endpoint string
	// Honoured: the endpoint enforces bucket policies across users, so that an
	// access can have an identity of its own.
	Honoured bool
	Seen     string // for people: what the endpoint did
	At       time.Time
}

// probes holds the verdicts by endpoint.
type probes struct {
	running keyLock // by endpoint
	mu      sync.Mutex
	known   map[string]Verdict
	left    map[string]bool // buckets of probes of this process that were not cleaned up
	sweepAt time.Time       // when to look for leftovers again; zero is never
	age     time.Duration   // probeAge, but for tests
	settle  time.Duration   // probeSettle, but for tests
}

func (p *probes) get(endpoint string) (Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.known[endpoint]
	return v, ok && (v.Honoured || time.Since(v.At) < refusalAge)
}

func (p *probes) set(v Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]Verdict{}
	}
	p.known[v.Endpoint] = v
}

func (p *probes) forget(endpoint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, endpoint)
}

func (p *probes) sweepDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.sweepAt.IsZero() && time.Now().After(p.sweepAt)
}

// ProbePolicies says whether the endpoint honours bucket policies, the region's
// own for "", from what was found before or by a probe: in a bucket and with two objects users
// that it makes and removes again. Errors: ErrUnavailable and ErrConflict, when
// the probe came to no end; ErrQuotaExceeded.
func (p *Provider) ProbePolicies(ctx context.Context, region, endpoint string) (Verdict, error) {
	if err := ctx.Err(); err != nil {
		return Verdict{}, err
	}
	if err := p.checkRegion(ctx, region); err != nil {
		return Verdict{}, err
	}
	if endpoint == "" {
		endpoint = p.defaultEndpoint(region)
	}
	e, err := parseEndpoint(endpoint)
	if err != nil {
		return Verdict{}, err
	}
	return p.verdict(ctx, region, e.String())
}

// honours refuses an access of its own where the bucket's endpoint was found not
// to honour policies.
func (p *Provider) honours(ctx context.Context, o owner) error {
	v, err := p.verdict(ctx, o.region, p.endpointOf(o.record))
	if err != nil || v.Honoured {
		return err
	}
	return refuse(provider.ErrPrecondition, "the endpoint %s does not honour bucket policies, so accesses cannot have keys of their own: %s; "+
		"to hand out the key of the bucket's owner, which a revocation cannot cut off, set the BucketAccessClass parameter credentials to %s",
		v.Endpoint, v.Seen, provider.CredentialsShared)
}

// doubt makes an endpoint that turns out to lack policies be probed again.
func (p *Provider) doubt(o owner, err error) error {
	if !lacks(err) {
		return err
	}
	p.probes.forget(p.endpointOf(o.record))
	return refuse(provider.ErrUnavailable, "%s; the repeated call probes the endpoint again", err)
}

// verdict returns what is known of the endpoint, or probes it. Calls at the same
// time share one probe.
func (p *Provider) verdict(ctx context.Context, region, endpoint string) (Verdict, error) {
	v, known := p.probes.get(endpoint)
	if known && !p.probes.sweepDue() {
		return v, nil
	}
	unlock, err := p.probes.running.lock(ctx, endpoint)
	if err != nil {
		return Verdict{}, err
	}
	defer unlock()
	if err := p.sweep(ctx, region); err != nil {
		return Verdict{}, fmt.Errorf("removing what earlier probes left: %w", err)
	}
	if v, known = p.probes.get(endpoint); known {
		return v, nil
	}
	v = Verdict{Region: region, Endpoint: endpoint}
	if v.Honoured, v.Seen, err = p.probe(ctx, region, endpoint); err != nil {
		return Verdict{}, fmt.Errorf("probing whether %s honours bucket policies: %w", endpoint, err)
	}
	v.At = time.Now()
	p.probes.set(v)
	klog.FromContext(ctx).Info("Probed whether the endpoint honours bucket policies",
		"region", region, "endpoint", endpoint, "honoured", v.Honoured, "seen", v.Seen)
	if p.config.OnProbe != nil {
		p.config.OnProbe(v)
	}
	return v, nil
}

// probe makes a bucket and two users, tries the policies and removes it all. What
// it makes carries the marks of a bucket and an access, so that DeleteBucket
// removes it, and that of a probe, so that a later one finds it.
func (p *Provider) probe(ctx context.Context, region, endpoint string) (honoured bool, seen string, err error) {
	name := probePrefix + strconv.FormatInt(time.Now().Unix(), 36) + "-" + strings.ToLower(rand.Text()[:12])
	r, err := p.recordOf(provider.BucketSpec{Name: name, Region: region, Endpoint: endpoint, DeletionPolicy: provider.DeleteAll})
	if err != nil {
		return false, "", err
	}
	r.probe = true
	defer p.discard(ctx, provider.BucketRef{Name: name, Region: region})
	o, _, _, err := p.ensureOwner(ctx, r)
	if err != nil {
		return false, "", err
	}
	// Both are made before any key is waited for: the waits then run side by side.
	a, err := p.ensureAccess(ctx, access{account: name, probe: true, buckets: map[string]membership{
		name: {bucket: name, region: region, owner: ownerTag(o.id), mode: provider.ReadOnly, stage: stageNew},
	}})
	if err != nil {
		return false, "", err
	}
	if _, err := p.ensureBucket(ctx, o); err != nil {
		return false, "", err
	}
	if loc, err := p.locate(ctx, &o); err != nil || loc.state != statePresent {
		return false, "", cmpError(err, refuse(provider.ErrConflict, "the bucket %q of the probe vanished; repeat the call", name))
	}
	t := trial{p: p, o: o}
	if t.uid, err = p.uidOf(ctx, identity{a.id, region, endpoint}, &a.user); err != nil {
		return false, "", err
	}
	if t.owner, t.access, err = p.trialClients(o, a); err != nil {
		return false, "", err
	}
	if seen, err = t.run(ctx); err != nil {
		return false, "", err
	}
	if seen == "" {
		return true, "a policy let a user in, held it to reading, and shut it out again when it was removed", nil
	}
	// Whoever removes what a probe has made must not make it fail for ever.
	found, err := p.accesses(ctx, o)
	if err != nil {
		return false, "", err
	}
	loc, err := p.locate(ctx, &o)
	if err == nil && (len(found) == 0 || loc.state != statePresent) {
		err = refuse(provider.ErrConflict, "somebody removed what the probe made; repeat the call")
	}
	return false, seen, err
}

// cmpError returns the first of both that is an error.
func cmpError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (p *Provider) trialClients(o owner, a access) (mine, theirs *s3.Client, err error) {
	for _, side := range []struct {
		user   user
		client **s3.Client
	}{{o.user, &mine}, {a.user, &theirs}} {
		key, err := side.user.key()
		if err != nil {
			return nil, nil, err
		}
		if *side.client, err = p.client(p.endpointOf(o.record), key); err != nil {
			return nil, nil, err
		}
	}
	return mine, theirs, nil
}

// discard removes what a probe made, also when its context has ended. What it
// cannot remove is removed by a later call.
func (p *Provider) discard(ctx context.Context, ref provider.BucketRef) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := p.DeleteBucket(bounded, ref, provider.DeleteOptions{Purge: true})
	p.probes.mu.Lock()
	defer p.probes.mu.Unlock()
	if err == nil {
		delete(p.probes.left, ref.Name)
		return
	}
	if p.probes.left == nil {
		p.probes.left = map[string]bool{}
	}
	p.probes.left[ref.Name] = true
	p.probes.sweepAt = time.Now()
	klog.FromContext(ctx).Info("What a probe made is not removed yet, a later call does it", "bucket", ref.Name, "err", err)
}

// sweep removes what probes of the region have left: those of this process, and
// of others when they cannot be running any more.
func (p *Provider) sweep(ctx context.Context, region string) error {
	users, err := p.listUsers(ctx, tagPurpose, purposeProbe)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, u := range users {
		if u.tags[tagManagedBy] != p.config.DriverName || p.elsewhereMade(u) {
			continue
		}
		for _, r := range resourcesOf(u) {
			if r.Region == region && strings.HasPrefix(r.Bucket, probePrefix) {
				names[r.Bucket] = true
			}
		}
	}
	p.probes.mu.Lock()
	p.probes.sweepAt = time.Time{}
	left := p.probes.left
	p.probes.left = nil
	age := p.probes.age
	p.probes.mu.Unlock()
	for name := range names {
		if began, ok := probeBegan(name); !left[name] && ok && time.Since(began) < age {
			p.probes.mu.Lock()
			p.probes.sweepAt = time.Now().Add(age)
			p.probes.mu.Unlock()
			continue
		}
		p.discard(ctx, provider.BucketRef{Name: name, Region: region})
	}
	return nil
}

// probeBegan reads when a probe began from its bucket's name.
func probeBegan(name string) (time.Time, bool) {
	seconds, _, _ := strings.Cut(strings.TrimPrefix(name, probePrefix), "-")
	n, err := strconv.ParseInt(seconds, 36, 64)
	return time.Unix(n, 0), err == nil
}

// trial is the running part of a probe.
type trial struct {
	p             *Provider
	o             owner
	uid           string
	owner, access *s3.Client
}

// run returns "" if the policies count, else what was seen instead. An error
// tells neither.
func (t trial) run(ctx context.Context) (seen string, err error) {
	bucket := t.o.bucket
	list := func() error { _, err := t.access.ListObjects(ctx, bucket, ""); return err }
	switch err := list(); {
	case err == nil:
		return "without any policy every user of the endpoint may list the bucket, so storage is open", nil
	case s3.Code(err) == codeMissing:
		return "the endpoint does not show the bucket to another user, as if each had a tenant of its own", nil
	case s3.StatusCode(err) != http.StatusForbidden || s3.Code(err) == codeUnknownKey || s3.Code(err) == codeSkewed:
		return "", s3Error(ctx, err)
	}
	policy, err := render(bucket, t.o.uid, []member{{id: purposeProbe, uid: t.uid, mode: provider.ReadOnly}})
	if err != nil {
		return "", err
	}
	switch err := t.p.setPolicy(ctx, t.owner, t.o, policy, true); {
	case errors.Is(err, provider.ErrPrecondition), errors.Is(err, provider.ErrPermissionDenied):
		return "it refuses a policy: " + err.Error(), nil
	case err != nil:
		return "", err
	}
	switch stored, err := t.owner.Policy(ctx, bucket); {
	case err != nil:
		return "", s3Error(ctx, err)
	case stored != policy:
		return "it stores another policy than it was given", nil
	}
	if late, err := t.until(ctx, list, http.StatusOK); err != nil || late {
		return "it stores a policy and does not let the user in that it names", err
	}
	const canary = "canary"
	if err := t.owner.PutObject(ctx, bucket, canary, []byte(canary)); err != nil {
		return "", s3Error(ctx, err)
	}
	switch _, err := t.access.GetObject(ctx, bucket, canary); {
	case s3.StatusCode(err) == http.StatusForbidden && s3.Code(err) != codeUnknownKey:
		return fmt.Sprintf("it lets the user that a policy names list, but not read (%s)", err), nil
	case err != nil:
		return "", s3Error(ctx, err)
	}
	switch err := t.access.PutObject(ctx, bucket, canary+"-2", []byte(canary)); {
	case err == nil:
		return "it stores a policy for reading and lets the user write", nil
	case s3.StatusCode(err) != http.StatusForbidden:
		return "", s3Error(ctx, err)
	}
	if err := t.owner.SetPolicy(ctx, bucket, ""); err != nil {
		return "", s3Error(ctx, err)
	}
	if late, err := t.until(ctx, list, http.StatusForbidden); err != nil || late {
		return "it lets a user in whose policy is removed", err
	}
	return "", nil
}

// until repeats f until it is answered with the status, 200 or 403. late says
// that it is answered with the other one for longer than probeSettle; an error
// that it is answered with neither.
func (t trial) until(ctx context.Context, f func() error, status int) (late bool, err error) {
	began := time.Now()
	for n := 1; ; n++ {
		err := f()
		got := s3.StatusCode(err)
		switch {
		case err == nil:
			got = http.StatusOK
		case got != http.StatusForbidden || s3.Code(err) == codeUnknownKey:
			return false, s3Error(ctx, err)
		}
		if got == status {
			return false, nil
		}
		if time.Since(began) > t.p.probes.settle {
			return true, nil
		}
		if err := pause(ctx, t.p.waits.after(n)); err != nil {
			return false, err
		}
	}
}
