package emulator

import (
	"bytes"
	"maps"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

// apiRow is one fact about the control plane. In path, body and want, {id} stands
// for the user "alan" and {unknown} for an id of the right form; {api} for the
// API's base URL and {ak}, {sk} for the keys of alan.
type apiRow struct {
	name   string
	method string
	path   string
	token  string // "rw" (default), "ro", "foreign", "none", or the header verbatim
	ctype  string
	body   string
	status int
	want   string // exact JSON body, white space aside; "*" = any, not empty
	after  string // what GET alan answers afterwards, if it matters
	// unsure says that the cloud's own answer is not known in this point, or
	// where and why the emulator departs from it.
	unsure string
}

const alan = `{"href":"{api}v1/objects-users/{id}","id":"{id}","display_name":"alan","keys":[{"access_key":"{ak}","secret_key":"{sk}"}],"tags":{"empty":"","project":"apollo"}}`

func apiRows() []apiRow {
	const users = "v1/objects-users"
	return []apiRow{
		// Authentication, tokens, methods.
		{name: "no credentials", method: "GET", path: users, token: "none", status: 401, want: `{"detail":"Authentication credentials were not provided."}`},
		{name: "other scheme", method: "GET", path: users, token: "Basic eDp5", status: 401, want: `{"detail":"Authentication credentials were not provided."}`},
		{name: "unknown token", method: "GET", path: users, token: "Bearer nobody", status: 401, want: `{"detail":"Invalid token."}`, unsure: "the text is the framework's"},
		{name: "empty token", method: "GET", path: users, token: "Bearer ", status: 401, want: `{"detail":"Invalid token."}`, unsure: "the text is the framework's"},
		{name: "scheme in lower case", method: "GET", path: "v1/regions", token: "bearer {rw}", status: 200, want: "*"},
		{name: "unknown path before token", method: "GET", path: "v1/nothing", token: "none", status: 404, want: `{"detail":"Not found."}`, unsure: "order is the framework's"},
		{name: "root", method: "GET", path: "", status: 404, want: `{"detail":"Not found."}`, unsure: "the root is not documented"},
		{name: "no trailing slash", method: "GET", path: users + "/", status: 404, want: `{"detail":"Not found."}`, unsure: "no client sends one"},
		{name: "double slash", method: "GET", path: "v1//objects-users", status: 404, want: `{"detail":"Not found."}`, unsure: "no client sends one"},
		{name: "project log", method: "GET", path: "v1/project-logs?start=2026-01-01", status: 404, want: `{"detail":"Not found."}`, unsure: "exists at the cloud, not kept"},
		{name: "read-only may not create", method: "POST", path: users, token: "ro", body: `{"display_name":"x"}`, status: 403, want: `{"detail":"You do not have permission to perform this action."}`, unsure: "status is documented, the text is the framework's"},
		{name: "read-only may not change", method: "PATCH", path: users + "/{id}", token: "ro", body: `{"tags":{}}`, status: 403, want: `{"detail":"You do not have permission to perform this action."}`, after: alan},
		{name: "read-only may not delete", method: "DELETE", path: users + "/{id}", token: "ro", status: 403, want: `{"detail":"You do not have permission to perform this action."}`, after: alan},
		{name: "read-only sees no secret key in a list", method: "GET", path: users, token: "ro", status: 200, want: `[{"href":"{api}v1/objects-users/{id}","id":"{id}","display_name":"alan","keys":[{"access_key":"{ak}"}],"tags":{"empty":"","project":"apollo"}}]`, unsure: "absent, null and empty are all possible at the cloud"},
		{name: "read-only sees no secret key", method: "GET", path: users + "/{id}", token: "ro", status: 200, want: `{"href":"{api}v1/objects-users/{id}","id":"{id}","display_name":"alan","keys":[{"access_key":"{ak}"}],"tags":{"empty":"","project":"apollo"}}`},
		{name: "PUT on the list", method: "PUT", path: users, body: `{}`, status: 405, want: `{"detail":"Method \"PUT\" not allowed."}`},
		{name: "POST on a user", method: "POST", path: users + "/{id}", body: `{}`, status: 405, want: `{"detail":"Method \"POST\" not allowed."}`},
		{name: "DELETE on the list", method: "DELETE", path: users, status: 405, want: `{"detail":"Method \"DELETE\" not allowed."}`},
		{name: "POST on regions", method: "POST", path: "v1/regions", body: `{}`, status: 405, want: `{"detail":"Method \"POST\" not allowed."}`},
		{name: "read-only is refused before the method is", method: "PUT", path: users, token: "ro", status: 403, want: "*", unsure: "order is the framework's"},
		{name: "OPTIONS needs no token", method: "OPTIONS", path: users, token: "none", status: 200, unsure: "the body is not recorded, none is sent"},
		{name: "HEAD", method: "HEAD", path: users, status: 200},

		// List and filter.
		{name: "list", method: "GET", path: users, status: 200, want: "[" + alan + "]"},
		{name: "list of another project", method: "GET", path: users, token: "foreign", status: 200, want: `[]`},
		{name: "key and value", method: "GET", path: users + "?tag:project=apollo", status: 200, want: "[" + alan + "]"},
		{name: "key and value, escaped", method: "GET", path: users + "?tag%3Aproject=apollo", status: 200, want: "[" + alan + "]"},
		{name: "key and other value", method: "GET", path: users + "?tag:project=gemini", status: 200, want: `[]`},
		{name: "value is matched whole", method: "GET", path: users + "?tag:project=apol", status: 200, want: `[]`},
		{name: "key only", method: "GET", path: users + "?tag:project", status: 200, want: "[" + alan + "]"},
		{name: "key with an empty value matches any", method: "GET", path: users + "?tag:project=", status: 200, want: "[" + alan + "]"},
		{name: "tag with an empty value", method: "GET", path: users + "?tag:empty=", status: 200, want: "[" + alan + "]"},
		{name: "unknown key", method: "GET", path: users + "?tag:nothing", status: 200, want: `[]`},
		{name: "two clauses", method: "GET", path: users + "?tag:project=apollo&tag:empty=", status: 400, want: `{"detail":"At most one tag: clause can be passed"}`},
		{name: "one key twice", method: "GET", path: users + "?tag:project=apollo&tag:project=gemini", status: 400, want: `{"detail":"At most one tag: clause can be passed"}`},
		{name: "other parameters", method: "GET", path: users + "?limit=1", status: 200, want: "[" + alan + "]", unsure: "no client sends one"},

		// One user.
		{name: "get", method: "GET", path: users + "/{id}", status: 200, want: alan},
		{name: "get unknown", method: "GET", path: users + "/{unknown}", status: 404, want: `{"detail":"Not found."}`},
		{name: "get another project's", method: "GET", path: users + "/{id}", token: "foreign", status: 404, want: `{"detail":"Not found."}`},
		{name: "below a user", method: "GET", path: users + "/{id}/keys", status: 404, want: `{"detail":"Not found."}`},

		// Create.
		{name: "create", method: "POST", path: users, body: `{"display_name":"x","tags":{"a":"","b":"c.d-1"}}`, status: 201, want: "*"},
		{name: "create without tags", method: "POST", path: users, body: `{"display_name":"x"}`, status: 201, want: "*"},
		{name: "a second user of one name", method: "POST", path: users, body: `{"display_name":"alan"}`, status: 201, want: "*"},
		{name: "urlencoded form", method: "POST", path: users, ctype: "application/x-www-form-urlencoded", body: "display_name=x&tags.a=b", status: 201, want: "*", unsure: "tags in a form are the framework's"},
		{name: "form with tags as text", method: "POST", path: users, ctype: "application/x-www-form-urlencoded", body: "display_name=x&tags=a", status: 400, want: `{"tags":"Expected a dictionary of items."}`},
		{name: "form without a name", method: "POST", path: users, ctype: "application/x-www-form-urlencoded", body: "display_name=+", status: 400, want: `{"display_name":"This field may not be blank."}`},
		{name: "name missing", method: "POST", path: users, body: `{}`, status: 400, want: `{"display_name":"This field is required."}`},
		{name: "name blank", method: "POST", path: users, body: `{"display_name":""}`, status: 400, want: `{"display_name":"This field may not be blank."}`},
		{name: "name null", method: "POST", path: users, body: `{"display_name":null}`, status: 400, want: `{"display_name":"This field may not be null."}`},
		{name: "name not a string", method: "POST", path: users, body: `{"display_name":7}`, status: 400, want: `{"display_name":"Not a valid string."}`, unsure: "the framework would take a number"},
		{name: "tag value not a string", method: "POST", path: users, body: `{"display_name":"x","tags":{"a":1}}`, status: 400, want: `{"tags":"Not a valid string."}`},
		{name: "tag value null", method: "POST", path: users, body: `{"display_name":"x","tags":{"a":null}}`, status: 400, want: `{"tags":"Not a valid string."}`},
		{name: "tags a list", method: "POST", path: users, body: `{"display_name":"x","tags":["a"]}`, status: 400, want: `{"tags":"Expected a dictionary of items."}`},
		{name: "tags null", method: "POST", path: users, body: `{"display_name":"x","tags":null}`, status: 400, want: `{"tags":"This field may not be null."}`},
		{name: "long and strange tags", method: "POST", path: users, body: `{"display_name":"x","tags":{"a/b.c":"` + strings.Repeat("v", 300) + `"}}`, status: 201, want: "*", unsure: "limits are not known, none is kept"},
		{name: "two faults at once", method: "POST", path: users, body: `{"display_name":"","tags":null}`, status: 400, want: `{"display_name":"This field may not be blank.","tags":"This field may not be null."}`},
		{name: "unknown field", method: "POST", path: users, body: `{"display_name":"x","region":"rma"}`, status: 400, want: `{"region":"This field is not known."}`, unsure: "the cloud may ignore it"},
		{name: "not JSON", method: "POST", path: users, body: `{"display_name"`, status: 400, want: "*"},
		{name: "not an object", method: "POST", path: users, body: `["x"]`, status: 400, want: `{"non_field_errors":"Invalid data. Expected a dictionary, but got array."}`},
		{name: "media type", method: "POST", path: users, ctype: "text/plain", body: "x", status: 415, want: `{"detail":"Unsupported media type \"text/plain\" in request."}`},

		// Change: one attribute at a time.
		{name: "rename", method: "PATCH", path: users + "/{id}", body: `{"display_name":"alan"}`, status: 204, after: alan},
		{name: "tags replace the whole map", method: "PATCH", path: users + "/{id}", body: `{"tags":{"k":"v"}}`, status: 204, after: strings.Replace(alan, `{"empty":"","project":"apollo"}`, `{"k":"v"}`, 1)},
		{name: "an empty map clears", method: "PATCH", path: users + "/{id}", body: `{"tags":{}}`, status: 204, after: strings.Replace(alan, `{"empty":"","project":"apollo"}`, `{}`, 1)},
		{name: "null is refused", method: "PATCH", path: users + "/{id}", body: `{"tags":null}`, status: 400, want: `{"tags":"This field may not be null."}`, after: alan, unsure: "status and text"},
		{name: "two attributes", method: "PATCH", path: users + "/{id}", body: `{"display_name":"x","tags":{}}`, status: 400, want: `{"detail":"Only one attribute can be changed at a time."}`, after: alan, unsure: "only the first three words are known"},
		{name: "no attribute", method: "PATCH", path: users + "/{id}", body: `{}`, status: 400, want: `{"detail":"No attribute to change was passed."}`, after: alan, unsure: "not known"},
		{name: "blank name", method: "PATCH", path: users + "/{id}", body: `{"display_name":""}`, status: 400, want: `{"display_name":"This field may not be blank."}`, after: alan},
		{name: "change unknown", method: "PATCH", path: users + "/{unknown}", body: `{"tags":{}}`, status: 404, want: `{"detail":"Not found."}`},
		{name: "change another project's", method: "PATCH", path: users + "/{id}", token: "foreign", body: `{"tags":{}}`, status: 404, want: `{"detail":"Not found."}`, after: alan},

		// Delete.
		{name: "delete", method: "DELETE", path: users + "/{id}", status: 204, after: `{"detail":"Not found."}`},
		{name: "delete unknown", method: "DELETE", path: users + "/{unknown}", status: 404, want: `{"detail":"Not found."}`},
		{name: "delete another project's", method: "DELETE", path: users + "/{id}", token: "foreign", status: 404, want: `{"detail":"Not found."}`, after: alan},

		// Regions and metrics.
		{name: "regions", method: "GET", path: "v1/regions", status: 200, want: `[{"slug":"rma","zones":[{"slug":"rma1"}]},{"slug":"lpg","zones":[{"slug":"lpg1"}]}]`},
		{name: "regions with a read-only token", method: "GET", path: "v1/regions", token: "ro", status: 200, want: "*"},
		{name: "one region", method: "GET", path: "v1/regions/rma", status: 404, want: `{"detail":"Not found."}`},
		{name: "metrics in winter", method: "GET", path: "v1/metrics/buckets?start=2023-01-11&end=2023-01-11", status: 200, want: `{"start":"2023-01-10T23:00:00Z","end":"2023-01-11T23:00:00Z","data":[]}`},
		{name: "metrics in summer", method: "GET", path: "v1/metrics/buckets?start=2023-07-01&end=2023-07-02", status: 200, want: `{"start":"2023-06-30T22:00:00Z","end":"2023-07-02T22:00:00Z","data":[]}`},
		{name: "metrics on the day of 23 hours", method: "GET", path: "v1/metrics/buckets?start=2023-03-26&end=2023-03-26", status: 200, want: `{"start":"2023-03-25T23:00:00Z","end":"2023-03-26T22:00:00Z","data":[]}`},
		{name: "metrics without start", method: "GET", path: "v1/metrics/buckets?end=2023-01-11", status: 400, want: `{"start":"This field is required."}`, unsure: "not known"},
		{name: "metrics with a bad date", method: "GET", path: "v1/metrics/buckets?start=2023-01-11&end=11.1.2023", status: 400, want: `{"end":"Date has wrong format. Use one of these formats instead: YYYY-MM-DD."}`, unsure: "not known"},
		{name: "metrics backwards", method: "GET", path: "v1/metrics/buckets?start=2023-01-12&end=2023-01-11", status: 400, want: "*", unsure: "not known"},
		{name: "metrics of a century", method: "GET", path: "v1/metrics/buckets?start=1923-01-12&end=2023-01-11", status: 400, want: "*", unsure: "bounded here, not known there"},
	}
}

func TestCloudscaleAPI(t *testing.T) {
	for _, row := range apiRows() {
		t.Run(row.name, func(t *testing.T) {
			e := start(t, Options{})
			cs := e.Cloudscale()
			u := createUser(t, e, cs.Token, `{"display_name":"alan","tags":{"project":"apollo","empty":""}}`)
			fill := strings.NewReplacer("{id}", u.ID, "{unknown}", strings.Repeat("0a", 32), "{api}", cs.APIURL,
				"{ak}", u.Keys[0].AccessKey, "{sk}", u.Keys[0].SecretKey, "{rw}", cs.Token)

			req, err := request{method: row.method, url: cs.APIURL + fill.Replace(row.path), contentType: row.ctype, body: row.body}.build(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			header := map[string]string{"": "Bearer " + cs.Token, "ro": "Bearer " + cs.ReadOnlyToken, "foreign": "Bearer " + cs.ForeignToken, "none": ""}
			auth, named := header[row.token]
			if !named {
				auth = fill.Replace(row.token)
			}
			if auth != "" {
				req.Header.Set("Authorization", auth)
			}
			resp, body, err := do(client(t), req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != row.status {
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, row.status, body)
			}
			switch want := fill.Replace(row.want); {
			case want == "*" && body == "":
				t.Error("empty body")
			case want != "*" && compact(t, body) != want:
				t.Errorf("body\n got %s\nwant %s", body, want)
			}
			checkHeaders(t, resp)
			if row.after != "" {
				_, got := call(t, request{method: "GET", url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token})
				if want := fill.Replace(row.after); got != want {
					t.Errorf("afterwards\n got %s\nwant %s", got, want)
				}
			}
		})
	}
}

// checkHeaders compares with what was recorded from the cloud. Not kept: HTTP/2.
func checkHeaders(t *testing.T, resp *response) {
	t.Helper()
	want := map[string]string{
		"Server":                       "nginx",
		"Content-Language":             "en",
		"Strict-Transport-Security":    "max-age=15768000; includeSubDomains",
		"Referrer-Policy":              "same-origin",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Access-Control-Allow-Origin":  "*",
		"Access-Control-Allow-Headers": "Content-Type, Authorization",
		"Access-Control-Allow-Methods": "GET, POST, OPTIONS, PUT, PATCH, DELETE",
	}
	if resp.Header.Get("Content-Length") != "0" && resp.StatusCode != http.StatusNoContent {
		want["Content-Type"] = "application/json"
	}
	if resp.StatusCode == http.StatusUnauthorized {
		want["Www-Authenticate"] = "Bearer"
	}
	for name, value := range want {
		if got := resp.Header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
	for name, values := range resp.Header {
		if name != "Vary" && len(values) != 1 {
			t.Errorf("header %s comes %d times", name, len(values))
		}
	}
	if got := resp.Header.Values("Vary"); !slices.Equal(got, []string{"Accept-Encoding", "Accept-Language, Cookie"}) {
		t.Errorf("header Vary is %q", got)
	}
}

func TestCloudscaleAllowHeader(t *testing.T) {
	cs := start(t, Options{}).Cloudscale()
	for path, want := range map[string]string{
		"v1/objects-users":   "GET, POST, HEAD, OPTIONS",
		"v1/objects-users/x": "GET, PATCH, DELETE, HEAD, OPTIONS",
		"v1/regions":         "GET, HEAD, OPTIONS",
		"v1/metrics/buckets": "GET, HEAD, OPTIONS",
		"v1/nothing":         "",
	} {
		resp, _ := call(t, request{method: "GET", url: cs.APIURL + path, token: cs.Token})
		if got := resp.Header.Get("Allow"); got != want {
			t.Errorf("%s: Allow is %q, want %q", path, got, want)
		}
	}
}

func TestCloudscaleFormats(t *testing.T) {
	e := start(t, Options{})
	seen := map[string]bool{}
	for range 20 {
		u := createUser(t, e, e.Cloudscale().Token, `{"display_name":"x"}`)
		for what, pair := range map[string][2]string{
			"id":         {u.ID, `^[0-9a-f]{64}$`},
			"access key": {u.Keys[0].AccessKey, `^[A-Z0-9]{20}$`},
			"secret key": {u.Keys[0].SecretKey, `^[A-Za-z0-9]{40}$`},
			"href":       {u.HREF, `^http://127\.0\.0\.1:\d+/v1/objects-users/[0-9a-f]{64}$`},
		} {
			if !regexp.MustCompile(pair[1]).MatchString(pair[0]) {
				t.Errorf("%s does not match %s", what, pair[1])
			}
			if seen[pair[0]] {
				t.Errorf("%s comes twice", what)
			}
			seen[pair[0]] = true
		}
		if len(u.Keys) != 1 || u.Tags == nil {
			t.Errorf("%d keys, tags %v; want one key and an empty map", len(u.Keys), u.Tags)
		}
	}
}

func TestCloudscaleMultipartForm(t *testing.T) {
	cs := start(t, Options{}).Cloudscale()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range map[string]string{"display_name": "alan", "tags.a": "b"} {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	post := request{method: "POST", url: cs.APIURL + "v1/objects-users", token: cs.Token, contentType: w.FormDataContentType(), body: form.String()}
	if resp, body := call(t, post); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	users := cs.Users()
	if len(users) != 1 || users[0].DisplayName != "alan" || !maps.Equal(users[0].Tags, map[string]string{"a": "b"}) {
		t.Errorf("users are %+v", users)
	}
	post.contentType = "multipart/form-data; boundary=other"
	if resp, body := call(t, post); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("wrong boundary: %s: %s", resp.Status, body)
	}
}

func TestCloudscaleProjects(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	own := createUser(t, e, cs.Token, `{"display_name":"own"}`)
	foreign := createUser(t, e, cs.ForeignToken, `{"display_name":"foreign"}`)
	var got []string
	for _, u := range cs.Users() {
		got = append(got, u.Project+" "+u.DisplayName+" "+u.ID+" "+u.AccessKey)
	}
	want := []string{
		"own own " + own.ID + " " + own.Keys[0].AccessKey,
		"foreign foreign " + foreign.ID + " " + foreign.Keys[0].AccessKey,
	}
	if !slices.Equal(got, want) {
		t.Errorf("users\n got %q\nwant %q", got, want)
	}
	// One realm: the other project's key works and its bucket names are taken.
	makeBucket(t, s3(t, e, "rma", foreign), "shared-name")
	err := s3(t, e, "rma", own).MakeBucket(t.Context(), "shared-name", minio.MakeBucketOptions{})
	if minio.ToErrorResponse(err).Code != "BucketAlreadyExists" {
		t.Errorf("a name of the other project: %v", err)
	}
}

func TestCloudscaleBodyLimit(t *testing.T) {
	cs := start(t, Options{}).Cloudscale()
	resp, body := call(t, request{
		method: "POST", url: cs.APIURL + "v1/objects-users", token: cs.Token,
		body: `{"display_name":"` + strings.Repeat("x", maxInput) + `"}`,
	})
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s: %s", resp.Status, body)
	}
}
