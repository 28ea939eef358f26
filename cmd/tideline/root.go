package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
)

// streams are the standard streams of one run.
type streams struct {
	in  io.Reader
	out io.Writer // results only
	err io.Writer // everything else
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func execute(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	var u usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &u):
		fmt.Fprintf(s.err, "tideline: %s; see %s --help\n", sentence(err), command.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(s.err, "tideline: %s\n", sentence(err))
	return exitFailed
}

// sentence keeps an error on one line. That the input was refused is plain without
// the word that the library ends such errors with.
func sentence(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.TrimSuffix(text, ": "+tideline.ErrInvalid.Error())
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "tideline",
		Short: "Real-time writes and reads of Apache Paimon tables",
		Long: `Creates, loads and reads Apache Paimon tables. A TABLE is the path of its
directory, for instance warehouse/shop.db/orders.

Results go to standard output, everything else to standard error. Exit codes:
0 done, 1 failed, 2 a mistake in the command line.`,
		Example: `  tideline create shop.db/orders --like orders.csv --primary-key id
  tideline ingest shop.db/orders orders.csv
  tideline read shop.db/orders --where "amount > 100" --limit 10`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				return usage("there is no command %q (did you mean %s?)", args[0], strings.Join(near, " or "))
			}
			return usage("there is no command %q", args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("tideline {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newCreate(s), newIngest(s), newRead(s), newSchema(s), newSnapshots(s), newFiles(s), newOffsets(s))
	return root
}

// version is what the build says of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// tableArgs asks for TABLE and up to more further arguments.
func tableArgs(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return usage("the TABLE is missing")
		case len(args) > 1+more:
			return usage("%q is one argument too many", args[1+more])
		}
		return nil
	}
}

// tableFlags are the flags of every command that opens a table.
type tableFlags struct {
	branch  string
	mapPath []string
	user    string
}

func (f *tableFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.branch, "branch", "", "work on this branch instead of main")
	c.Flags().StringArrayVar(&f.mapPath, "map-path", nil, "where data files outside the table are now: `FROM=TO` replaces a prefix of their recorded URI")
}

func (f *tableFlags) options() (tideline.Options, error) {
	o := tideline.Options{CommitUser: f.user, Branch: f.branch}
	for _, m := range f.mapPath {
		from, to, ok := strings.Cut(m, "=")
		if !ok || from == "" {
			return o, usage("--map-path %q is not of the form FROM=TO", m)
		}
		if o.MapPath == nil {
			o.MapPath = map[string]string{}
		}
		o.MapPath[from] = to
	}
	return o, nil
}

// open opens the table; the caller closes it.
func (f *tableFlags) open(ctx context.Context, path string) (*tideline.Table, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	return tideline.Open(ctx, path, o)
}

// listFlags are the flags of a command that lists what a table has.
type listFlags struct {
	tableFlags
	format string
}

func (f *listFlags) register(c *cobra.Command) {
	f.tableFlags.register(c)
	c.Flags().StringVarP(&f.format, "format", "f", "table", "table or jsonl")
}

// open checks the format and opens the table; the caller closes it.
func (f *listFlags) open(ctx context.Context, path string) (*tideline.Table, error) {
	if err := oneOf("format", f.format, "table", "jsonl"); err != nil {
		return nil, err
	}
	return f.tableFlags.open(ctx, path)
}

// oneOf refuses a flag value that is not in the list.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usage("--%s %q: want %s", flag, value, strings.Join(allowed, ", "))
}
