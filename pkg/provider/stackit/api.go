package stackit

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	objectstorage "github.com/stackitcloud/stackit-sdk-go/services/objectstorage/v2api"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// group is a credentials group.
type group struct{ id, name, urn string }

// accessKey is a key as the API lists it: never its access key ID, never its
// secret.
type accessKey struct {
	id     string
	masked string // "****************TGVP", the end of the access key ID
}

// mintedKey is a new key; its secret is readable this once.
type mintedKey struct {
	id          string
	credentials provider.Credentials
}

// routes are what the driver asks the API for.
func routes() []string {
	const service = "/v2/project/{project}/regions/{region}"
	return []string{
		"GET " + service, "POST " + service,
		"GET " + service + "/buckets", "GET " + service + "/bucket/{bucket}",
		"POST " + service + "/bucket/{bucket}", "DELETE " + service + "/bucket/{bucket}",
		"GET " + service + "/credentials-groups", "POST " + service + "/credentials-group",
		"GET " + service + "/credentials-group/{group}", "DELETE " + service + "/credentials-group/{group}",
		"GET " + service + "/access-keys", "POST " + service + "/access-key", "DELETE " + service + "/access-key/{key}",
	}
}

// result checks what the SDK returned: an empty body is a nil result without an
// error.
func result[T any](ctx context.Context, c *control, op string, out *T, err error) (*T, error) {
	if err != nil {
		return nil, apiError(ctx, c.project, op, err)
	}
	if out == nil {
		return nil, refuse(provider.ErrUnavailable, "%s: the API's answer is empty", op)
	}
	return out, nil
}

// acted is result for calls whose answer says nothing that is needed: any
// success will do, whatever its body.
func acted(ctx context.Context, c *control, op string, err error) error {
	if err = apiError(ctx, c.project, op, err); done(err) {
		return nil
	}
	return err
}

