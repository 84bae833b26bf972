package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// running is a driver that serves.
type running struct {
	*background
	socket string
	web    string // base URL of probes and metrics
	conn   *grpc.ClientConn
}

// serving starts a driver on a socket of its own and waits until it serves.
func serving(t *testing.T, env environment, args ...string) *running {
	t.Helper()
	socket := filepath.Join(socketDir(t), "cosi.sock")
	args = append([]string{"serve", "--endpoint", "unix://" + socket, "--metrics-address", "127.0.0.1:0", "--log-format", "json"}, args...)
	r := &running{background: start(t, env, args...), socket: socket}
	r.connect(t)
	return r
}

func (r *running) connect(t *testing.T) {
	t.Helper()
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(r.stderr.line(t, "Serving metrics")), &line); err != nil {
		t.Fatal(err)
	}
	r.web = "http://" + line.Address
	r.stderr.line(t, "Serving COSI")
	r.conn = dial(t, r.socket)
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// get asks the web side.
func (r *running) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.web+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// wantReady waits until every back end is judged and a line of /readyz begins
// with want.
func (r *running) wantReady(t *testing.T, want string) {
	t.Helper()
	eventually(t, "/readyz says "+want, func() bool {
		_, body := r.get(t, "/readyz")
		return strings.Contains("\n"+body, "\n"+want) && !strings.Contains(body, errUnchecked.Error())
	})
}

func TestServeEmulated(t *testing.T) {
	// The token in the environment must not reach the emulator's back end.
	r := serving(t, environment{envToken: "a-token-of-a-real-account"}, "--emulate", "--driver-name", "cosi.example.dev", "--revoke-grace", "0s")
	ctx := t.Context()
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)

	info, err := cosiv1alpha1.NewIdentityClient(r.conn).DriverGetInfo(ctx, &cosiv1alpha1.DriverGetInfoRequest{})
	if err != nil || info.GetName() != "cosi.example.dev" {
		t.Fatalf("%v, %v", info, err)
	}
	parameters := map[string]string{"backend": "cloudscale", "region": "lpg", "bucketDeletionPolicy": "DeleteAll"}
	created, err := provisioner.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: "photos", Parameters: parameters})
	if err != nil || !strings.HasPrefix(created.GetBucketId(), "cloudscale/lpg/photos/") {
		t.Fatalf("%v, %v", created, err)
	}
	granted, err := provisioner.DriverGrantBucketAccess(ctx, &cosiv1alpha1.DriverGrantBucketAccessRequest{
		BucketId: created.GetBucketId(), Name: "ba-1", AuthenticationType: cosiv1alpha1.AuthenticationType_Key,
	})
	if err != nil {
		t.Fatal(err)
	}
	secret := granted.GetCredentials()["s3"].GetSecrets()["accessSecretKey"]
	if secret == "" {
		t.Fatal("no secret key was granted")
	}
	_, err = provisioner.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: "videos", Parameters: map[string]string{"backend": "cloudscale", "region": "zrh"}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "allowed are lpg, rma") {
		t.Errorf("unknown region: %v", err)
	}
	// With the grace off, and the gate that the emulator opens, the live access
	// does not hold the deletion back.
	if _, err := provisioner.DriverDeleteBucket(ctx, &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: created.GetBucketId(), DeleteContext: parameters}); err != nil {
		t.Errorf("delete: %v", err)
	}

	r.wantReady(t, "ok")
	if code, body := r.get(t, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
	eventually(t, "the back end is accepted", func() bool {
		_, body := r.get(t, "/metrics")
		return strings.Contains(body, `zuber_backend_credentials_ok{backend="cloudscale"} 1`)
	})
	_, metrics := r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics,
		`zuber_rpc_duration_seconds_count{api_version="v1alpha1",code="InvalidArgument",method="DriverCreateBucket"} 1`,
		`zuber_backend_reachable{backend="cloudscale"} 1`, "zuber_unconfigured 0", "zuber_build_info{", "go_goroutines ", "process_resident_memory_bytes ")
	if code, _ := r.get(t, "/"); code != http.StatusNotFound {
		t.Errorf("/: %d", code)
	}

	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(r.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	log := r.stderr.String()
	for _, hidden := range []string{secret, "a-token-of-a-real-account"} {
		if strings.Contains(log, hidden) {
			t.Errorf("the log shows a secret:\n%s", log)
		}
	}
	wantLines(t, "the log", log, `"msg":"Stopped"`, `"method":"DriverGrantBucketAccess"`)
	for _, line := range lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line is no JSON: %s", line)
		}
	}
}

