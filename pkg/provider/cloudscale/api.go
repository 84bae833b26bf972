package cloudscale

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	sdk "github.com/cloudscale-ch/cloudscale-go-sdk/v8"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// readWriteRemedy is what to do about a token that may not write or hides keys.
const readWriteRemedy = "use a read-write API token of the project"

// routes are what the driver asks the API for.
func routes() []string {
	return []string{
		"GET /v1/objects-users", "POST /v1/objects-users",
		"GET /v1/objects-users/{id}", "PATCH /v1/objects-users/{id}", "DELETE /v1/objects-users/{id}",
		"GET /v1/regions", "GET /v1/metrics/buckets",
	}
}

// newAPI makes the SDK's client. The SDK reads CLOUDSCALE_API_URL; the base is
// set explicitly so that the process environment has no say.
func newAPI(base *url.URL, rt http.RoundTripper, c Config) *sdk.Client {
	client := sdk.NewClient(&http.Client{
		Transport: &apiTransport{next: rt, token: c.Token, host: base.Host},
		// The token must not follow a redirect; its answer is an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	client.BaseURL = base
	if c.UserAgent != "" {
		client.UserAgent = c.UserAgent + " " + client.UserAgent
	}
	return client
}

// user is an objects user.
type user struct {
	id   string
	tags map[string]string
	keys []keyPair
}

// keyPair is an S3 key.
type keyPair struct {
	id     string
	secret provider.Secret
}

// key returns the user's key. The API has one per user; read it on each use,
// because it may be replaced behind the driver's back. ErrPermissionDenied when
// the API hides it.
func (u user) key() (keyPair, error) {
	for _, k := range u.keys {
		if k.id != "" && !k.secret.Empty() {
			return k, nil
		}
	}
	return keyPair{}, refuse(provider.ErrPermissionDenied,
		"the API does not show the secret key of objects user %s, as for a read-only token; %s", u.id, readWriteRemedy)
}

func fromSDK(u sdk.ObjectsUser) user {
	out := user{id: u.ID, tags: u.Tags}
	for _, k := range u.Keys {
		out.keys = append(out.keys, keyPair{id: k["access_key"], secret: provider.NewSecret(k["secret_key"])})
	}
	return out
}

// listUsers lists the users with the tag. The API takes one clause; the tag is
// checked again here, so that an API that ignores it does no harm.
func (p *Provider) listUsers(ctx context.Context, tag, value string) ([]user, error) {
	list, err := p.api.ObjectsUsers.List(ctx, sdk.WithTagFilter(sdk.TagMap{tag: value}))
	if err != nil {
		return nil, listError(ctx, "list objects users", err)
	}
	var users []user
	for _, u := range list {
		if u.Tags[tag] == value {
			users = append(users, fromSDK(u))
		}
	}
	return users, nil
}

// allUsers lists the users of the project.
func (p *Provider) allUsers(ctx context.Context) ([]user, error) {
	list, err := p.api.ObjectsUsers.List(ctx)
	if err != nil {
		return nil, listError(ctx, "list objects users", err)
	}
	users := make([]user, 0, len(list))
	for _, u := range list {
		users = append(users, fromSDK(u))
	}
	return users, nil
}

// getUser reads a user; ErrNotFound.
func (p *Provider) getUser(ctx context.Context, id string) (user, error) {
	u, err := p.api.ObjectsUsers.Get(ctx, url.PathEscape(id))
	if err != nil {
		return user{}, apiError(ctx, "get objects user "+id, err)
	}
	if u.ID != id {
		return user{}, refuse(provider.ErrUnavailable, "get objects user %s: the API answered with another user", id)
	}
	return fromSDK(*u), nil
}

// createUser makes a user with all its tags. It is not idempotent: a repetition
// makes another user.
func (p *Provider) createUser(ctx context.Context, displayName string, tags map[string]string) (user, error) {
	t := sdk.TagMap(tags)
	u, err := p.api.ObjectsUsers.Create(ctx, &sdk.ObjectsUserRequest{
		TaggedResourceRequest: sdk.TaggedResourceRequest{Tags: &t},
		DisplayName:           displayName,
	})
	if err != nil {
		return user{}, listError(ctx, "create objects user", err)
	}
	if u.ID == "" {
		return user{}, refuse(provider.ErrUnavailable, "create objects user: the API answered without an ID")
	}
	return fromSDK(*u), nil
}

// updateTags replaces all tags of a user; ErrNotFound.
func (p *Provider) updateTags(ctx context.Context, id string, tags map[string]string) error {
	t := sdk.TagMap(tags)
	err := p.api.ObjectsUsers.Update(ctx, url.PathEscape(id), &sdk.ObjectsUserRequest{
		TaggedResourceRequest: sdk.TaggedResourceRequest{Tags: &t},
	})
	return apiError(ctx, "update objects user "+id, err)
}

// deleteUser deletes a user; absent is success. The API refuses it, with 400 or
// 409, while the user owns a bucket in any region.
func (p *Provider) deleteUser(ctx context.Context, id string) error {
	err := apiError(ctx, "delete objects user "+id, p.api.ObjectsUsers.Delete(ctx, url.PathEscape(id)))
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}
