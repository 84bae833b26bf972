package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// settleAdmin makes the driver's admin group, so that no test waits until lists,
// which may lag, have shown that there is none.
func settleAdmin(t *testing.T, cloud *emulator.Emulator) {
	t.Helper()
	spec := emulatedStackit(cloud.Stackit())
	spec.Stackit.ListingWait = time.Millisecond
	b, err := spec.open(wiring{DriverName: defaultDriverName})
	if err != nil {
		t.Fatal(err)
	}
	ref := provider.BucketRef{Name: "settled", Region: emulatedRegion}
	if _, err := b.Provider.CreateBucket(t.Context(), provider.BucketSpec{Name: ref.Name, Region: ref.Region}); err != nil {
		t.Fatal(err)
	}
	if err := b.Provider.DeleteBucket(t.Context(), ref, provider.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cloud.ResetCalls()
}

// wantNoStackit checks that nothing but the driver's admin group is left.
func wantNoStackit(t *testing.T, cloud *emulator.Emulator) {
	t.Helper()
	groups := cloud.Stackit().Groups()
	if buckets := cloud.Stackit().Buckets(); len(buckets) != 0 || len(groups) != 1 || !strings.Contains(groups[0].DisplayName, "-admin-") {
		t.Errorf("left in the cloud: %+v, %+v", groups, buckets)
	}
}

// stackitVariables are those of an emulated cloud, with a key.
func stackitVariables(cloud *emulator.Emulator) environment {
	return environment{envStackitKey: cloud.Stackit().ServiceAccountKey(), envStackitAPIURL: cloud.Stackit().APIURL, envStackitRegion: emulatedRegion}
}

// TestStackitSignsIn: each kind of credentials makes a back end by itself, and
// the whole life of a bucket passes with it.
func TestStackitSignsIn(t *testing.T) {
	cloud := newCloud(t)
	settleAdmin(t, cloud)
	st := cloud.Stackit()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "key.json"), st.ServiceAccountKey()+"\n")
	writeFile(t, filepath.Join(dir, "token"), st.FederatedToken+"\n")
	for name, env := range map[string]environment{
		"key":      {envStackitKey: st.ServiceAccountKey()},
		"key file": {envStackitKeyPath: filepath.Join(dir, "key.json"), envStackitProject: st.ProjectID},
		"federation": {envStackitEmail: st.FederationEmail, envStackitFederatedToken: filepath.Join(dir, "token"),
			envStackitProject: st.ProjectID, envStackitFederationURL: st.TokenURL},
	} {
		t.Run(name, func(t *testing.T) {
			env[envStackitAPIURL], env[envStackitRegion] = st.APIURL, emulatedRegion
			got := command(t, env, "selftest", "--output", "json")
			all := results(t, got.stdout)
			if got.code != exitOK || len(all) != 1 || all[0].Backend != "stackit" || all[0].Region != emulatedRegion || !all[0].Passed {
				t.Error(got)
			}
			wantNoStackit(t, cloud)
		})
	}
}

