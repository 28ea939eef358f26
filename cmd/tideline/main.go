// Command tideline creates, loads and reads Paimon tables with real-time writes.
//
//	tideline create shop.db/orders --like orders.csv --primary-key id
//	tideline ingest shop.db/orders orders.csv --op-field op
//	tideline read shop.db/orders --where "city = 'Oslo'" --limit 10
//
// Results go to standard output, everything else to standard error. The exit code
// is 0, 1 for a failure and 2 for a mistake in the command line; an error is one
// sentence that begins with "tideline:".
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program. The first interrupt ends the command in order, the
// second one at once.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return execute(ctx, args, streams{stdin, stdout, stderr})
}
