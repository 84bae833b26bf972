package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// results reads JSON output and checks its form.
func results(t *testing.T, stdout string) []result {
	t.Helper()
	var all []result
	for _, line := range lines(stdout) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var r result
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("%v in the line %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// wantNothingLeft checks the cloud itself.
func wantNothingLeft(t *testing.T, cloud *emulator.Emulator) {
	t.Helper()
	if users, buckets := cloud.Cloudscale().Users(), cloud.Cloudscale().Buckets(); len(users) != 0 || len(buckets) != 0 {
		t.Errorf("left in the cloud: %+v, %+v", users, buckets)
	}
}

func TestSelftestEmulated(t *testing.T) {
	for _, release := range objectstore.Releases() {
		t.Run(string(release), func(t *testing.T) { selftestEmulated(t, "--rgw-release", string(release)) })
	}
}

func selftestEmulated(t *testing.T, args ...string) {
	t.Helper()
	got := command(t, environment{envToken: "a-token-of-a-real-account"}, append([]string{"selftest", "--emulate"}, args...)...)
	if got.code != exitOK || got.stderr != "" {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout,
		"back end cloudscale, region lpg, emulated\n", "back end cloudscale, region rma, emulated\n", "back end stackit, region eu01, emulated\n",
		"   1  create bucket ", "  21  nothing with our mark is left ", "passed: 21 steps in ",
		"  isolation: a foreign key is refused ", "  modes: each may do what it says alone ", "  revoke: the key is refused ")
	if strings.Contains(got.stdout, "FAILED") {
		t.Error(got.stdout)
	}
}

func TestSelftestJSON(t *testing.T) {
	got := command(t, nil, "selftest", "--emulate", "--output", "json")
	if got.code != exitOK || got.stderr != "" {
		t.Fatal(got)
	}
	all := results(t, got.stdout)
	seen := []string{}
	for _, r := range all {
		seen = append(seen, r.Backend+"/"+r.Region)
	}
	if !slices.Equal(seen, []string{"cloudscale/lpg", "cloudscale/rma", "stackit/eu01"}) {
		t.Fatalf("%q", seen)
	}
	for _, r := range all {
		if !r.Passed || r.Provider != r.Backend || len(r.Steps) != 21 {
			t.Errorf("%+v", r)
		}
		for _, s := range r.Steps {
			if !s.OK || s.Name == "" || s.Seconds < 0 {
				t.Errorf("%+v", s)
			}
		}
	}
	wantLines(t, "stdout", got.stdout, `{"backend":"cloudscale","provider":"cloudscale","region":"lpg","apiVersion":"v1alpha1","passed":true,"steps":[{"name":"create bucket","ok":true,"seconds":`)
}

// TestSelftestV1alpha2 runs the same steps, and one more, through the other face.
func TestSelftestV1alpha2(t *testing.T) {
	got := command(t, nil, "selftest", "--emulate", "--api-version", "v1alpha2", "--path-style=false", "-v", "1")
	if got.code != exitOK {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout,
		"back end cloudscale, region lpg, v1alpha2, emulated\n", "back end cloudscale, region rma, v1alpha2, emulated\n", "back end stackit, region eu01, v1alpha2, emulated\n",
		"   3  existing bucket: found by ID and name    ok ", "  22  nothing with our mark is left ", "passed: 22 steps in ")
	if strings.Contains(got.stderr, `apiVersion="v1alpha1"`) || !strings.Contains(got.stderr, `apiVersion="v1alpha2" method="DriverGrantBucketAccess"`) {
		t.Error(got.stderr)
	}
	got = command(t, nil, "selftest", "--emulate", "--api-version", "v1alpha3")
	if got.code != exitUsage || !strings.Contains(got.stderr, "v1alpha1 or v1alpha2") {
		t.Error(got)
	}
}

// TestSelftestAddressing looks at what reached the cloud.
func TestSelftestAddressing(t *testing.T) {
	got := command(t, nil, "selftest", "--emulate", "--path-style=false", "--region", "rma", "--region", "eu01", "-v", "1")
	if got.code != exitOK || strings.Contains(got.stdout, "lpg") {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout, "at http://objects.rma.localhost:", "at http://object.storage.eu01.localhost:")
	wantLines(t, "stderr", got.stderr, `"RPC done"`, `method="DriverGrantBucketAccess"`)

	cloud := newCloud(t)
	cs := cloud.Cloudscale()
	other := strings.Replace(cs.Endpoints["rma"], "127.0.0.1", "localhost", 1)
	got = command(t, nil, "selftest", "--config", configFor(t, cloud, cs.Token), "--region", "rma", "--endpoint-url", other)
	if got.code != exitOK {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout, "at "+other)
	wantNothingLeft(t, cloud)
}

func TestSelftestBackends(t *testing.T) {
	cloud := newCloud(t)
	cs := cloud.Cloudscale()
	config := configFor(t, cloud, cs.Token, cs.ForeignToken)
	got := command(t, environment{"ZUBER_CONFIG": config, "ZUBER_REGION": "rma"}, "selftest", "--output", "json")
	all := results(t, got.stdout)
	if got.code != exitOK || len(all) != 2 || all[0].Backend != "a" || all[1].Backend != "b" {
		t.Error(got)
	}
	got = command(t, nil, "selftest", "--config", config, "--backend", "b", "--region", "rma", "--region", "lpg", "--output", "json")
	all = results(t, got.stdout)
	if got.code != exitOK || len(all) != 2 || all[0].Backend != "b" || all[0].Region != "lpg" || all[1].Region != "rma" {
		t.Error(got)
	}
	wantNothingLeft(t, cloud)
}

// denied is S3's answer to a key with a given code.
func denied(code string) emulator.Fault {
	return emulator.Fault{
		Status: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/xml"}},
		Body: "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code></Error>",
	}
}

// served is S3's answer to a read.
func served(body string) emulator.Fault {
	return emulator.Fault{Status: http.StatusOK, Body: body, Header: http.Header{
		"Last-Modified": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Etag": {`"d41d8cd98f00b204e9800998ecf8427e"`},
	}}
}

// on aims a fault at an operation, after some calls that pass.
func on(operation string, after int, f emulator.Fault) emulator.Fault {
	f.Operation, f.After, f.Times = operation, after, 1
	return f
}

// TestSelftestFails disturbs the cloud and expects the step that must notice, a
// cause in its detail, and nothing left. The probe, which comes before the
// objects are used, puts two of them, gets one and lists three times.
func TestSelftestFails(t *testing.T) {
	for name, tc := range map[string]struct {
		fault emulator.Fault
		step  string
		want  string
	}{
		"the API refuses": {
			on("CreateObjectsUser", 0, emulator.Fault{Status: 403, Body: `{"detail": "Forbidden."}`}),
			"create bucket", "DriverCreateBucket: PermissionDenied: ",
		},
		"the API is out of order": {
			on("CreateObjectsUser", 0, emulator.Fault{Status: 502, Body: `<html>Bad Gateway</html>`}),
			"create bucket", "DriverCreateBucket: Unavailable: ",
		},
		"a write fails": {
			on("PutObject", 2, emulator.Fault{Status: 507}),
			"put object", "S3: selftest/small.txt: PutObject",
		},
		"a read returns other data": {
			on("GetObject", 1, served("something else")),
			"get object", "selftest/small.txt: read 14 bytes that are not the",
		},
		"a listing is empty": {
			on("ListObjectsV2", 3, emulator.Fault{Status: 200, Body: `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>`}),
			"list objects", `the bucket lists [], want ["selftest/small.txt"]`,
		},
		"an upload is torn": {
			on("UploadPart", 1, emulator.Fault{Status: 500}),
			"multipart upload", "S3: selftest/large.bin: PutObject (multipart)",
		},
		"a deletion is not carried out": {
			on("DeleteObject", 0, emulator.Fault{Status: 204}),
			"delete object", `the bucket lists ["selftest/large.bin" "selftest/small.txt"]`,
		},
		"a foreign key may read": {
			on("GetObject", 3, served("x")),
			"isolation: a foreign key is refused", "-b may read in zuber-selftest-",
		},
		"a foreign key may write": {
			on("PutObject", 4, emulator.Fault{Status: 200, Header: http.Header{"Etag": {`"d41d8cd98f00b204e9800998ecf8427e"`}}}),
			"isolation: a foreign key is refused", "-b may write in zuber-selftest-",
		},
		"a foreign key is refused for another reason": {
			on("GetObject", 3, denied("InvalidAccessKeyId")),
			"isolation: a foreign key is refused", "read with a foreign key: want AccessDenied, not: S3: selftest/small.txt: GetObject",
		},
		"an owner survives": {
			// After the probe's users and the accesses: two buckets, each deleted twice.
			emulator.Fault{Operation: "DeleteObjectsUser", After: 7, Times: 4, Status: 204},
			"nothing with our mark is left", "left behind: owner ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud(t)
			cloud.Inject(tc.fault)
			got := command(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--region", "rma", "--output", "json")
			all := results(t, got.stdout)
			if got.code != exitFailed || len(all) != 1 || all[0].Passed || got.stderr != "" {
				t.Fatal(got)
			}
			steps := all[0].Steps
			failed := steps[len(steps)-2]
			if failed.OK || failed.Name != tc.step {
				t.Errorf("the step that failed is %+v, want %s", failed, tc.step)
			}
			wantLines(t, "detail", failed.Detail, tc.want)
			if last := steps[len(steps)-1]; !last.OK || last.Name != "clean up" {
				t.Errorf("the last step is %+v, want clean up", last)
			}
			for _, s := range steps[:len(steps)-2] {
				if !s.OK {
					t.Errorf("a step before failed: %+v", s)
				}
			}
			wantNothingLeft(t, cloud)
		})
	}
}

func TestSelftestReadOnlyToken(t *testing.T) {
	cloud := newCloud(t)
	token := cloud.Cloudscale().ReadOnlyToken
	got := command(t, nil, "selftest", "--config", configFor(t, cloud, token))
	if got.code != exitFailed {
		t.Fatal(got)
	}
	wantLines(t, "stdout", got.stdout, "FAILED", "DriverCreateBucket: PermissionDenied: ", "use a read-write API token of the project")
	if strings.Contains(got.String(), token) {
		t.Errorf("the token is shown: %v", got)
	}
}

func TestSelftestWithoutRegions(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(emulator.Fault{Operation: "ListRegions", Status: 401, Body: `{"detail":"Invalid token."}`})
	config := configFor(t, cloud, cloud.Cloudscale().Token)
	got := command(t, nil, "selftest", "--config", config, "--output", "json")
	all := results(t, got.stdout)
	if got.code != exitFailed || len(all) != 1 || len(all[0].Steps) != 1 || all[0].Steps[0].Name != "list regions" || all[0].Passed {
		t.Error(got)
	}
	wantLines(t, "detail", all[0].Steps[0].Detail, "back end a: ", "401")
}

// TestSelftestKeeps leaves a bucket with an owner and an object, and says so.
func TestSelftestKeeps(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(emulator.Fault{Operation: "ListObjectsV2", After: 3, Status: 500})
	got := command(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--region", "lpg", "--keep")
	if got.code != exitFailed || strings.Contains(got.stdout, "clean up") {
		t.Error(got)
	}
	wantLines(t, "stdout", got.stdout, "   8  list objects ", "FAILED: 8 steps in ")
	buckets, users := cloud.Cloudscale().Buckets(), cloud.Cloudscale().Users()
	if len(buckets) != 1 || buckets[0].Objects != 1 || len(users) != 2 {
		t.Fatalf("kept: %+v, %+v", buckets, users)
	}
	wantLines(t, "stderr", got.stderr, "kept: ", "bucket "+buckets[0].Name+" in lpg", "owner ", users[0].ID, "access ", users[1].ID, "to remove it: ")
}

// TestSelftestCannotCleanUp says what is left when the clean-up fails too.
func TestSelftestCannotCleanUp(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(emulator.Fault{Operation: "PutObject", After: 2, Status: 500})
	cloud.Inject(emulator.Fault{Operation: "DeleteBucket", After: 1, Status: 403})
	got := command(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--region", "rma", "--output", "json")
	all := results(t, got.stdout)
	if got.code != exitFailed || len(all) != 1 {
		t.Fatal(got)
	}
	last := all[0].Steps[len(all[0].Steps)-1]
	if last.OK || last.Name != "clean up" || !strings.Contains(last.Detail, "DeleteBucket") {
		t.Errorf("%+v", last)
	}
	buckets := cloud.Cloudscale().Buckets()
	if len(buckets) != 1 {
		t.Fatalf("%+v", buckets)
	}
	wantLines(t, "stderr", got.stderr, "left behind: ", buckets[0].Name, "to remove it: ")
}

// TestSelftestInterrupted ends the test in the middle of a call.
func TestSelftestInterrupted(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(on("GetObject", 1, emulator.Fault{Latency: time.Hour}))
	b := start(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--output", "json")
	eventually(t, "the read hangs", func() bool {
		reads := 0
		for _, call := range cloud.Calls() {
			if call.Operation == "GetObject" {
				reads++
			}
		}
		return reads == 2
	})
	if code := b.stop(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	all := results(t, b.stdout.String())
	if len(all) != 1 {
		t.Fatalf("%+v, want one region and no other after it", all)
	}
	names := []string{}
	for _, s := range all[0].Steps {
		names = append(names, s.Name)
	}
	if !slices.Equal(names[len(names)-2:], []string{"get object", "clean up"}) {
		t.Errorf("%q", names)
	}
	wantLines(t, "detail", all[0].Steps[len(names)-2].Detail, "interrupted: S3: selftest/small.txt: GetObject")
	wantNothingLeft(t, cloud)
}

func TestSelftestTimeout(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(on("CreateObjectsUser", 0, emulator.Fault{Latency: time.Hour}))
	got := command(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--region", "rma", "--timeout", "200ms")
	if got.code != exitFailed {
		t.Error(got)
	}
	wantLines(t, "stdout", got.stdout, "not finished within --timeout 200ms: DriverCreateBucket: Canceled")
	wantNothingLeft(t, cloud)
}

// TestSelftestProgress shows a line while a new key is on its way.
func TestSelftestProgress(t *testing.T) {
	cloud, err := emulator.Start(emulator.Options{KeyDelay: map[string]emulator.Delay{"lpg": {Min: 2 * time.Second, Max: 2 * time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cloud.Close() })
	got := command(t, nil, "selftest", "--config", configFor(t, cloud, cloud.Cloudscale().Token), "--region", "lpg", "--output", "json")
	if all := results(t, got.stdout); got.code != exitOK || len(all) != 1 || !all[0].Passed {
		t.Error(got)
	}
	wantLines(t, "stderr", got.stderr, "… waiting until lpg knows the new key (")
}

// A reader such as head goes away after a line, which must not end the process
// between making a bucket and deleting it.
func TestSelftestOutlivesItsReader(t *testing.T) {
	cloud := newCloud(t)
	config := configFor(t, cloud, cloud.Cloudscale().Token)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "selftest", "--config", config)
	cmd.Env = append(os.Environ(), childVariable+"=1", "GOCOVERDIR="+t.TempDir())
	stderr := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = write, stderr
	_ = cmd.Run()
	if err := write.Close(); err != nil {
		t.Error(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "write the report") {
		t.Errorf("ended with %s and %q, want exit code %d and the reason", cmd.ProcessState, stderr, exitFailed)
	}
	if !called(cloud, "CreateBucket") || len(cloud.Cloudscale().Buckets()) > 0 || len(cloud.Cloudscale().Users()) > 0 {
		t.Errorf("it left %d buckets and %d users, or made none", len(cloud.Cloudscale().Buckets()), len(cloud.Cloudscale().Users()))
	}
}
