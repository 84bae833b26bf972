package cosi

import (
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// maxBuckets is how many buckets a BucketAccess can name.
const maxBuckets = 128

// quoted makes a value from outside fit for a message.
func quoted(s string) string { return fmt.Sprintf("%q", oneLine(s, 128)) }

// checkProtocols accepts S3 alone. A bucket that lists none is an S3 bucket.
func checkProtocols(protocols []*v1alpha2pb.ObjectProtocol) error {
	for _, p := range protocols {
		if err := checkProtocol(p.GetType()); err != nil {
			return err
		}
	}
	return nil
}

func checkProtocol(t v1alpha2pb.ObjectProtocol_Type) error {
	if t == v1alpha2pb.ObjectProtocol_S3 {
		return nil
	}
	return fmt.Errorf("%w: protocol %s: this driver serves S3 alone; list S3 and nothing else", provider.ErrInvalidArgument, t)
}

func checkCount(buckets int) error {
	if buckets <= maxBuckets {
		return nil
	}
	return fmt.Errorf("%w: %d buckets: an access has at most %d", provider.ErrInvalidArgument, buckets, maxBuckets)
}

// grantRequest reads a request; what is common to both versions is checked by the
// driver.
func grantRequest(req *v1alpha2pb.DriverGrantBucketAccessRequest) (driver.GrantRequest, error) {
	if err := checkCount(len(req.GetBuckets())); err != nil {
		return driver.GrantRequest{}, err
	}
	if err := checkProtocol(req.GetProtocol().GetType()); err != nil {
		return driver.GrantRequest{}, err
	}
	if err := checkKey(req.GetAuthenticationType().GetType()); err != nil {
		return driver.GrantRequest{}, err
	}
	out := driver.GrantRequest{Account: req.GetAccountName(), Parameters: req.GetParameters()}
	for _, b := range req.GetBuckets() {
		mode, err := modeOf(b.GetAccessMode().GetMode())
		if err != nil {
			return driver.GrantRequest{}, fmt.Errorf("bucket %s: %w", quoted(b.GetBucketId()), err)
		}
		out.Buckets = append(out.Buckets, driver.GrantBucket{ID: b.GetBucketId(), Mode: mode})
	}
	return out, nil
}

func checkKey(t v1alpha2pb.AuthenticationType_Type) error {
	switch t {
	case v1alpha2pb.AuthenticationType_KEY:
		return nil
	case v1alpha2pb.AuthenticationType_SERVICE_ACCOUNT:
		return fmt.Errorf("%w: authenticationType ServiceAccount: the clouds of this driver know no Kubernetes service accounts; "+
			"use a BucketAccessClass with authenticationType: Key", provider.ErrUnsupported)
	default:
		return fmt.Errorf("%w: authenticationType arrived as %s: use a BucketAccessClass with authenticationType: Key", provider.ErrInvalidArgument, t)
	}
}

// modeOf refuses a mode that is not told. The sidecar always sends one, so this is
// another revision's, whose words a default would turn into more than was asked for.
func modeOf(m v1alpha2pb.AccessMode_Mode) (provider.Mode, error) {
	switch m {
	case v1alpha2pb.AccessMode_READ_WRITE:
		return provider.ReadWrite, nil
	case v1alpha2pb.AccessMode_READ_ONLY:
		return provider.ReadOnly, nil
	case v1alpha2pb.AccessMode_WRITE_ONLY:
		return provider.WriteOnly, nil
	default:
		return "", fmt.Errorf("%w: its access mode arrived as %s: want ReadWrite, ReadOnly or WriteOnly; "+
			"if the BucketAccess says one of them, the sidecar is of a revision of v1alpha2 that this driver does not speak", provider.ErrInvalidArgument, m)
	}
}

// grantResponse answers for every bucket with all that a workload needs.
func grantResponse(grant driver.Grant) (*v1alpha2pb.DriverGrantBucketAccessResponse, error) {
	if grant.Credentials.AccessKeyID == "" || grant.Credentials.SecretAccessKey.Empty() {
		return nil, fmt.Errorf("account ID %s: the back end granted no key", grant.AccountID)
	}
	out := &v1alpha2pb.DriverGrantBucketAccessResponse{
		AccountId: grant.AccountID,
		Credentials: &v1alpha2pb.CredentialInfo{S3: &v1alpha2pb.S3CredentialInfo{
			AccessKeyId:     grant.Credentials.AccessKeyID,
			AccessSecretKey: grant.Credentials.SecretAccessKey.Reveal(),
		}},
	}
	for _, b := range grant.Buckets {
		info, err := bucketInfo(b.Bucket)
		if err != nil {
			return nil, err
		}
		out.Buckets = append(out.Buckets, &v1alpha2pb.DriverGrantBucketAccessResponse_BucketInfo{BucketId: b.ID, BucketInfo: info})
	}
	return out, nil
}

// bucketInfo is what clients need to know of a bucket. The sidecar refuses one with
// an empty field, in words that blame nobody.
func bucketInfo(b provider.Bucket) (*v1alpha2pb.ObjectProtocolAndBucketInfo, error) {
	style := v1alpha2pb.S3AddressingStyle_PATH
	if b.VirtualHosted {
		style = v1alpha2pb.S3AddressingStyle_VIRTUAL
	}
	info := &v1alpha2pb.S3BucketInfo{
		BucketId:        b.Name,
		Endpoint:        b.Endpoint,
		Region:          clientRegion(b),
		AddressingStyle: &v1alpha2pb.S3AddressingStyle{Style: style},
	}
	if info.GetBucketId() == "" || info.GetEndpoint() == "" || info.GetRegion() == "" {
		return nil, errors.New("the back end did not tell the name, the endpoint or the region of the bucket " + quoted(b.Name))
	}
	return &v1alpha2pb.ObjectProtocolAndBucketInfo{S3: info}, nil
}
