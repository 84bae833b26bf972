package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a fault of the command line, the environment or a
// configuration file: nothing was started.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errReported is a failure whose text is on the screen already.
var errReported = errors.New("failed")

// app is what every command may use of the world outside.
type app struct {
	env    environment
	stdout io.Writer
	stderr io.Writer
	// program is what people type to run it; empty is programName.
	program string
}

const (
	programName = "zuber"
	// pluginFile is the file name by which kubectl finds the program as its plugin, and
	// pluginName what people type then.
	pluginFile = "kubectl-zuber"
	pluginName = "kubectl zuber"
)

// programOf is what people type to run the program in that file.
func programOf(path string) string {
	if strings.TrimSuffix(filepath.Base(path), ".exe") == pluginFile {
		return pluginName
	}
	return programName
}

// called is what people type to run the program.
func (a *app) called() string { return cmp.Or(a.program, programName) }

// run carries one command line out and returns the process's exit code. It
// ends gracefully when ctx does, reads the environment from env alone, and may
// run any number of times in one process.
func run(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) int {
	return runAs(ctx, programName, args, env, stdout, stderr)
}

// runAs is run under the name that people have typed.
func runAs(ctx context.Context, program string, args []string, env environment, stdout, stderr io.Writer) int {
	// One writer may stand for both streams, and log lines come from many
	// goroutines.
	lock := new(sync.Mutex)
	a := &app{env: env, stdout: &syncWriter{lock, stdout}, stderr: &syncWriter{lock, stderr}, program: program}
	root := newRoot(a) //nolint:contextcheck // the commands get it from ExecuteContextC
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		report(a.stderr, usage.err)
		_, _ = fmt.Fprintf(a.stderr, "See '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	default:
		report(a.stderr, err)
		return exitFailed
	}
}

// report prints an error, each part of a joined one on a line of its own.
func report(w io.Writer, err error) {
	for _, line := range strings.Split(err.Error(), "\n") {
		_, _ = fmt.Fprintf(w, "zuber: %s\n", line)
	}
}

// newRoot builds the command tree.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           programName,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.called()},
		Short:         "A Kubernetes COSI driver for object storage",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{fmt.Errorf("a command is missing: one of %s", commandNames(cmd))}
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newServe(a), newSelftest(a), newStatus(a), newAudit(a), newGC(a), newEmulate(a), newVersion(a), newDocs(a))
	return root
}

// noArgs refuses positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return &usageError{fmt.Errorf("unknown command %q: the commands are %s", args[0], commandNames(cmd))}
	}
	return &usageError{fmt.Errorf("unexpected argument %q: %s takes flags only", args[0], cmd.CommandPath())}
}

// commandNames lists the visible sub-commands.
func commandNames(cmd *cobra.Command) string {
	names := ""
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += sub.Name()
	}
	return names
}

// flags returns the flags of a command in the order of their definition.
func flags(cmd *cobra.Command) []*pflag.Flag {
	var all []*pflag.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			all = append(all, f)
		}
	})
	return all
}
