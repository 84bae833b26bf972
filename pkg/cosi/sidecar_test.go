package cosi

// What the driver must fit, and where each point is proved. The points come
// from reading and running the upstream sidecars; the v1alpha1 one is v0.2.2, the
// v1alpha2 one that of March 2026.
//
//  1. v1alpha1 never sees AlreadyExists     TestStatusTable, TestTakenName
//  2. which codes end the retries           TestStatusTable, TestCodeOf
//  3. no sidecar sets a deadline            TestHungBackEnd, TestHungCloud
//  4. 80 calls at once, many on one bucket  TestEightyConcurrentRPCs, TestParallelGrants
//  5. the bucket is named as asked          TestLifecycle
//  6. a grant repeated has its account ID   TestGrantIsStable
//  7. a grant repeated breaks no key        TestGrantIsStable
//  8. the account ID names no key           TestGrantIsStable
//  9. the alphabet and length of IDs        driver.TestIDsRoundTrip, FuzzV1alpha2Strings
//  10. gone is OK for revoke and delete     TestGoneIsFine
//  11. foreign IDs are errors               TestForeignIDs
//  12. one driver name for all back ends    TestTwoBackEndsOneName
//  13. deletion does not wait for revokes   TestDeleteWhileAccessesLive
//  14. a create can be orphaned             later: garbage collection; TestCreateIsRepeatable holds what it needs
//  15. v1alpha2 deletes late or never       TestVersionsMixOnOneBucket calls delete and revoke itself
//  16. messages reach users                 TestStatusIsForPeople, TestOneLinePerRPC
//  17. KEY arrives as 0                     TestAuthenticationType
//  18. modes come from class parameters     TestV1alpha2ModeWithinClass, driver.TestGrantModes
//  19. v1alpha2 checks answers strictly     v1alpha2RPCs does too; TestV1alpha2BucketInfo, TestV1alpha2PoorAnswers
//  20. thin faces over a neutral core       test.TestImportArrowsAndFences: the driver knows no gRPC

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestLifecycle(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	const name = "bucket-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10"
	id := made(t, c, name)
	if b := cloud.Cloudscale().Buckets(); len(b) != 1 || b[0].Name != name || b[0].Region != "rma" {
		t.Errorf("asked for %s, got %+v", name, b)
	}
	g, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.Endpoint != cloud.Cloudscale().Endpoints["rma"] || g.Region == "" || g.AccessKeyID == "" || g.SecretAccessKey.Empty() {
		t.Errorf("granted %+v", g)
	}
	workload := cloud.client(g)
	if err := workload.PutObject(ctx, name, "key", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
		t.Fatal(err)
	}
	codeIs(t, c.DeleteBucket(ctx, id, rma()), codes.FailedPrecondition, name)
	if _, err := workload.GetObject(ctx, name, "key"); err == nil {
		t.Error("a revoked key goes on reading")
	}
	if g, err = c.GrantAccess(ctx, id, "ba-2", nil); err != nil {
		t.Fatal(err)
	}
	workload = cloud.client(g)
	if data, err := workload.GetObject(ctx, name, "key"); err != nil || string(data) != "data" {
		t.Fatalf("after the refused deletion: %q, %v", data, err)
	}
	if err := workload.DeleteObject(ctx, name, "key"); err != nil {
		t.Fatal(err)
	}
	if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteBucket(ctx, id, rma()); err != nil {
		t.Fatal(err)
	}
	cloud.left()
}

// TestBucketInfo is what v1alpha1's answer to a create says of the bucket.
func TestBucketInfo(t *testing.T) {
	cloud := newCloud(t)
	resp, err := cloud.process().alpha1().DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{Name: "bucket-1", Parameters: rma()})
	if err != nil {
		t.Fatal(err)
	}
	if s := resp.GetBucketInfo().GetS3(); s.GetRegion() == "" || s.GetSignatureVersion() != cosiv1alpha1.S3SignatureVersion_S3V4 {
		t.Errorf("got %v", resp)
	}
}

