package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// errCut is what a handler gets that goes on writing to a connection that was cut.
var errCut = errors.New("connection cut by an injected fault")

// withFaults records the calls of an endpoint and disturbs them as injected.
func (e *Emulator) withFaults(ep endpoint) http.Handler {
	handler := ep.handler
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := Call{Cloud: ep.cloud, Plane: ep.plane, Operation: ep.operation(r), Region: ep.region, Method: r.Method, Path: r.URL.Path}
		entry := e.calls.begin(call)
		latency, f := e.faults.strike(call)
		if latency > 0 && !hold(r, latency) {
			cut(w)
			return
		}
		rw := &recorded{ResponseWriter: w, log: e.calls, call: entry}
		switch {
		case f.CutConnection:
			cut(w)
		case f.LoseAnswer:
			lost := &recorded{ResponseWriter: &discarded{header: http.Header{}}, log: e.calls, call: entry}
			handler.ServeHTTP(lost, r)
			e.calls.finish(entry, http.StatusOK)
			if f.Status == 0 {
				cut(w)
				return
			}
			answer(rw, r, f)
		case f.Status != 0:
			answer(rw, r, f)
		case f.ResetBodyAfter > 0 && r.Method != http.MethodHead:
			handler.ServeHTTP(&cutAfter{ResponseWriter: rw, left: f.ResetBodyAfter}, r)
			e.calls.finish(entry, http.StatusOK)
		default:
			handler.ServeHTTP(rw, r)
			e.calls.finish(entry, http.StatusOK)
		}
	})
}

// hold waits and reports whether the call is still wanted.
func hold(r *http.Request, d time.Duration) bool {
	// net/http notices that a client is gone only once the body has been read.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// cut closes the connection of a request without an answer or in the middle of one.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// The connection is gone already, which is what was asked for.
		return
	}
	_ = conn.Close()
}

// answer sends a fault's own answer.
func answer(w http.ResponseWriter, r *http.Request, f Fault) {
	// A client still sending its body would see a reset in place of the answer.
	_, _ = io.Copy(io.Discard, r.Body)
	for name, values := range f.Header {
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	if w.Header().Get("Content-Type") == "" && json.Valid([]byte(f.Body)) {
		w.Header().Set("Content-Type", "application/json")
	}
	bodyAllowed := f.Status != http.StatusNoContent && f.Status != http.StatusNotModified
	if bodyAllowed && w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(f.Body)))
	}
	w.WriteHeader(f.Status)
	if !bodyAllowed || r.Method == http.MethodHead {
		return
	}
	if f.ResetBodyAfter > 0 {
		w = &cutAfter{ResponseWriter: w, left: f.ResetBodyAfter}
	}
	// The client may be gone; nobody is left to be told.
	_, _ = io.WriteString(w, f.Body)
}

// discarded swallows an answer.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(int)             {}
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }

// cutAfter passes a number of body bytes on and cuts the connection at the next one.
type cutAfter struct {
	http.ResponseWriter
	left int64
	done bool
}

func (c *cutAfter) Write(b []byte) (int, error) {
	if c.done {
		return 0, errCut
	}
	if int64(len(b)) <= c.left {
		n, err := c.ResponseWriter.Write(b)
		c.left -= int64(n)
		return n, err
	}
	c.done = true
	n, err := c.ResponseWriter.Write(b[:c.left])
	if err != nil {
		return n, err
	}
	if err := http.NewResponseController(c.ResponseWriter).Flush(); err != nil {
		return n, err
	}
	cut(c.ResponseWriter)
	return n, errCut
}

// Unwrap serves http.ResponseController.
func (c *cutAfter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
