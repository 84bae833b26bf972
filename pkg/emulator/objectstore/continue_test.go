package objectstore

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestContinue: a client that expects 100 Continue gets it, an empty body notwithstanding, and the
// connection stays usable.
func TestContinue(t *testing.T) {
	host := strings.TrimPrefix(newLab(t).urls["rma"], "http://")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for range 2 {
		if _, err := fmt.Fprintf(conn, "PUT /bucket/key HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", host); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{http.StatusContinue, http.StatusNotFound} {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Fatalf("got %s, want %d", resp.Status, want)
			}
			if want != http.StatusContinue {
				continue
			}
			if n := len(resp.Header); n != 0 {
				t.Errorf("the interim answer has %d headers", n)
			}
		}
	}
}
