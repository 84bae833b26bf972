package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	adminPrefix = "/_emulator/"
	// maxAdminInput bounds a request body, in bytes; it leaves room for the body
	// of an injected answer.
	maxAdminInput = 4 << 20
)

const adminHelp = `{
  "GET /_emulator/state": "users, buckets, endpoints, key delays; no secrets",
  "GET /_emulator/calls": "the recorded calls",
  "POST /_emulator/reset-calls": "forget them",
  "GET /_emulator/faults": "the injected faults with their counts",
  "POST /_emulator/faults": "inject one: cloud, plane, operation, region, after, times, probability, latency, status, header, body, loseAnswer, cutConnection, resetBodyAfter",
  "DELETE /_emulator/faults": "remove all",
  "DELETE /_emulator/faults/{id}": "remove one",
  "GET /_emulator/key-delay": "how late each region learns of new and removed keys",
  "PUT /_emulator/key-delay": "set it: {\"profile\": \"none\" or \"realistic\"} or {\"regions\": {\"lpg\": {\"min\": \"11s\", \"max\": \"20s\"}}}"
}
`

// withAdmin serves the admin endpoint beside a control plane. Faults do not
// reach it and its calls are not recorded.
func (e *Emulator) withAdmin(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+adminPrefix+"{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, adminHelp)
	})
	mux.HandleFunc("GET "+adminPrefix+"state", e.adminState)
	mux.HandleFunc("GET "+adminPrefix+"calls", func(w http.ResponseWriter, _ *http.Request) {
		writeAdmin(w, http.StatusOK, e.Calls())
	})
	mux.HandleFunc("POST "+adminPrefix+"reset-calls", func(w http.ResponseWriter, _ *http.Request) {
		e.ResetCalls()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET "+adminPrefix+"faults", e.adminListFaults)
	mux.HandleFunc("POST "+adminPrefix+"faults", e.adminAddFault)
	mux.HandleFunc("DELETE "+adminPrefix+"faults", func(w http.ResponseWriter, _ *http.Request) {
		e.faults.clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE "+adminPrefix+"faults/{id}", e.adminRemoveFault)
	mux.HandleFunc("GET "+adminPrefix+"key-delay", func(w http.ResponseWriter, _ *http.Request) {
		writeAdmin(w, http.StatusOK, keyDelayInput{Regions: delaysToJSON(e.keyDelay())})
	})
	mux.HandleFunc("PUT "+adminPrefix+"key-delay", e.adminSetKeyDelay)
	mux.HandleFunc(adminPrefix, func(w http.ResponseWriter, r *http.Request) {
		writeAdminError(w, http.StatusNotFound, fmt.Errorf("no %s %s here, see GET %s", r.Method, r.URL.Path, adminPrefix))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not by the mux: it would redirect a path that is not clean, which the
		// cloud's own API has to answer.
		if strings.HasPrefix(r.URL.Path, adminPrefix) {
			mux.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// duration is a time.Duration that JSON shows and takes as "1.5s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf(`%q is not a duration such as "150ms" or "1.5s"`, b)
	}
	*d = duration(v)
	return nil
}

// faultJSON is Fault on the wire.
type faultJSON struct {
	Cloud          string      `json:"cloud,omitempty"`
	Plane          string      `json:"plane,omitempty"`
	Operation      string      `json:"operation,omitempty"`
	Region         string      `json:"region,omitempty"`
	After          int         `json:"after,omitempty"`
	Times          int         `json:"times,omitempty"`
	Probability    float64     `json:"probability,omitempty"`
	Latency        duration    `json:"latency,omitempty"`
	Status         int         `json:"status,omitempty"`
	Header         http.Header `json:"header,omitempty"`
	Body           string      `json:"body,omitempty"`
	LoseAnswer     bool        `json:"loseAnswer,omitempty"`
	CutConnection  bool        `json:"cutConnection,omitempty"`
	ResetBodyAfter int64       `json:"resetBodyAfter,omitempty"`
}

func (j faultJSON) fault() Fault {
	f := Fault{
		Cloud: j.Cloud, Plane: j.Plane, Operation: j.Operation, Region: j.Region,
		After: j.After, Times: j.Times, Probability: j.Probability,
		Latency: time.Duration(j.Latency), Status: j.Status, Body: j.Body,
		LoseAnswer: j.LoseAnswer, CutConnection: j.CutConnection, ResetBodyAfter: j.ResetBodyAfter,
	}
	for name, values := range j.Header {
		for _, v := range values {
			if f.Header == nil {
				f.Header = http.Header{}
			}
			f.Header.Add(name, v)
		}
	}
	return f
}

// activeFaultJSON adds what the emulator knows of an injected fault.
type activeFaultJSON struct {
	ID   int `json:"id"`
	Seen int `json:"seen"`
	Hits int `json:"hits"`
	faultJSON
}

func activeFaultToJSON(a activeFault) activeFaultJSON {
	return activeFaultJSON{a.ID, a.Seen, a.Hits, faultJSON{
		Cloud: a.Cloud, Plane: a.Plane, Operation: a.Operation, Region: a.Region,
		After: a.After, Times: a.Times, Probability: a.Probability,
		Latency: duration(a.Latency), Status: a.Status, Header: a.Header, Body: a.Body,
		LoseAnswer: a.LoseAnswer, CutConnection: a.CutConnection, ResetBodyAfter: a.ResetBodyAfter,
	}}
}

func (e *Emulator) adminListFaults(w http.ResponseWriter, _ *http.Request) {
	list := []activeFaultJSON{}
	for _, a := range e.faults.list() {
		list = append(list, activeFaultToJSON(a))
	}
	writeAdmin(w, http.StatusOK, list)
}

func (e *Emulator) adminAddFault(w http.ResponseWriter, r *http.Request) {
	var in faultJSON
	if err := readAdmin(r, &in); err != nil {
		writeAdminError(w, http.StatusBadRequest, err)
		return
	}
	f := in.fault()
	if err := f.validate(); err != nil {
		writeAdminError(w, http.StatusBadRequest, err)
		return
	}
	writeAdmin(w, http.StatusCreated, activeFaultToJSON(e.faults.add(f)))
}

func (e *Emulator) adminRemoveFault(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !e.faults.remove(id) {
		writeAdminError(w, http.StatusNotFound, fmt.Errorf("there is no fault %q", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *Emulator) adminState(w http.ResponseWriter, _ *http.Request) {
	clouds := map[string]any{}
	for _, c := range e.clouds {
		clouds[c.name()] = c.state()
	}
	writeAdmin(w, http.StatusOK, map[string]any{
		"clouds":   clouds,
		"keyDelay": delaysToJSON(e.keyDelay()),
		"faults":   len(e.faults.list()),
		"calls":    len(e.Calls()),
	})
}

type delayJSON struct {
	Min        duration `json:"min"`
	Max        duration `json:"max"`
	Quick      duration `json:"quick,omitempty"`
	QuickShare float64  `json:"quickShare,omitempty"`
}

func delaysToJSON(delays map[string]Delay) map[string]delayJSON {
	out := make(map[string]delayJSON, len(delays))
	for region, d := range delays {
		out[region] = delayJSON{duration(d.Min), duration(d.Max), duration(d.Quick), d.QuickShare}
	}
	return out
}

type keyDelayInput struct {
	Profile string               `json:"profile,omitempty"`
	Regions map[string]delayJSON `json:"regions,omitempty"`
}

func (in keyDelayInput) delays() (map[string]Delay, error) {
	delays := map[string]Delay{}
	switch {
	case in.Profile == "" && in.Regions == nil:
		return nil, errors.New("profile or regions is required")
	case in.Profile != "" && in.Regions != nil:
		return nil, errors.New("profile and regions exclude each other")
	case in.Profile == "realistic":
		maps.Copy(delays, RealisticKeyDelay())
	case in.Profile != "" && in.Profile != "none":
		return nil, fmt.Errorf(`profile is %q, want "none" or "realistic"`, in.Profile)
	}
	for region, d := range in.Regions {
		delays[region] = Delay{time.Duration(d.Min), time.Duration(d.Max), time.Duration(d.Quick), d.QuickShare}
	}
	return delays, nil
}

func (e *Emulator) adminSetKeyDelay(w http.ResponseWriter, r *http.Request) {
	var in keyDelayInput
	if err := readAdmin(r, &in); err != nil {
		writeAdminError(w, http.StatusBadRequest, err)
		return
	}
	delays, err := in.delays()
	if err == nil {
		err = e.setKeyDelay(delays)
	}
	if err != nil {
		writeAdminError(w, http.StatusBadRequest, err)
		return
	}
	writeAdmin(w, http.StatusOK, keyDelayInput{Regions: delaysToJSON(e.keyDelay())})
}

// readAdmin takes one JSON object of known fields, whatever its content type:
// curl -d announces a form.
func readAdmin(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAdminInput+1))
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if len(body) > maxAdminInput {
		return fmt.Errorf("the request is larger than %d bytes", maxAdminInput)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the request must be one JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the request must be one JSON object: more follows it")
	}
	return nil
}

func writeAdmin(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; nobody is left to be told.
	_, _ = w.Write(append(body, '\n'))
}

func writeAdminError(w http.ResponseWriter, status int, err error) {
	writeAdmin(w, status, map[string]string{"error": err.Error()})
}
