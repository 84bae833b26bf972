package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	cosiv1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// canary is no secret: it is in the names of back ends and buckets, and shows that a
// channel is captured at all.
const canary = "canary-0f3a9c1e7b"

// watchedClouds are emulated clouds behind proxies that see every credential.
type watchedClouds struct {
	*emulator.Emulator
	*secrets
	t       *testing.T
	keyFile string // of the service account
	config  string
}

func newWatchedClouds(t *testing.T) *watchedClouds {
	t.Helper()
	w := &watchedClouds{Emulator: newCloud(t), secrets: newSecrets(), t: t}
	cs, st := w.Cloudscale(), w.Stackit()
	for what, token := range map[string]string{
		"API token": cs.Token, "read-only API token": cs.ReadOnlyToken, "foreign API token": cs.ForeignToken, "federated token": st.FederatedToken,
	} {
		w.add(what, token)
	}
	w.addServiceAccountKey(t, st.ServiceAccountKey())
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "token"), cs.Token)
	w.keyFile = filepath.Join(dir, "key.json")
	writeFile(t, w.keyFile, st.ServiceAccountKey())
	raw, err := json.Marshal(map[string]any{"backends": []map[string]any{
		{"name": canary + "-cs", "provider": "cloudscale", "tokenFile": "token", "apiURL": w.proxy(cs.APIURL), "endpoints": cs.Endpoints},
		{"name": canary + "-st", "provider": "stackit", "keyFile": "key.json", "projectID": st.ProjectID, "apiURL": w.proxy(st.APIURL), "tokenURL": w.proxy(st.TokenURL),
			"endpoints": map[string]string{emulatedRegion: st.Endpoints[emulatedRegion]}, "regions": []string{emulatedRegion}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.config = filepath.Join(dir, "zuber.yaml")
	writeFile(t, w.config, string(raw))
	return w
}

// proxy puts a spy in front of an endpoint and returns its base URL.
func (w *watchedClouds) proxy(target string) string {
	w.t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		w.t.Fatal(err)
	}
	base := &http.Transport{DisableCompression: true}
	w.t.Cleanup(base.CloseIdleConnections)
	server := httptest.NewServer(&httputil.ReverseProxy{
		ErrorLog:  log.New(io.Discard, "", 0),
		Transport: &spy{w.secrets, base},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host
			r.Out.Host = u.Host // the emulator names itself to its clients by it
		},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) {
			// The cloud cut the connection, so the proxy does too.
			if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
				_ = conn.Close()
			}
		},
	})
	w.t.Cleanup(server.Close)
	return server.URL + u.Path
}

// faults are disturbances whose answers repeat credentials, as a proxy in between may
// do. What is last is the end of an emulator's answer in the middle.
func (w *watchedClouds) faults() []emulator.Fault {
	shown := fmt.Sprintf("%s %s %s", w.one("API token"), w.one("service account key"), w.one("secret_key"))
	asJSON := http.Header{"Content-Type": {"application/json"}}
	asXML := http.Header{"Content-Type": {"application/xml"}}
	message := `{"detail":"` + shown + `","message":"` + shown + `","error":"` + shown + `","detail2":[{"msg":"` + shown + `"}]}`
	refusal := "<Error><Code>AccessDenied</Code><Message>" + shown + "</Message><Resource>" + shown + "</Resource></Error>"
	elsewhere := http.Header{"Location": {"http://127.0.0.1:1/?token=" + url.QueryEscape(w.one("API token"))}}
	return []emulator.Fault{
		{Plane: emulator.PlaneControl, Status: 400, Header: asJSON, Body: message},
		{Plane: emulator.PlaneControl, Status: 401, Header: asJSON, Body: message},
		{Plane: emulator.PlaneControl, Status: 422, Header: asJSON, Body: message},
		{Plane: emulator.PlaneControl, Status: 302, Header: elsewhere, Body: shown},
		{Plane: emulator.PlaneControl, Status: 200, Header: asJSON, Body: `[` + message},
		{Plane: emulator.PlaneS3, Status: 403, Header: asXML, Body: refusal},
		{Plane: emulator.PlaneS3, Status: 400, Header: asXML, Body: "<Error><Code>" + shown + "</Code></Error>"},
		{Plane: emulator.PlaneS3, Status: 307, Header: elsewhere, Body: shown},
		{Plane: emulator.PlaneS3, Status: 200, Header: asXML, Body: shown},
		{Status: 503, Header: asJSON, Body: message, Probability: 0.3},
		{CutConnection: true, Probability: 0.3},
		{ResetBodyAfter: 40, Probability: 0.3},
	}
}