func TestServeBothClouds(t *testing.T) {
	cloud := newCloud(t)
	settleAdmin(t, cloud)
	cs := cloud.Cloudscale()
	env := stackitVariables(cloud)
	env[envToken], env[envAPIURL] = cs.Token, cs.APIURL
	r := serving(t, env)
	r.wantReady(t, "ok")
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)
	create := func(parameters map[string]string) (string, error) {
		created, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{Name: "photos", Parameters: parameters})
		return created.GetBucketId(), err
	}
	id, err := create(map[string]string{"backend": "cloudscale", "region": "rma", "endpointURL": cs.Endpoints["rma"]})
	if err != nil || !strings.HasPrefix(id, "cloudscale/rma/photos/") {
		t.Errorf("%q, %v", id, err)
	}
	id, err = create(map[string]string{"backend": "stackit", "region": "eu01"})
	if err != nil || !strings.HasPrefix(id, "stackit/eu01/photos") {
		t.Fatalf("%q, %v", id, err)
	}
	if ours, theirs := cs.Buckets(), cloud.Stackit().Buckets(); len(ours) != 1 || len(theirs) != 1 {
		t.Errorf("cloudscale.ch has %+v, STACKIT %+v; want one bucket each", ours, theirs)
	}
	for _, parameters := range []map[string]string{{"region": "eu01"}, {"backend": "stackit", "region": "rma"}, {"backend": "minio", "region": "eu01"}} {
		if _, err := create(parameters); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", parameters, err)
		}
	}

	// The class's accessMode reaches the cloud that enforces it, and no other.
	grant := func(id, mode string) error {
		_, err := provisioner.DriverGrantBucketAccess(t.Context(), &cosiv1alpha1.DriverGrantBucketAccessRequest{
			BucketId: id, Name: "ba-" + mode, AuthenticationType: cosiv1alpha1.AuthenticationType_Key, Parameters: map[string]string{"accessMode": mode},
		})
		return err
	}
	for _, mode := range []string{"ReadWrite", "ReadOnly", "WriteOnly"} {
		if err := grant(id, mode); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if err := grant(id, "Append"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("unknown mode: %v", err)
	}
}