// serviceStatus reports whether the service is enabled for the project in the
// region. Only the API's own 404 says that it is not.
func serviceStatus(ctx context.Context, c *control, region string) (bool, error) {
	_, err := c.api.GetServiceStatus(ctx, c.project, region).Execute()
	err = acted(ctx, c, "get the service status", err)
	if errors.Is(err, provider.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// enableService enables the service. It is idempotent one after the other;
// ErrConflict when somebody else does it at the same time.
func (p *Provider) enableService(ctx context.Context, region string) error {
	c := p.credentials.get(ctx)
	_, err := c.api.EnableService(ctx, c.project, region).Execute()
	return acted(ctx, c, "enable the service", err)
}

// bucketEndpoint returns the S3 endpoint of a bucket in the project; ErrNotFound.
func (p *Provider) bucketEndpoint(ctx context.Context, ref provider.BucketRef) (endpoint, error) {
	const op = "get bucket"
	c := p.credentials.get(ctx)
	out, err := c.api.GetBucket(ctx, c.project, ref.Region, ref.Name).Execute()
	if out, err = result(ctx, c, op, out, err); err != nil {
		return endpoint{}, err
	}
	if out.Bucket.Name != ref.Name {
		return endpoint{}, refuse(provider.ErrUnavailable, "%s: the API answered with another bucket", op)
	}
	if e, ok := p.endpoints[ref.Region]; ok {
		return e, nil
	}
	u, err := url.Parse(out.Bucket.UrlPathStyle)
	if err != nil {
		return endpoint{}, refuse(provider.ErrUnavailable, "%s: the API's answer has no URL", op)
	}
	e, err := endpointOf(u)
	if err != nil {
		return endpoint{}, refuse(provider.ErrUnavailable, "%s: the API's answer has no URL", op)
	}
	return e, nil
}

// listBuckets returns the names of all buckets of the project in the region;
// ErrNotFound when the service is not enabled.
func (p *Provider) listBuckets(ctx context.Context, region string) (map[string]endpoint, error) {
	c := p.credentials.get(ctx)
	out, err := c.api.ListBuckets(ctx, c.project, region).Execute()
	if out, err = result(ctx, c, "list buckets", out, err); err != nil {
		return nil, err
	}
	buckets := make(map[string]endpoint, len(out.Buckets))
	for _, b := range out.Buckets {
		e, ok := p.endpoints[region]
		if u, err := url.Parse(b.UrlPathStyle); !ok && err == nil {
			if e, err = endpointOf(u); err != nil {
				return nil, refuse(provider.ErrUnavailable, "list buckets: the API's answer has no URL for bucket %q", b.Name)
			}
		}
		buckets[b.Name] = e
	}
	return buckets, nil
}

// createBucket makes a bucket. ErrConflict when the name is taken, by whomever.
func (p *Provider) createBucket(ctx context.Context, ref provider.BucketRef) error {
	c := p.credentials.get(ctx)
	_, err := c.api.CreateBucket(ctx, c.project, ref.Region, ref.Name).ObjectLockEnabled(false).Execute()
	return acted(ctx, c, "create bucket", err)
}

// deleteBucket deletes an empty bucket; absent is success. ErrNotEmpty.
func (p *Provider) deleteBucket(ctx context.Context, ref provider.BucketRef) error {
	c := p.credentials.get(ctx)
	_, err := c.api.DeleteBucket(ctx, c.project, ref.Region, ref.Name).Execute()
	err = acted(ctx, c, "delete bucket", err)
	switch statusOf(err) {
	case http.StatusConflict, http.StatusUnprocessableEntity:
		// The API's description has the one, the field has seen the other.
		return refuse(provider.ErrNotEmpty, "the API refuses to delete it because it holds data")
	}
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}

// listGroups returns all credentials groups of the project in the region. The
// list lags its writes in both directions. ErrNotFound when the service is not
// enabled.
func (p *Provider) listGroups(ctx context.Context, region string) ([]group, error) {
	c := p.credentials.get(ctx)
	out, err := c.api.ListCredentialsGroups(ctx, c.project, region).Execute()
	if out, err = result(ctx, c, "list credentials groups", out, err); err != nil {
		return nil, err
	}
	groups := make([]group, 0, len(out.CredentialsGroups))
	for _, g := range out.CredentialsGroups {
		groups = append(groups, group{g.CredentialsGroupId, g.DisplayName, g.Urn})
	}
	return groups, nil
}

// getGroup reads a group; ErrNotFound.
func (p *Provider) getGroup(ctx context.Context, region, id string) (group, error) {
	op := "get credentials group " + id
	c := p.credentials.get(ctx)
	out, err := c.api.GetCredentialsGroup(ctx, c.project, region, id).Execute()
	if out, err = result(ctx, c, op, out, err); err != nil {
		return group{}, err
	}
	g := out.CredentialsGroup
	return checkedGroup(op, group{g.CredentialsGroupId, g.DisplayName, g.Urn})
}

// createGroup makes a group. Names are not unique: a repetition makes another.
func (p *Provider) createGroup(ctx context.Context, region, name string) (group, error) {
	op := "create credentials group " + name
	c := p.credentials.get(ctx)
	out, err := c.api.CreateCredentialsGroup(ctx, c.project, region).
		CreateCredentialsGroupPayload(objectstorage.CreateCredentialsGroupPayload{DisplayName: name}).Execute()
	if out, err = result(ctx, c, op, out, err); err != nil {
		return group{}, err
	}
	g := out.CredentialsGroup
	return checkedGroup(op, group{g.CredentialsGroupId, g.DisplayName, g.Urn})
}

// checkedGroup refuses an answer whose parts would be unfit for a request or a
// policy.
func checkedGroup(op string, g group) (group, error) {
	if !uuidPattern.MatchString(g.id) || g.urn == "" {
		return group{}, refuse(provider.ErrUnavailable, "%s: the API's answer has no ID or URN", op)
	}
	return g, nil
}

// deleteGroup deletes a group without keys; absent is success. ErrNotEmpty when
// it still has keys.
func (p *Provider) deleteGroup(ctx context.Context, region, id string) error {
	c := p.credentials.get(ctx)
	_, err := c.api.DeleteCredentialsGroup(ctx, c.project, region, id).Execute()
	err = acted(ctx, c, "delete credentials group "+id, err)
	switch {
	case statusOf(err) == http.StatusUnprocessableEntity || statusOf(err) == http.StatusConflict:
		return refuse(provider.ErrNotEmpty, "credentials group %s still has access keys", id)
	case errors.Is(err, provider.ErrNotFound):
		return nil
	}
	return err
}

// listKeys returns the keys of a group; ErrNotFound when there is no such group.
// It answers at once for a new group.
func (p *Provider) listKeys(ctx context.Context, region, groupID string) ([]accessKey, error) {
	c := p.credentials.get(ctx)
	out, err := c.api.ListAccessKeys(ctx, c.project, region).CredentialsGroup(groupID).Execute()
	if out, err = result(ctx, c, "list the access keys of credentials group "+groupID, out, err); err != nil {
		return nil, err
	}
	keys := make([]accessKey, 0, len(out.AccessKeys))
	for _, k := range out.AccessKeys {
		keys = append(keys, accessKey{k.KeyId, k.DisplayName})
	}
	return keys, nil
}

// mintKey makes a key that never expires, or after ttl if that is not zero. A
// repetition makes another. ErrNotFound when there is no such group.
func (p *Provider) mintKey(ctx context.Context, region, groupID string, ttl time.Duration) (mintedKey, error) {
	op := "create an access key in credentials group " + groupID
	var payload objectstorage.CreateAccessKeyPayload
	if ttl != 0 {
		// The API takes whole seconds.
		expires := p.config.Now().Add(ttl).UTC().Truncate(time.Second)
		payload.Expires = &expires
	}
	c := p.credentials.get(ctx)
	out, err := c.api.CreateAccessKey(ctx, c.project, region).CredentialsGroup(groupID).CreateAccessKeyPayload(payload).Execute()
	if out, err = result(ctx, c, op, out, err); err != nil {
		return mintedKey{}, err
	}
	if out.KeyId == "" || out.AccessKey == "" || out.SecretAccessKey == "" {
		return mintedKey{}, refuse(provider.ErrUnavailable, "%s: the API's answer is incomplete", op)
	}
	return mintedKey{out.KeyId, provider.Credentials{
		AccessKeyID: out.AccessKey, SecretAccessKey: provider.NewSecret(out.SecretAccessKey),
	}}, nil
}

// deleteKey deletes a key; absent is success.
func (p *Provider) deleteKey(ctx context.Context, region, groupID, keyID string) error {
	c := p.credentials.get(ctx)
	// Without its group the API answers 500.
	_, err := c.api.DeleteAccessKey(ctx, c.project, region, keyID).CredentialsGroup(groupID).Execute()
	if err = acted(ctx, c, "delete an access key of credentials group "+groupID, err); errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}
