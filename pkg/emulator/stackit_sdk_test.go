package emulator

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/config"
	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	"github.com/stackitcloud/stackit-sdk-go/services/objectstorage/v2api"
	"github.com/stackitcloud/stackit-sdk-go/services/objectstorage/v2api/wait"
)

// stackitSDK is the cloud's own Go client. It has an HTTP client of its own:
// the SDK changes the one it is given.
func stackitSDK(t *testing.T, c *Stackit, auth ...config.ConfigurationOption) v2api.DefaultAPI {
	t.Helper()
	options := append([]config.ConfigurationOption{config.WithEndpoint(strings.TrimSuffix(c.APIURL, "/")), config.WithHTTPClient(client(t))}, auth...)
	api, err := v2api.NewAPIClient(options...)
	if err != nil {
		t.Fatalf("NewAPIClient: %v", err)
	}
	return api.DefaultAPI
}

// oapiAnswer is what the SDK's own error keeps of an answer.
type oapiAnswer struct {
	Body  []byte
	Model any
}

// wantOAPI checks for the SDK's own error type and returns what is in it.
func wantOAPI(t *testing.T, what string, err error, status int, text string) oapiAnswer {
	t.Helper()
	var e *oapierror.GenericOpenAPIError
	if !errors.As(err, &e) {
		t.Fatalf("%s: error is %T %v, want the SDK's", what, err, err)
	}
	if e.StatusCode != status || !strings.Contains(e.Error(), text) {
		t.Errorf("%s: error is %d %q, want %d with %q", what, e.StatusCode, e.Error(), status, text)
	}
	return oapiAnswer{e.Body, e.Model}
}

// operations returns the recorded operations of the control plane.
func operations(e *Emulator) []string {
	var out []string
	for _, call := range e.Calls() {
		if call.Plane == PlaneControl {
			out = append(out, call.Operation)
		}
	}
	return out
}

