package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// The objects that the test writes. A part of a multipart upload has at least
// 5 MiB, except for the last.
const (
	smallKey  = "selftest/small.txt"
	largeKey  = "selftest/large.bin"
	partSize  = 5 << 20
	largeSize = partSize + 64<<10
)

// subject is one bucket of the test and its access.
type subject struct {
	name    string
	account string
	id      string // bucket ID, once created
	granted cosi.Granted
	objects objectStore // with the granted key, once granted
}

// testRun is the life of the buckets in one region.
type testRun struct {
	tester
	region string
	params map[string]string
	main   subject
	other  subject
}

// newTestRun picks names that nobody else uses.
func (t tester) newTestRun(region string) *testRun {
	suffix := make([]byte, 5)
	_, _ = rand.Read(suffix) // never fails
	name := "zuber-selftest-" + hex.EncodeToString(suffix)
	return &testRun{
		tester: t,
		region: region,
		params: t.classParameters(region),
		main:   subject{name: name + "-a", account: "ba-" + name + "-a"},
		other:  subject{name: name + "-b", account: "ba-" + name + "-b"},
	}
}

// names are the buckets of the test.
func (r *testRun) names() []string { return []string{r.main.name, r.other.name} }

// testStep is one step; the text says what was seen.
type testStep struct {
	name string
	do   func(ctx context.Context) (detail string, err error)
}

// runRegion carries the steps out up to the first failure, and then cleans up.
func (t tester) runRegion(ctx context.Context, region string) bool {
	r := t.newTestRun(region)
	res := t.newResult(region)
	res.Passed = true
	t.reporter.begin(res, t.settings)
	bounded, cancel := cancelledAfter(ctx, t.settings.Timeout)
	defer cancel()
	for _, step := range r.steps() {
		s := timed(step.name, func() (string, error) { return step.do(bounded) })
		if !s.OK {
			switch {
			case ctx.Err() != nil:
				s.Detail = "interrupted: " + s.Detail
			case bounded.Err() != nil:
				s.Detail = fmt.Sprintf("not finished within --%s %s: %s", flagTimeout, t.settings.Timeout, s.Detail)
			}
		}
		res.add(s)
		res.Passed = s.OK
		t.reporter.step(res)
		if !s.OK {
			break
		}
	}
	if !res.Passed {
		r.afterFailure(ctx, &res)
	}
	t.reporter.end(res)
	return res.Passed
}

