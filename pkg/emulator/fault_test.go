package emulator

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// planeCall is a call that works on either plane: the regions, and
// the buckets of nobody.
type planeCall struct {
	plane, region, operation string
	in                       request
}

func planeCalls(e *Emulator) map[string]planeCall {
	cs := e.Cloudscale()
	return map[string]planeCall{
		"control": {PlaneControl, "", "ListRegions", request{method: "GET", url: cs.APIURL + "v1/regions", token: cs.Token}},
		"rma":     {PlaneS3, "rma", "ListBuckets", request{method: "GET", url: cs.Endpoints["rma"] + "/"}},
		"lpg":     {PlaneS3, "lpg", "ListBuckets", request{method: "GET", url: cs.Endpoints["lpg"] + "/"}},
	}
}

// outcome is the status of a call, 0 if it was cut.
func outcome(t *testing.T, in request) int {
	t.Helper()
	resp, _, err := send(t.Context(), client(t), in)
	if err != nil {
		return 0
	}
	return resp.StatusCode
}

func TestFaultSelection(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault Fault
		hit   []string
	}{
		{"everything", Fault{}, []string{"control", "rma", "lpg"}},
		{"outage of the control plane", Fault{Plane: PlaneControl}, []string{"control"}},
		{"outage of S3", Fault{Plane: PlaneS3}, []string{"rma", "lpg"}},
		{"one cloud", Fault{Cloud: CloudCloudscale}, []string{"control", "rma", "lpg"}},
		{"the other cloud", Fault{Cloud: CloudStackit}, nil},
		{"one region", Fault{Region: "lpg"}, []string{"lpg"}},
		{"operation of the control plane", Fault{Operation: "ListRegions"}, []string{"control"}},
		{"operation of S3", Fault{Operation: "ListBuckets"}, []string{"rma", "lpg"}},
		{"operation and region", Fault{Operation: "ListBuckets", Region: "rma"}, []string{"rma"}},
		{"other operation", Fault{Operation: "PutObject"}, nil},
		{"region that is not called", Fault{Region: "zrh"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := start(t, Options{})
			before := map[string]int{}
			for name, c := range planeCalls(e) {
				before[name] = outcome(t, c.in)
			}
			row.fault.Status = 599
			remove := e.Inject(row.fault)
			want := maps.Clone(before)
			for _, name := range row.hit {
				want[name] = 599
			}
			for name, c := range planeCalls(e) {
				if got := outcome(t, c.in); got != want[name] {
					t.Errorf("%s answers %d, want %d", name, got, want[name])
				}
			}
			remove()
			remove()
			for name, c := range planeCalls(e) {
				if got := outcome(t, c.in); got != before[name] {
					t.Errorf("after removal %s answers %d, want %d", name, got, before[name])
				}
			}
		})
	}
}

func TestFaultCounting(t *testing.T) {
	for _, row := range []struct {
		name   string
		faults []Fault
		want   string // per call: "." undisturbed, or the last digit of the status
	}{
		{"always", []Fault{{Status: 501}}, "111111"},
		{"the third call", []Fault{{Status: 501, After: 2, Times: 1}}, "..1..."},
		{"the first two", []Fault{{Status: 501, Times: 2}}, "11...."},
		{"from the fourth on", []Fault{{Status: 501, After: 3}}, "...111"},
		{"first injected decides", []Fault{{Status: 501, Times: 2}, {Status: 502, Times: 4}}, "1122.."},
		{"each counts its own calls", []Fault{{Status: 501, After: 1, Times: 1}, {Status: 502, After: 3, Times: 1}}, ".1.2.."},
		{"latency alone has no outcome", []Fault{{Latency: time.Nanosecond}, {Status: 502, Times: 1}}, "2....."},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := start(t, Options{})
			for _, f := range row.faults {
				e.Inject(f)
			}
			var got strings.Builder
			for range len(row.want) {
				switch status := outcome(t, planeCalls(e)["control"].in); status {
				case http.StatusOK:
					got.WriteByte('.')
				default:
					got.WriteByte(byte('0' + status%10))
				}
			}
			if got.String() != row.want {
				t.Errorf("calls went %q, want %q", got.String(), row.want)
			}
		})
	}
}