// TestStackitSDKLife runs every operation of the API by the key flow.
func TestStackitSDKLife(t *testing.T) {
	em, c := startStackit(t, Options{}, StackitOptions{ServiceDisabled: true})
	api := stackitSDK(t, c, config.WithServiceAccountKey(c.ServiceAccountKey()))
	ctx, project, region := t.Context(), c.ProjectID, "eu01"

	_, err := api.GetServiceStatus(ctx, project, region).Execute()
	missing := wantOAPI(t, "status before", err, http.StatusNotFound, "project.not_found")
	if m, ok := missing.Model.(v2api.ErrorMessage); !ok || len(m.Detail) != 1 || m.Detail[0].Key != "project.not_found" {
		t.Errorf("status before: the model is %#v", missing.Model)
	}
	for range 2 {
		status, err := api.EnableService(ctx, project, region).Execute()
		if err != nil || status == nil || status.Project != project || status.Scope != v2api.PROJECTSCOPE_PUBLIC {
			t.Fatalf("enable: %+v %v", status, err)
		}
	}
	if status, err := api.GetServiceStatus(ctx, project, region).Execute(); err != nil || status == nil || status.Scope != v2api.PROJECTSCOPE_PUBLIC {
		t.Errorf("status: %+v %v", status, err)
	}

	lock, err := api.CreateComplianceLock(ctx, project, region).Execute()
	if err != nil || lock == nil || lock.MaxRetentionDays != 365 {
		t.Errorf("create compliance lock: %+v %v", lock, err)
	}
	_, err = api.CreateComplianceLock(ctx, project, region).Execute()
	wantOAPI(t, "second compliance lock", err, http.StatusConflict, "compliance_lock.already_exists")
	if lock, err := api.GetComplianceLock(ctx, project, region).Execute(); err != nil || lock == nil || lock.Project != project {
		t.Errorf("get compliance lock: %+v %v", lock, err)
	}

	created, err := api.CreateBucket(ctx, project, region, "locked").ObjectLockEnabled(true).Execute()
	if err != nil || created == nil || created.Bucket != "locked" || created.Project != project {
		t.Fatalf("create bucket: %+v %v", created, err)
	}
	_, err = api.CreateBucket(ctx, project, region, "locked").Execute()
	wantOAPI(t, "second bucket", err, http.StatusConflict, "A bucket with this name already exists")
	waited, err := wait.CreateBucketWaitHandler(ctx, api, project, region, "locked").WaitWithContext(ctx)
	if err != nil || waited == nil || waited.Bucket.UrlPathStyle != c.Endpoints[region]+"/locked" || !waited.Bucket.ObjectLockEnabled || waited.Bucket.Region != region {
		t.Errorf("wait for the bucket: %+v %v", waited, err)
	}
	buckets, err := api.ListBuckets(ctx, project, region).Execute()
	if err != nil || buckets == nil || len(buckets.Buckets) != 1 || buckets.Buckets[0].Name != "locked" {
		t.Errorf("list buckets: %+v %v", buckets, err)
	}
	payload := v2api.SetDefaultRetentionPayload{Days: 7, Mode: "GOVERNANCE"}
	retention, err := api.SetDefaultRetention(ctx, project, region, "locked").SetDefaultRetentionPayload(payload).Execute()
	if err != nil || retention == nil || retention.Days != 7 || retention.Bucket != "locked" {
		t.Errorf("set retention: %+v %v", retention, err)
	}
	if got, err := api.GetDefaultRetention(ctx, project, region, "locked").Execute(); err != nil || got == nil || got.Mode != "GOVERNANCE" {
		t.Errorf("get retention: %+v %v", got, err)
	}
	if got, err := api.DeleteDefaultRetention(ctx, project, region, "locked").Execute(); err != nil || got == nil || got.Bucket != "locked" {
		t.Errorf("delete retention: %+v %v", got, err)
	}
	_, err = api.DeleteComplianceLock(ctx, project, region).Execute()
	wantOAPI(t, "delete compliance lock in use", err, http.StatusConflict, "compliance_lock.in_use")

	groupID := sdkGroupAndKeys(t, api, project, region)

	if got, err := api.DeleteCredentialsGroup(ctx, project, region, groupID).Execute(); err != nil || got == nil || got.CredentialsGroupId != groupID {
		t.Errorf("delete group: %+v %v", got, err)
	}
	if got, err := api.DeleteBucket(ctx, project, region, "locked").Execute(); err != nil || got == nil || got.Bucket != "locked" {
		t.Errorf("delete bucket: %+v %v", got, err)
	}
	if _, err := wait.DeleteBucketWaitHandler(ctx, api, project, region, "locked").WaitWithContext(ctx); err != nil {
		t.Errorf("wait for the deletion: %v", err)
	}
	if got, err := api.DeleteComplianceLock(ctx, project, region).Execute(); err != nil || got == nil {
		t.Errorf("delete compliance lock: %+v %v", got, err)
	}
	if got, err := api.DisableService(ctx, project, region).Execute(); err != nil || got == nil || got.Project != project {
		t.Errorf("disable: %+v %v", got, err)
	}

	// Every operation ran under its own name, on one token.
	made := operations(em)
	for _, a := range stackitActions() {
		if !slices.Contains(made, a.operation) {
			t.Errorf("%s was not called", a.operation)
		}
	}
	if n := countOf(made, "Token"); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

func countOf(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

// sdkGroupAndKeys makes a group and keys, looks at them all and deletes the keys.
func sdkGroupAndKeys(t *testing.T, api v2api.DefaultAPI, project, region string) (groupID string) {
	t.Helper()
	ctx := t.Context()
	group, err := api.CreateCredentialsGroup(ctx, project, region).CreateCredentialsGroupPayload(v2api.CreateCredentialsGroupPayload{DisplayName: "alan"}).Execute()
	if err != nil || group == nil {
		t.Fatalf("create group: %+v %v", group, err)
	}
	groupID = group.CredentialsGroup.CredentialsGroupId
	if got, err := api.GetCredentialsGroup(ctx, project, region, groupID).Execute(); err != nil || got == nil || got.CredentialsGroup.Urn != group.CredentialsGroup.Urn || !strings.Contains(got.CredentialsGroup.UserUrn, ":user/") {
		t.Errorf("get group: %+v %v", got, err)
	}
	if got, err := api.ListCredentialsGroups(ctx, project, region).Execute(); err != nil || got == nil || len(got.CredentialsGroups) != 1 || got.CredentialsGroups[0].DisplayName != "alan" {
		t.Errorf("list groups: %+v %v", got, err)
	}
	forever, err := api.CreateAccessKey(ctx, project, region).CredentialsGroup(groupID).CreateAccessKeyPayload(v2api.CreateAccessKeyPayload{}).Execute()
	if err != nil || forever == nil || forever.Expires.Get() != nil || !forever.Expires.IsSet() || len(forever.SecretAccessKey) != 40 {
		t.Fatalf("create key: set %v, %v", forever != nil, err)
	}
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	hour, err := api.CreateAccessKey(ctx, project, region).CredentialsGroup(groupID).CreateAccessKeyPayload(v2api.CreateAccessKeyPayload{Expires: &end}).Execute()
	if err != nil || hour == nil || hour.Expires.Get() == nil || *hour.Expires.Get() != end.Format("2006-01-02T15:04:05")+".000Z" {
		t.Fatalf("create expiring key: set %v, %v", hour != nil, err)
	}
	keys, err := api.ListAccessKeys(ctx, project, region).CredentialsGroup(groupID).Execute()
	if err != nil || keys == nil || len(keys.AccessKeys) != 2 || keys.AccessKeys[0].Expires != "" || keys.AccessKeys[1].Expires != *hour.Expires.Get() ||
		keys.AccessKeys[0].DisplayName != forever.DisplayName || keys.AccessKeys[0].KeyId != forever.KeyId {
		t.Errorf("list keys: %+v %v", keys, err)
	}
	_, err = api.DeleteCredentialsGroup(ctx, project, region, groupID).Execute()
	if e := wantOAPI(t, "delete group with keys", err, http.StatusUnprocessableEntity, ""); e.Model != nil || !json.Valid(e.Body) {
		t.Errorf("delete group with keys: the model is %#v", e.Model)
	}
	_, err = api.DeleteAccessKey(ctx, project, region, hour.KeyId).Execute()
	wantOAPI(t, "delete key without its group", err, http.StatusInternalServerError, "")
	for _, id := range []string{hour.KeyId, forever.KeyId} {
		if got, err := api.DeleteAccessKey(ctx, project, region, id).CredentialsGroup(groupID).Execute(); err != nil || got == nil || got.KeyId != id {
			t.Errorf("delete key: %+v %v", got, err)
		}
		_, err := api.DeleteAccessKey(ctx, project, region, id).CredentialsGroup(groupID).Execute()
		wantOAPI(t, "delete key again", err, http.StatusNotFound, "access_key.not_found")
	}
	return groupID
}

// TestStackitSDKErrors shows what the SDK makes of each error shape: the status
// and the raw body are right, the model may be missing.
func TestStackitSDKErrors(t *testing.T) {
	em, c := startStackit(t, Options{}, StackitOptions{})
	api := stackitSDK(t, c, config.WithServiceAccountKey(c.ServiceAccountKey()))
	ctx := t.Context()

	_, err := api.ListBuckets(ctx, c.ForeignProjectID, "eu01").Execute()
	if e := wantOAPI(t, "gateway", err, http.StatusForbidden, "no value given for required property detail"); e.Model != nil || !json.Valid(e.Body) {
		t.Errorf("gateway: model %#v, body %s", e.Model, e.Body)
	}

	firewall := StackitFirewall()
	firewall.Operation, firewall.Times = "GetServiceStatus", 1
	em.Inject(firewall)
	_, err = api.GetServiceStatus(ctx, c.ProjectID, "eu01").Execute()
	if e := wantOAPI(t, "firewall", err, http.StatusForbidden, "undefined response type"); e.Model != nil || json.Valid(e.Body) {
		t.Errorf("firewall: model %#v, body %s", e.Model, e.Body)
	}

	long := v2api.CreateCredentialsGroupPayload{DisplayName: strings.Repeat("x", 33)}
	_, err = api.CreateCredentialsGroup(ctx, c.ProjectID, "eu01").CreateCredentialsGroupPayload(long).Execute()
	e := wantOAPI(t, "long name", err, http.StatusUnprocessableEntity, "")
	if m, ok := e.Model.(v2api.HTTPValidationError); !ok || len(m.Detail) != 1 || m.Detail[0].Type != "string_too_long" ||
		len(m.Detail[0].Loc) != 2 || *m.Detail[0].Loc[1].String != "displayName" {
		t.Errorf("long name: the model is %#v", e.Model)
	}

	// The SDK checks the length of a bucket's name and sends nothing.
	em.ResetCalls()
	if _, err := api.CreateBucket(ctx, c.ProjectID, "eu01", "ab").Execute(); err == nil || errors.As(err, new(*oapierror.GenericOpenAPIError)) {
		t.Errorf("short bucket name: %v", err)
	}
	if calls := em.Calls(); len(calls) != 0 {
		t.Errorf("short bucket name: sent %v", calls)
	}

	// It never retries.
	em.Inject(Fault{Operation: "ListBuckets", Times: 1, Status: http.StatusServiceUnavailable})
	_, err = api.ListBuckets(ctx, c.ProjectID, "eu01").Execute()
	wantOAPI(t, "unavailable", err, http.StatusServiceUnavailable, "")
	limit := StackitRateLimit()
	limit.Operation, limit.Times = "ListBuckets", 1
	em.Inject(limit)
	_, err = api.ListBuckets(ctx, c.ProjectID, "eu01").Execute()
	wantOAPI(t, "rate limit", err, http.StatusTooManyRequests, "")
	if n := countOf(operations(em), "ListBuckets"); n != 2 {
		t.Errorf("two refused calls were sent %d times", n)
	}

	// An empty success is nothing at all, without an error.
	em.Inject(Fault{Operation: "ListBuckets", Times: 1, Status: http.StatusOK})
	if got, err := api.ListBuckets(ctx, c.ProjectID, "eu01").Execute(); got != nil || err != nil {
		t.Errorf("empty success: %v %v", got, err)
	}

	var resp *http.Response
	if _, err := api.ListBuckets(runtime.WithCaptureHTTPResponse(ctx, &resp), c.ProjectID, "eu01").Execute(); err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("X-Trace-Id"); len(got) != 32 {
		t.Errorf("trace id is %q", got)
	}
}

func TestStackitSDKWaitsStopAtNotFound(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	api := stackitSDK(t, c, config.WithToken(c.AccessToken(c.ProjectID)))
	_, err := wait.CreateBucketWaitHandler(t.Context(), api, c.ProjectID, "eu01", "missing").WaitWithContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("wait for a missing bucket: %v", err)
	}
}

func TestStackitSDKKeyFlow(t *testing.T) {
	clock := nearClock()
	em, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{})
	ctx, key := t.Context(), c.ServiceAccountKey()
	status := func(api v2api.DefaultAPI) error {
		_, err := api.GetServiceStatus(ctx, c.ProjectID, "eu01").Execute()
		return err
	}
	api := stackitSDK(t, c, config.WithServiceAccountKey(key))
	for range 3 {
		if err := status(api); err != nil {
			t.Fatal(err)
		}
	}
	if n := countOf(operations(em), "Token"); n != 1 {
		t.Errorf("three calls took %d tokens", n)
	}

	// The cloud's clock decides when a token ends; the SDK does not ask again
	// before its own clock says so.
	clock.Advance(10 * time.Minute)
	wantOAPI(t, "expired token", status(api), http.StatusUnauthorized, "auth.invalid")

	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := status(stackitSDK(t, c, config.WithServiceAccountKeyPath(path))); err != nil {
		t.Errorf("key in a file: %v", err)
	}
	elsewhere := strings.ReplaceAll(key, c.TokenURL, "http://127.0.0.1:1/token")
	if elsewhere == key {
		t.Fatal("the key does not name the token endpoint")
	}
	if err := status(stackitSDK(t, c, config.WithServiceAccountKey(elsewhere), config.WithTokenEndpoint(c.TokenURL))); err != nil {
		t.Errorf("token endpoint by option: %v", err)
	}

	foreign := stackitSDK(t, c, config.WithServiceAccountKey(c.ForeignServiceAccountKey()))
	wantOAPI(t, "foreign account", status(foreign), http.StatusForbidden, "")
	if _, err := foreign.GetServiceStatus(ctx, c.ForeignProjectID, "eu01").Execute(); err != nil {
		t.Errorf("foreign account in its own project: %v", err)
	}

	// A revoked key never reaches the API.
	if !c.RevokeServiceAccountKey(key) {
		t.Fatal("nothing to revoke")
	}
	em.ResetCalls()
	err := status(stackitSDK(t, c, config.WithServiceAccountKey(key)))
	if e := wantOAPI(t, "revoked key", err, http.StatusBadRequest, ""); string(e.Body) != invalidGrant {
		t.Errorf("revoked key: body %s", e.Body)
	}
	if got := operations(em); !slices.Equal(got, []string{"Token"}) {
		t.Errorf("revoked key: calls %v", got)
	}

	// A token endpoint that fails is told as such.
	em.Inject(Fault{Operation: "Token", Times: 1, Status: http.StatusServiceUnavailable})
	wantOAPI(t, "token endpoint down", status(stackitSDK(t, c, config.WithServiceAccountKey(c.ForeignServiceAccountKey()))), http.StatusServiceUnavailable, "")
}

func TestStackitSDKFederation(t *testing.T) {
	em, c := startStackit(t, Options{}, StackitOptions{})
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(c.FederatedToken), 0o600); err != nil {
		t.Fatal(err)
	}
	federated := func(email string) v2api.DefaultAPI {
		return stackitSDK(t, c, config.WithWorkloadIdentityFederationAuth(), config.WithServiceAccountEmail(email),
			config.WithWorkloadIdentityFederationPath(path), config.WithTokenEndpoint(c.TokenURL))
	}
	api := federated(c.FederationEmail)
	for range 2 {
		if _, err := api.GetServiceStatus(t.Context(), c.ProjectID, "eu01").Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if n := countOf(operations(em), "Token"); n != 1 {
		t.Errorf("two calls took %d tokens", n)
	}
	_, err := federated("other@sa.stackit.cloud").GetServiceStatus(t.Context(), c.ProjectID, "eu01").Execute()
	wantOAPI(t, "another account", err, http.StatusBadRequest, "")
}
