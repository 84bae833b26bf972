package conformance

import (
	"errors"
	"fmt"
	"runtime"
)

// OneAtATime makes two calls of one provider. The first one closes reached when it is
// about to send a request, and sends it when release is closed. It returns an error
// unless the second call waits for the first: users counts who holds the lock or waits
// for it. The errors of the calls are among what it returns.
func OneAtATime(reached <-chan struct{}, release chan<- struct{}, users func() int, first, second func() error) error {
	run := func(f func() error) chan error {
		done := make(chan error, 1)
		go func() { done <- f() }()
		return done
	}
	one := run(first)
	select {
	case <-reached:
	case err := <-one:
		return fmt.Errorf("the first call ended without the request: %w", err)
	}
	two := run(second)
	for users() < 2 {
		select {
		case err := <-two:
			close(release)
			return errors.Join(errors.New("the second call did not wait for the first"), err, <-one)
		default:
			runtime.Gosched()
		}
	}
	close(release)
	return errors.Join(<-one, <-two)
}
