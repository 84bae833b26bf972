package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// cluster answers from memory.
type cluster struct {
	labels map[string]string
	fail   error
}

func (c *cluster) ClaimOf(_ context.Context, bucketObject string) (Claim, error) {
	return Claim{Namespace: "ns-of-" + bucketObject, Name: "photos", UID: "u1"}, c.fail
}

func (c *cluster) NamespaceLabels(_ context.Context, namespace string) (map[string]string, error) {
	if namespace != "ns-of-bucket-1" {
		return nil, fmt.Errorf("%w: asked about the namespace %s", provider.ErrPrecondition, namespace)
	}
	return c.labels, nil
}

func (c *cluster) BucketObjects(context.Context) ([]BucketObject, error) { return nil, c.fail }

func TestTenantParameters(t *testing.T) {
	const user, tenant, label = "objectsUser", "tenant", "tenantFromNamespaceLabel"
	for name, c := range map[string]struct {
		params map[string]string
		says   string // of ErrInvalidArgument; "" for none
		want   string // the tenant
	}{
		"a bucket's own":      {map[string]string{user: "perBucket"}, "", ""},
		"fixed":               {map[string]string{user: "tenant", tenant: "team-a"}, "", "team-a"},
		"none":                {map[string]string{user: "tenant"}, "takes tenant or tenantFromNamespaceLabel", ""},
		"both":                {map[string]string{user: "tenant", tenant: "a", label: "team"}, "exclude each other", ""},
		"tenant alone":        {map[string]string{tenant: "a"}, `go with objectsUser = "tenant" alone`, ""},
		"label alone":         {map[string]string{user: "perBucket", label: "team"}, `go with objectsUser = "tenant" alone`, ""},
		"shared":              {map[string]string{user: "tenant", tenant: "a", "sharedCredentials": "allowed"}, "would open all buckets", ""},
		"not shared":          {map[string]string{user: "tenant", tenant: "a", "sharedCredentials": "forbidden"}, "", "a"},
		"another kind":        {map[string]string{user: "perbucket"}, `did you mean "perBucket"?`, ""},
		"capitals":            {map[string]string{user: "tenant", tenant: "A"}, "a-z", ""},
		"too long":            {map[string]string{user: "tenant", tenant: strings.Repeat("a", 64)}, "1 to 63", ""},
		"no key of a label":   {map[string]string{user: "tenant", label: "a/b/c"}, "[prefix/]name", ""},
		"a cloud without any": {map[string]string{user: "tenant", tenant: "a", "backend": "other"}, "leave objectsUser out", ""},
	} {
		t.Run(name, func(t *testing.T) {
			without := newFake()
			without.noTenants = true
			d, f := oneBackend(t, func(c *Config) {
				c.Backends = append(c.Backends, Backend{Name: "other", Kind: "stackit", Provider: without})
			})
			params := map[string]string{"region": "rma", "backend": "cloudscale"}
			maps.Copy(params, c.params)
			_, err := d.CreateBucket(t.Context(), "bucket-1", params)
			if c.says != "" {
				if !errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), c.says) || f.callCount()+without.callCount() > 0 {
					t.Errorf("got %v", err)
				}
				return
			}
			if got := f.buckets["bucket-1"]; err != nil || got.Tenant != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
			if s := f.spec; s.KeepTenant || (s.SharedCredentials == provider.SharedForbidden) != (c.want != "") {
				t.Errorf("asked for %+v", s)
			}
		})
	}
}

// TestTenantFromLabel: the label counts when the bucket is made, and what is made is
// found whatever became of the label.
func TestTenantFromLabel(t *testing.T) {
	params := map[string]string{"region": "rma", "objectsUser": "tenant", "tenantFromNamespaceLabel": "example.com/Team"}
	for name, c := range map[string]struct {
		labels  map[string]string
		fail    error
		missing bool // no companion
		err     error
		says    []string
	}{
		"set":          {labels: map[string]string{"example.com/Team": "team-a"}},
		"missing":      {labels: map[string]string{"team": "x"}, err: provider.ErrPrecondition, says: []string{"namespace ns-of-bucket-1", "the label example.com/Team", "set it"}},
		"empty":        {labels: map[string]string{"example.com/Team": ""}, err: provider.ErrPrecondition, says: []string{"ns-of-bucket-1", "example.com/Team"}},
		"illegal":      {labels: map[string]string{"example.com/Team": "Team_A"}, err: provider.ErrPrecondition, says: []string{"ns-of-bucket-1", "example.com/Team", `"Team_A"`, "a-z"}},
		"no answer":    {fail: provider.ErrUnavailable, err: provider.ErrUnavailable, says: []string{"bucket-1"}},
		"no companion": {missing: true, err: provider.ErrPrecondition, says: []string{"companion"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := oneBackend(t, func(cfg *Config) {
				if !c.missing {
					cfg.Claims = &cluster{labels: c.labels, fail: c.fail}
				}
			})
			_, err := d.CreateBucket(t.Context(), "bucket-1", params)
			if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if c.err == nil {
				if f.spec.Tenant != "team-a" || !f.spec.KeepTenant {
					t.Errorf("asked for %+v", f.spec)
				}
				return
			}
			if len(f.buckets) > 0 {
				t.Error("a bucket was made for nobody")
			}
			// One that was made before stays with whom it was made for.
			f.buckets["bucket-1"] = provider.Bucket{BucketRef: provider.BucketRef{Name: "bucket-1", Region: "rma", OwnerID: "owner1"}, Tenant: "team-b"}
			got, err := d.CreateBucket(t.Context(), "bucket-1", params)
			if err != nil || got.Bucket.Tenant != "team-b" || f.spec.Tenant != "team-b" {
				t.Errorf("the bucket that is there: %+v, %v", got, err)
			}
			// And one that has no tenant does not get one.
			f.buckets["bucket-1"] = provider.Bucket{BucketRef: provider.BucketRef{Name: "bucket-1", Region: "rma", OwnerID: "owner1"}}
			if _, err := d.CreateBucket(t.Context(), "bucket-1", params); !errors.Is(err, c.err) {
				t.Errorf("a bucket without a tenant: got %v, want %v", err, c.err)
			}
			f.fail = provider.ErrUnavailable
			if _, err := d.CreateBucket(t.Context(), "bucket-1", params); !errors.Is(err, provider.ErrUnavailable) {
				t.Errorf("a cloud that does not answer: %v", err)
			}
		})
	}
}
