// Command release writes what goes with the program: the notices that the licences
// of its parts ask for, its bill of materials, and what is new in a version.
//
//	release notices ROOT
//	release sbom ROOT BINARY
//	release changes ROOT VERSION
//
// ROOT is the directory of the repository. The first two fail when a part has no
// licence, or one that is not in the list of those that may be linked.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "notices":
		parts, err := linked(ctx, args[1])
		if err != nil {
			return err
		}
		return writeNotices(out, parts)
	case len(args) == 3 && args[0] == "sbom":
		parts, err := linked(ctx, args[1])
		if err != nil {
			return err
		}
		return writeBill(out, args[2], parts)
	case len(args) == 3 && args[0] == "changes":
		return writeChanges(out, args[1], args[2])
	}
	return errors.New("want notices ROOT, sbom ROOT BINARY, or changes ROOT VERSION")
}
