// Command pebble compares Write with Pebble, the nearest LSM in Go: the same
// batches of 1000 rows of T1, one core, nothing durable on either side. Rounds
// are interleaved, each with a fresh store and a fresh table; the median ratio of
// the times counts.
//
//	go run ./pebble                          a table of the rounds
//	go run ./pebble -json ../results.json    and put the result into that report
//
// Pebble gets the rows encoded already (key 8 bytes big-endian, value the 32
// bytes of payload), a memtable that holds them all, and no write-ahead log; what
// is timed is Set and Commit. Write gets Arrow records; what is timed is the
// whole call, after which the rows can be read.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/bench/peers/workload"
	"github.com/tideline-db/tideline/fs/local"
)

// result is one entry of the report of the main bench.
type result struct {
	ID     string  `json:"id"`
	Ratio  float64 `json:"ratio"`
	Goal   float64 `json:"goal"`
	Better string  `json:"better"`
	What   string  `json:"what"`
}

const (
	batchRows  = 1000
	keyBytes   = 8
	valueBytes = 32
	memtable   = 1 << 30
)

func main() {
	rows := flag.Int("rows", 1_000_000, "rows written")
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	report := flag.String("json", "", "report of the main bench to put the result into; made when it does not exist")
	flag.Parse()
	if err := run(*rows, *rounds, *report); err != nil {
		fmt.Fprintln(os.Stderr, "pebble:", err)
		os.Exit(1)
	}
}

func run(rows, rounds int, report string) error {
	if rows < batchRows || rounds < 1 {
		return errors.New("want at least one batch of 1000 rows and one round")
	}
	runtime.GOMAXPROCS(1)
	dir, err := os.MkdirTemp("", "tideline-pebble")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	table, err := workload.Named("T1")
	if err != nil {
		return err
	}
	g := workload.NewGenerator(table, 7)
	var records []arrow.RecordBatch
	var encoded [][]byte
	for range rows / batchRows {
		b := g.Batch(batchRows)
		records, encoded = append(records, b), append(encoded, encode(b))
	}
	var ratios []float64
	for round := range rounds {
		peer := func() (time.Duration, error) { return writePebble(encoded) }
		own := func() (time.Duration, error) {
			return writeTideline(filepath.Join(dir, fmt.Sprint(round)), table, records)
		}
		p, t, err := interleaved(round, peer, own)
		if err != nil {
			return err
		}
		ratios = append(ratios, p.Seconds()/t.Seconds())
		fmt.Fprintf(os.Stderr, "round %d: Pebble %.2f, Tideline %.2f M rows/s\n", round+1, rate(rows, p), rate(rows, t))
	}
	slices.Sort(ratios)
	r := result{"H6", ratios[len(ratios)/2], 10, "higher",
		"Write of batches of 1000 rows over Pebble v2.1.7 without write-ahead log, same batches, one core"}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if report == "" {
		return nil
	}
	return put(report, r)
}

// interleaved changes which side begins with every round.
func interleaved(round int, peer, own func() (time.Duration, error)) (p, t time.Duration, err error) {
	sides := []struct {
		run func() (time.Duration, error)
		to  *time.Duration
	}{{peer, &p}, {own, &t}}
	if round%2 == 1 {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		runtime.GC()
		if *s.to, err = s.run(); err != nil {
			return 0, 0, err
		}
	}
	return p, t, nil
}

func rate(rows int, d time.Duration) float64 { return float64(rows) / d.Seconds() / 1e6 }

// encode lays out a batch as Pebble gets it, key and value of each row in turn.
func encode(b arrow.RecordBatch) []byte {
	k, a := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64)
	f, c := b.Column(2).(*array.Float64), b.Column(3).(*array.String)
	out := make([]byte, 0, int(b.NumRows())*(keyBytes+valueBytes))
	for i := range int(b.NumRows()) {
		out = binary.BigEndian.AppendUint64(out, uint64(k.Value(i)))
		out = binary.LittleEndian.AppendUint64(out, uint64(a.Value(i)))
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(f.Value(i)))
		out = append(out, c.Value(i)...)
	}
	return out
}

func writePebble(batches [][]byte) (time.Duration, error) {
	db, err := pebble.Open("db", &pebble.Options{
		FS: vfs.NewMem(), DisableWAL: true, MemTableSize: memtable,
		MemTableStopWritesThreshold: 2, Logger: quiet{},
	})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	for _, rows := range batches {
		b := db.NewBatch()
		for at := 0; at < len(rows); at += keyBytes + valueBytes {
			if err := b.Set(rows[at:at+keyBytes], rows[at+keyBytes:at+keyBytes+valueBytes], nil); err != nil {
				return 0, err
			}
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return 0, err
		}
		if err := b.Close(); err != nil {
			return 0, err
		}
	}
	took := time.Since(begun)
	return took, db.Close()
}

func writeTideline(path string, table workload.Table, records []arrow.RecordBatch) (time.Duration, error) {
	ctx := context.Background()
	t, err := tideline.Create(ctx, path, tideline.Definition{Columns: table.Schema, PrimaryKey: []string{"k"}},
		tideline.Options{IO: local.New(local.Options{Sync: local.SyncNone}), MemoryBytesMax: 8 << 30})
	if err != nil {
		return 0, err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	for _, r := range records {
		if _, err := w.Write(ctx, r); err != nil {
			return 0, err
		}
	}
	took := time.Since(begun)
	return took, errors.Join(w.Discard(ctx), t.Close(ctx))
}

// put replaces the result of the same id in a report, or adds it.
func put(report string, r result) error {
	var all []result
	text, err := os.ReadFile(report)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &all); err != nil {
			return fmt.Errorf("report %s: %w", report, err)
		}
	}
	all = append(slices.DeleteFunc(all, func(o result) bool { return o.ID == r.ID }), r)
	if text, err = json.MarshalIndent(all, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(report, append(text, '\n'), 0o644)
}

// quiet drops what Pebble logs.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