// TestTakenName: v1alpha1's sidecar hangs on AlreadyExists from a create and
// crashes on it from a grant.
func TestTakenName(t *testing.T) {
	cloud := newCloud(t)
	other := cloud.provider("other.driver", cloud.Cloudscale().ForeignToken)
	if _, err := other.CreateBucket(t.Context(), provider.BucketSpec{Name: "taken", Region: "rma"}); err != nil {
		t.Fatal(err)
	}
	c, ctx := cloud.process(), t.Context()
	_, err := c.CreateBucket(ctx, "taken", rma())
	codeIs(t, err, codes.FailedPrecondition, "taken")
	if b := cloud.Cloudscale().Buckets(); len(b) != 1 {
		t.Errorf("buckets %+v", b)
	}
	for _, u := range cloud.Cloudscale().Users() {
		if u.Tags["zuber_managed_by"] == "cosi.zuber.dev" {
			t.Errorf("the refused create left %+v", u)
		}
	}
	made(t, c, "ours")
	for _, params := range []map[string]string{{"region": "lpg"}, {"region": "rma", "bucketDeletionPolicy": "DeleteAll"}, {"region": "rma", "s3PathStyle": "false"}} {
		_, err := c.CreateBucket(ctx, "ours", params)
		codeIs(t, err, codes.FailedPrecondition, "ours")
	}
	_, err = c.GrantAccess(ctx, "cloudscale/rma/taken", "ba-1", nil)
	if e := rpcFailure(t, err); e.Code == codes.AlreadyExists.String() {
		t.Error(e)
	}
}

// TestCreateIsRepeatable: the same answer from the same process and the next.
func TestCreateIsRepeatable(t *testing.T) {
	cloud := newCloud(t)
	c := cloud.process()
	first := made(t, c, "bucket-1")
	for _, again := range []string{made(t, c, "bucket-1"), made(t, cloud.process(), "bucket-1")} {
		if again != first {
			t.Errorf("%q, then %q", first, again)
		}
	}
	if u := cloud.Cloudscale().Users(); len(u) != 1 {
		t.Errorf("users %+v", u)
	}
}

