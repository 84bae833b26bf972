package emulator

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

func TestSeveralInstances(t *testing.T) {
	a, b := start(t, Options{}), start(t, Options{})
	u := createUser(t, a, a.Cloudscale().Token, `{"display_name":"x"}`)
	makeBucket(t, s3(t, a, "rma", u), "box")
	if n := len(b.Cloudscale().Users()) + len(b.Cloudscale().Buckets()) + len(b.Calls()); n != 0 {
		t.Errorf("the other instance has %d things of this one", n)
	}
	if got := outcome(t, request{method: "GET", url: b.Cloudscale().APIURL + "v1/regions", token: a.Cloudscale().Token}); got != http.StatusUnauthorized {
		t.Errorf("one instance's token at the other: %d", got)
	}
	if _, err := s3(t, b, "rma", u).ListBuckets(t.Context()); minio.ToErrorResponse(err).Code != "InvalidAccessKeyId" {
		t.Errorf("one instance's key at the other: %v", err)
	}
}

func TestFixedToken(t *testing.T) {
	cs := start(t, Options{Token: "my-token.1_a"}).Cloudscale()
	if cs.Token != "my-token.1_a" {
		t.Errorf("token is %q", cs.Token)
	}
	tokens := []string{cs.Token, cs.ReadOnlyToken, cs.ForeignToken}
	slices.Sort(tokens)
	if len(slices.Compact(tokens)) != 3 {
		t.Error("tokens are not distinct")
	}
	for _, token := range tokens {
		if got := outcome(t, request{method: "GET", url: cs.APIURL + "v1/objects-users", token: token}); got != http.StatusOK {
			t.Errorf("status %d", got)
		}
	}
	for _, bad := range []string{"a b", "a\n", "é"} {
		if _, err := Start(Options{Token: bad}); err == nil {
			t.Errorf("Start took the token %q", bad)
		}
	}
}

func TestRelease(t *testing.T) {
	for _, release := range objectstore.Releases() {
		cs := start(t, Options{RGWRelease: release}).Cloudscale()
		for region, endpoint := range cs.Endpoints {
			resp, _ := call(t, request{method: "GET", url: endpoint})
			if tentacle := resp.Header.Get("Server") == "Ceph Object Gateway (tentacle)"; tentacle != (release == objectstore.Tentacle) {
				t.Errorf("%s, asked for %s: server %q", region, release, resp.Header.Get("Server"))
			}
		}
		if cs.Release != release || !strings.Contains(release.Version(), string(release)) {
			t.Errorf("release %s is %s, %s", release, cs.Release, release.Version())
		}
	}
	if got := start(t, Options{}).Cloudscale().Release; got != objectstore.Reef {
		t.Errorf("the default release is %s", got)
	}
	if _, err := Start(Options{RGWRelease: "quincy"}); err == nil || !strings.Contains(err.Error(), `unknown RGW release "quincy"`) {
		t.Errorf("Start took an unknown release: %v", err)
	}
}

// fixedPort starts an emulator on ports in a row that were free.
func fixedPort(t *testing.T, host string) (*Emulator, int) {
	t.Helper()
	var last error
	for range 50 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		e, err := Start(Options{Listen: net.JoinHostPort(host, strconv.Itoa(port))})
		if err == nil {
			return e, port
		}
		last = err
	}
	t.Fatalf("no free ports in a row: %v", last)
	return nil, 0
}

