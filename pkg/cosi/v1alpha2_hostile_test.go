package cosi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
)

// TestV1alpha2HostileRequests: whatever reaches the socket is answered in words of
// bounded length, without a panic, and costs no call to a cloud.
func TestV1alpha2HostileRequests(t *testing.T) {
	o, logs := options(t, newDriver(t, &untouched{t: t}))
	c, ctx := inProcess(t, o).Speaking(V1alpha2).alpha2(), t.Context()
	huge := strings.Repeat("x", 1<<20)
	manyParameters := map[string]string{}
	for i := range 10_000 {
		manyParameters[fmt.Sprint("key-", i)] = huge[:10]
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("cloudscale/rma/bucket-%d", i)
	}
	noIDs, twice := grantReq("cloudscale/rma/bucket-1", ""), grantReq("cloudscale/rma/bucket-1", "cloudscale/rma/bucket-1/owner1")
	hugeAccount := grantReq("cloudscale/rma/bucket-1")
	hugeAccount.AccountName = huge
	noBuckets, badParameters := grantReq(), grantReq("cloudscale/rma/bucket-1")
	badParameters.Parameters = manyParameters
	emptyElement := grantReq()
	emptyElement.Buckets = []*v1alpha2pb.DriverGrantBucketAccessRequest_AccessedBucket{{}}
	for name, req := range map[string]*v1alpha2pb.DriverGrantBucketAccessRequest{
		"nothing": {}, "no buckets": noBuckets, "many buckets": grantReq(many...), "129 buckets": grantReq(many[:129]...), "a huge ID": grantReq(huge),
		"an empty ID": noIDs, "an empty element": emptyElement, "one bucket twice": twice, "a huge account": hugeAccount, "parameters": badParameters,
		"a line break": grantReq("cloudscale/rma/a\nb"), "control": grantReq("cloudscale/\x00/\x1b[2J"),
	} {
		began := time.Now()
		_, err := c.DriverGrantBucketAccess(ctx, req)
		refusedInWords(t, "grant of "+name, err, began)
	}
	revokes := map[string]*v1alpha2pb.DriverRevokeBucketAccessRequest{
		"nothing": {}, "a huge account": {AccountId: huge}, "many buckets": {AccountId: "cloudscale/ba-1"},
		"an empty element": {AccountId: "cloudscale/ba-1", Buckets: []*v1alpha2pb.DriverRevokeBucketAccessRequest_AccessedBucket{{}}},
	}
	for _, id := range many {
		revokes["many buckets"].Buckets = append(revokes["many buckets"].Buckets, &v1alpha2pb.DriverRevokeBucketAccessRequest_AccessedBucket{BucketId: id})
	}
	for name, req := range revokes {
		began := time.Now()
		_, err := c.DriverRevokeBucketAccess(ctx, req)
		refusedInWords(t, "revoke of "+name, err, began)
	}
	for name, req := range map[string]*v1alpha2pb.DriverCreateBucketRequest{
		"nothing": {}, "a huge name": {Name: huge, Parameters: rma()}, "parameters": {Name: "bucket-1", Parameters: manyParameters},
		"protocols": {Name: "bucket-1", Parameters: rma(), Protocols: make([]*v1alpha2pb.ObjectProtocol, 100_000)},
	} {
		for i := range req.Protocols {
			req.Protocols[i] = &v1alpha2pb.ObjectProtocol{}
		}
		began := time.Now()
		_, err := c.DriverCreateBucket(ctx, req)
		refusedInWords(t, "create of "+name, err, began)
	}
	for name, id := range map[string]string{"nothing": "", "a huge ID": huge, "a path": "../../etc/passwd"} {
		began := time.Now()
		_, err := c.DriverGetExistingBucket(ctx, &v1alpha2pb.DriverGetExistingBucketRequest{ExistingBucketId: id})
		refusedInWords(t, "lookup of "+name, err, began)
		_, err = c.DriverDeleteBucket(ctx, &v1alpha2pb.DriverDeleteBucketRequest{BucketId: id})
		refusedInWords(t, "delete of "+name, err, began)
	}
	if got := logs.String(); strings.Contains(got, "panic") || len(got) > 100_000 || strings.Contains(got, "\x1b") {
		t.Errorf("the log: %d bytes, %.2000q", len(got), got)
	}
}

func refusedInWords(t *testing.T, what string, err error, began time.Time) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.InvalidArgument || len(st.Details()) != 0 || len(st.Message()) > maxMessage || strings.ContainsAny(st.Message(), "\n\x00\x1b") {
		t.Errorf("%s: %v: %d bytes: %.200q", what, st.Code(), len(st.Message()), st.Message())
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%s took %s", what, took)
	}
}

// FuzzV1alpha2Strings: whatever is asked for, what comes back is refused in a status
// or fits the patterns of the custom resources; the client checks them as the sidecar
// does. What one version returns the other one accepts.
func FuzzV1alpha2Strings(f *testing.F) {
	for _, seed := range [][4]string{
		{"cosi.zuber.dev", "bucket-1", "ba-1", "rma"}, {"Cosi", "B", "", ""}, {"a.b-c", "a.b", "ba/..", "r/a"},
		{strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 254), strings.Repeat("d", 2000)},
		{"1a", "bücket", "ba\x00", "rma\n"}, {"a..b", "bucket-1", "accessOnly", "accessOnly"}, {"a-", "abc", ".", ".."},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, name, bucket, account, region string) {
		d, err := driver.New(driver.Config{Name: name, Backends: []driver.Backend{{Name: "cloudscale", Kind: "cloudscale", Provider: &fake{}}}})
		if err != nil {
			return // such a name stops the start
		}
		o, _ := options(t, d)
		c := inProcess(t, o)
		c2, ctx := c.Speaking(V1alpha2), t.Context()
		if _, err := c2.Info(ctx); err != nil {
			t.Fatal(err)
		}
		id, err := c2.CreateBucket(ctx, bucket, map[string]string{"region": region})
		if err != nil {
			wasRefused(t, err)
			return
		}
		if kept, err := c2.ExistingBucket(ctx, id, nil); err != nil || kept != id {
			t.Errorf("created %q, found %q, %v", id, kept, err)
		}
		g, err := c2.GrantAccess(ctx, id, account, nil)
		if err != nil {
			wasRefused(t, err)
			return
		}
		older, err := c.GrantAccess(ctx, id, account, nil)
		if err != nil || older.AccountID != g.AccountID {
			t.Errorf("granted %q, by v1alpha1 %q, %v", g.AccountID, older.AccountID, err)
		}
		if err := c.RevokeAccess(ctx, id, g.AccountID); err != nil {
			t.Error(err)
		}
	})
}

// wasRefused fails the test unless the driver, and not the client, refused.
func wasRefused(t *testing.T, err error) {
	t.Helper()
	codeIs(t, err, codes.InvalidArgument)
}
