package emulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// admin calls the admin endpoint.
func admin(t *testing.T, e *Emulator, method, path, body string) (int, string) {
	t.Helper()
	resp, answer := call(t, request{method: method, url: e.Cloudscale().APIURL + "_emulator/" + path, body: body, contentType: "application/x-www-form-urlencoded"})
	return resp.StatusCode, answer
}

func TestAdminFaults(t *testing.T) {
	e := start(t, Options{})
	regions := planeCalls(e)["control"].in
	full := `{"cloud":"cloudscale","plane":"control","operation":"ListRegions","after":1,"times":2,"probability":1,"latency":"1.5ms","status":429,"header":{"Retry-After":["1"]},"body":"{}"}`
	status, answer := admin(t, e, "POST", "faults", full)
	if status != http.StatusCreated {
		t.Fatalf("POST: %d: %s", status, answer)
	}
	want := `{"id":1,"seen":0,"hits":0,` + full[1:]
	if got := compact(t, answer); got != want {
		t.Errorf("POST answers\n     %s\nwant %s", got, want)
	}
	for i, want := range []int{200, 429, 429, 200} {
		if got := outcome(t, regions); got != want {
			t.Errorf("call %d answers %d, want %d", i, got, want)
		}
	}
	_, answer = admin(t, e, "GET", "faults", "")
	if got := compact(t, answer); got != "["+strings.Replace(want, `"seen":0,"hits":0`, `"seen":4,"hits":2`, 1)+"]" {
		t.Errorf("GET answers %s", got)
	}

	if status, answer = admin(t, e, "POST", "faults", `{"cutConnection":true}`); status != http.StatusCreated {
		t.Fatalf("POST: %d: %s", status, answer)
	}
	if got := outcome(t, regions); got != 0 {
		t.Errorf("cut call answers %d", got)
	}
	// The admin endpoint itself is out of reach of faults.
	if status, answer = admin(t, e, "DELETE", "faults/2", ""); status != http.StatusNoContent {
		t.Errorf("DELETE: %d: %s", status, answer)
	}
	if status, _ = admin(t, e, "DELETE", "faults/2", ""); status != http.StatusNotFound {
		t.Errorf("DELETE again: %d", status)
	}
	if got := outcome(t, regions); got != 200 {
		t.Errorf("after removal: %d", got)
	}

	for _, body := range []string{`{"loseAnswer":true}`, `{"resetBodyAfter":3}`, `{"status":500,"region":"rma"}`} {
		if status, answer = admin(t, e, "POST", "faults", body); status != http.StatusCreated {
			t.Errorf("POST %s: %d: %s", body, status, answer)
		}
	}
	if got := outcome(t, regions); got != 0 {
		t.Errorf("lost answer: %d", got)
	}
	if status, _ = admin(t, e, "DELETE", "faults", ""); status != http.StatusNoContent || len(e.faults.list()) != 0 {
		t.Errorf("DELETE all: %d, %d are left", status, len(e.faults.list()))
	}
}

func TestAdminRefusals(t *testing.T) {
	e := start(t, Options{})
	for _, row := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "faults", `{"statsu":500}`, 400, `unknown field \"statsu\"`},
		{"POST", "faults", `{"latency":"soon"}`, 400, `\"soon\" is not a duration`},
		{"POST", "faults", `{"latency":5}`, 400, "latency"},
		{"POST", "faults", `{"latency":"-1s"}`, 400, "latency is negative"},
		{"POST", "faults", `{}`, 400, "the fault does nothing"},
		{"POST", "faults", `{"status":42}`, 400, "status is 42, want 200 to 599"},
		{"POST", "faults", `{"status":500,"cloud":"nimbus"}`, 400, `cloud is \"nimbus\"`},
		{"POST", "faults", `{"status":500,"plane":"kontrol"}`, 400, `plane is \"kontrol\"`},
		{"POST", "faults", `{"status":500,"plane":"control","region":"rma"}`, 400, "region goes with"},
		{"POST", "faults", `{"status":500,"probability":2}`, 400, "probability is 2"},
		{"POST", "faults", `{"status":500,"after":-1,"times":-1}`, 400, `after is negative\ntimes is negative`},
		{"POST", "faults", `{"body":"x","cutConnection":true}`, 400, "need a status"},
		{"POST", "faults", `{"status":500,"cutConnection":true}`, 400, "cutConnection excludes"},
		{"POST", "faults", `{"loseAnswer":true,"resetBodyAfter":1}`, 400, "loseAnswer excludes"},
		{"POST", "faults", `{"resetBodyAfter":-1}`, 400, "resetBodyAfter is negative"},
		{"POST", "faults", `not JSON`, 400, "one JSON object"},
		{"POST", "faults", `{"status":500}{"status":501}`, 400, "more follows it"},
		{"POST", "faults", ``, 400, "one JSON object"},
		{"DELETE", "faults/x", ``, 404, "no fault"},
		{"PUT", "key-delay", `{}`, 400, "profile or regions"},
		{"PUT", "key-delay", `{"profile":"none","regions":{}}`, 400, "exclude each other"},
		{"PUT", "key-delay", `{"profile":"slow"}`, 400, `profile is \"slow\"`},
		{"PUT", "key-delay", `{"regions":{"zrh":{"min":"1s","max":"2s"}}}`, 400, `unknown region \"zrh\"`},
		{"PUT", "key-delay", `{"regions":{"lpg":{"min":"3s","max":"2s"}}}`, 400, "max is less than min"},
		{"PATCH", "faults", ``, 404, "no PATCH"},
		{"GET", "nothing", ``, 404, "no GET"},
	} {
		status, answer := admin(t, e, row.method, row.path, row.body)
		if status != row.status || !strings.Contains(answer, row.want) || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s %s %s: %d %s; want %d with %s", row.method, row.path, row.body, status, answer, row.status, row.want)
		}
	}
	if n := len(e.faults.list()); n != 0 {
		t.Errorf("%d refused faults were injected", n)
	}
}

