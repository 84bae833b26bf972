package emulator

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/cloudscale-ch/cloudscale-go-sdk/v8"
)

// sdkClient is the cloud's own Go client.
func sdkClient(t *testing.T, e *Emulator, token string) *sdk.Client {
	t.Helper()
	base, err := url.Parse(e.Cloudscale().APIURL)
	if err != nil {
		t.Fatal(err)
	}
	c := sdk.NewClient(client(t))
	c.BaseURL = base
	c.AuthToken = token
	return c
}

// wantSDKError checks for the SDK's own error type.
func wantSDKError(t *testing.T, err error, status int, text string) {
	t.Helper()
	var e *sdk.ErrorResponse
	if !errors.As(err, &e) {
		t.Errorf("error is %T %v, want the SDK's", err, err)
		return
	}
	if e.StatusCode != status || !strings.Contains(e.Error(), text) {
		t.Errorf("error is %d %q, want %d with %q", e.StatusCode, e.Error(), status, text)
	}
}

func TestSDKObjectsUsers(t *testing.T) {
	e := start(t, Options{})
	c := sdkClient(t, e, e.Cloudscale().Token)
	ctx := t.Context()

	created, err := c.ObjectsUsers.Create(ctx, &sdk.ObjectsUserRequest{
		DisplayName:           "alan",
		TaggedResourceRequest: sdk.TaggedResourceRequest{Tags: &sdk.TagMap{"project": "apollo", "a": ""}},
	})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if created.ID == "" || created.DisplayName != "alan" || len(created.Keys) != 1 ||
		created.Keys[0]["access_key"] == "" || created.Keys[0]["secret_key"] == "" {
		t.Fatal("create: the answer is not a whole user")
	}
	got, err := c.ObjectsUsers.Get(ctx, created.ID)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if got.HREF != created.HREF || !maps.Equal(got.Keys[0], created.Keys[0]) || !maps.Equal(got.Tags, created.Tags) {
		t.Error("get differs from create")
	}
	for _, filter := range []struct {
		tags sdk.TagMap
		want int
	}{
		{sdk.TagMap{"project": "apollo"}, 1},
		{sdk.TagMap{"project": ""}, 1}, // key only
		{sdk.TagMap{"project": "gemini"}, 0},
		{sdk.TagMap{"a": ""}, 1},
	} {
		list, err := c.ObjectsUsers.List(ctx, sdk.WithTagFilter(filter.tags))
		if err != nil || len(list) != filter.want {
			t.Errorf("list %v: %d users, %v; want %d", filter.tags, len(list), err, filter.want)
		}
	}
	_, err = c.ObjectsUsers.List(ctx, sdk.WithTagFilter(sdk.TagMap{"project": "apollo", "a": ""}))
	wantSDKError(t, err, http.StatusBadRequest, "At most one tag: clause can be passed")

	err = c.ObjectsUsers.Update(ctx, created.ID, &sdk.ObjectsUserRequest{DisplayName: "ada"})
	if err != nil {
		t.Errorf("rename: %v", err)
	}
	err = c.ObjectsUsers.Update(ctx, created.ID, &sdk.ObjectsUserRequest{TaggedResourceRequest: sdk.TaggedResourceRequest{Tags: &sdk.TagMap{}}})
	if err != nil {
		t.Errorf("clear tags: %v", err)
	}
	err = c.ObjectsUsers.Update(ctx, created.ID, &sdk.ObjectsUserRequest{
		DisplayName: "x", TaggedResourceRequest: sdk.TaggedResourceRequest{Tags: &sdk.TagMap{"a": "b"}},
	})
	wantSDKError(t, err, http.StatusBadRequest, "Only one attribute")
	if got, err = c.ObjectsUsers.Get(ctx, created.ID); err != nil || got.DisplayName != "ada" || len(got.Tags) != 0 {
		t.Errorf("after the changes: %q, tags %v, %v", got.DisplayName, got.Tags, err)
	}

	if err := c.ObjectsUsers.Delete(ctx, created.ID); err != nil {
		t.Errorf("delete: %v", err)
	}
	wantSDKError(t, c.ObjectsUsers.Delete(ctx, created.ID), http.StatusNotFound, "Not found.")
	_, err = c.ObjectsUsers.Get(ctx, created.ID)
	wantSDKError(t, err, http.StatusNotFound, "Not found.")
}

