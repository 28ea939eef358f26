// Command sim loads a Paimon table through the engine, reads it while it is
// written, compares every read with a plain model, and reports how fast it was.
//
//	sim run --rows 1000000 --readers 2 --commit-every 1s --buckets 2
//	sim run --git .
//
// Exit status: 0 everything was right, 1 a read was wrong or the run failed, 2
// the command line is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline/harness"
)

// Exit codes.
const (
	exitRight = 0
	exitWrong = 1
	exitUsage = 2
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr, func(*harness.Config) {})
	stop()
	os.Exit(code)
}

// execute runs a command line. Interrupt, when it is done, ends a run early and
// cleanly; adjust sees the configuration before the run.
func execute(interrupt context.Context, args []string, stdout, stderr io.Writer, adjust func(*harness.Config)) int {
	root := &cobra.Command{
		Use:           "sim",
		Short:         "Load a Paimon table and verify every answer",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // an unknown command is refused below
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; there is run", args[0])
			}
			return usage("say what to do, for instance sim run --rows 1000000; see sim run --help")
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRun(interrupt, stdout, stderr, adjust))
	err := root.Execute()
	if err == nil {
		return exitRight
	}
	fmt.Fprintln(stderr, "sim:", err)
	var mistake usageError
	if errors.As(err, &mistake) {
		return exitUsage
	}
	return exitWrong
}
