package cosi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// face2 is a client of the v1alpha2 face over a provider in memory.
func face2(t *testing.T, p provider.Provider) *Client {
	t.Helper()
	o, _ := options(t, newDriver(t, p))
	return inProcess(t, o).Speaking(V1alpha2)
}

func protocolsOf(types ...v1alpha2pb.ObjectProtocol_Type) (out []*v1alpha2pb.ObjectProtocol) {
	for _, t := range types {
		out = append(out, &v1alpha2pb.ObjectProtocol{Type: t})
	}
	return out
}

// grantReq is a sound request for the buckets, all to be read and written.
func grantReq(ids ...string) *v1alpha2pb.DriverGrantBucketAccessRequest {
	req := &v1alpha2pb.DriverGrantBucketAccessRequest{
		AccountName:        "ba-1",
		Protocol:           &v1alpha2pb.ObjectProtocol{Type: v1alpha2pb.ObjectProtocol_S3},
		AuthenticationType: &v1alpha2pb.AuthenticationType{Type: v1alpha2pb.AuthenticationType_KEY},
	}
	for _, id := range ids {
		req.Buckets = append(req.Buckets, &v1alpha2pb.DriverGrantBucketAccessRequest_AccessedBucket{BucketId: id,
			AccessMode: &v1alpha2pb.AccessMode{Mode: v1alpha2pb.AccessMode_READ_WRITE}})
	}
	return req
}

// statusIs fails the test unless err is a bare status of that code that says all
// the words.
func statusIs(t *testing.T, err error, want codes.Code, words ...string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != want || len(st.Details()) != 0 {
		t.Errorf("got %v with details %v, want %v", err, st.Details(), want)
		return
	}
	for _, w := range words {
		if !strings.Contains(st.Message(), w) {
			t.Errorf("%q does not say %q", st.Message(), w)
		}
	}
}

