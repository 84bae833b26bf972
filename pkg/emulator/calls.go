package emulator

import (
	"net/http"
	"sync"
)

// maxCalls bounds the memory of an emulator that runs for days.
const maxCalls = 1 << 16

// Call is one recorded HTTP request.
type Call struct {
	Cloud     string `json:"cloud"`            // CloudCloudscale or CloudStackit
	Plane     string `json:"plane"`            // PlaneControl or PlaneS3
	Operation string `json:"operation"`        // as Fault names it; "" if unknown
	Region    string `json:"region,omitempty"` // S3 plane only
	Method    string `json:"method"`
	Path      string `json:"path"` // without the query, which may hold a signature
	// Status is the status of the answer, also of one that a fault lost after the
	// call was carried out. It is 0 while the call runs, and stays 0 if the
	// connection was cut before the call was carried out.
	Status int `json:"status"`
}

// callLog keeps calls in the order of their arrival.
type callLog struct {
	mu      sync.Mutex
	entries []*Call
}

// begin records the arrival of a call.
func (l *callLog) begin(c Call) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) >= maxCalls {
		// Half at a time, so that a full log does not move its entries on each call.
		l.entries = append([]*Call(nil), l.entries[maxCalls/2:]...)
	}
	entry := &c
	l.entries = append(l.entries, entry)
	return entry
}

// finish sets a call's status, once.
func (l *callLog) finish(c *Call, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Status == 0 {
		c.Status = status
	}
}

func (l *callLog) list() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Call, len(l.entries))
	for i, c := range l.entries {
		out[i] = *c
	}
	return out
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// recorded tells the log the status of an answer before the answer leaves, so
// that a client that has it also finds it in the log.
type recorded struct {
	http.ResponseWriter
	log  *callLog
	call *Call
}

func (w *recorded) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.log.finish(w.call, status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorded) Write(b []byte) (int, error) {
	w.log.finish(w.call, http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *recorded) Unwrap() http.ResponseWriter { return w.ResponseWriter }
