package emulator

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

func TestStackitBeforeEnablement(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{ServiceDisabled: true})
	api := c.api(t, c.ProjectID, "eu01")
	group := "?credentials-group=" + unknownID
	bodies := map[string]string{"SetDefaultRetention": `{"mode":"GOVERNANCE","days":1}`, "CreateCredentialsGroup": `{"displayName":"x"}`, "CreateAccessKey": `{}`}
	for _, a := range stackitActions() {
		if a.operation == "EnableService" {
			continue
		}
		path := strings.TrimSuffix("/"+strings.ReplaceAll(a.path, "{}", unknownID), "/")
		if strings.HasPrefix(a.path, "access-key") {
			path += group
		}
		if status, body := api.call(a.method, path, bodies[a.operation]); status != http.StatusNotFound || body != noProject {
			t.Errorf("%s: %d %s", a.operation, status, body)
		}
	}
	api.must(http.StatusCreated, "POST", "", "")
	api.must(http.StatusOK, "POST", "", "")
	api.must(http.StatusOK, "GET", "", "")
	if status, _ := c.api(t, c.ProjectID, "eu02").call("GET", "", ""); status != http.StatusNotFound {
		t.Errorf("the other region: %d", status)
	}
	if status, _ := c.api(t, c.ForeignProjectID, "eu01").call("GET", "", ""); status != http.StatusNotFound {
		t.Errorf("the other project: %d", status)
	}
}

func TestStackitConcurrentEnable(t *testing.T) {
	inside, leave := make(chan string), make(chan struct{})
	_, c := startStackit(t, Options{}, StackitOptions{ServiceDisabled: true, Enabling: func(_ context.Context, project, region string) {
		inside <- project + " " + region
		<-leave
	}})
	api := c.api(t, c.ProjectID, "eu01")
	first, hc := make(chan int), client(t)
	go func() {
		resp, _, err := send(t.Context(), hc, request{method: "POST", url: api.base, token: api.token})
		if err != nil {
			first <- 0
			return
		}
		first <- resp.StatusCode
	}()
	if got := <-inside; got != c.ProjectID+" eu01" {
		t.Errorf("enabling %s", got)
	}
	want := problem("project.create_conflict", "Two concurrent calls try to create the same project")
	if status, body := api.call("POST", "", ""); status != http.StatusConflict || body != want {
		t.Errorf("a second call: %d %s", status, body)
	}
	if status, body := api.call("GET", "", ""); status != http.StatusNotFound || body != noProject {
		t.Errorf("status meanwhile: %d %s", status, body)
	}
	close(leave)
	if got := <-first; got != http.StatusCreated {
		t.Errorf("the first call: %d", got)
	}
	api.must(http.StatusOK, "POST", "", "")
}

