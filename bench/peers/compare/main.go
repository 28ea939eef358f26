// Command compare prints how this engine stands to a peer, case by case, from
// the lines of run.sh.
//
//	compare FILE.jsonl
//
// A ratio is the peer's time over ours within one round; the median over the
// rounds counts, the range is printed beside it. Above 1 we are faster. The last
// column is our speed over the control kernel of the same round: the stock
// Parquet library encoding the final rows, or scanning the user columns of the
// peer's five files.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	ours = "tideline"
	peer = "pypaimon-rust"
)

type line struct {
	Peer    string         `json:"peer"`
	Case    string         `json:"case"`
	Rows    float64        `json:"rows"`
	Seconds float64        `json:"seconds"`
	Round   int            `json:"round"`
	Extra   map[string]any `json:"extra"`
}

// figure is one row of the table.
type figure struct {
	name    string
	goal    float64 // 0: none
	extra   string  // a time in extra instead of the case's own
	control string  // case of the control kernel, "" without
	small   bool    // a latency, shown in fractions of milliseconds
	perRow  bool    // files of different sizes are scanned
}

var figures = []figure{
	{name: "write_1commit", goal: 1, control: "encode"},
	{name: "write_5commits", goal: 1, control: "encode"},
	{name: "read_1run_all"},
	{name: "read_mor5_all", goal: 1, control: "scan_user:ref"},
	{name: "read_mor5_proj1"},
	{name: "same_read_mor5_all", goal: 1, control: "scan_user:ref"},
	{name: "same_read_mor5_proj1"},
	{name: "scan_plain_all", control: "scan_user:ref", perRow: true},
	{name: "open_plan", small: true},
	{name: "tiny200_write", goal: 1, extra: "commit_p50_first20", small: true},
	{name: "tiny200_write", goal: 1, extra: "commit_p50_mid20", small: true},
	{name: "tiny200_write", goal: 1, extra: "commit_p50_last20", small: true},
	{name: "tiny200_read", goal: 1},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one file of result lines")
	}
	lines, err := load(args[0])
	if err != nil {
		return err
	}
	if err := agree(lines); err != nil {
		return err
	}
	table := lines[0].Case[:2]
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\ttideline\t%s\tratio\trange\tgoal\t\tover the control\n", table, peer)
	for _, f := range figures {
		own, theirs := f.samples(lines, table, ours), f.samples(lines, table, peer)
		if len(own) == 0 || len(theirs) == 0 {
			continue
		}
		var ratios, control []float64
		for round, s := range own {
			ratios = append(ratios, median(theirs[round])/median(s))
			if c := (figure{name: f.control, perRow: f.perRow}).samples(lines, table, "control")[round]; f.control != "" && len(c) > 0 {
				control = append(control, median(c)/median(s))
			}
		}
		slices.Sort(ratios)
		goal, verdict := "", ""
		if f.goal > 0 {
			goal, verdict = fmt.Sprintf(">= %g", f.goal), "met"
			if median(ratios) < f.goal {
				verdict = "missed"
			}
		}
		beside := ""
		if len(control) > 0 {
			beside = fmt.Sprintf("%.2f", median(control))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f..%.2f\t%s\t%s\t%s\n", strings.TrimSpace(f.name+" "+f.extra),
			f.show(own), f.show(theirs), median(ratios), ratios[0], ratios[len(ratios)-1], goal, verdict, beside)
	}
	return w.Flush()
}

func load(name string) (lines []line, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no results", name)
	}
	return lines, nil
}

// agree refuses results whose answers differ: every merge of the same rows has
// one hash.
func agree(lines []line) error {
	seen := map[float64]line{} // by the number of rows
	for _, l := range lines {
		hash, ok := l.Extra["hash"].(string)
		if !ok {
			continue
		}
		if ordered, ok := l.Extra["ordered"].(bool); ok && !ordered {
			return fmt.Errorf("%s of %s is not in key order", l.Case, l.Peer)
		}
		if first, ok := seen[l.Rows]; !ok {
			seen[l.Rows] = l
		} else if first.Extra["hash"] != hash {
			return fmt.Errorf("%s of %s answers %s, %s of %s answers %s", l.Case, l.Peer, hash, first.Case, first.Peer, first.Extra["hash"])
		}
	}
	return nil
}

// samples are the seconds of a figure by round.
func (f figure) samples(lines []line, table, who string) map[int][]float64 {
	out := map[int][]float64{}
	for _, l := range lines {
		if !strings.HasPrefix(l.Peer, who) || l.Case != table+"_"+f.name {
			continue
		}
		s := l.Seconds
		if f.extra != "" {
			s, _ = l.Extra[f.extra].(float64)
		} else if f.perRow {
			s /= l.Rows
		}
		out[l.Round] = append(out[l.Round], s)
	}
	return out
}

func (f figure) show(samples map[int][]float64) string {
	var all []float64
	for _, s := range samples {
		all = append(all, s...)
	}
	switch {
	case f.small:
		return fmt.Sprintf("%.2f ms", median(all)*1e3)
	case f.perRow:
		return fmt.Sprintf("%.0f ns/row", median(all)*1e9)
	}
	return fmt.Sprintf("%.0f ms", median(all)*1e3)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
