package transport

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// budgetKey is where a context has its budget.
type budgetKey struct{}

// WithBudget returns a context whose requests count against a budget of so many a
// minute. No request waits for it: it is work that can pause which does, with Rest.
func WithBudget(ctx context.Context, perMinute int) context.Context {
	limit := rate.Limit(float64(perMinute) / time.Minute.Seconds())
	return context.WithValue(ctx, budgetKey{}, rate.NewLimiter(limit, max(1, perMinute)))
}

// Rest waits until the budget of the context is not overdrawn, or returns ctx.Err()
// when the context ends first. Call it where nothing is held that others wait for.
func Rest(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	budget, ok := ctx.Value(budgetKey{}).(*rate.Limiter)
	if !ok {
		return nil
	}
	r := budget.Reserve()
	delay := r.Delay()
	r.Cancel() // it is no request
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// spend counts a request.
func spend(ctx context.Context) {
	if budget, ok := ctx.Value(budgetKey{}).(*rate.Limiter); ok {
		budget.Reserve()
	}
}
