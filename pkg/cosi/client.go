package cosi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// Client calls the driver as a sidecar does, in process: the same faces and
// interceptors, without a socket. It sees of an answer what the sidecar sees, and
// refuses what that would refuse. A call that failed returns *RPCError. It is safe for
// concurrent use.
type Client struct {
	process *process
	rpcs    rpcs
}

// process is what the clients of one driver share.
type process struct {
	conn  *grpc.ClientConn
	close func() error
}

// rpcs is how one version of the API says it.
type rpcs interface {
	info(ctx context.Context) (string, error)
	create(ctx context.Context, name string, params map[string]string) (string, error)
	existing(ctx context.Context, existingID string, params map[string]string) (string, error)
	remove(ctx context.Context, bucketID string, params map[string]string) error
	grant(ctx context.Context, account string, buckets []driver.GrantBucket, params map[string]string) (Granted, error)
	revoke(ctx context.Context, accountID string, bucketIDs []string) error
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

// Granted is the answer to a grant, as the sidecar writes it into Secrets.
type Granted struct {
	AccountID       string
	Endpoint        string // of the first bucket
	Region          string // of the first bucket
	AccessKeyID     string
	SecretAccessKey provider.Secret
	Buckets         []GrantedBucket // in the order of the request
}

// GrantedBucket is one bucket of an access.
type GrantedBucket struct {
	ID       string // COSI's
	Name     string // what clients call it; empty in v1alpha1, which does not tell
	Endpoint string
	Region   string // to sign with
	// VirtualHosted addresses the bucket as a host name; false in v1alpha1, which does
	// not tell.
	VirtualHosted bool
}

// NewClient starts the faces in process and returns a client that speaks v1alpha1.
// Close ends them.
func NewClient(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	srv, _, err := newGRPC(context.Background(), o)
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
	served := make(chan error, 1)
	p := &process{conn: conn, close: sync.OnceValue(func() error {
		err := conn.Close()
		srv.Stop()
		// It may be stopped before it has begun to serve.
		if served := <-served; !errors.Is(served, grpc.ErrServerStopped) {
			err = errors.Join(err, served)
		}
		return err
	})}
	go func() { served <- srv.Serve(l) }()
	return &Client{process: p, rpcs: newV1alpha1RPCs(conn)}, nil
}

// Speaking returns a client of the same driver process that speaks this version;
// any other than V1alpha2 is V1alpha1. Closing one of them closes both.
func (c *Client) Speaking(v APIVersion) *Client {
	if v == V1alpha2 {
		return &Client{process: c.process, rpcs: newV1alpha2RPCs(c.process.conn)}
	}
	return &Client{process: c.process, rpcs: newV1alpha1RPCs(c.process.conn)}
}

// Close cancels running calls and ends the server behind the client.
func (c *Client) Close() error { return c.process.close() }

// Info returns the driver's name.
func (c *Client) Info(ctx context.Context) (string, error) { return c.rpcs.info(ctx) }

// CreateBucket returns the bucket ID.
func (c *Client) CreateBucket(ctx context.Context, name string, params map[string]string) (string, error) {
	return c.rpcs.create(ctx, name, params)
}

// ExistingBucket returns the bucket ID of an existing bucket. v1alpha1 has no call
// for that: its sidecar takes the ID as it stands.
func (c *Client) ExistingBucket(ctx context.Context, existingID string, params map[string]string) (string, error) {
	return c.rpcs.existing(ctx, existingID, params)
}

// DeleteBucket deletes the bucket; params are its BucketClass's.
func (c *Client) DeleteBucket(ctx context.Context, bucketID string, params map[string]string) error {
	return c.rpcs.remove(ctx, bucketID, params)
}

// GrantAccess asks for a key to one bucket; params are the BucketAccessClass's. The
// parameter accessMode is a field of the BucketAccess in v1alpha2 and is sent as such.
func (c *Client) GrantAccess(ctx context.Context, bucketID, account string, params map[string]string) (Granted, error) {
	return c.GrantBuckets(ctx, account, []driver.GrantBucket{{ID: bucketID}}, params)
}

// GrantBuckets asks for one key to several buckets, which v1alpha1 does not have. A
// bucket without a mode gets that of the parameter accessMode, or ReadWrite.
func (c *Client) GrantBuckets(ctx context.Context, account string, buckets []driver.GrantBucket, params map[string]string) (Granted, error) {
	return c.rpcs.grant(ctx, account, buckets, params)
}

// RevokeAccess ends the access to one bucket.
func (c *Client) RevokeAccess(ctx context.Context, bucketID, accountID string) error {
	return c.RevokeBuckets(ctx, accountID, bucketID)
}

// RevokeBuckets ends the access to several buckets, which v1alpha1 does not have.
func (c *Client) RevokeBuckets(ctx context.Context, accountID string, bucketIDs ...string) error {
	return c.rpcs.revoke(ctx, accountID, bucketIDs)
}

// rpcError returns an untyped nil for success.
func rpcError(method string, err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	return &RPCError{Method: method, Code: st.Code().String(), Message: st.Message()}
}