func TestFaultProbability(t *testing.T) {
	strikes := func(seed uint64, p float64) string {
		l := newFaultList(seed)
		l.add(Fault{Probability: 0.9, Status: 500, Region: "other"})
		l.add(Fault{Probability: p, Status: 500, Region: "this"})
		var b strings.Builder
		for i := range 400 {
			if i%3 == 0 {
				// Another fault's draws do not change this one's.
				l.strike(Call{Region: "other"})
			}
			_, f := l.strike(Call{Region: "this"})
			b.WriteByte(map[bool]byte{true: 'x', false: '.'}[f.outcome()])
		}
		return b.String()
	}
	one := strikes(1, 0.25)
	if n := strings.Count(one, "x"); n < 60 || n > 140 {
		t.Errorf("%d of 400 calls were hit, want about 100", n)
	}
	if strikes(1, 0.25) != one {
		t.Error("one seed makes two sequences")
	}
	if strikes(2, 0.25) == one {
		t.Error("two seeds make one sequence")
	}
	if strikes(1, 1) != strings.Repeat("x", 400) {
		t.Error("probability 1 misses")
	}
}

func TestFaultStatus(t *testing.T) {
	e := start(t, Options{})
	for name, c := range planeCalls(e) {
		remove := e.Inject(Fault{Status: 429, Header: http.Header{"Retry-After": {"3"}}, Body: `{"detail":"slow down"}`})
		resp, body := call(t, c.in)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3" || body != `{"detail":"slow down"}` || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, header %v, body %q", name, resp.Status, resp.Header, body)
		}
		remove()
		remove = e.Inject(Fault{Status: 502, Body: "<html><body>Bad Gateway</body></html>"})
		resp, body = call(t, c.in)
		if resp.StatusCode != 502 || !strings.HasPrefix(body, "<html>") || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %s, header %v, body %q", name, resp.Status, resp.Header, body)
		}
		remove()
		remove = e.Inject(Fault{Status: 204, Body: "not sent"})
		if resp, body = call(t, c.in); resp.StatusCode != 204 || body != "" {
			t.Errorf("%s: %s, body %q", name, resp.Status, body)
		}
		remove()
		remove = e.Inject(Fault{Status: 503})
		if resp, body = call(t, c.in); resp.StatusCode != 503 || body != "" {
			t.Errorf("%s: %s, body %q", name, resp.Status, body)
		}
		head := c.in
		head.method = http.MethodHead
		if resp, body = call(t, head); resp.StatusCode != 503 || body != "" {
			t.Errorf("HEAD %s: %s, body %q", name, resp.Status, body)
		}
		remove()
	}
}

// post creates a user; the count of users tells whether it was carried out.
func post(e *Emulator) request {
	cs := e.Cloudscale()
	return request{method: "POST", url: cs.APIURL + "v1/objects-users", token: cs.Token, body: `{"display_name":"x"}`}
}

func TestFaultStatusIsNotCarriedOut(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{Operation: "CreateObjectsUser", Status: 500})
	in := post(e)
	// More than net/http reads on its own behalf.
	in.body = `{"display_name":"` + strings.Repeat("x", 600<<10) + `"}`
	if got := outcome(t, in); got != 500 {
		t.Errorf("status %d, want 500", got)
	}
	if n := len(e.Cloudscale().Users()); n != 0 {
		t.Errorf("%d users were made", n)
	}
}

func TestFaultCutConnection(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{CutConnection: true})
	for name, c := range planeCalls(e) {
		if got := outcome(t, c.in); got != 0 {
			t.Errorf("%s answers %d", name, got)
		}
	}
	if got := outcome(t, post(e)); got != 0 || len(e.Cloudscale().Users()) != 0 {
		t.Errorf("POST answers %d and makes %d users, want a cut and none", got, len(e.Cloudscale().Users()))
	}
	for _, c := range e.Calls() {
		if c.Status != 0 {
			t.Errorf("%s is recorded with status %d", c.Operation, c.Status)
		}
	}
}

func TestFaultLoseAnswer(t *testing.T) {
	e := start(t, Options{})
	u := createUser(t, e, e.Cloudscale().Token, `{"display_name":"owner"}`)
	e.ResetCalls()
	e.Inject(Fault{LoseAnswer: true, Times: 2})
	if got := outcome(t, post(e)); got != 0 {
		t.Errorf("POST answers %d", got)
	}
	if n := len(e.Cloudscale().Users()); n != 2 {
		t.Errorf("%d users, want 2: the call is carried out", n)
	}
	if err := s3(t, e, "rma", u).MakeBucket(t.Context(), "made", minio.MakeBucketOptions{}); err == nil {
		t.Error("CreateBucket was answered")
	}
	if b := e.Cloudscale().Buckets(); len(b) != 1 || b[0].Name != "made" || b[0].OwnerUID != u.ID {
		t.Errorf("buckets are %+v, want the one whose answer was lost", b)
	}
	calls := e.Calls()
	if len(calls) != 2 || calls[0].Status != http.StatusCreated || calls[1].Status != http.StatusOK {
		t.Errorf("calls are %+v, want the statuses of the lost answers", calls)
	}
}