// statusTexts is all that a sidecar gets of a failure, and what it writes into events.
func statusTexts(err error) []string {
	st := status.Convert(err)
	return []string{err.Error(), fmt.Sprintf("%+v %#v %q", err, err, err), st.Message(), prototext.Format(st.Proto()), fmt.Sprint(st.Details()...)}
}

// lives are bucket lives through the socket of a driver, with all failures kept.
type lives struct {
	*watchedClouds
	conn *grpc.ClientConn
	out  *channels
}

func newLives(t *testing.T, w *watchedClouds, out *channels, socket string) *lives {
	t.Helper()
	capture := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err != nil {
			out.add("gRPC status", statusTexts(err)...)
		}
		return err
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(capture))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &lives{w, conn, out}
}

// all runs a life in each cloud by each version of the API and returns how many came
// to a good end.
func (l *lives) all(name string) (good int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for backend, region := range map[string]string{canary + "-cs": "rma", canary + "-st": emulatedRegion} {
		for version, live := range map[string]func(bucket, backend, region string) error{"a1": l.v1alpha1, "a2": l.v1alpha2} {
			group.Go(func() {
				if live(fmt.Sprintf("%s-%s-%s", canary, name, version), backend, region) == nil {
					mu.Lock()
					defer mu.Unlock()
					good++
				}
			})
		}
	}
	group.Wait()
	return good
}

func (l *lives) v1alpha1(bucket, backend, region string) error {
	ctx, c := l.t.Context(), cosiv1alpha1.NewProvisionerClient(l.conn)
	params := map[string]string{"backend": backend, "region": region, "bucketDeletionPolicy": "DeleteAll"}
	_, _ = c.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: bucket, Parameters: map[string]string{"backend": backend, "apiToken": l.one("API token")}})
	created, err := c.DriverCreateBucket(ctx, &cosiv1alpha1.DriverCreateBucketRequest{Name: bucket, Parameters: params})
	if err != nil {
		return err
	}
	granted, err := c.DriverGrantBucketAccess(ctx, &cosiv1alpha1.DriverGrantBucketAccessRequest{
		BucketId: created.GetBucketId(), Name: "ba-" + bucket, AuthenticationType: cosiv1alpha1.AuthenticationType_Key})
	if err != nil {
		return err
	}
	key := granted.GetCredentials()["s3"].GetSecrets()
	l.fill(bucket, key["endpoint"], key["region"], key["accessKeyID"], key["accessSecretKey"])
	// Without its accesses gone and its policy said, the bucket stays.
	_, _ = c.DriverDeleteBucket(ctx, &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: created.GetBucketId(), DeleteContext: map[string]string{"bucketDeletionPolicy": "DeleteIfEmpty"}})
	_, err = c.DriverRevokeBucketAccess(ctx, &cosiv1alpha1.DriverRevokeBucketAccessRequest{BucketId: created.GetBucketId(), AccountId: granted.GetAccountId()})
	if err != nil {
		return err
	}
	_, err = c.DriverDeleteBucket(ctx, &cosiv1alpha1.DriverDeleteBucketRequest{BucketId: created.GetBucketId(), DeleteContext: params})
	return err
}