func TestFixedPort(t *testing.T) {
	e, port := fixedPort(t, "127.0.0.1")
	cs := e.Cloudscale()
	su := e.Stackit()
	for i, got := range []string{
		strings.TrimSuffix(cs.APIURL, "/"), cs.Endpoints["rma"], cs.Endpoints["lpg"],
		strings.TrimSuffix(su.APIURL, "/"), su.Endpoints["eu01"], su.Endpoints["eu02"],
	} {
		if want := fmt.Sprintf("http://127.0.0.1:%d", port+i); got != want {
			t.Errorf("endpoint %d is %s, want %s", i, got, want)
		}
	}
	if second, err := Start(Options{Listen: fmt.Sprintf("127.0.0.1:%d", port)}); err == nil {
		t.Error("two emulators on one port")
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	// The region's port alone being taken fails as well, and frees the others.
	if second, err := Start(Options{Listen: fmt.Sprintf("127.0.0.1:%d", port-1)}); err == nil {
		t.Error("a region's port is shared")
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// Polled, because a client of another test may hold such a port for a moment.
	eventually(t, "the ports are free after Close", func() bool {
		again, err := Start(Options{Listen: fmt.Sprintf("127.0.0.1:%d", port)})
		if err != nil {
			return false
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		return true
	})
}

func TestUnspecifiedHostIsReachable(t *testing.T) {
	e, port := fixedPort(t, "0.0.0.0")
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if want := fmt.Sprintf("http://127.0.0.1:%d/", port); e.Cloudscale().APIURL != want {
		t.Errorf("API URL is %s, want %s", e.Cloudscale().APIURL, want)
	}
}

func TestBadListenAddress(t *testing.T) {
	for _, bad := range []string{"127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1", "127.0.0.1:65535"} {
		if e, err := Start(Options{Listen: bad}); err == nil {
			t.Errorf("Start took %q", bad)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// serving returns the goroutines of emulators and their HTTP servers.
func serving() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "net/http.(*conn).serve") || strings.Contains(g, "net/http.(*Server).Serve") ||
			strings.Contains(g, "net/http.(*connReader).backgroundRead") {
			found = append(found, g)
		}
	}
	return found
}

func TestCloseLeaksNothing(t *testing.T) {
	eventually(t, "earlier emulators are gone", func() bool { return len(serving()) == 0 })
	e, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	cs := e.Cloudscale()
	c := client(t)
	// Connections in every state: idle, cut, held back, and open without a request.
	for _, p := range planeCalls(e) {
		if _, _, err := send(t.Context(), c, p.in); err != nil {
			t.Fatal(err)
		}
	}
	e.Inject(Fault{Operation: "CreateObjectsUser", LoseAnswer: true, Times: 1})
	if _, _, err := send(t.Context(), c, post(e)); err == nil {
		t.Error("the answer was not lost")
	}
	e.Inject(Fault{Operation: "CreateObjectsUser", Latency: time.Hour})
	var held sync.WaitGroup
	ctx := t.Context()
	for range 4 {
		held.Go(func() {
			if _, _, err := send(ctx, c, post(e)); err == nil {
				t.Error("a call that was held back is answered")
			}
		})
	}
	eventually(t, "the calls arrive", func() bool {
		n := 0
		for _, call := range e.Calls() {
			if call.Operation == "CreateObjectsUser" {
				n++
			}
		}
		return n == 5
	})
	var addresses []string
	for _, u := range []string{cs.APIURL, cs.Endpoints["rma"], cs.Endpoints["lpg"]} {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, parsed.Host)
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", parsed.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	if len(serving()) == 0 {
		t.Fatal("the leak check sees nothing of a running emulator")
	}

	begin := time.Now()
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("Close took %s", took)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	held.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for len(serving()) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if left := serving(); len(left) > 0 {
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	}
	for _, a := range addresses {
		if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", a); err == nil {
			t.Errorf("%s still accepts", a)
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCloseWhileCalled(t *testing.T) {
	e, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	ctx := t.Context()
	for range 8 {
		c := client(t)
		callers.Go(func() {
			for {
				if _, _, err := send(ctx, c, post(e)); err != nil {
					return
				}
			}
		})
	}
	eventually(t, "calls are answered", func() bool { return len(e.Cloudscale().Users()) > 50 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	callers.Wait()
}

func TestCalls(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"x"}`)
	c := client(t)
	for _, in := range []request{
		{method: "GET", url: cs.APIURL + "v1/objects-users?tag:a=b", token: cs.Token},
		{method: "HEAD", url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token},
		{method: "PATCH", url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token, body: `{"tags":{}}`},
		{method: "GET", url: cs.APIURL + "v1/metrics/buckets", token: cs.Token},
		{method: "GET", url: cs.APIURL + "v1/regions"},
		{method: "PUT", url: cs.APIURL + "v1/regions", token: cs.Token},
		{method: "GET", url: cs.APIURL + "v1/nothing"},
		{method: "DELETE", url: cs.APIURL + "v1/objects-users/" + u.ID, token: cs.Token},
	} {
		n := len(e.Calls())
		resp, _, err := send(t.Context(), c, in)
		if err != nil {
			t.Fatal(err)
		}
		calls := e.Calls()
		if len(calls) != n+1 || calls[n].Status != resp.StatusCode {
			t.Errorf("%s %s: the log does not end with an answer %d", in.method, in.url, resp.StatusCode)
		}
	}
	want := []Call{
		{CloudCloudscale, PlaneControl, "CreateObjectsUser", "", "POST", "/v1/objects-users", 201},
		{CloudCloudscale, PlaneControl, "ListObjectsUsers", "", "GET", "/v1/objects-users", 200},
		{CloudCloudscale, PlaneControl, "GetObjectsUser", "", "HEAD", "/v1/objects-users/" + u.ID, 200},
		{CloudCloudscale, PlaneControl, "UpdateObjectsUser", "", "PATCH", "/v1/objects-users/" + u.ID, 204},
		{CloudCloudscale, PlaneControl, "GetBucketMetrics", "", "GET", "/v1/metrics/buckets", 400},
		{CloudCloudscale, PlaneControl, "ListRegions", "", "GET", "/v1/regions", 401},
		{CloudCloudscale, PlaneControl, "", "", "PUT", "/v1/regions", 405},
		{CloudCloudscale, PlaneControl, "", "", "GET", "/v1/nothing", 404},
		{CloudCloudscale, PlaneControl, "DeleteObjectsUser", "", "DELETE", "/v1/objects-users/" + u.ID, 204},
	}
	if got := e.Calls(); !slices.Equal(got, want) {
		t.Errorf("calls\n got %+v\nwant %+v", got, want)
	}
	e.ResetCalls()
	v := createUser(t, e, cs.Token, `{"display_name":"y"}`)
	makeBucket(t, s3(t, e, "lpg", v), "box")
	calls := e.Calls()
	if got, want := calls[len(calls)-1], (Call{CloudCloudscale, PlaneS3, "CreateBucket", "lpg", "PUT", "/box/", 200}); got != want {
		t.Errorf("last call is %+v, want %+v", got, want)
	}
}

func TestCallLogIsBounded(t *testing.T) {
	var l callLog
	for range maxCalls + 1 {
		l.begin(Call{})
	}
	last := l.begin(Call{Path: "last"})
	l.finish(last, 200)
	l.finish(last, 500)
	got := l.list()
	if len(got) > maxCalls || got[len(got)-1] != (Call{Path: "last", Status: 200}) {
		t.Errorf("%d calls, the last is %+v", len(got), got[len(got)-1])
	}
}

func TestDescribe(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	var b bytes.Buffer
	if err := e.Describe(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{cs.APIURL, cs.Token, cs.ReadOnlyToken, cs.ForeignToken, cs.Endpoints["rma"], cs.Endpoints["lpg"], "Ceph RGW 18.2.7 (reef)\n", "aws --endpoint-url", "rclone"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "%!") {
		t.Errorf("format error in\n%s", text)
	}
	// The key line, with the call to the API in place of curl.
	_, line, ok := strings.Cut(text, "sed -n ")
	line, _, ok2 := strings.Cut(line, ")\"\n")
	if !ok || !ok2 {
		t.Fatalf("no key line in\n%s", text)
	}
	_, user := call(t, post(e))
	sh := exec.CommandContext(t.Context(), "sh", "-c", "sed -n "+line)
	sh.Stdin = strings.NewReader(user)
	out, err := sh.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out); !strings.Contains(got, "export AWS_ACCESS_KEY_ID="+cs.Users()[0].AccessKey+" AWS_SECRET_ACCESS_KEY=") {
		t.Error("the key line takes no key out of a user")
	}
}

func TestVirtualHosts(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"x"}`)
	makeBucket(t, s3(t, e, "lpg", u), "box")
	for _, domain := range []string{cs.Domains["lpg"], "objects.lpg.cloudscale.ch"} {
		req, err := request{method: "HEAD", url: cs.Endpoints["lpg"]}.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "box." + domain
		if _, _, err := do(client(t), req); err != nil {
			t.Fatal(err)
		}
		if calls := e.Calls(); calls[len(calls)-1].Operation != "HeadBucket" {
			t.Errorf("HEAD of %s is %q", req.Host, calls[len(calls)-1].Operation)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		e, err := Start(Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
