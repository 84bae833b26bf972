package companion

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// mute is an API server that says what it has and answers nothing else.
type mute struct {
	asked chan struct{} // closed with the first request that gets no answer
	once  sync.Once
}

func (m *mute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if text := discovered(r.URL.Path); text != "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
		return
	}
	m.once.Do(func() { close(m.asked) })
	<-r.Context().Done()
}

// TestStopsWithoutAnAnswer: the companion can be stopped while it waits for an API server
// that does not answer, so that the process ends at a signal.
func TestStopsWithoutAnAnswer(t *testing.T) {
	m := &mute{asked: make(chan struct{})}
	server := httptest.NewServer(m)
	defer server.Close()
	defer server.CloseClientConnections()
	c, err := New(Config{REST: &rest.Config{Host: server.URL}, Driver: "cosi.test", Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.work(ctx, nil, plan{v1alpha1, true}, "") }()
	<-m.asked
	cancel()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute): // longer than the manager gives its parts
		t.Fatal("it goes on")
	}
}
