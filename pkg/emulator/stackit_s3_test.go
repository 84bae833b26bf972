package emulator

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// member is a credentials group with a key.
type member struct {
	groupBody
	s3 *minio.Client
}

func (a stackitAPI) member(t *testing.T, c *Stackit, name string) member {
	t.Helper()
	g := a.group(name)
	k := a.key(g.ID, time.Time{})
	return member{g, stackitS3(t, c, "eu01", k.AccessKey, k.Secret)}
}

// exclusive is a policy that denies a bucket to all but the named principals.
func exclusive(bucket string, principals ...string) string {
	return `{"Statement":[{"Sid":"deny-outsiders","Effect":"Deny","NotPrincipal":{"AWS":["` + strings.Join(principals, `","`) +
		`"]},"Action":"s3:*","Resource":["arn:aws:s3:::` + bucket + `","arn:aws:s3:::` + bucket + `/*"]}]}`
}

// reads tells how the endpoint answers who reads an object: "" if it is given out.
func reads(t *testing.T, c *minio.Client, bucket string) string {
	t.Helper()
	_, err := c.StatObject(t.Context(), bucket, "key", minio.StatObjectOptions{})
	if err == nil {
		return ""
	}
	return minio.ToErrorResponse(err).Code
}

// A bucket is open to every credentials group of its project until a policy closes it, and to no other
// project's.
func TestStackitIsOpenByDefault(t *testing.T) {
	e := start(t, Options{})
	c := e.Stackit()
	api := c.api(t, c.ProjectID, "eu01")
	admin, user, outsider := api.member(t, c, "admin"), api.member(t, c, "user"), api.member(t, c, "outsider")
	stranger := c.api(t, c.ForeignProjectID, "eu01").member(t, c, "stranger")
	api.must(http.StatusCreated, "POST", "/bucket/shared", "")
	putObject(t, outsider.s3, "shared", "key", "content")
	const denied = "AccessDenied"
	check := func(when string, want map[string]string) {
		t.Helper()
		for name, m := range map[string]member{"admin": admin, "user": user, "outsider": outsider, "stranger": stranger} {
			if got := reads(t, m.s3, "shared"); got != want[name] {
				t.Errorf("%s: %s gets %q, want %q", when, name, got, want[name])
			}
		}
	}
	check("without a policy", map[string]string{"stranger": denied})

	// A group may be named by its own URN or by that of its user.
	userURN := strings.Replace(user.URN, ":group/", ":user/", 1)
	for _, name := range []string{user.URN, userURN} {
		if err := admin.s3.SetBucketPolicy(t.Context(), "shared", exclusive("shared", admin.URN, name)); err != nil {
			t.Fatal(err)
		}
		check(name, map[string]string{"outsider": denied, "stranger": denied})
	}
	if err := outsider.s3.SetBucketPolicy(t.Context(), "shared", ""); minio.ToErrorResponse(err).Code != denied {
		t.Errorf("the outsider opens the bucket: %v", err)
	}
	// What stays open: the names of all buckets of the project, and making more.
	found, err := outsider.s3.ListBuckets(t.Context())
	if err != nil || len(found) != 1 || found[0].Name != "shared" {
		t.Errorf("the outsider sees %v, %v", found, err)
	}
	makeBucket(t, outsider.s3, "more")
	if got := names(api.must(http.StatusOK, "GET", "/buckets", ""), "name"); got != "shared more" {
		t.Errorf("the project has %q", got)
	}
	if found, err := stranger.s3.ListBuckets(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("the stranger sees %v, %v", found, err)
	}
	// The control plane asks no policy.
	if err := admin.s3.RemoveObject(t.Context(), "shared", "key", minio.RemoveObjectOptions{}); err != nil {
		t.Error(err)
	}
	api.must(http.StatusOK, "DELETE", "/bucket/shared", "")
}

func TestStackitPolicyDelay(t *testing.T) {
	clock := nearClock()
	delay := Delay{Min: 8 * time.Second, Max: 8 * time.Second}
	_, c := startStackit(t, Options{Now: clock.Now}, StackitOptions{PolicyDelay: delay})
	api := c.api(t, c.ProjectID, "eu01")
	admin, outsider := api.member(t, c, "admin"), api.member(t, c, "outsider")
	api.must(http.StatusCreated, "POST", "/bucket/late", "")
	putObject(t, admin.s3, "late", "key", "content")
	policy := exclusive("late", admin.URN)
	if err := admin.s3.SetBucketPolicy(t.Context(), "late", policy); err != nil {
		t.Fatal(err)
	}
	if got, err := admin.s3.GetBucketPolicy(t.Context(), "late"); err != nil || got != policy {
		t.Errorf("read back: %v, %s", err, got)
	}
	clock.Advance(8*time.Second - time.Millisecond)
	if got := reads(t, outsider.s3, "late"); got != "" {
		t.Errorf("before its time: %s", got)
	}
	clock.Advance(time.Millisecond)
	if got := reads(t, outsider.s3, "late"); got != "AccessDenied" {
		t.Errorf("in time: %q", got)
	}
	if err := c.SetPolicyDelay(Delay{Min: 2, Max: 1}); err == nil {
		t.Error("a malformed delay is taken")
	}
	if err := c.SetPolicyDelay(Delay{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.s3.SetBucketPolicy(t.Context(), "late", ""); err != nil {
		t.Fatal(err)
	}
	if got := reads(t, outsider.s3, "late"); got != "" {
		t.Errorf("without a delay: %s", got)
	}
}

// A fault of one cloud leaves the other alone.
func TestFaultOfOneCloud(t *testing.T) {
	e := start(t, Options{})
	c := e.Stackit()
	u := createUser(t, e, e.Cloudscale().Token, `{"display_name":"x"}`)
	remove := e.Inject(Fault{Cloud: CloudStackit, Status: http.StatusServiceUnavailable})
	if status, _ := c.api(t, c.ProjectID, "eu01").call("GET", "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("STACKIT answers %d", status)
	}
	if got := s3Code(t, s3(t, e, "rma", u)); got != "" {
		t.Errorf("cloudscale answers %s", got)
	}
	remove()
	c.api(t, c.ProjectID, "eu01").must(http.StatusOK, "GET", "", "")
	calls := e.Calls()
	if first, last := calls[0], calls[len(calls)-1]; first.Cloud != CloudCloudscale || last.Cloud != CloudStackit {
		t.Errorf("calls begin with %+v and end with %+v", first, last)
	}
}
