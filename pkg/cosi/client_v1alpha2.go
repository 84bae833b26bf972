package cosi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"

	"google.golang.org/grpc"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// v1alpha2RPCs speaks as the v1alpha2 sidecar does, and checks what it checks.
type v1alpha2RPCs struct {
	identity    v1alpha2pb.IdentityClient
	provisioner v1alpha2pb.ProvisionerClient
}

func newV1alpha2RPCs(conn grpc.ClientConnInterface) *v1alpha2RPCs {
	return &v1alpha2RPCs{v1alpha2pb.NewIdentityClient(conn), v1alpha2pb.NewProvisionerClient(conn)}
}

// What the custom resources accept of the strings in answers.
const (
	maxInfoName = 63
	maxIDLength = 2048
)

var (
	infoName  = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$`)
	idPattern = regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)
)

// refused says that the sidecar does not take an answer.
func refused(method, format string, args ...any) error {
	return fmt.Errorf("%s: the sidecar refuses the answer: %w", method, fmt.Errorf(format, args...))
}

func checkID(what, id string) error {
	if len(id) > maxIDLength || !idPattern.MatchString(id) {
		return fmt.Errorf("%s %s: want 1 to %d characters of a-z, A-Z, 0-9, \"/\", \".\", \"_\" and \"-\"", what, quoted(id), maxIDLength)
	}
	return nil
}

func (c *v1alpha2RPCs) info(ctx context.Context) (string, error) {
	const method = "DriverGetInfo"
	resp, err := c.identity.DriverGetInfo(ctx, &v1alpha2pb.DriverGetInfoRequest{})
	switch protocols := resp.GetSupportedProtocols(); {
	case err != nil:
		return "", rpcError(method, err)
	case len(resp.GetName()) > maxInfoName || !infoName.MatchString(resp.GetName()):
		return "", refused(method, "the name %s", quoted(resp.GetName()))
	case len(protocols) != 1 || protocols[0].GetType() != v1alpha2pb.ObjectProtocol_S3:
		return "", refused(method, "the protocols %v are not S3 alone", protocols)
	}
	return resp.GetName(), nil
}

// wantS3 is what a bucket's object lists.
func wantS3() []*v1alpha2pb.ObjectProtocol {
	return []*v1alpha2pb.ObjectProtocol{{Type: v1alpha2pb.ObjectProtocol_S3}}
}

func (c *v1alpha2RPCs) create(ctx context.Context, name string, params map[string]string) (string, error) {
	const method = "DriverCreateBucket"
	resp, err := c.provisioner.DriverCreateBucket(ctx, &v1alpha2pb.DriverCreateBucketRequest{Name: name, Protocols: wantS3(), Parameters: params})
	if err != nil {
		return "", rpcError(method, err)
	}
	return bucketAnswer(method, resp.GetBucketId(), resp.GetProtocols())
}

func (c *v1alpha2RPCs) existing(ctx context.Context, existingID string, params map[string]string) (string, error) {
	const method = "DriverGetExistingBucket"
	resp, err := c.provisioner.DriverGetExistingBucket(ctx, &v1alpha2pb.DriverGetExistingBucketRequest{
		ExistingBucketId: existingID, Protocols: wantS3(), Parameters: params})
	if err != nil {
		return "", rpcError(method, err)
	}
	return bucketAnswer(method, resp.GetBucketId(), resp.GetProtocols())
}

func bucketAnswer(method, id string, info *v1alpha2pb.ObjectProtocolAndBucketInfo) (string, error) {
	if _, err := s3Info(info); err != nil {
		return "", refused(method, "%w", err)
	}
	if err := checkID("bucket ID", id); err != nil {
		return "", refused(method, "%w", err)
	}
	return id, nil
}

// s3Info takes an answer for S3 alone with every field.
func s3Info(info *v1alpha2pb.ObjectProtocolAndBucketInfo) (GrantedBucket, error) {
	s, style := info.GetS3(), info.GetS3().GetAddressingStyle().GetStyle()
	switch {
	case info.GetAzure() != nil || info.GetGcs() != nil:
		return GrantedBucket{}, errors.New("a protocol that was not asked for")
	case s.GetBucketId() == "" || s.GetEndpoint() == "" || s.GetRegion() == "":
		return GrantedBucket{}, errors.New("the bucket's name, endpoint or region is empty")
	case style != v1alpha2pb.S3AddressingStyle_PATH && style != v1alpha2pb.S3AddressingStyle_VIRTUAL:
		return GrantedBucket{}, fmt.Errorf("the addressing style is %s", style)
	}
	return GrantedBucket{Name: s.GetBucketId(), Endpoint: s.GetEndpoint(), Region: s.GetRegion(),
		VirtualHosted: style == v1alpha2pb.S3AddressingStyle_VIRTUAL}, nil
}

func (c *v1alpha2RPCs) remove(ctx context.Context, bucketID string, params map[string]string) error {
	_, err := c.provisioner.DriverDeleteBucket(ctx, &v1alpha2pb.DriverDeleteBucketRequest{BucketId: bucketID, Parameters: params})
	return rpcError("DriverDeleteBucket", err)
}

// wireMode spells a mode as the wire does; what is none goes out as another number.
func wireMode(m provider.Mode) *v1alpha2pb.AccessMode {
	mode, ok := map[provider.Mode]v1alpha2pb.AccessMode_Mode{
		provider.ReadWrite: v1alpha2pb.AccessMode_READ_WRITE,
		provider.ReadOnly:  v1alpha2pb.AccessMode_READ_ONLY,
		provider.WriteOnly: v1alpha2pb.AccessMode_WRITE_ONLY,
	}[m]
	if !ok {
		mode = -1
	}
	return &v1alpha2pb.AccessMode{Mode: mode}
}

func (c *v1alpha2RPCs) grant(ctx context.Context, account string, buckets []driver.GrantBucket, params map[string]string) (Granted, error) {
	const method = "DriverGrantBucketAccess"
	fallback := cmp.Or(provider.Mode(params[paramAccessMode]), provider.ReadWrite)
	params = maps.Clone(params)
	delete(params, paramAccessMode)
	req := &v1alpha2pb.DriverGrantBucketAccessRequest{
		AccountName:        account,
		Protocol:           &v1alpha2pb.ObjectProtocol{Type: v1alpha2pb.ObjectProtocol_S3},
		AuthenticationType: &v1alpha2pb.AuthenticationType{Type: v1alpha2pb.AuthenticationType_KEY},
		Parameters:         params,
	}
	for _, b := range buckets {
		req.Buckets = append(req.Buckets, &v1alpha2pb.DriverGrantBucketAccessRequest_AccessedBucket{
			BucketId: b.ID, AccessMode: wireMode(cmp.Or(b.Mode, fallback))})
	}
	resp, err := c.provisioner.DriverGrantBucketAccess(ctx, req)
	if err != nil {
		return Granted{}, rpcError(method, err)
	}
	granted, err := grantAnswer(buckets, resp)
	if err != nil {
		return Granted{}, refused(method, "%w", err)
	}
	return granted, nil
}

// grantAnswer takes an answer that holds a key, and each bucket asked for once.
func grantAnswer(buckets []driver.GrantBucket, resp *v1alpha2pb.DriverGrantBucketAccessResponse) (Granted, error) {
	if err := checkID("account ID", resp.GetAccountId()); err != nil {
		return Granted{}, err
	}
	key := resp.GetCredentials().GetS3()
	if key.GetAccessKeyId() == "" || key.GetAccessSecretKey() == "" {
		return Granted{}, errors.New("a part of the key is empty")
	}
	found := map[string]GrantedBucket{}
	for _, b := range resp.GetBuckets() {
		info, err := s3Info(b.GetBucketInfo())
		if err != nil {
			return Granted{}, fmt.Errorf("bucket %s: %w", quoted(b.GetBucketId()), err)
		}
		info.ID = b.GetBucketId()
		found[info.ID] = info
	}
	if len(resp.GetBuckets()) != len(buckets) || len(found) != len(buckets) {
		return Granted{}, fmt.Errorf("it names %d buckets, %d were asked for", len(found), len(buckets))
	}
	out := Granted{AccountID: resp.GetAccountId(), AccessKeyID: key.GetAccessKeyId(), SecretAccessKey: provider.NewSecret(key.GetAccessSecretKey())}
	for _, b := range buckets {
		info, ok := found[b.ID]
		if !ok {
			return Granted{}, fmt.Errorf("bucket %s is missing", quoted(b.ID))
		}
		out.Buckets = append(out.Buckets, info)
	}
	if len(out.Buckets) > 0 {
		out.Endpoint, out.Region = out.Buckets[0].Endpoint, out.Buckets[0].Region
	}
	return out, nil
}

func (c *v1alpha2RPCs) revoke(ctx context.Context, accountID string, bucketIDs []string) error {
	req := &v1alpha2pb.DriverRevokeBucketAccessRequest{
		AccountId:          accountID,
		Protocol:           &v1alpha2pb.ObjectProtocol{Type: v1alpha2pb.ObjectProtocol_S3},
		AuthenticationType: &v1alpha2pb.AuthenticationType{Type: v1alpha2pb.AuthenticationType_KEY},
	}
	for _, id := range bucketIDs {
		req.Buckets = append(req.Buckets, &v1alpha2pb.DriverRevokeBucketAccessRequest_AccessedBucket{BucketId: id})
	}
	_, err := c.provisioner.DriverRevokeBucketAccess(ctx, req)
	return rpcError("DriverRevokeBucketAccess", err)
}