func TestV1alpha2Info(t *testing.T) {
	for name, p := range map[string]provider.Provider{"configured": &fake{}, "unconfigured": nil} {
		if got, err := face2(t, p).Info(t.Context()); err != nil || got != "cosi.zuber.dev" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestV1alpha2BucketInfo: create and both names of the call for existing buckets
// tell the same of a bucket.
func TestV1alpha2BucketInfo(t *testing.T) {
	for style, pathStyle := range map[v1alpha2pb.S3AddressingStyle_Style]string{
		v1alpha2pb.S3AddressingStyle_PATH: "true", v1alpha2pb.S3AddressingStyle_VIRTUAL: "false",
	} {
		f := &fake{virtualHosted: pathStyle == "false"}
		c := face2(t, f)
		created, err := c.alpha2().DriverCreateBucket(t.Context(), &v1alpha2pb.DriverCreateBucketRequest{
			Name: "bucket-1", Protocols: protocolsOf(v1alpha2pb.ObjectProtocol_S3), Parameters: map[string]string{"region": "rma", "s3PathStyle": pathStyle}})
		if err != nil {
			t.Fatal(err)
		}
		answers := map[string]interface {
			GetBucketId() string
			GetProtocols() *v1alpha2pb.ObjectProtocolAndBucketInfo
		}{"create": created}
		for _, method := range []string{"DriverGetExistingBucket", "DriverGetBucket"} {
			found := &v1alpha2pb.DriverGetExistingBucketResponse{}
			req := &v1alpha2pb.DriverGetExistingBucketRequest{ExistingBucketId: "rma/bucket-1", Protocols: protocolsOf(v1alpha2pb.ObjectProtocol_S3)}
			if err := c.process.conn.Invoke(t.Context(), "/sigs.k8s.io.cosi.v1alpha2.Provisioner/"+method, req, found); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			answers[method] = found
		}
		for name, a := range answers {
			info := a.GetProtocols()
			s := info.GetS3()
			if a.GetBucketId() != "cloudscale/rma/bucket-1/owner1" || s.GetBucketId() != "bucket-1" || s.GetEndpoint() != "https://objects.example" ||
				s.GetRegion() != "sign-rma" || s.GetAddressingStyle().GetStyle() != style || info.GetAzure() != nil || info.GetGcs() != nil {
				t.Errorf("%s answers %v", name, a)
			}
		}
	}
}

// TestV1alpha2Protocols: what is not S3 is refused, whatever stands beside it.
func TestV1alpha2Protocols(t *testing.T) {
	c, ctx := face2(t, &untouched{t: t}).alpha2(), t.Context()
	for _, types := range [][]v1alpha2pb.ObjectProtocol_Type{
		{v1alpha2pb.ObjectProtocol_AZURE}, {v1alpha2pb.ObjectProtocol_S3, v1alpha2pb.ObjectProtocol_GCS}, {v1alpha2pb.ObjectProtocol_UNKNOWN}, {17},
	} {
		_, err := c.DriverCreateBucket(ctx, &v1alpha2pb.DriverCreateBucketRequest{Name: "bucket-1", Protocols: protocolsOf(types...), Parameters: rma()})
		statusIs(t, err, codes.InvalidArgument, "bucket-1", "S3 alone")
		_, err = c.DriverGetExistingBucket(ctx, &v1alpha2pb.DriverGetExistingBucketRequest{ExistingBucketId: "rma/bucket-1", Protocols: protocolsOf(types...)})
		statusIs(t, err, codes.InvalidArgument, "rma/bucket-1", "S3 alone")
	}
	for _, p := range []*v1alpha2pb.ObjectProtocol{nil, {}, {Type: v1alpha2pb.ObjectProtocol_AZURE}} {
		req := grantReq("rma/bucket-1")
		req.Protocol = p
		_, err := c.DriverGrantBucketAccess(ctx, req)
		statusIs(t, err, codes.InvalidArgument, "ba-1", "S3 alone")
	}
	_, err := c.DriverRevokeBucketAccess(ctx, &v1alpha2pb.DriverRevokeBucketAccessRequest{AccountId: "cloudscale/ba-1",
		Protocol: &v1alpha2pb.ObjectProtocol{Type: v1alpha2pb.ObjectProtocol_GCS}})
	statusIs(t, err, codes.InvalidArgument, "cloudscale/ba-1", "S3 alone")
}

// TestV1alpha2Authentication: keys only, and the refusal says what to do.
func TestV1alpha2Authentication(t *testing.T) {
	c := face2(t, &untouched{t: t}).alpha2()
	for _, tc := range []struct {
		sent  *v1alpha2pb.AuthenticationType
		code  codes.Code
		words []string
	}{
		{&v1alpha2pb.AuthenticationType{Type: v1alpha2pb.AuthenticationType_SERVICE_ACCOUNT}, codes.Unimplemented, []string{"ServiceAccount", "authenticationType: Key"}},
		{&v1alpha2pb.AuthenticationType{}, codes.InvalidArgument, []string{"UNKNOWN", "authenticationType: Key"}},
		{nil, codes.InvalidArgument, []string{"UNKNOWN"}},
		{&v1alpha2pb.AuthenticationType{Type: 9}, codes.InvalidArgument, []string{"arrived as 9"}},
	} {
		req := grantReq("rma/bucket-1")
		req.AuthenticationType, req.ServiceAccountName = tc.sent, "workload"
		_, err := c.DriverGrantBucketAccess(t.Context(), req)
		statusIs(t, err, tc.code, append(tc.words, "ba-1")...)
	}
}

// TestV1alpha2Modes: each bucket has its own, and none is guessed.
func TestV1alpha2Modes(t *testing.T) {
	var specs []provider.AccessSpec
	c := face2(t, &fake{onGrant: func(_ context.Context, s provider.AccessSpec) error { specs = append(specs, s); return nil }})
	granted, err := c.GrantBuckets(t.Context(), "ba-1", []driver.GrantBucket{
		{ID: "rma/writes", Mode: provider.WriteOnly}, {ID: "cloudscale/rma/reads/owner1", Mode: provider.ReadOnly}, {ID: "cloudscale/rma/both", Mode: provider.ReadWrite}}, nil)
	if err != nil || len(specs) != 1 {
		t.Fatalf("%v, %v", specs, err)
	}
	got := map[string]provider.Mode{}
	for _, b := range specs[0].Buckets {
		got[b.Name] = b.Mode
	}
	if len(got) != 3 || got["writes"] != provider.WriteOnly || got["reads"] != provider.ReadOnly || got["both"] != provider.ReadWrite {
		t.Errorf("modes %v", got)
	}
	names := []string{}
	for _, b := range granted.Buckets {
		names = append(names, b.Name)
	}
	if !slices.Equal(names, []string{"writes", "reads", "both"}) || granted.AccountID != "cloudscale/ba-1" || granted.SecretAccessKey.Reveal() != fakeSecret {
		t.Errorf("granted %+v", granted)
	}
	for _, mode := range []*v1alpha2pb.AccessMode{nil, {}, {Mode: 8}} {
		req := grantReq("rma/bucket-1", "rma/bucket-2")
		req.Buckets[1].AccessMode = mode
		_, err := c.alpha2().DriverGrantBucketAccess(t.Context(), req)
		statusIs(t, err, codes.InvalidArgument, "rma/bucket-2", "access mode", "revision of v1alpha2")
	}
	_, err = c.GrantBuckets(t.Context(), "ba-1", []driver.GrantBucket{{ID: "rma/b-1", Mode: "Everything"}}, nil)
	codeIs(t, err, codes.InvalidArgument, "access mode")
	if len(specs) != 1 {
		t.Errorf("a grant without a mode went through: %+v", specs)
	}
}

// TestV1alpha2ModeWithinClass: the administrator's parameter is a bound.
func TestV1alpha2ModeWithinClass(t *testing.T) {
	c := face2(t, &fake{})
	req := grantReq("rma/bucket-1")
	req.Parameters = map[string]string{"accessMode": "ReadOnly"}
	_, err := c.alpha2().DriverGrantBucketAccess(t.Context(), req)
	statusIs(t, err, codes.InvalidArgument, "rma/bucket-1", "ReadWrite", "ReadOnly alone")
	req.Buckets[0].AccessMode.Mode = v1alpha2pb.AccessMode_READ_ONLY
	if _, err := c.alpha2().DriverGrantBucketAccess(t.Context(), req); err != nil {
		t.Error(err)
	}
}

// TestV1alpha2OrderDoesNotMatter: the sidecar shuffles the buckets.
func TestV1alpha2OrderDoesNotMatter(t *testing.T) {
	c := face2(t, &fake{})
	buckets := []driver.GrantBucket{{ID: "rma/b-1"}, {ID: "rma/b-2"}, {ID: "rma/b-3"}}
	first, err := c.GrantBuckets(t.Context(), "ba-1", buckets, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(buckets)
	second, err := c.GrantBuckets(t.Context(), "ba-1", buckets, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(second.Buckets)
	if first.AccountID != second.AccountID || first.AccessKeyID != second.AccessKeyID || !slices.Equal(first.Buckets, second.Buckets) {
		t.Errorf("%+v, then %+v", first, second)
	}
}

func TestV1alpha2RevokesSeveralBuckets(t *testing.T) {
	var ended []provider.AccountRef
	c := face2(t, &fake{onRevoke: func(ref provider.AccountRef) error { ended = append(ended, ref); return nil }})
	if err := c.RevokeBuckets(t.Context(), "cloudscale/ba-1/identity", "cloudscale/rma/b-1/owner1", "rma/b-2"); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 1 || ended[0].Account != "ba-1" || ended[0].IdentityID != "identity" || len(ended[0].Buckets) != 2 || ended[0].Buckets[1].Name != "b-2" {
		t.Errorf("revoked %+v", ended)
	}
	// What an access was asked for with does not matter to its end.
	if _, err := c.alpha2().DriverRevokeBucketAccess(t.Context(), &v1alpha2pb.DriverRevokeBucketAccessRequest{AccountId: "cloudscale/ba-1"}); err != nil {
		t.Error(err)
	}
}

// TestV1alpha2SpansOneIdentity: buckets that no identity spans are the request's
// fault, and never OutOfRange, which would mean that there is no multi-bucket access.
func TestV1alpha2SpansOneIdentity(t *testing.T) {
	c := face2(t, &fake{onGrant: func(_ context.Context, s provider.AccessSpec) error {
		return fmt.Errorf("buckets %s and %s: %w: they are in two regions", s.Buckets[0].Name, s.Buckets[1].Name, provider.ErrInvalidArgument)
	}})
	_, err := c.GrantBuckets(t.Context(), "ba-1", []driver.GrantBucket{{ID: "rma/b-1"}, {ID: "rma/b-2"}}, nil)
	codeIs(t, err, codes.InvalidArgument, "b-1", "b-2", "two regions")
}

// TestV1alpha2Existing: what the sidecar waits for and what it gives up on.
func TestV1alpha2Existing(t *testing.T) {
	for want, cause := range map[codes.Code]error{
		codes.NotFound: provider.ErrNotFound, codes.PermissionDenied: provider.ErrPermissionDenied, codes.Unavailable: provider.ErrUnavailable,
	} {
		c := face2(t, &fake{onGet: func(ref provider.BucketRef) (provider.Bucket, error) {
			return provider.Bucket{}, fmt.Errorf("bucket %s: %w", ref.Name, cause)
		}})
		_, err := c.ExistingBucket(t.Context(), "rma/there", nil)
		codeIs(t, err, want, "there")
	}
	c := face2(t, &fake{})
	_, err := c.ExistingBucket(t.Context(), "rma/there", map[string]string{"s3PathStyle": "false"})
	codeIs(t, err, codes.AlreadyExists, "there", "s3PathStyle")
	_, err = c.ExistingBucket(t.Context(), "there", nil)
	codeIs(t, err, codes.InvalidArgument, "not this driver's")
}

// TestV1alpha2PoorAnswers: the sidecar would refuse them without saying whose fault
// it is.
func TestV1alpha2PoorAnswers(t *testing.T) {
	poor := provider.Bucket{BucketRef: provider.BucketRef{Name: "b-1", Region: "rma"}}
	c := face2(t, &fake{onGet: func(provider.BucketRef) (provider.Bucket, error) { return poor, nil }})
	_, err := c.ExistingBucket(t.Context(), "rma/b-1", nil)
	codeIs(t, err, codes.Internal, "back end", "b-1")
	for name, g := range map[string]driver.Grant{
		"no key":      {AccountID: "cloudscale/ba-1"},
		"no secret":   {AccountID: "cloudscale/ba-1", Credentials: provider.Credentials{AccessKeyID: "AKID"}},
		"no endpoint": {Credentials: provider.Credentials{AccessKeyID: "AKID", SecretAccessKey: provider.NewSecret(fakeSecret)}, Buckets: []driver.CreatedBucket{{ID: "x", Bucket: poor}}},
	} {
		if resp, err := grantResponse(g); err == nil {
			t.Errorf("%s: answers %v", name, resp)
		} else if strings.Contains(err.Error(), fakeSecret) {
			t.Errorf("%s: the error shows the secret", name)
		}
	}
}