func TestAdminCallsAndState(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	u := createUser(t, e, cs.Token, `{"display_name":"alan","tags":{"k":"v"}}`)
	makeBucket(t, s3(t, e, "lpg", u), "box")
	putObject(t, s3(t, e, "lpg", u), "box", "key", "12345")

	var calls []Call
	_, answer := admin(t, e, "GET", "calls", "")
	if err := json.Unmarshal([]byte(answer), &calls); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, e.Calls()) || len(calls) < 3 {
		t.Errorf("calls are %+v, want %+v", calls, e.Calls())
	}
	status, answer := admin(t, e, "GET", "state", "")
	if status != http.StatusOK {
		t.Fatalf("state: %d", status)
	}
	var state struct {
		Clouds map[string]cloudscaleState
		Calls  int
	}
	if err := json.Unmarshal([]byte(answer), &state); err != nil {
		t.Fatal(err)
	}
	got := state.Clouds["cloudscale"]
	wantBucket := bucketState{Name: "box", Region: "lpg", OwnerUID: u.ID, Objects: 1, Bytes: 5}
	if got.Release != "reef" || len(got.Users) != 1 || got.Users[0].ID != u.ID || !slices.Equal(got.Buckets, []bucketState{wantBucket}) || state.Calls != len(calls) {
		t.Errorf("state is %s", answer)
	}
	for what, secret := range map[string]string{"secret key": u.Keys[0].SecretKey, "token": cs.Token} {
		if strings.Contains(answer, secret) {
			t.Errorf("the state holds a %s", what)
		}
	}

	if status, _ := admin(t, e, "POST", "reset-calls", ""); status != http.StatusNoContent || len(e.Calls()) != 0 {
		t.Errorf("reset: %d, %d calls are left", status, len(e.Calls()))
	}
	if status, answer := admin(t, e, "GET", "", ""); status != http.StatusOK || !json.Valid([]byte(answer)) {
		t.Errorf("help: %d %s", status, answer)
	}
}

func TestAdminKeyDelay(t *testing.T) {
	e := start(t, Options{})
	want := `{"regions":{"eu01":{"min":"0s","max":"0s"},"eu02":{"min":"0s","max":"0s"},"lpg":{"min":"11s","max":"20s","quick":"150ms","quickShare":0.25},"rma":{"min":"10ms","max":"110ms"}}}`
	status, answer := admin(t, e, "PUT", "key-delay", `{"profile":"realistic"}`)
	if status != http.StatusOK || compact(t, answer) != want {
		t.Errorf("realistic: %d %s", status, answer)
	}
	if e.keyDelay()["lpg"] != RealisticKeyDelay()["lpg"] {
		t.Errorf("delays are %v", e.keyDelay())
	}
	want = `{"regions":{"eu01":{"min":"0s","max":"0s"},"eu02":{"min":"0s","max":"0s"},"lpg":{"min":"1s","max":"2s"},"rma":{"min":"0s","max":"0s"}}}`
	status, answer = admin(t, e, "PUT", "key-delay", `{"regions":{"lpg":{"min":"1s","max":"2s"}}}`)
	if status != http.StatusOK || compact(t, answer) != want {
		t.Errorf("one region: %d %s", status, answer)
	}
	if got := e.keyDelay()["lpg"]; got != (Delay{Min: time.Second, Max: 2 * time.Second}) {
		t.Errorf("delay is %v", got)
	}
	admin(t, e, "PUT", "key-delay", `{"profile":"none"}`)
	if _, answer = admin(t, e, "GET", "key-delay", ""); compact(t, answer) != strings.Replace(want, `"1s","max":"2s"`, `"0s","max":"0s"`, 1) {
		t.Errorf("none: %s", answer)
	}
}

func TestAdminIsBesideTheControlPlaneOnly(t *testing.T) {
	e := start(t, Options{})
	cs := e.Cloudscale()
	resp, _ := call(t, request{method: "GET", url: cs.Endpoints["rma"] + "/_emulator/state"})
	if resp.StatusCode == http.StatusOK {
		t.Error("an S3 endpoint answers as the admin endpoint")
	}
	resp, body := call(t, request{method: "GET", url: cs.APIURL + "_emulator"})
	if resp.StatusCode != http.StatusNotFound || body != `{"detail":"Not found."}` {
		t.Errorf("without the slash: %d %s", resp.StatusCode, body)
	}
}