// bothConfig is a configuration with a back end of each cloud, named cs and st.
func bothConfig(t *testing.T, cloud *emulator.Emulator) string {
	t.Helper()
	dir := t.TempDir()
	cs, st := cloud.Cloudscale(), cloud.Stackit()
	writeFile(t, filepath.Join(dir, "token"), cs.Token)
	writeFile(t, filepath.Join(dir, "key.json"), st.ServiceAccountKey())
	raw, err := json.Marshal(map[string]any{"backends": []map[string]any{
		{"name": "cs", "provider": "cloudscale", "tokenFile": "token", "apiURL": cs.APIURL, "endpoints": cs.Endpoints},
		{"name": "st", "provider": "stackit", "keyFile": "key.json", "projectID": st.ProjectID, "apiURL": st.APIURL, "regions": []string{"eu01"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "zuber.yaml")
	writeFile(t, path, string(raw))
	return path
}

// TestSelftestBothClouds disturbs one cloud and expects that the other's test
// passes, that the step is named, and nothing left in either.
func TestSelftestBothClouds(t *testing.T) {
	gateway := emulator.Fault{Cloud: emulator.CloudStackit, Status: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"timestamp":"2026-01-01T00:00:00Z","path":"/","status":403,"error":"Forbidden","message":"Unauthorized"}`}
	for name, tc := range map[string]struct {
		fault      emulator.Fault
		cs         bool // whether cloudscale.ch passes
		step, want string
	}{
		"STACKIT's API refuses": {on("CreateBucket", 0, gateway), true, "create bucket", "DriverCreateBucket: PermissionDenied: "},
		"no key is made": {
			// The first one is the admin's.
			on("CreateAccessKey", 1, gateway), true, "grant access", "DriverGrantBucketAccess: PermissionDenied: ",
		},
		"an upload is torn": {
			on("UploadPart", 1, emulator.Fault{Cloud: emulator.CloudStackit, Status: 500}), true, "multipart upload", "S3: selftest/large.bin: PutObject (multipart)",
		},
		"a foreign key may read": {
			on("GetObject", 2, func() emulator.Fault {
				f := served("x")
				f.Cloud = emulator.CloudStackit
				return f
			}()), true, "isolation: a foreign key is refused", "-b may read in zuber-selftest-",
		},
		"cloudscale.ch's API refuses": {
			on("CreateObjectsUser", 0, emulator.Fault{Status: 403, Body: `{"detail": "Forbidden."}`}), false, "create bucket", "DriverCreateBucket: PermissionDenied: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud(t)
			settleAdmin(t, cloud)
			cloud.Inject(tc.fault)
			got := command(t, nil, "selftest", "--config", bothConfig(t, cloud), "--region", "rma", "--region", "eu01", "--output", "json")
			all := results(t, got.stdout)
			if got.code != exitFailed || len(all) != 2 || all[0].Backend != "cs" || all[1].Backend != "st" || all[0].Passed != tc.cs || all[1].Passed == tc.cs {
				t.Fatal(got)
			}
			failed := all[1]
			if !tc.cs {
				failed = all[0]
			}
			steps := failed.Steps
			if s := steps[len(steps)-2]; s.OK || s.Name != tc.step || !strings.Contains(s.Detail, tc.want) {
				t.Errorf("%+v, want %s: %s", s, tc.step, tc.want)
			}
			if s := steps[len(steps)-1]; !s.OK || s.Name != "clean up" {
				t.Errorf("%+v, want a clean-up", s)
			}
			wantNothingLeft(t, cloud)
			wantNoStackit(t, cloud)
		})
	}
}

// TestSelftestRegionOfNobody: of several back ends, a region that none has is
// a failure, whatever else passed.
func TestSelftestRegionOfNobody(t *testing.T) {
	got := command(t, nil, "selftest", "--emulate", "--region", "rma", "--region", "eu99", "--output", "json")
	if all := results(t, got.stdout); got.code != exitFailed || len(all) != 1 || !all[0].Passed {
		t.Error(got)
	}
	wantLines(t, "stderr", got.stderr, "zuber: --region \"eu99\": no back end has it\n")
}

// TestSelftestKeepsStackit says how to remove what is left in this cloud.
func TestSelftestKeepsStackit(t *testing.T) {
	cloud := newCloud(t)
	settleAdmin(t, cloud)
	cloud.Inject(emulator.Fault{Operation: "ListObjectsV2", Status: 500})
	got := command(t, stackitVariables(cloud), "selftest", "--keep")
	if got.code != exitFailed {
		t.Error(got)
	}
	wantLines(t, "stderr", got.stderr, "kept: bucket zuber-selftest-", "access ", "to remove it: make a key of the driver's admin credentials group")
}

func TestServeStartsDuringOutageOfStackit(t *testing.T) {
	cloud := newCloud(t)
	settleAdmin(t, cloud)
	heal := cloud.Inject(emulator.Fault{Cloud: emulator.CloudStackit, Plane: emulator.PlaneControl, CutConnection: true})
	r := serving(t, stackitVariables(cloud))
	reachable := func(value string) {
		t.Helper()
		eventually(t, "the back end's reachability is "+value, func() bool {
			_, body := r.get(t, "/metrics")
			return strings.Contains(body, `zuber_backend_reachable{backend="stackit"} `+value)
		})
	}
	reachable("0")
	if code, body := r.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	heal()
	reachable("1")
}

// TestServeRefusedByStackit: a key that the cloud does not know keeps the driver
// from being ready, and is not shown.
func TestServeRefusedByStackit(t *testing.T) {
	cloud := newCloud(t)
	env := stackitVariables(cloud)
	key := env[envStackitKey]
	cloud.Stackit().RevokeServiceAccountKey(key)
	r := serving(t, env)
	r.wantReady(t, "back end stackit: ")
	line := r.stderr.line(t, "Credentials will not do")
	if strings.Contains(line, keyPart(t, key)) {
		t.Error("a key is shown")
	}
}

// clock is time with leaps.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// TestServeReloadsStackitKey replaces the key file while the driver serves.
func TestServeReloadsStackitKey(t *testing.T) {
	// The cloud and the driver share the clock, so that an access token runs out.
	var when clock
	cloud, err := emulator.Start(emulator.Options{Now: when.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cloud.Close() })
	st := cloud.Stackit()
	path := filepath.Join(t.TempDir(), "key.json")
	first := st.ServiceAccountKey()
	second, err := st.NewServiceAccountKey(st.ProjectID)
	if err != nil {
		t.Fatal(err)
	}
	foreign := st.ForeignServiceAccountKey()
	writeFile(t, path, first)

	env := stackitVariables(cloud)
	delete(env, envStackitKey)
	env[envStackitKeyPath] = path
	specs, faults := resolved(t, env, "")
	if faults != "" {
		t.Fatal(faults)
	}
	specs[0].Stackit.Now, specs[0].Stackit.ListingWait = when.now, time.Millisecond
	socket := filepath.Join(socketDir(t), "cosi.sock")
	settings := bound(t, nil, "--endpoint", "unix://"+socket, "--metrics-address", "127.0.0.1:0", "--log-format", "json")
	r := &running{socket: socket, background: startFunc(t, func(ctx context.Context, b *background) int {
		if err := serve(klog.NewContext(ctx, newLogger(b.stderr, settings.logSettings)), settings, specs); err != nil {
			t.Errorf("serve: %v", err)
			return exitFailed
		}
		return exitOK
	})}
	r.connect(t)
	r.wantReady(t, "ok")

	// Each call looks for a new key, at most every few seconds.
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)
	works := func() {
		t.Helper()
		_, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{Name: "photos", Parameters: map[string]string{"region": "eu01"}})
		if err != nil {
			t.Fatalf("a call failed: %v", err)
		}
	}
	place := func(key string, after time.Duration, state string) {
		t.Helper()
		writeFile(t, path, key)
		when.leap(after)
		works()
		_, metrics := r.get(t, "/metrics")
		wantLines(t, "/metrics", metrics, `zuber_backend_credentials_reload_ok{backend="stackit"} `+state+"\n")
	}
	inUse := func() int { return strings.Count(r.stderr.String(), `"msg":"Credentials in use","backend":"stackit"`) }

	place(first, 11*time.Second, "1")
	if n := inUse(); n != 1 {
		t.Errorf("%d lines about credentials, want the one of the start", n)
	}
	place(second, 5*time.Minute, "1")
	if n := inUse(); n != 2 {
		t.Errorf("%d lines about credentials, want one more", n)
	}
	// The first key's access token ends after ten minutes, and from here on
	// nothing works with it.
	st.RevokeServiceAccountKey(first)
	when.leap(6 * time.Minute)
	works()

	place(`{"credentials": `+keyPart(t, foreign), 11*time.Second, "0")
	wantLines(t, "the log", r.stderr.line(t, "New credentials rejected"), "is not JSON of the expected form")
	place(foreign, 11*time.Second, "0")
	r.stderr.line(t, "the new service account key is of project "+st.ForeignProjectID+", the one in use of "+st.ProjectID)
	place(first, 11*time.Second, "0")
	r.stderr.line(t, "the new service account key was tried and does not work")
	place(second, 11*time.Second, "1")
	if n := inUse(); n != 3 {
		t.Errorf("%d lines about credentials, want one for the end of the rejection", n)
	}
	log := r.stderr.String()
	for _, key := range []string{first, second, foreign} {
		if strings.Contains(log, keyPart(t, key)) {
			t.Error("the log shows a key")
		}
	}
}

func TestReloadsMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newReloads(registry, klog.Background())
	want := func(text string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(text),
			"zuber_backend_credentials_reload_ok", "zuber_backend_credentials_expiry_timestamp_seconds"); err != nil {
			t.Error(err)
		}
	}
	const ok = "# HELP zuber_backend_credentials_reload_ok 1 if the newest credentials at their source are in use, 0 if they were rejected and older ones are still used.\n" +
		"# TYPE zuber_backend_credentials_reload_ok gauge\nzuber_backend_credentials_reload_ok{backend=\"a\"} "
	const expiry = "# HELP zuber_backend_credentials_expiry_timestamp_seconds When the credentials in use expire, in seconds since 1970; absent where they do not say.\n" +
		"# TYPE zuber_backend_credentials_expiry_timestamp_seconds gauge\nzuber_backend_credentials_expiry_timestamp_seconds{backend=\"a\"} "
	r.seen("a", stackit.CredentialState{ValidUntil: time.Unix(1700000000, 0)})
	want(expiry + "1.7e+09\n" + ok + "1\n")
	r.seen("a", stackit.CredentialState{ValidUntil: time.Unix(1700000000, 0), Rejected: errors.New("no")})
	want(expiry + "1.7e+09\n" + ok + "0\n")
	r.seen("a", stackit.CredentialState{})
	want(ok + "1\n")
	var none *reloads
	none.seen("a", stackit.CredentialState{})
}