func TestServeUnconfigured(t *testing.T) {
	r := serving(t, nil)
	if code, body := r.get(t, "/readyz"); code != http.StatusServiceUnavailable || body != "unconfigured: no credentials were given\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if code, _ := r.get(t, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	_, metrics := r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, "zuber_unconfigured 1")
	_, err := cosiv1alpha1.NewProvisionerClient(r.conn).DriverCreateBucket(t.Context(),
		&cosiv1alpha1.DriverCreateBucketRequest{Name: "photos", Parameters: map[string]string{"region": "rma"}})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), envTokenFile) {
		t.Errorf("%v, want FailedPrecondition with the remedy", err)
	}
	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServeRotatesToken goes from a token that will not do to one that does,
// without a restart.
func TestServeRotatesToken(t *testing.T) {
	cloud := newCloud(t)
	cs := cloud.Cloudscale()
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, cs.ReadOnlyToken)
	r := serving(t, environment{envTokenFile: path, envAPIURL: cs.APIURL})
	r.wantReady(t, "back end cloudscale: cloudscale check")
	_, reason := r.get(t, "/readyz")
	wantLines(t, "/readyz", reason, "use a read-write API token of the project")
	_, metrics := r.get(t, "/metrics")
	wantLines(t, "/metrics", metrics, `zuber_backend_credentials_ok{backend="cloudscale"} 0`, `zuber_backend_reachable{backend="cloudscale"} 1`)
	r.stderr.line(t, "Credentials will not do")

	writeFile(t, path, cs.Token)
	r.wantReady(t, "ok")
	r.stderr.line(t, "Credentials accepted")
	for _, token := range []string{cs.Token, cs.ReadOnlyToken} {
		if strings.Contains(r.stderr.String()+reason, token) {
			t.Error("a token is shown")
		}
	}
}

// TestServeWaitsForFirstCheck: a driver that nobody has judged yet is not ready.
func TestServeWaitsForFirstCheck(t *testing.T) {
	cloud := newCloud(t)
	cloud.Inject(emulator.Fault{Plane: emulator.PlaneControl, Latency: time.Hour})
	r := serving(t, nil, "--config", configFor(t, cloud, cloud.Cloudscale().Token))
	if code, body := r.get(t, "/readyz"); code != http.StatusServiceUnavailable || body != "back end a: its credentials are not checked yet\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServeStartsDuringOutage: the cloud's outage delays nothing and is no
// reason to be taken out of service.
func TestServeStartsDuringOutage(t *testing.T) {
	cloud := newCloud(t)
	heal := cloud.Inject(emulator.Fault{Plane: emulator.PlaneControl, CutConnection: true})
	r := serving(t, nil, "--config", configFor(t, cloud, cloud.Cloudscale().Token))
	eventually(t, "the outage is seen", func() bool {
		_, body := r.get(t, "/metrics")
		return strings.Contains(body, `zuber_backend_reachable{backend="a"} 0`)
	})
	if code, body := r.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	heal()
	eventually(t, "the end of the outage is seen", func() bool {
		_, body := r.get(t, "/metrics")
		return strings.Contains(body, `zuber_backend_reachable{backend="a"} 1`)
	})
}

func TestServeSeveralBackends(t *testing.T) {
	cloud := newCloud(t)
	cs := cloud.Cloudscale()
	r := serving(t, nil, "--config", configFor(t, cloud, cs.Token, cs.ForeignToken))
	provisioner := cosiv1alpha1.NewProvisionerClient(r.conn)
	for name, project := range map[string]string{"a": "own", "b": "foreign"} {
		created, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{
			Name: "bucket-" + name, Parameters: map[string]string{"region": "rma", "backend": name},
		})
		if err != nil || !strings.HasPrefix(created.GetBucketId(), name+"/rma/") {
			t.Errorf("%v, %v", created, err)
		}
		found := false
		for _, user := range cs.Users() {
			found = found || user.Tags["zuber_bucket"] == "bucket-"+name && user.Project == project
		}
		if !found {
			t.Errorf("bucket-%s has no owner in the project %s", name, project)
		}
	}
	_, err := provisioner.DriverCreateBucket(t.Context(), &cosiv1alpha1.DriverCreateBucketRequest{
		Name: "bucket-c", Parameters: map[string]string{"region": "rma"},
	})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a back end: %v", err)
	}
}