// TestGrantIsStable: the sidecar repeats grants as a matter of course, and
// writes the Secret of the first one only.
func TestGrantIsStable(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	id := made(t, c, "bucket-1")
	first, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, process := range map[string]*Client{"same process": c, "next process": cloud.process()} {
		again, err := process.GrantAccess(ctx, id, "ba-1", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again.AccountID != first.AccountID || again.AccessKeyID != first.AccessKeyID || again.SecretAccessKey != first.SecretAccessKey {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
		if err := cloud.client(first).PutObject(ctx, "bucket-1", "key", []byte("x")); err != nil {
			t.Errorf("%s: the delivered key is broken: %v", name, err)
		}
	}
	if strings.Contains(first.AccountID, first.AccessKeyID) {
		t.Errorf("account ID %q names a key", first.AccountID)
	}
	v1alpha2ID := regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)
	for _, s := range []string{id, first.AccountID} {
		if len(s) > 2048 || !v1alpha2ID.MatchString(s) {
			t.Errorf("v1alpha2 refuses the ID %q", s)
		}
	}
}

// TestHungCloud: the driver ends a call whose cloud does not answer.
func TestHungCloud(t *testing.T) {
	cloud := newCloud(t)
	c := cloud.process(func(o *Options) { o.RPCTimeout = 300 * time.Millisecond })
	remove := cloud.Inject(emulator.Fault{Latency: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // so that an unbounded driver fails, not hangs
	defer cancel()
	_, err := c.CreateBucket(ctx, "bucket-1", rma())
	codeIs(t, err, codes.DeadlineExceeded, "not finished within 300ms")
	remove()
	patient := cloud.process()
	if err := patient.DeleteBucket(t.Context(), made(t, patient, "bucket-1"), nil); err != nil {
		t.Error(err)
	}
	cloud.left()
}

// TestParallelGrants on one bucket, as a sidecar with many accesses sends them.
func TestParallelGrants(t *testing.T) {
	// They wait for each other, and nothing here is about how long.
	const many = 40
	cloud := newCloud(t)
	c, ctx := cloud.process(func(o *Options) { o.RPCTimeout = time.Hour }), t.Context()
	id := made(t, c, "bucket-1")
	var wg sync.WaitGroup
	var mu sync.Mutex
	accounts := map[string]bool{}
	for i := range many {
		wg.Go(func() {
			g, err := c.GrantAccess(ctx, id, fmt.Sprintf("ba-%d", i), nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			accounts[g.AccountID] = true
		})
	}
	wg.Wait()
	if len(accounts) != many {
		t.Errorf("%d account IDs for %d accesses", len(accounts), many)
	}
	for a := range accounts {
		wg.Go(func() {
			if err := c.RevokeAccess(ctx, id, a); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := c.DeleteBucket(ctx, id, nil); err != nil {
		t.Error(err)
	}
	cloud.left()
}

// TestParallelCreates of one name end in one bucket.
func TestParallelCreates(t *testing.T) {
	cloud := newCloud(t)
	c := cloud.process()
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := c.CreateBucket(t.Context(), "bucket-1", rma())
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	wg.Wait()
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(distinct) != 1 {
		t.Errorf("IDs %q", distinct)
	}
	if u, b := cloud.Cloudscale().Users(), cloud.Cloudscale().Buckets(); len(u) != 1 || len(b) != 1 {
		t.Errorf("%d users and %d buckets", len(u), len(b))
	}
}

// TestGoneIsFine: v1alpha1 repeats Revoke and Delete after they succeeded, and
// tolerates no NotFound from Revoke.
func TestGoneIsFine(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	id := made(t, c, "bucket-1")
	g, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
			t.Errorf("revoke: %v", err)
		}
	}
	if err := c.RevokeAccess(ctx, id, ""); err != nil {
		t.Errorf("revoke without account ID: %v", err)
	}
	for range 2 {
		if err := c.DeleteBucket(ctx, id, nil); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	for _, account := range []string{g.AccountID, "cloudscale/ba-never", ""} {
		if err := c.RevokeAccess(ctx, id, account); err != nil {
			t.Errorf("revoke %q after the bucket: %v", account, err)
		}
	}
	if err := cloud.process().DeleteBucket(ctx, "cloudscale/rma/bucket-never", nil); err != nil {
		t.Errorf("delete of what never was: %v", err)
	}
}

// TestForeignIDs: the sidecar sends every driver the revocations of all
// drivers, and success would remove the objects of the one that was meant.
func TestForeignIDs(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	id := made(t, c, "bucket-1")
	cloud.ResetCalls()
	for _, bucket := range []string{"", "minio/rma/bucket-1", "bucket-1", "s3://bucket-1", `{"bucket":"x"}`, "cloudscale/../bucket-1"} {
		codeIs(t, c.RevokeAccess(ctx, bucket, "cloudscale/ba-1"), codes.InvalidArgument, "not this driver's")
		codeIs(t, c.RevokeAccess(ctx, bucket, ""), codes.InvalidArgument, "not this driver's")
		codeIs(t, c.DeleteBucket(ctx, bucket, nil), codes.InvalidArgument, "not this driver's")
		_, err := c.GrantAccess(ctx, bucket, "ba-1", nil)
		codeIs(t, err, codes.InvalidArgument, "not this driver's")
	}
	for _, account := range []string{"minio/ba-1", "ba-1", "arn:aws:iam::1:user/x"} {
		codeIs(t, c.RevokeAccess(ctx, id, account), codes.InvalidArgument, "not this driver's")
	}
	if calls := cloud.Calls(); len(calls) != 0 {
		t.Errorf("foreign IDs cost calls: %+v", calls)
	}
}

// TestTwoBackEndsOneName: two driver names in one cluster would harm each other.
func TestTwoBackEndsOneName(t *testing.T) {
	cloud := newCloud(t)
	d, err := driver.New(driver.Config{Name: "cosi.zuber.dev", Backends: []driver.Backend{
		{Name: "one", Kind: "cloudscale", Provider: cloud.provider("cosi.zuber.dev", cloud.Cloudscale().Token)},
		{Name: "two", Kind: "cloudscale", Provider: cloud.provider("cosi.zuber.dev", cloud.Cloudscale().ForeignToken)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := options(t, d)
	c, ctx := inProcess(t, o), t.Context()
	_, err = c.CreateBucket(ctx, "bucket-1", rma())
	codeIs(t, err, codes.InvalidArgument, "one, two")
	id, err := c.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma", "backend": "two"})
	if err != nil || !strings.HasPrefix(id, "two/") {
		t.Fatalf("%q, %v", id, err)
	}
	if u := cloud.Cloudscale().Users(); len(u) != 1 || u[0].Project != "foreign" {
		t.Errorf("users %+v", u)
	}
	codeIs(t, c.RevokeAccess(ctx, id, "one/ba-1"), codes.InvalidArgument, "two")
	if err := c.DeleteBucket(ctx, id, nil); err != nil {
		t.Error(err)
	}
}

// TestDeleteWhileAccessesLive: v1alpha1 deletes the bucket without waiting for
// the revocations that it has just begun.
func TestDeleteWhileAccessesLive(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	id := made(t, c, "bucket-1")
	g, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	codeIs(t, c.DeleteBucket(ctx, id, rma()), codes.FailedPrecondition, "ba-1")
	if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteBucket(ctx, id, rma()); err != nil {
		t.Fatal(err)
	}
	cloud.left()
}

// TestAuthenticationType: what the sidecar cannot read arrives as 0.
func TestAuthenticationType(t *testing.T) {
	cloud := newCloud(t)
	c := cloud.process()
	id := made(t, c, "bucket-1")
	for authentication, want := range map[cosiv1alpha1.AuthenticationType]struct {
		code  codes.Code
		words []string
	}{
		cosiv1alpha1.AuthenticationType_UnknownAuthenticationType: {codes.InvalidArgument, []string{"authenticationType: Key", "KEY", "as 0"}},
		cosiv1alpha1.AuthenticationType_IAM:                       {codes.Unimplemented, []string{"IAM", "authenticationType: Key"}},
		7:                                                         {codes.InvalidArgument, []string{"arrived as 7"}},
	} {
		_, err := c.alpha1().DriverGrantBucketAccess(t.Context(), &cosiv1alpha1.DriverGrantBucketAccessRequest{
			BucketId: id, Name: "ba-1", AuthenticationType: authentication})
		st := status.Convert(err)
		if st.Code() != want.code || len(st.Details()) != 0 {
			t.Errorf("%v: %v", authentication, err)
		}
		for _, w := range want.words {
			if !strings.Contains(st.Message(), w) {
				t.Errorf("%v: %q does not say %q", authentication, st.Message(), w)
			}
		}
	}
}

// TestDeletionPolicyNeedsNoParameters: the older wire sends none, so what was
// recorded with the bucket decides.
func TestDeletionPolicyNeedsNoParameters(t *testing.T) {
	cloud := newCloud(t)
	c, ctx := cloud.process(), t.Context()
	id, err := c.CreateBucket(ctx, "bucket-1", map[string]string{"region": "rma", "bucketDeletionPolicy": "DeleteAll"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.GrantAccess(ctx, id, "ba-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cloud.client(g).PutObject(ctx, "bucket-1", "key", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
		t.Fatal(err)
	}
	if err := cloud.process().DeleteBucket(ctx, id, nil); err != nil {
		t.Fatal(err)
	}
	cloud.left()
}

// TestUnconfigured: the sidecar gets the name, and every call the remedy.
func TestUnconfigured(t *testing.T) {
	o, _ := options(t, newDriver(t, nil))
	c, ctx := inProcess(t, o), t.Context()
	if name, err := c.Info(ctx); err != nil || name != "cosi.zuber.dev" {
		t.Errorf("%q, %v", name, err)
	}
	_, create := c.CreateBucket(ctx, "bucket-1", rma())
	_, grant := c.GrantAccess(ctx, "cloudscale/rma/bucket-1", "ba-1", nil)
	for _, err := range []error{create, grant, c.DeleteBucket(ctx, "cloudscale/rma/bucket-1", nil), c.RevokeAccess(ctx, "cloudscale/rma/bucket-1", "cloudscale/ba-1")} {
		codeIs(t, err, codes.FailedPrecondition, "CLOUDSCALE_API_TOKEN")
	}
}

// TestClosedClient fails its calls and does not hang.
func TestClosedClient(t *testing.T) {
	o, _ := options(t, newDriver(t, &fake{}))
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Info(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}
