package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
)

// Result is one line of the report.
type Result struct {
	ID     string  `json:"id"`
	Ratio  float64 `json:"ratio"`
	Goal   float64 `json:"goal"`
	Better string  `json:"better"` // higher or lower
	What   string  `json:"what"`
	detail string  // absolute figures, for the terminal only
}

func (r Result) met() bool {
	if r.Better == "lower" {
		return r.Ratio <= r.Goal
	}
	return r.Ratio >= r.Goal
}

// bench is one group of measurements that share their set-up.
type bench struct {
	ids []string
	run func(*config) ([]Result, error)
}

type config struct {
	rows   int
	rounds int
	dir    string
}

var benches = []bench{
	{[]string{"H5", "H8-batch10", "H8-string", "H8-composite"}, writePath},
	{[]string{"H13"}, retained},
	{[]string{"H2"}, memoryRead},
	{[]string{"H4"}, fanIn},
	{[]string{"H1"}, unionRead},
	{[]string{"H9-p50", "H9-p999"}, freshness},
	{[]string{"H10"}, commit},
	{[]string{"H12"}, stall},
}

func main() {
	rows := flag.Int("rows", 1_000_000, "rows of the large tables")
	rounds := flag.Int("rounds", 5, "rounds of each measurement; medians are reported")
	only := flag.String("only", "", "comma-separated ids to run, all when empty")
	out := flag.String("json", filepath.Join("bench", "results.json"), "where the results go")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(*rows, *rounds, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rows, rounds int, only, out string) error {
	dir, err := os.MkdirTemp("", "tideline-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var results []Result
	for _, b := range benches {
		if !wanted(b.ids, only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", strings.Join(b.ids, ", "))
		got, err := b.run(&config{rows: rows, rounds: rounds, dir: dir})
		if err != nil {
			return fmt.Errorf("%s: %w", b.ids[0], err)
		}
		results = append(results, got...)
	}
	print(results)
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func wanted(ids []string, only string) bool {
	if only == "" {
		return true
	}
	for _, w := range strings.Split(only, ",") {
		for _, id := range ids {
			if w == id || strings.HasPrefix(id, w+"-") {
				return true
			}
		}
	}
	return false
}

func print(results []Result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "id\tratio\tgoal\t\twhat\tfigures")
	for _, r := range results {
		sign, verdict := ">=", "met"
		if r.Better == "lower" {
			sign = "<="
		}
		if !r.met() {
			verdict = "missed"
		}
		fmt.Fprintf(w, "%s\t%.3f\t%s %g\t%s\t%s\t%s\n", r.ID, r.Ratio, sign, r.Goal, verdict, r.What, r.detail)
	}
	w.Flush()
}