func (l *lives) v1alpha2(bucket, backend, region string) error {
	ctx, c := l.t.Context(), v1alpha2pb.NewProvisionerClient(l.conn)
	protocol := &v1alpha2pb.ObjectProtocol{Type: v1alpha2pb.ObjectProtocol_S3}
	params := map[string]string{"backend": backend, "region": region, "bucketDeletionPolicy": "DeleteAll"}
	created, err := c.DriverCreateBucket(ctx, &v1alpha2pb.DriverCreateBucketRequest{Name: bucket, Parameters: params})
	if err != nil {
		return err
	}
	id := created.GetBucketId()
	if _, err := c.DriverGetExistingBucket(ctx, &v1alpha2pb.DriverGetExistingBucketRequest{ExistingBucketId: id}); err != nil {
		return err
	}
	granted, err := c.DriverGrantBucketAccess(ctx, &v1alpha2pb.DriverGrantBucketAccessRequest{
		AccountName: "ba-" + bucket, Protocol: protocol, AuthenticationType: &v1alpha2pb.AuthenticationType{Type: v1alpha2pb.AuthenticationType_KEY},
		Buckets: []*v1alpha2pb.DriverGrantBucketAccessRequest_AccessedBucket{{BucketId: id, AccessMode: &v1alpha2pb.AccessMode{Mode: v1alpha2pb.AccessMode_READ_WRITE}}},
	})
	if err != nil {
		return err
	}
	info, key := granted.GetBuckets()[0].GetBucketInfo().GetS3(), granted.GetCredentials().GetS3()
	l.fill(bucket, info.GetEndpoint(), info.GetRegion(), key.GetAccessKeyId(), key.GetAccessSecretKey())
	_, err = c.DriverRevokeBucketAccess(ctx, &v1alpha2pb.DriverRevokeBucketAccessRequest{
		AccountId: granted.GetAccountId(), Buckets: []*v1alpha2pb.DriverRevokeBucketAccessRequest_AccessedBucket{{BucketId: id}}})
	if err != nil {
		return err
	}
	_, err = c.DriverDeleteBucket(ctx, &v1alpha2pb.DriverDeleteBucketRequest{BucketId: id, Parameters: params})
	return err
}

// fill writes an object, so that there is something to purge, and keeps the errors of
// a client.
func (l *lives) fill(bucket, endpoint, region, id, secret string) {
	l.add("granted key", secret)
	c, err := s3.New(s3.Config{Endpoint: endpoint, AccessKeyID: id, SecretAccessKey: func() string { return secret }, SigningRegion: region})
	if err == nil {
		_ = c.PutObject(l.t.Context(), bucket, "object", []byte("data"))
		_, err = c.GetObject(l.t.Context(), bucket, canary)
	}
	if err != nil {
		l.out.add("S3 error", canary+": "+err.Error(), fmt.Sprintf("%+v %#v", err, err))
	}
}