// cancelledAfter is a time-out without a deadline: gRPC would hand a deadline to
// the driver, which may then give up a moment before the context here has ended.
func cancelledAfter(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	timer := time.AfterFunc(limit, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

func timed(name string, do func() (string, error)) stepResult {
	start := time.Now()
	detail, err := do()
	s := stepResult{Name: name, OK: err == nil, Seconds: time.Since(start).Round(time.Microsecond).Seconds(), Detail: detail}
	if err != nil {
		s.Detail = strings.Join(strings.Fields(err.Error()), " ")
	}
	return s
}

// steps lists the life of a bucket in order; each step builds on those before.
func (r *testRun) steps() []testStep {
	steps := []testStep{
		{"create bucket", r.create},
		{"create again: same answer", r.createAgain},
		{"probe: accesses can be told apart", r.probe},
		{"grant access", r.grant},
		{"grant again: same key", r.grantAgain},
		{"put object", r.put},
		{"get object", r.get},
		{"list objects", r.list},
		{"multipart upload", r.multipart},
		{"delete object", r.deleteLarge},
		{"isolation: a foreign key is refused", r.foreignKey},
		{"modes: each may do what it says alone", r.modes},
		{"revoke access", r.revoke},
		{"revoke again", r.revoke},
		{"revoke: the key is refused", r.revoked},
		{"delete of a non-empty bucket is refused", r.deleteNonEmpty},
		{"grant anew: nothing is lost", r.nothingLost},
		{"empty the bucket and revoke", r.empty},
		{"delete bucket", r.remove},
		{"delete again", r.remove},
		{"nothing with our mark is left", r.nothingLeft},
	}
	if r.settings.APIVersion == string(cosi.V1alpha2) {
		// v1alpha1 has no call for it.
		steps = slices.Insert(steps, 2, testStep{"existing bucket: found by ID and name", r.existing})
	}
	return steps
}

func (r *testRun) create(ctx context.Context) (string, error) {
	id, err := r.client.CreateBucket(ctx, r.main.name, r.params)
	if err != nil {
		return "", err
	}
	r.main.id = id
	return r.main.name, nil
}

func (r *testRun) createAgain(ctx context.Context) (string, error) {
	id, err := r.client.CreateBucket(ctx, r.main.name, r.params)
	if err == nil && id != r.main.id {
		err = fmt.Errorf("the bucket ID changed from %s to %s", r.main.id, id)
	}
	return "", err
}

func (r *testRun) existing(ctx context.Context) (string, error) {
	for _, written := range []string{r.main.id, r.backend.Name + "/" + r.region + "/" + r.main.name} {
		id, err := r.client.ExistingBucket(ctx, written, nil)
		if err != nil {
			return "", err
		}
		if id != r.main.id {
			return "", fmt.Errorf("%s is found as %s, not as %s", written, id, r.main.id)
		}
	}
	return "", nil
}

func (r *testRun) grant(ctx context.Context) (string, error) {
	if err := r.grantTo(ctx, &r.main); err != nil {
		return "", err
	}
	return fmt.Sprintf("key %s at %s", r.main.granted.AccessKeyID, r.main.granted.Endpoint), nil
}

func (r *testRun) grantTo(ctx context.Context, s *subject) error {
	granted, err := r.client.GrantAccess(ctx, s.id, s.account, nil)
	if err != nil {
		return err
	}
	s.granted = granted
	if b := granted.Buckets[0]; b.Name != "" && (b.Name != s.name || b.VirtualHosted == r.settings.PathStyle) {
		return fmt.Errorf("the bucket %s is granted as %s, virtual-hosted: %t", s.name, b.Name, b.VirtualHosted)
	}
	s.objects, err = r.openObjects(s.name, granted)
	return err
}

func (r *testRun) grantAgain(ctx context.Context) (string, error) {
	again, err := r.client.GrantAccess(ctx, r.main.id, r.main.account, nil)
	if err != nil {
		return "", err
	}
	switch first := r.main.granted; {
	case again.AccountID != first.AccountID:
		return "", fmt.Errorf("the account ID changed from %s to %s", first.AccountID, again.AccountID)
	case again.AccessKeyID != first.AccessKeyID:
		return "", fmt.Errorf("the access key ID changed from %s to %s", first.AccessKeyID, again.AccessKeyID)
	case again.SecretAccessKey.Reveal() != first.SecretAccessKey.Reveal():
		return "", errors.New("the access key ID is the same, but its secret changed")
	case again.Endpoint != first.Endpoint || again.Region != first.Region:
		return "", fmt.Errorf("the endpoint changed from %s (%s) to %s (%s)", first.Endpoint, first.Region, again.Endpoint, again.Region)
	}
	return "", nil
}

// smallBody is what the small object holds.
func (r *testRun) smallBody() []byte {
	return []byte("written by zuber selftest into " + r.main.name + "\n")
}

// largeBody is what the large object holds: no two parts are alike.
func largeBody() []byte {
	body := make([]byte, largeSize)
	for i := range body {
		body[i] = byte(i>>16) ^ byte(i)
	}
	return body
}

func (r *testRun) put(ctx context.Context) (string, error) {
	body := r.smallBody()
	return fmt.Sprintf("%d bytes", len(body)), r.main.objects.put(ctx, smallKey, body)
}

func (r *testRun) get(ctx context.Context) (string, error) {
	return "", r.expect(ctx, smallKey, r.smallBody())
}

// expect reads an object back and compares it.
func (r *testRun) expect(ctx context.Context, key string, want []byte) error {
	got, err := r.main.objects.get(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s: read %d bytes that are not the %d bytes written", key, len(got), len(want))
	}
	return err
}

func (r *testRun) list(ctx context.Context) (string, error) {
	return "", r.expectKeys(ctx, smallKey)
}

// expectKeys compares the whole listing.
func (r *testRun) expectKeys(ctx context.Context, want ...string) error {
	got, err := r.main.objects.list(ctx)
	if err != nil {
		return err
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the bucket lists %q, want %q", got, want)
	}
	return nil
}

func (r *testRun) multipart(ctx context.Context) (string, error) {
	body := largeBody()
	if err := r.main.objects.putMultipart(ctx, largeKey, body, partSize); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes in 2 parts", len(body)), r.expect(ctx, largeKey, body)
}

func (r *testRun) deleteLarge(ctx context.Context) (string, error) {
	if err := r.main.objects.delete(ctx, largeKey); err != nil {
		return "", err
	}
	return "", r.expectKeys(ctx, smallKey)
}

// foreignKey proves first that the other key works where it belongs: a key that
// works nowhere would be refused for the wrong reason.
func (r *testRun) foreignKey(ctx context.Context) (string, error) {
	id, err := r.client.CreateBucket(ctx, r.other.name, r.params)
	if err != nil {
		return "", err
	}
	r.other.id = id
	if err := r.grantTo(ctx, &r.other); err != nil {
		return "", err
	}
	if r.other.granted.AccessKeyID == r.main.granted.AccessKeyID {
		return "", errors.New("both buckets were granted the same key")
	}
	if err := r.other.objects.put(ctx, smallKey, r.smallBody()); err != nil {
		return "", err
	}
	if err := r.other.objects.delete(ctx, smallKey); err != nil {
		return "", err
	}
	intruder, err := r.openObjects(r.main.name, r.other.granted)
	if err != nil {
		return "", err
	}
	_, getErr := intruder.get(ctx, smallKey)
	_, listErr := intruder.list(ctx)
	attempts := []struct {
		what string
		err  error
	}{
		{"read", getErr}, {"list", listErr},
		{"write", intruder.put(ctx, "selftest/intruder.txt", []byte("intruder"))},
		{"delete", intruder.delete(ctx, smallKey)},
	}
	for _, a := range attempts {
		switch {
		case a.err == nil:
			return "", fmt.Errorf("the key of %s may %s in %s", r.other.name, a.what, r.main.name)
		case !accessDenied(a.err):
			return "", fmt.Errorf("%s with a foreign key: want AccessDenied, not: %w", a.what, a.err)
		}
	}
	return "read, list, write, delete", r.expect(ctx, smallKey, r.smallBody())
}

func (r *testRun) revoke(ctx context.Context) (string, error) {
	return "", r.client.RevokeAccess(ctx, r.main.id, r.main.granted.AccountID)
}

func (r *testRun) deleteNonEmpty(ctx context.Context) (string, error) {
	err := r.client.DeleteBucket(ctx, r.main.id, r.params)
	var rpc *cosi.RPCError
	switch {
	case err == nil:
		return "", errors.New("DriverDeleteBucket succeeded although the bucket held an object: its data is gone")
	case !errors.As(err, &rpc), !strings.Contains(rpc.Message, provider.ErrNotEmpty.Error()):
		return "", fmt.Errorf("want a refusal because the bucket is not empty, not: %w", err)
	}
	return rpc.Code, nil
}

func (r *testRun) nothingLost(ctx context.Context) (string, error) {
	if err := r.grantTo(ctx, &r.main); err != nil {
		return "", err
	}
	return "", r.expect(ctx, smallKey, r.smallBody())
}

func (r *testRun) empty(ctx context.Context) (string, error) {
	if err := r.main.objects.delete(ctx, smallKey); err != nil {
		return "", err
	}
	if err := r.expectKeys(ctx); err != nil {
		return "", err
	}
	for _, s := range []subject{r.main, r.other} {
		if err := r.client.RevokeAccess(ctx, s.id, s.granted.AccountID); err != nil {
			return "", err
		}
	}
	return "", nil
}

// remove deletes both buckets.
func (r *testRun) remove(ctx context.Context) (string, error) {
	for _, s := range []subject{r.main, r.other} {
		if err := r.client.DeleteBucket(ctx, s.id, r.params); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (r *testRun) nothingLeft(ctx context.Context) (string, error) {
	left, err := r.leftovers(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left behind: %s", strings.Join(left, "; "))
	}
	return "", err
}

// leftovers describes what the back end still holds of the test.
func (r *testRun) leftovers(ctx context.Context) ([]string, error) {
	var left []string
	for res, err := range r.backend.Provider.Inventory(ctx) {
		if err != nil {
			return nil, fmt.Errorf("inventory: %w", err)
		}
		if !slices.Contains(r.names(), res.Bucket) {
			continue
		}
		if res.Kind == provider.KindBucket {
			left = append(left, fmt.Sprintf("bucket %s in %s", res.Bucket, res.Region))
			continue
		}
		left = append(left, fmt.Sprintf("%s %s of bucket %s", res.Kind, res.ID, res.Bucket))
	}
	return left, nil
}
