package cosi

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Client calls the driver as the v1alpha1 sidecar does, in process: the same
// faces and interceptors, without a socket. Its methods return *RPCError. It is
// safe for concurrent use.
type Client struct {
	server      *grpc.Server
	conn        *grpc.ClientConn
	served      chan error
	identity    cosiv1alpha1.IdentityClient
	provisioner cosiv1alpha1.ProvisionerClient
}

// RPCError is a call that failed, as the sidecar sees it.
type RPCError struct {
	Method  string // for example DriverCreateBucket
	Code    string // gRPC's name of the code, for example FailedPrecondition
	Message string
}

// Error names the call, the code and the cause.
func (e *RPCError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Method, e.Code, e.Message)
}

// Granted is the answer to a grant, as the sidecar writes it into a Secret.
type Granted struct {
	AccountID       string
	Endpoint        string
	Region          string
	AccessKeyID     string
	SecretAccessKey provider.Secret
}

// NewClient starts the faces in process. Close ends them.
func NewClient(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	srv, _, err := newGRPC(o)
	if err != nil {
		return nil, err
	}
	const buffer = 64 << 10
	l := bufconn.Listen(buffer)
	conn, err := grpc.NewClient("passthrough:///in-process",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		return nil, fmt.Errorf("in-process client: %w", err)
	}
	c := &Client{
		server:      srv,
		conn:        conn,
		served:      make(chan error, 1),
		identity:    cosiv1alpha1.NewIdentityClient(conn),
		provisioner: cosiv1alpha1.NewProvisionerClient(conn),
	}
	go func() { c.served <- srv.Serve(l) }()
	return c, nil
}

// Close cancels running calls and ends the server behind the client.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.server.Stop()
	return errors.Join(err, <-c.served)
}

// Info returns the driver's name.
func (c *Client) Info(ctx context.Context) (string, error) {
	resp, err := c.identity.DriverGetInfo(ctx, &cosiv1alpha1.DriverGetInfoRequest{})
	return resp.GetName(), rpcError("DriverGetInfo", err)
}

// CreateBucket returns the bucket ID.
func (c *Client) CreateBucket(ctx context.Context, name string, params map[string]string) (string, error) {
	resp, err := c.provisioner.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: name, Parameters: params})
	return resp.GetBucketId(), rpcError("DriverCreateBucket", err)
}

// DeleteBucket deletes the bucket; params are its BucketClass's.
func (c *Client) DeleteBucket(ctx context.Context, bucketID string, params map[string]string) error {
	_, err := c.provisioner.DriverDeleteBucket(ctx, &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: bucketID, DeleteContext: params})
	return rpcError("DriverDeleteBucket", err)
}

// GrantAccess asks for a key; params are the BucketAccessClass's.
func (c *Client) GrantAccess(ctx context.Context, bucketID, account string, params map[string]string) (Granted, error) {
	const method = "DriverGrantBucketAccess"
	resp, err := c.provisioner.DriverGrantBucketAccess(ctx, &cosiv1alpha1.DriverGrantBucketAccessRequest{
		BucketId:           bucketID,
		Name:               account,
		AuthenticationType: cosiv1alpha1.AuthenticationType_Key,
		Parameters:         params,
	})
	if err != nil {
		return Granted{}, rpcError(method, err)
	}
	s := resp.GetCredentials()[protocolS3].GetSecrets()
	return Granted{
		AccountID:       resp.GetAccountId(),
		Endpoint:        s[secretEndpoint],
		Region:          s[secretRegion],
		AccessKeyID:     s[secretAccessKeyID],
		SecretAccessKey: provider.NewSecret(s[secretAccessKey]),
	}, nil
}

// RevokeAccess ends the access.
func (c *Client) RevokeAccess(ctx context.Context, bucketID, accountID string) error {
	_, err := c.provisioner.DriverRevokeBucketAccess(ctx, &cosiv1alpha1.DriverRevokeBucketAccessRequest{BucketId: bucketID, AccountId: accountID})
	return rpcError("DriverRevokeBucketAccess", err)
}

// rpcError returns an untyped nil for success.
func rpcError(method string, err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	return &RPCError{Method: method, Code: st.Code().String(), Message: st.Message()}
}