func TestFaultLoseAnswerWithStatus(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{LoseAnswer: true, Status: http.StatusGatewayTimeout, Body: "<html>"})
	if got := outcome(t, post(e)); got != http.StatusGatewayTimeout {
		t.Errorf("POST answers %d", got)
	}
	if n := len(e.Cloudscale().Users()); n != 1 {
		t.Errorf("%d users, want 1", n)
	}
}

func TestFaultResetBody(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"x"}`)
	makeBucket(t, s3(t, e, "rma", u), "box")
	putObject(t, s3(t, e, "rma", u), "box", "key", strings.Repeat("0123456789", 100_000))
	get, err := s3(t, e, "rma", u).PresignedGetObject(t.Context(), "box", "key", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		in    request
		fault Fault
	}{
		"list":     {request{method: "GET", url: cs.APIURL + "v1/objects-users", token: cs.Token}, Fault{ResetBodyAfter: 7}},
		"object":   {request{method: "GET", url: get.String()}, Fault{ResetBodyAfter: 500_001}},
		"injected": {request{method: "GET", url: cs.APIURL}, Fault{Status: 500, Body: "0123456789", ResetBodyAfter: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			_, whole, err := send(t.Context(), client(t), row.in)
			if err != nil {
				t.Fatal(err)
			}
			if row.fault.Body != "" {
				whole = row.fault.Body
			}
			remove := e.Inject(row.fault)
			resp, body, err := send(t.Context(), client(t), row.in)
			remove()
			if resp == nil || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("answer %v, error %v; want an answer whose body breaks off", resp, err)
			}
			if n := int(row.fault.ResetBodyAfter); body != whole[:n] {
				t.Errorf("%d bytes arrived, want the first %d", len(body), n)
			}

			row.fault.ResetBodyAfter = int64(len(whole))
			remove = e.Inject(row.fault)
			_, body, err = send(t.Context(), client(t), row.in)
			remove()
			if err != nil || body != whole {
				t.Errorf("a body that is no longer: %d bytes, %v; want it whole", len(body), err)
			}
		})
	}
	// A HEAD has no body to cut.
	e.Inject(Fault{ResetBodyAfter: 1})
	if got := outcome(t, request{method: "HEAD", url: cs.APIURL + "v1/objects-users", token: cs.Token}); got != http.StatusOK {
		t.Errorf("HEAD answers %d", got)
	}
}

func TestFaultLatency(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{Latency: 30 * time.Millisecond})
	e.Inject(Fault{Latency: 30 * time.Millisecond, Plane: PlaneControl})
	for name, c := range planeCalls(e) {
		want := 30 * time.Millisecond
		if c.plane == PlaneControl {
			want *= 2
		}
		begin := time.Now()
		call(t, c.in)
		if took := time.Since(begin); took < want {
			t.Errorf("%s took %s, want at least %s", name, took, want)
		}
	}
	if got := outcome(t, post(e)); got != http.StatusCreated || e.Cloudscale().Users()[0].DisplayName != "x" {
		t.Errorf("a late POST answers %d and makes %+v", got, e.Cloudscale().Users())
	}
}

func TestFaultLatencyEndsWithTheClient(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{Latency: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := client(t)
	go func() {
		_, _, err := send(ctx, c, post(e))
		done <- err
	}()
	eventually(t, "the call arrives", func() bool { return len(e.Calls()) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v", err)
	}
	eventually(t, "the call ends", func() bool {
		e.listeners.mu.Lock()
		defer e.listeners.mu.Unlock()
		return e.listeners.open == 0
	})
	if n := len(e.Cloudscale().Users()); n != 0 || e.Calls()[0].Status != 0 {
		t.Errorf("%d users, call %+v; want none and no status", n, e.Calls()[0])
	}
}

func TestFaultLatencyEndsWithTheEmulator(t *testing.T) {
	e := start(t, Options{})
	e.Inject(Fault{Latency: time.Hour})
	done := make(chan error, 1)
	c := client(t)
	ctx := t.Context()
	go func() {
		_, _, err := send(ctx, c, post(e))
		done <- err
	}()
	eventually(t, "the call arrives", func() bool { return len(e.Calls()) == 1 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("the call was answered")
	}
	if n := len(e.Cloudscale().Users()); n != 0 {
		t.Errorf("%d users were made", n)
	}
}

func TestInjectedHeaderIsCopied(t *testing.T) {
	e := start(t, Options{})
	h := http.Header{"Retry-After": {"1"}}
	e.Inject(Fault{Status: 429, Header: h})
	h.Set("Retry-After", "2")
	resp, _ := call(t, planeCalls(e)["control"].in)
	if got := resp.Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q, want the injected 1", got)
	}
}