// TestSecretsStayInside runs bucket lives in both clouds through both versions of the
// API at the highest verbosity, undisturbed and with faults whose answers repeat
// credentials, and looks for every credential that passed in all that got out.
func TestSecretsStayInside(t *testing.T) {
	w, out := newWatchedClouds(t), newChannels()
	for _, format := range []string{formatJSON, formatText} {
		socket := filepath.Join(socketDir(t), "cosi.sock")
		b := start(t, nil, "serve", "--config", w.config, "--endpoint", "unix://"+socket, "--metrics-address", "127.0.0.1:0",
			"--log-format", format, "-v", "10", "--allow-delete-all", "--revoke-grace", "0s", "--rpc-timeout", "20s")
		address := regexp.MustCompile(`address"?[=:]"([^"]+)"`).FindStringSubmatch(b.stderr.line(t, "Serving metrics"))
		b.stderr.line(t, "Serving COSI")
		r := &running{background: b, socket: socket, web: "http://" + address[1]}
		l := newLives(t, w, out, socket)
		if good := l.all("good-" + format); good != 4 {
			t.Errorf("%d lives came to a good end, want one in each cloud and version", good)
		}
		faults := w.faults()
		if format == formatText || testing.Short() {
			faults = faults[:2]
		}
		for i, fault := range faults {
			remove := w.Inject(fault)
			l.all(fmt.Sprintf("bad-%s-%d", format, i))
			remove()
		}
		for _, page := range []string{"/metrics", "/readyz", "/healthz"} {
			_, body := r.get(t, page)
			out.add("the web pages", page, body)
		}
		if code := b.stop(t); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		out.add("the log as "+format, b.stderr.String(), b.stdout.String())
	}
	w.rotate(out)
	for version, format := range map[string]string{"v1alpha1": formatText, "v1alpha2": formatJSON} {
		if version == "v1alpha1" && testing.Short() {
			continue
		}
		got := command(t, nil, "selftest", "--config", w.config, "--region", "rma", "--region", emulatedRegion, "--output", format, "--api-version", version, "-v", "10")
		if got.code != exitOK {
			t.Error(got)
		}
		out.add("selftest as "+format, got.stdout)
		out.add("selftest's log", got.stderr)
	}
	remove := w.Inject(w.faults()[0])
	failed := command(t, nil, "selftest", "--config", w.config, "--region", "rma", "--region", emulatedRegion, "-v", "10")
	remove()
	out.add("a failed selftest", failed.stdout, failed.stderr)
	for what, least := range map[string]int{"secret_key": 8, "secretAccessKey": 8, "bearer token": 2, "assertion": 1, "service account key": 20} {
		if n := w.kinds()[what]; n < least {
			t.Errorf("%d values passed as %s, want %d at least: %v", n, what, least, w.kinds())
		}
	}
	out.wantClean(t, w.secrets, w.one("secret_key"))
}

// rotate replaces an access's key and the service account's, with a failure each.
func (w *watchedClouds) rotate(out *channels) {
	w.t.Helper()
	ctx, logs := w.t.Context(), newWatched()
	c := collect(pflag.NewFlagSet("", pflag.ContinueOnError))
	specs := (&backendSettings{DriverName: defaultDriverName, ConfigFile: w.config}).resolve(c, nil)
	if err := c.err(); err != nil {
		w.t.Fatal(err)
	}
	specs[1].Stackit.ListingWait = time.Millisecond
	backends, err := openAll(specs, wiring{DriverName: defaultDriverName, Reloads: newReloads(prometheus.NewRegistry(), newLogger(logs, logSettings{10, formatText}))})
	if err != nil {
		w.t.Fatal(err)
	}
	p, ref := backends[1].Provider, provider.BucketRef{Name: canary + "-rotated", Region: emulatedRegion}
	if _, err := p.CreateBucket(ctx, provider.BucketSpec{Name: ref.Name, Region: ref.Region}); err != nil {
		w.t.Fatal(err)
	}
	granted, err := p.GrantAccess(ctx, provider.AccessSpec{Account: "ba-rotated", Buckets: []provider.BucketAccess{{BucketRef: ref, Mode: provider.ReadWrite}}})
	if err != nil {
		w.t.Fatal(err)
	}
	account := provider.AccountRef{Account: "ba-rotated", IdentityID: granted.IdentityID, Buckets: []provider.BucketRef{ref}}
	if _, err := p.RotateAccess(ctx, account, provider.RotateOptions{KeepAccessKeyID: granted.Credentials.AccessKeyID}); err != nil {
		w.t.Fatal(err)
	}
	for _, fault := range w.faults()[:5] {
		remove := w.Inject(fault)
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		rotated, err := p.RotateAccess(bounded, account, provider.RotateOptions{})
		cancel()
		remove()
		out.add("rotation", canary, fmt.Sprintf("%v %+v %#v %v", rotated, rotated, rotated, err))
	}
	writeFile(w.t, w.keyFile, w.Stackit().ServiceAccountKey()[:1500])
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = p.GetBucket(bounded, ref)
	out.add("rotation", fmt.Sprint(err), logs.String())
	writeFile(w.t, w.keyFile, w.Stackit().ServiceAccountKey())
	if err := p.RevokeAccess(ctx, account); err != nil {
		w.t.Error(err)
	}
	if err := p.DeleteBucket(ctx, ref, provider.DeleteOptions{}); err != nil {
		w.t.Error(err)
	}
}