func TestSDKTokens(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"alan"}`)

	_, err := sdkClient(t, e, "").ObjectsUsers.List(t.Context())
	wantSDKError(t, err, http.StatusUnauthorized, "Authentication credentials were not provided.")
	_, err = sdkClient(t, e, "nobody").ObjectsUsers.List(t.Context())
	wantSDKError(t, err, http.StatusUnauthorized, "Invalid token.")

	readOnly := sdkClient(t, e, cs.ReadOnlyToken)
	got, err := readOnly.ObjectsUsers.Get(t.Context(), u.ID)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if secret, there := got.Keys[0]["secret_key"]; there || secret != "" {
		t.Error("a read-only token sees the secret key")
	}
	_, err = readOnly.ObjectsUsers.Create(t.Context(), &sdk.ObjectsUserRequest{DisplayName: "x"})
	wantSDKError(t, err, http.StatusForbidden, "permission")
	wantSDKError(t, readOnly.ObjectsUsers.Delete(t.Context(), u.ID), http.StatusForbidden, "permission")

	foreign := sdkClient(t, e, cs.ForeignToken)
	if list, err := foreign.ObjectsUsers.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("another project lists %d users, %v", len(list), err)
	}
	wantSDKError(t, foreign.ObjectsUsers.Delete(t.Context(), u.ID), http.StatusNotFound, "Not found.")
}

func TestSDKRegions(t *testing.T) {
	e := start(t, Options{})
	regions, err := sdkClient(t, e, e.Cloudscale().Token).Regions.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var slugs []string
	for _, r := range regions {
		slugs = append(slugs, r.Slug+"/"+r.Zones[0].Slug)
	}
	if got := strings.Join(slugs, " "); got != "rma/rma1 lpg/lpg1" {
		t.Errorf("regions are %s", got)
	}
}

func TestSDKUserWithBucketsCannotBeDeleted(t *testing.T) {
	for _, region := range []string{"rma", "lpg"} {
		t.Run(region, func(t *testing.T) {
			e := start(t, Options{})
			cs := e.Cloudscale()
			api := sdkClient(t, e, cs.Token)
			u := createUser(t, e, cs.Token, `{"display_name":"owner"}`)
			buckets := s3(t, e, region, u)
			makeBucket(t, buckets, "kept")
			wantSDKError(t, api.ObjectsUsers.Delete(t.Context(), u.ID), http.StatusBadRequest, "owns buckets")
			if len(cs.Users()) != 1 || len(cs.Buckets()) != 1 {
				t.Fatalf("%d users and %d buckets are left, want one of each", len(cs.Users()), len(cs.Buckets()))
			}
			if err := buckets.RemoveBucket(t.Context(), "kept"); err != nil {
				t.Fatalf("remove bucket: %v", err)
			}
			if err := api.ObjectsUsers.Delete(t.Context(), u.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
			if _, err := buckets.ListBuckets(t.Context()); err == nil {
				t.Error("the key of a deleted user still works")
			}
		})
	}
}

func TestSDKBucketMetrics(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	ctx := t.Context()
	owner := createUser(t, e, cs.Token, `{"display_name":"owner"}`)
	other := createUser(t, e, cs.Token, `{"display_name":"other"}`)
	foreign := createUser(t, e, cs.ForeignToken, `{"display_name":"foreign"}`)
	makeBucket(t, s3(t, e, "rma", owner), "alpha")
	putObject(t, s3(t, e, "rma", owner), "alpha", "k1", "12345")
	putObject(t, s3(t, e, "rma", owner), "alpha", "k2", "67")
	makeBucket(t, s3(t, e, "lpg", other), "beta")
	makeBucket(t, s3(t, e, "rma", foreign), "gamma")
	// minio-go signs with the real time, so the buckets are dated here: 23:30 UTC
	// is the next day in Zurich.
	cs.mu.Lock()
	for subject := range cs.seen {
		cs.seen[subject] = time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	}
	cs.mu.Unlock()

	api := sdkClient(t, e, cs.Token)
	query := func(from, to int, names, users []string) []sdk.BucketMetricsData {
		t.Helper()
		m, err := api.Metrics.GetBucketMetrics(ctx, &sdk.BucketMetricsRequest{
			Start:       time.Date(2026, 3, from, 0, 0, 0, 0, time.UTC),
			End:         time.Date(2026, 3, to, 0, 0, 0, 0, time.UTC),
			BucketNames: names, ObjectsUserIDs: users,
		})
		if err != nil {
			t.Fatalf("metrics: %v", err)
		}
		return m.Data
	}
	for _, row := range []struct {
		what string
		data []sdk.BucketMetricsData
		want string
	}{
		{"the day before", query(1, 1, nil, nil), ""},
		{"the day", query(2, 2, nil, nil), "alpha beta"},
		{"by name", query(2, 2, []string{"alpha", "gamma"}, nil), "alpha"},
		{"by user", query(2, 2, nil, []string{other.ID}), "beta"},
		{"by both", query(2, 2, []string{"alpha"}, []string{other.ID}), ""},
	} {
		var names []string
		for _, d := range row.data {
			names = append(names, d.Subject.BucketName)
		}
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("%s: buckets %q, want %q", row.what, got, row.want)
		}
	}
	alpha := query(2, 3, []string{"alpha"}, nil)[0]
	if alpha.Subject.ObjectsUserID != owner.ID || len(alpha.TimeSeries) != 2 {
		t.Fatalf("alpha: user %q, %d points; want its owner and 2", alpha.Subject.ObjectsUserID, len(alpha.TimeSeries))
	}
	point := alpha.TimeSeries[1]
	if !point.Start.Equal(time.Date(2026, 3, 2, 23, 0, 0, 0, time.UTC)) || !point.End.Equal(time.Date(2026, 3, 3, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("second point is %s to %s", point.Start, point.End)
	}
	if point.Usage.ObjectCount != 2 || point.Usage.StorageBytes != 7 {
		t.Errorf("usage is %+v, want 2 objects and 7 bytes", point.Usage)
	}

	// A deleted bucket of a deleted user still appears, with zero usage.
	if err := s3(t, e, "lpg", other).RemoveBucket(ctx, "beta"); err != nil {
		t.Fatal(err)
	}
	if err := api.ObjectsUsers.Delete(ctx, other.ID); err != nil {
		t.Fatal(err)
	}
	beta := query(2, 2, []string{"beta"}, nil)
	if len(beta) != 1 || beta[0].Subject.ObjectsUserID != other.ID || beta[0].TimeSeries[0].Usage != (sdk.BucketMetricsIntervalUsage{}) {
		t.Errorf("deleted bucket: %+v", beta)
	}
}