func TestStackitFormats(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	seen := map[string]bool{}
	account := ""
	for range 20 {
		g := api.group("x")
		k := api.key(g.ID, time.Time{})
		for what, pair := range map[string][2]string{
			"group id":   {g.ID, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`},
			"urn":        {g.URN, `^urn:sgws:identity::[1-9][0-9]{19}:group/credentials-group-[0-9a-f]{6}$`},
			"key id":     {k.ID, `^[A-Za-z0-9_-]{42}==$`},
			"access key": {k.AccessKey, `^[A-Z0-9]{20}$`},
			"secret":     {k.Secret, `^[A-Za-z0-9+]{40}$`},
			"key name":   {k.Name, `^\*{16}` + k.AccessKey[16:] + `$`},
		} {
			if !regexp.MustCompile(pair[1]).MatchString(pair[0]) {
				t.Errorf("%s does not match %s", what, pair[1])
			}
			if what != "key name" && seen[pair[0]] {
				t.Errorf("%s comes twice", what)
			}
			seen[pair[0]] = true
		}
		if !strings.Contains(k.Secret, "+") {
			t.Error("a secret without the character that careless clients lose")
		}
		if k.Expires != nil {
			t.Errorf("expires is %q, want null", *k.Expires)
		}
		now := strings.Split(g.URN, ":")[4]
		if account != "" && account != now {
			t.Error("one project has two accounts")
		}
		account = now
	}
	if foreign := c.api(t, c.ForeignProjectID, "eu01").group("x"); strings.Contains(foreign.URN, account) {
		t.Error("two projects share an account")
	}
}

func TestStackitSecretsAreShownOnce(t *testing.T) {
	e, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	g := api.group("alan")
	k := api.key(g.ID, time.Time{})
	state := compactJSON(t, c.state())
	_, admin := call(t, request{method: "GET", url: c.APIURL + "_emulator/state"})
	for what, text := range map[string]string{
		"list of keys": api.must(http.StatusOK, "GET", "/access-keys?credentials-group="+g.ID, ""),
		"group":        api.must(http.StatusOK, "GET", "/credentials-group/"+g.ID, ""),
		"groups":       api.must(http.StatusOK, "GET", "/credentials-groups", ""),
		"state":        state,
		"admin":        admin,
		"calls":        compactJSON(t, e.Calls()),
	} {
		if strings.Contains(text, k.Secret) || strings.Contains(text, k.AccessKey) {
			t.Errorf("%s shows a key", what)
		}
	}
	if !strings.Contains(admin, `"stackit"`) || !strings.Contains(admin, `"cloudscale"`) || !strings.Contains(admin, g.ID) {
		t.Errorf("the admin endpoint does not know both clouds or the group:\n%s", admin)
	}
}

func TestStackitListsLag(t *testing.T) {
	clock := nearClock()
	_, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{ListDelay: Delay{Min: 10 * time.Second, Max: 10 * time.Second}})
	api := c.api(t, c.ProjectID, "eu01")
	list := func() string {
		t.Helper()
		return names(api.must(http.StatusOK, "GET", "/buckets", ""), "name") + "|" +
			names(api.must(http.StatusOK, "GET", "/credentials-groups", ""), "displayName")
	}
	check := func(when, want string) {
		t.Helper()
		if got := list(); got != want {
			t.Errorf("%s: lists show %q, want %q", when, got, want)
		}
	}
	g := api.group("alan")
	api.must(http.StatusCreated, "POST", "/bucket/apollo", "")
	check("just created", "|")
	// Everything but the lists knows them at once.
	api.must(http.StatusOK, "GET", "/bucket/apollo", "")
	api.must(http.StatusOK, "GET", "/credentials-group/"+g.ID, "")
	k := api.key(g.ID, time.Time{})
	if got := names(api.must(http.StatusOK, "GET", "/access-keys?credentials-group="+g.ID, ""), "keyId"); got != k.ID {
		t.Errorf("keys of a group that is not listed yet: %q", got)
	}
	if got := c.Groups(); len(got) != 1 || got[0].ID != g.ID || got[0].Keys != 1 || got[0].Project != c.ProjectID || got[0].Region != "eu01" {
		t.Errorf("Groups: %+v", got)
	}
	clock.Advance(9999 * time.Millisecond)
	check("a moment before", "|")
	clock.Advance(time.Millisecond)
	check("in time", "apollo|alan")

	api.must(http.StatusOK, "DELETE", "/access-key/"+k.ID+"?credentials-group="+g.ID, "")
	api.must(http.StatusOK, "DELETE", "/credentials-group/"+g.ID, "")
	api.must(http.StatusOK, "DELETE", "/bucket/apollo", "")
	check("just deleted", "apollo|alan")
	for _, path := range []string{"/bucket/apollo", "/credentials-group/" + g.ID} {
		if status, _ := api.call("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s while it is still listed: %d", path, status)
		}
		if status, _ := api.call("DELETE", path, ""); status != http.StatusNotFound {
			t.Errorf("deleting %s while it is still listed: %d", path, status)
		}
	}
	clock.Advance(5 * time.Second)
	api.must(http.StatusCreated, "POST", "/bucket/apollo", "")
	clock.Advance(5 * time.Second)
	check("deleted in time, made again", "|")
	clock.Advance(5 * time.Second)
	check("made again, in time", "apollo|")

	// A short life is over in the lists too, in whatever order they learn of it.
	api.must(http.StatusOK, "DELETE", "/credentials-group/"+api.group("short").ID, "")
	clock.Advance(10 * time.Second)
	check("after a short life", "apollo|")
	if got := c.Groups(); len(got) != 0 {
		t.Errorf("Groups: %+v", got)
	}
}

func TestStackitListsFollowS3(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	root := stackitRoot(t, c)
	makeBucket(t, root, "by-s3")
	api.must(http.StatusCreated, "POST", "/bucket/by-api", "")
	if got := names(api.must(http.StatusOK, "GET", "/buckets", ""), "name"); got != "by-s3 by-api" {
		t.Errorf("buckets: %q", got)
	}
	for _, name := range []string{"by-s3", "by-api"} {
		if err := root.RemoveBucket(t.Context(), name); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if got := names(api.must(http.StatusOK, "GET", "/buckets", ""), "name"); got != "" {
		t.Errorf("buckets afterwards: %q", got)
	}
	if got := c.Buckets(); len(got) != 0 {
		t.Errorf("Buckets: %v", got)
	}
}

func TestStackitNotEmpty(t *testing.T) {
	for _, want := range []int{http.StatusConflict, http.StatusUnprocessableEntity} {
		_, c := startStackit(t, Options{}, StackitOptions{NotEmptyStatus: want})
		api := c.api(t, c.ProjectID, "eu01")
		api.must(http.StatusCreated, "POST", "/bucket/full", "")
		root := stackitRoot(t, c)
		if err := root.EnableVersioning(t.Context(), "full"); err != nil {
			t.Fatal(err)
		}
		putObject(t, root, "full", "key", "content")
		// The key is gone for those who list objects; a version and a marker stay.
		if err := root.RemoveObject(t.Context(), "full", "key", minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
		if status, body := api.call("DELETE", "/bucket/full", ""); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
		if got := c.Buckets(); len(got) != 1 || got[0].Name != "full" || got[0].Objects != 1 {
			t.Errorf("Buckets: %+v", got)
		}
		if _, err := root.StatObject(t.Context(), "full", "key", minio.StatObjectOptions{}); minio.ToErrorResponse(err).Code != "NoSuchKey" {
			t.Errorf("stat: %v", err)
		}
	}
}

func TestStackitKeysAtS3(t *testing.T) {
	clock := nearClock()
	_, c := startStackit(t, Options{Now: clock.Now, KeyDelay: map[string]Delay{"eu02": {}}}, StackitOptions{KeyDelay: Delay{Min: 2 * time.Second, Max: 2 * time.Second}})
	api := c.api(t, c.ProjectID, "eu01")
	g := api.group("alan")
	k := api.key(g.ID, time.Time{})
	at := stackitS3(t, c, "eu01", k.AccessKey, k.Secret)
	const unknown = "InvalidAccessKeyId"
	check := func(when, want string) {
		t.Helper()
		if got := s3Code(t, at); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("new key", unknown)
	clock.Advance(2 * time.Second)
	check("new key, in time", "")
	if got := s3Code(t, stackitS3(t, c, "eu02", k.AccessKey, k.Secret)); got != unknown {
		t.Errorf("in the other region: %q", got)
	}
	api.must(http.StatusOK, "DELETE", "/access-key/"+k.ID+"?credentials-group="+g.ID, "")
	check("deleted key", "")
	clock.Advance(2 * time.Second)
	check("deleted key, in time", unknown)

	// Options.KeyDelay wins for the region it names.
	other := c.api(t, c.ProjectID, "eu02")
	k = other.key(other.group("alan").ID, time.Time{})
	if got := s3Code(t, stackitS3(t, c, "eu02", k.AccessKey, k.Secret)); got != "" {
		t.Errorf("without a delay: %q", got)
	}
}

func TestStackitKeysExpire(t *testing.T) {
	clock := nearClock()
	_, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	g := api.group("alan")
	keys := "/access-keys?credentials-group=" + g.ID
	expires := clock.Now().Add(2*time.Minute + 250*time.Millisecond).UTC()
	k := api.key(g.ID, expires)
	if want := expires.Format("2006-01-02T15:04:05.000Z"); k.Expires == nil || *k.Expires != want {
		t.Errorf("expires is %v, want %s", k.Expires, want)
	}
	s3 := stackitS3(t, c, "eu01", k.AccessKey, k.Secret)
	clock.Set(expires.Add(-time.Millisecond))
	if got := s3Code(t, s3); got != "" {
		t.Errorf("before the end: %q", got)
	}
	if got := names(api.must(http.StatusOK, "GET", keys, ""), "keyId"); got != k.ID {
		t.Errorf("keys before the end: %q", got)
	}
	if status, _ := api.call("DELETE", "/credentials-group/"+g.ID, ""); status != http.StatusUnprocessableEntity {
		t.Errorf("deletion of the group before the end: %d", status)
	}
	clock.Set(expires)
	if got := s3Code(t, s3); got != "InvalidAccessKeyId" {
		t.Errorf("at the end: %q", got)
	}
	if got := c.Groups(); len(got) != 1 || got[0].Keys != 0 {
		t.Errorf("Groups: %+v", got)
	}
	if got := names(api.must(http.StatusOK, "GET", keys, ""), "keyId"); got != "" {
		t.Errorf("keys at the end: %q", got)
	}
	if status, _ := api.call("DELETE", "/access-key/"+k.ID+"?credentials-group="+g.ID, ""); status != http.StatusNotFound {
		t.Errorf("deletion of the key at the end: %d", status)
	}
	// The next key makes the data plane forget the expired one.
	api.key(g.ID, time.Time{})
	c.s3Keys.mu.Lock()
	_, kept := c.s3Keys.limits[k.AccessKey]
	c.s3Keys.mu.Unlock()
	if kept {
		t.Error("an expired key is kept for ever")
	}
}

func TestStackitDisableEndsKeys(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	before := api.group("alan")
	k := api.key(before.ID, time.Time{})
	s3 := stackitS3(t, c, "eu01", k.AccessKey, k.Secret)
	if got := s3Code(t, s3); got != "" {
		t.Fatalf("before: %q", got)
	}
	api.must(http.StatusOK, "DELETE", "", "")
	if got := s3Code(t, s3); got != "InvalidAccessKeyId" {
		t.Errorf("afterwards: %q", got)
	}
	api.must(http.StatusCreated, "POST", "", "")
	if got := c.Groups(); len(got) != 0 {
		t.Errorf("groups live on: %+v", got)
	}
	if after := api.group("alan"); strings.Split(after.URN, ":")[4] == strings.Split(before.URN, ":")[4] {
		t.Error("the account lives on")
	}
}

func TestStackitRetentionReachesS3(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")
	api.must(http.StatusCreated, "POST", "/compliance-lock", "")
	api.must(http.StatusCreated, "POST", "/bucket/locked?objectLockEnabled=true", "")
	api.must(http.StatusOK, "PUT", "/bucket/locked/default-retention", `{"mode":"COMPLIANCE","days":30}`)
	root := stackitRoot(t, c)
	_, mode, days, unit, err := root.GetObjectLockConfig(t.Context(), "locked")
	if err != nil || mode == nil || days == nil || *mode != minio.Compliance || *days != 30 || *unit != minio.Days {
		t.Errorf("lock at S3: %v %v %v", mode, days, err)
	}
	governance, years, unitYears := minio.Governance, uint(1), minio.Years
	if err := root.SetObjectLockConfig(t.Context(), "locked", &governance, &years, &unitYears); err != nil {
		t.Fatal(err)
	}
	want := `{"project":"` + c.ProjectID + `","bucket":"locked","mode":"GOVERNANCE","days":365}`
	if got := api.must(http.StatusOK, "GET", "/bucket/locked/default-retention", ""); got != want {
		t.Errorf("retention set at S3: %s", got)
	}
	api.must(http.StatusOK, "DELETE", "/bucket/locked/default-retention", "")
	if _, mode, _, _, err := root.GetObjectLockConfig(t.Context(), "locked"); err != nil || mode != nil {
		t.Errorf("after the removal: %v %v", mode, err)
	}
	api.must(http.StatusOK, "DELETE", "/bucket/locked", "")
	api.must(http.StatusOK, "DELETE", "/compliance-lock", "")
}

func TestStackitFaults(t *testing.T) {
	em, c := startStackit(t, Options{}, StackitOptions{})
	api := c.api(t, c.ProjectID, "eu01")

	firewall := StackitFirewall()
	firewall.Operation, firewall.Times = "ListBuckets", 1
	em.Inject(firewall)
	resp, body := call(t, request{method: "GET", url: api.base + "/buckets", token: api.token})
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Content-Type") != "text/html" || json.Valid([]byte(body)) || !strings.Contains(body, "nginx") {
		t.Errorf("firewall: %s %q %s", resp.Status, resp.Header.Get("Content-Type"), body)
	}
	limit := StackitRateLimit()
	limit.Times = 1
	em.Inject(limit)
	if status, body := api.call("GET", "/buckets", ""); status != http.StatusTooManyRequests || body != "rate limit on IP level exceeded" {
		t.Errorf("rate limit: %d %s", status, body)
	}
	api.must(http.StatusOK, "GET", "/buckets", "")

	em.Inject(Fault{Operation: "CreateCredentialsGroup", Times: 1, LoseAnswer: true})
	_, _, err := send(t.Context(), client(t), request{method: "POST", url: api.base + "/credentials-group", token: api.token, body: `{"displayName":"lost"}`})
	if err == nil {
		t.Error("a lost answer arrives")
	}
	if got := c.Groups(); len(got) != 1 || got[0].DisplayName != "lost" {
		t.Errorf("Groups: %+v", got)
	}
	var operations []string
	for _, call := range em.Calls() {
		operations = append(operations, call.Plane+" "+call.Operation)
	}
	want := "control ListBuckets,control ListBuckets,control ListBuckets,control CreateCredentialsGroup"
	if got := strings.Join(operations, ","); got != want {
		t.Errorf("calls are %s", got)
	}
}

func TestStackitOptions(t *testing.T) {
	for name, so := range map[string]StackitOptions{
		"status":     {NotEmptyStatus: http.StatusNotFound},
		"list delay": {ListDelay: Delay{Min: -1}},
		"key delay":  {KeyDelay: Delay{Min: 2, Max: 1}},
		"policy":     {PolicyDelay: Delay{Min: 2, Max: 1}},
	} {
		if err := new(Emulator).addStackit(&Options{Now: time.Now}, so); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if new(Emulator).Stackit() != nil {
		t.Error("an emulator without clouds has a Stackit")
	}
}

func TestStackitDescribe(t *testing.T) {
	_, c := startStackit(t, Options{}, StackitOptions{})
	var out strings.Builder
	if err := c.describe(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		c.APIURL, c.TokenURL, c.Endpoints["eu01"], c.Endpoints["eu02"], c.ProjectID, c.ForeignProjectID,
		c.FederationEmail, c.FederatedToken, "export STACKIT_SERVICE_ACCOUNT_KEY='" + c.ServiceAccountKey() + "'\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the description lacks %s", want)
		}
	}
	if strings.Contains(out.String(), "%!") {
		t.Errorf("the description has a wrong verb:\n%s", out.String())
	}
}
