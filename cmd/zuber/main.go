// Command zuber is a Kubernetes COSI driver for object storage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run . docs --root ../..

func main() {
	// After the first signal the default handling is back, so that a second one
	// ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A reader that goes away, such as head, must not end a self-test between
	// making a bucket and deleting it.
	signal.Ignore(syscall.SIGPIPE)
	context.AfterFunc(ctx, stop)
	os.Exit(runAs(ctx, programOf(os.Args[0]), os.Args[1:], environ(os.Environ()), os.Stdout, os.Stderr))
}
