package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudget: requests never wait for the budget; Rest waits until it is earned.
func TestBudget(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	ctx := WithBudget(t.Context(), 2)
	client := &http.Client{Transport: New(Options{})}
	begun := time.Now()
	for range 4 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("requests waited %s for the budget", took)
	}
	if err := Rest(t.Context()); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	bounded, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := Rest(bounded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("overdrawn: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx := WithBudget(t.Context(), 60)
		for range 90 {
			spend(ctx)
		}
		begun := time.Now()
		if err := Rest(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 29*time.Second || took > 32*time.Second {
			t.Errorf("90 calls of 60 a minute rest for %s", took)
		}
	})
}