func TestServeFailures(t *testing.T) {
	first := serving(t, nil)
	got := command(t, nil, "serve", "--endpoint", "unix://"+first.socket, "--metrics-address", "0")
	if got.code != exitFailed {
		t.Errorf("on a live socket: %v", got)
	}
	wantLines(t, "stderr", got.stderr, "zuber: socket "+first.socket)

	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	socket := filepath.Join(socketDir(t), "cosi.sock")
	got = command(t, nil, "serve", "--endpoint", "unix://"+socket, "--metrics-address", taken.Addr().String())
	if got.code != exitFailed {
		t.Errorf("on a taken port: %v", got)
	}
	wantLines(t, "stderr", got.stderr, "zuber: --metrics-address: listen tcp "+taken.Addr().String())
}

func TestServeWithoutMetrics(t *testing.T) {
	socket := filepath.Join(socketDir(t), "cosi.sock")
	b := start(t, nil, "serve", "--endpoint", "unix://"+socket, "--metrics-address", "0")
	b.stderr.line(t, "Serving COSI")
	if strings.Contains(b.stderr.String(), "Serving metrics") {
		t.Error("metrics are served")
	}
	if code := b.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// child runs the command in a process of its own, for real signals.
func child(t *testing.T, stderr io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "GOCOVERDIR="+t.TempDir())
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestSignals(t *testing.T) {
	cloud := newCloud(t)
	config := configFor(t, cloud, cloud.Cloudscale().Token)
	cloud.Inject(emulator.Fault{Operation: "CreateObjectsUser", Latency: time.Hour})

	for name, tc := range map[string]struct {
		signal os.Signal
		again  bool   // a call keeps the driver from stopping, and the signal comes again
		want   string // of the process's state
	}{
		"SIGTERM":               {signal: syscall.SIGTERM, want: "exit status 0"},
		"SIGINT":                {signal: os.Interrupt, want: "exit status 0"},
		"a second one, at once": {signal: syscall.SIGTERM, again: true, want: "signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(socketDir(t), "cosi.sock")
			stderr := newWatched()
			cmd := child(t, stderr, "serve", "--endpoint", "unix://"+socket, "--metrics-address", "0", "--config", config, "--shutdown-timeout", "1h")
			stderr.line(t, "Serving COSI")
			if tc.again {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cloud.ResetCalls()
				provisioner := cosiv1alpha1.NewProvisionerClient(dial(t, socket))
				go func() {
					_, _ = provisioner.DriverCreateBucket(ctx,
						&cosiv1alpha1.DriverCreateBucketRequest{Name: "photos", Parameters: map[string]string{"region": "rma"}})
				}()
				eventually(t, "the call hangs in the cloud", func() bool { return called(cloud, "CreateObjectsUser") })
			}
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the socket is gone", func() bool {
				_, err := os.Stat(socket)
				return os.IsNotExist(err)
			})
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			var err error
			eventually(t, "the process has ended", func() bool {
				select {
				case err = <-ended:
					return true
				default:
				}
				// The first one may still be on its way through the process.
				if tc.again {
					_ = cmd.Process.Signal(tc.signal)
				}
				return false
			})
			if got := cmd.ProcessState.String(); got != tc.want {
				t.Errorf("%s (%v), want %s\n%s", got, err, tc.want, stderr)
			}
		})
	}
}

// called reports whether the cloud has received a call of that operation.
func called(cloud *emulator.Emulator, operation string) bool {
	for _, call := range cloud.Calls() {
		if call.Operation == operation {
			return true
		}
	}
	return false
}
