package cosi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
)

// TestConformanceThroughFaces runs the contract's checks with a face between them and
// each adapter.
func TestConformanceThroughFaces(t *testing.T) {
	eachCloud(t, func(t *testing.T, s *site) {
		p := s.adapter()
		o, _ := options(t, s.driver(p))
		c := inProcess(t, o)
		for _, v := range []APIVersion{V1alpha1, V1alpha2} {
			through := &throughFace{Provider: p, client: c.Speaking(v), backend: s.backend}
			for _, check := range conformance.Checks(conformance.Options{Region: s.region, SingleBucket: v == V1alpha1}) {
				t.Run(string(v)+"/"+check.Name, func(t *testing.T) {
					if err := check.Run(t.Context(), through); err != nil {
						t.Error(err)
					}
				})
			}
		}
		for r, err := range p.Inventory(t.Context()) {
			if err != nil || r.Kind == provider.KindBucket || r.Kind == provider.KindOwner {
				t.Errorf("left: %+v, %v", r, err)
			}
		}
	})
}

// throughFace is a provider whose calls go by RPC where COSI has one.
type throughFace struct {
	provider.Provider
	client  *Client
	backend string
}

func (p *throughFace) CreateBucket(ctx context.Context, s provider.BucketSpec) (provider.Bucket, error) {
	if s.KeepTenant || s.Tenant != "" && !p.Capabilities().Tenants {
		// Only a label of the cluster asks for the one; for the other the driver has a
		// refusal of its own.
		return p.Provider.CreateBucket(ctx, s)
	}
	params := map[string]string{}
	if s.Tenant != "" {
		params["objectsUser"] = "tenant"
	}
	for key, value := range map[string]string{
		"region": s.Region, "endpointURL": s.Endpoint, "bucketDeletionPolicy": string(s.DeletionPolicy), "sharedCredentials": string(s.SharedCredentials),
		"tenant": s.Tenant,
	} {
		if value != "" {
			params[key] = value
		}
	}
	if s.VirtualHosted {
		params["s3PathStyle"] = "false"
	}
	id, err := p.client.CreateBucket(ctx, s.Name, params)
	if err != nil {
		return provider.Bucket{}, sentinelOf(err)
	}
	parsed, err := driver.ParseBucketID(id)
	if err != nil {
		return provider.Bucket{}, err
	}
	return p.GetBucket(ctx, parsed.Ref())
}

func (p *throughFace) id(ref provider.BucketRef) string {
	id, err := driver.BucketID{Backend: p.backend, Region: ref.Region, Bucket: ref.Name, OwnerID: ref.OwnerID, AccessOnly: ref.AccessOnly}.Format()
	if err != nil {
		return ref.Name // the driver refuses it
	}
	return id
}

func (p *throughFace) DeleteBucket(ctx context.Context, ref provider.BucketRef, o provider.DeleteOptions) error {
	policy := provider.DeleteIfEmpty
	if o.Purge {
		policy = provider.DeleteAll
	}
	return sentinelOf(p.client.DeleteBucket(ctx, p.id(ref), map[string]string{"bucketDeletionPolicy": string(policy)}))
}

func (p *throughFace) GrantAccess(ctx context.Context, s provider.AccessSpec) (provider.Access, error) {
	params := map[string]string{}
	if s.Credentials != "" {
		params["credentials"] = string(s.Credentials)
	}
	if s.OwnBuckets != "" {
		params["ownBuckets"] = string(s.OwnBuckets)
	}
	var buckets []driver.GrantBucket
	for _, b := range s.Buckets {
		buckets = append(buckets, driver.GrantBucket{ID: p.id(b.BucketRef), Mode: b.Mode})
	}
	g, err := p.client.GrantBuckets(ctx, s.Account, buckets, params)
	if err != nil {
		return provider.Access{}, sentinelOf(err)
	}
	account, err := driver.ParseAccountID(g.AccountID)
	if err != nil {
		return provider.Access{}, err
	}
	a := provider.Access{IdentityID: account.IdentityID, Credentials: provider.Credentials{AccessKeyID: g.AccessKeyID, SecretAccessKey: g.SecretAccessKey}}
	for i, b := range s.Buckets {
		seen := g.Buckets[i]
		ref := b.BucketRef
		a.Buckets = append(a.Buckets, provider.Bucket{BucketRef: ref, Endpoint: seen.Endpoint, SigningRegion: seen.Region, VirtualHosted: seen.VirtualHosted})
	}
	return a, nil
}

func (p *throughFace) RevokeAccess(ctx context.Context, ref provider.AccountRef) error {
	id, err := driver.AccountID{Backend: p.backend, Account: ref.Account, IdentityID: ref.IdentityID}.Format()
	if err != nil {
		return err
	}
	var buckets []string
	for _, b := range ref.Buckets {
		buckets = append(buckets, p.id(b))
	}
	return sentinelOf(p.client.RevokeBuckets(ctx, id, buckets...))
}

// sentinelOf finds by code, and where several have one by the text, what the driver
// meant.
func sentinelOf(err error) error {
	var e *RPCError
	if !errors.As(err, &e) {
		return err
	}
	if e.Code == codes.Canceled.String() {
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	for _, r := range statusTable() {
		same := r.v1alpha1.String() == e.Code || r.v1alpha2.String() == e.Code
		if same && strings.Contains(e.Message, r.sentinel.Error()) {
			return fmt.Errorf("%w: %w", r.sentinel, err)
		}
	}
	return err
}
