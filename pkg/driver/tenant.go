package driver

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// What objectsUser can be.
const (
	objectsUserPerBucket = "perBucket"
	objectsUserTenant    = "tenant"
)

const tenantRule = `want 1 to 63 characters of a-z, 0-9, "-" and ".", starting and ending with a letter or digit`

var (
	tenantName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	// labelKey is a label's key in Kubernetes: [prefix/]name.
	labelKey = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

func objectsUsers() []string { return []string{objectsUserPerBucket, objectsUserTenant} }

func tenantRows() []parameterRow {
	return []parameterRow{{
		Parameter: Parameter{
			Name: "objectsUser", Kind: BucketClass,
			Default: objectsUserPerBucket,
			Allowed: listed(objectsUsers()),
			Description: "Who owns the bucket on cloudscale.ch: an objects user of its own, or one that owns all buckets of a tenant and goes with the last. " +
				"STACKIT has no such users.",
		},
		values: objectsUsers(),
		set: func(p *parameters, v string) error {
			p.objectsUser = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "tenant", Kind: BucketClass,
			Default:     "none",
			Allowed:     "1 to 63 of a-z, 0-9, - and .",
			Description: "The tenant of all buckets of the class, with `objectsUser: tenant`.",
		},
		set: func(p *parameters, v string) error {
			if !tenantName.MatchString(v) {
				return errors.New(tenantRule)
			}
			p.tenant = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "tenantFromNamespaceLabel", Kind: BucketClass,
			Default: "none",
			Allowed: "the key of a label",
			Description: "With `objectsUser: tenant`, the label whose value on the claim's namespace names the tenant. It counts when the bucket is made; " +
				"takes the companion.",
		},
		set: func(p *parameters, v string) error {
			if !labelKey.MatchString(v) {
				return errors.New("want the key of a label: [prefix/]name")
			}
			p.tenantLabel = v
			return nil
		},
	}}
}

// tenantFaults says which parameters of one class do not go together.
func (p parameters) tenantFaults(b Backend) error {
	switch {
	case p.objectsUser != objectsUserTenant && p.tenant+p.tenantLabel != "":
		return tenantFault(`tenant and tenantFromNamespaceLabel go with objectsUser = "tenant" alone`)
	case p.objectsUser != objectsUserTenant:
		return nil
	case p.tenant == "" && p.tenantLabel == "":
		return tenantFault(`objectsUser = "tenant" takes tenant or tenantFromNamespaceLabel`)
	case p.tenant != "" && p.tenantLabel != "":
		return tenantFault("tenant and tenantFromNamespaceLabel exclude each other: leave one of them out")
	case p.shared == provider.SharedAllowed:
		return tenantFault(`sharedCredentials = "allowed" does not go with objectsUser = "tenant": the shared key would open all buckets of the tenant`)
	case b.Provider != nil && !b.Provider.Capabilities().Tenants:
		return tenantFault("back end %s is of %s, where no objects user owns buckets: leave objectsUser out", b.Name, b.Kind)
	}
	return nil
}

func tenantFault(format string, args ...any) error {
	return fmt.Errorf("%s parameters: %w: %s", BucketClass, provider.ErrInvalidArgument, fmt.Sprintf(format, args...))
}

// withTenant says whose the bucket is to be. A bucket that is there stays with its
// tenant, also if the label says another one by now, or nothing.
func (d *Driver) withTenant(ctx context.Context, backend Backend, bucketObject string, p parameters, spec *provider.BucketSpec) error {
	if p.objectsUser != objectsUserTenant {
		return nil
	}
	spec.SharedCredentials = provider.SharedForbidden
	if spec.Tenant = p.tenant; p.tenantLabel == "" {
		return nil
	}
	spec.KeepTenant = true
	tenant, err := d.labelled(ctx, bucketObject, p.tenantLabel)
	if err == nil {
		spec.Tenant = tenant
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b, getErr := backend.Provider.GetBucket(ctx, provider.BucketRef{Name: spec.Name, Region: spec.Region})
	switch {
	case getErr == nil && b.Tenant != "":
		spec.Tenant = b.Tenant
		return nil
	case errors.Is(getErr, provider.ErrUnavailable), errors.Is(getErr, provider.ErrConflict):
		return fmt.Errorf("back end %s: %w; %s", backend.Name, getErr, err.Error())
	}
	return fmt.Errorf("bucket %s: %w", spec.Name, err)
}

// labelled reads the tenant from the label of the namespace that claims the bucket.
func (d *Driver) labelled(ctx context.Context, bucketObject, label string) (string, error) {
	if d.claims == nil {
		return "", fmt.Errorf("%w: tenantFromNamespaceLabel takes the companion, which does not run in this driver; "+
			"run it (docs/companion.md), or use tenant", provider.ErrPrecondition)
	}
	claim, err := d.claims.ClaimOf(ctx, bucketObject)
	if err != nil {
		return "", fmt.Errorf("which namespace claims it: %w", err)
	}
	labels, err := d.claims.NamespaceLabels(ctx, claim.Namespace)
	if err != nil {
		return "", fmt.Errorf("which tenant it is of: %w", err)
	}
	value, ok := labels[label]
	switch {
	case !ok || value == "":
		return "", fmt.Errorf("%w: namespace %s has no value for the label %s, which names the tenant: set it, and the repeated call goes on",
			provider.ErrPrecondition, claim.Namespace, label)
	case !tenantName.MatchString(value):
		return "", fmt.Errorf("%w: the label %s of namespace %s is %s, which is no name of a tenant: %s",
			provider.ErrPrecondition, label, claim.Namespace, quote(value), tenantRule)
	}
	return value, nil
}
