// Command tideline is this engine as one more peer of the comparison: the same
// rows, cases, order and output lines as the others, so that their scripts can
// run it beside them.
//
//	tideline DIR T1|T4 ROWS SEED PASSES [tiny] [nowarm] [same=DIR] [cpuprofile=FILE]
//
// tiny adds the two hundred small commits; same=DIR also reads the five-run
// table that another peer left in its own directory. Nothing is synced to disk.
// Results are kept in memory until the clock has stopped, as the others do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/bench/peers/workload"
	"github.com/tideline-db/tideline/fs/local"
	"github.com/tideline-db/tideline/paimon/datafile"
	"github.com/tideline-db/tideline/paimon/schema"
)

const (
	batchRows   = 1000
	warmRows    = 50_000
	tinyCommits = 200
	planSamples = 20
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tideline:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return errors.New("want DIR T1|T4 ROWS SEED PASSES [tiny] [nowarm] [same=DIR] [cpuprofile=FILE]")
	}
	table, err := workload.Named(args[1])
	if err != nil {
		return err
	}
	rows, err := strconv.Atoi(args[2])
	if err != nil || rows < tinyCommits*batchRows {
		return fmt.Errorf("rows %q: want a number of at least %d", args[2], tinyCommits*batchRows)
	}
	seed, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	passes, err := strconv.Atoi(args[4])
	if err != nil {
		return fmt.Errorf("passes: %w", err)
	}
	flags := args[5:]
	if !slices.Contains(flags, "nowarm") {
		warm := newPeer(args[0], table, warmRows, seed)
		warm.silent = true
		if err := warm.large(); err != nil {
			return err
		}
	}
	p := newPeer(args[0], table, rows, seed)
	stop, err := profile(flags)
	if err != nil {
		return err
	}
	defer stop()
	for range passes {
		if err := p.pass(flags); err != nil {
			return err
		}
	}
	return nil
}

// profile starts the CPU profile that a flag asks for.
func profile(flags []string) (stop func(), err error) {
	for _, flag := range flags {
		name, ok := strings.CutPrefix(flag, "cpuprofile=")
		if !ok {
			continue
		}
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		return func() { pprof.StopCPUProfile(); f.Close() }, nil
	}
	return func() {}, nil
}

type peer struct {
	root    string
	table   workload.Table
	rows    int
	batches []arrow.RecordBatch
	options tideline.Options
	silent  bool
}

func newPeer(root string, table workload.Table, rows int, seed uint64) *peer {
	g := workload.NewGenerator(table, seed)
	p := &peer{root: root, table: table, rows: rows, options: tideline.Options{
		IO: local.New(local.Options{Sync: local.SyncNone}), MemoryBytesMax: 8 << 30,
	}}
	for range rows / batchRows {
		p.batches = append(p.batches, g.Batch(batchRows))
	}
	return p
}

func (p *peer) pass(flags []string) error {
	if err := p.large(); err != nil {
		return err
	}
	if slices.Contains(flags, "tiny") {
		if err := p.tiny(); err != nil {
			return err
		}
	}
	for _, flag := range flags {
		if dir, ok := strings.CutPrefix(flag, "same="); ok {
			if err := p.mergeReads("same_read", filepath.Join(dir, "db.db", "five")); err != nil {
				return err
			}
		}
	}
	return nil
}

// large are the cases of the two large tables.
func (p *peer) large() error {
	s, _, err := p.write("one", p.rows, 1)
	if err != nil {
		return err
	}
	p.emit("write_1commit", p.rows, s, p.size("one"))
	if s, _, err = p.write("five", p.rows, 5); err != nil {
		return err
	}
	p.emit("write_5commits", p.rows, s, p.size("five"))
	out, s, err := p.read(p.path("one"))
	if err != nil {
		return err
	}
	p.emit("read_1run_all", count(out), s, nil)
	if err := p.mergeReads("read", p.path("five")); err != nil {
		return err
	}
	rows, s, err := p.scan("five")
	if err != nil {
		return err
	}
	p.emit("scan_plain_all", rows, s, map[string]any{"how": "own decoder on the data files, user columns"})
	return p.plan("five")
}

// mergeReads reads a table of five overlapping runs, all columns and one.
func (p *peer) mergeReads(prefix, path string) error {
	out, s, err := p.read(path)
	if err != nil {
		return err
	}
	p.emit(prefix+"_mor5_all", count(out), s, p.check(out))
	if out, s, err = p.read(path, p.table.Schema.Field(1).Name); err != nil {
		return err
	}
	p.emit(prefix+"_mor5_proj1", count(out), s, nil)
	return nil
}

func (p *peer) tiny() error {
	s, each, err := p.write("tiny", tinyCommits*batchRows, tinyCommits)
	if err != nil {
		return err
	}
	extra := p.size("tiny")
	extra["commit_p50_first20"] = median(each[:20])
	extra["commit_p50_mid20"] = median(each[90:110])
	extra["commit_p50_last20"] = median(each[180:])
	p.emit("tiny200_write", tinyCommits*batchRows, s, extra)
	out, s, err := p.read(p.path("tiny"))
	if err != nil {
		return err
	}
	p.emit("tiny200_read", count(out), s, p.check(out))
	return nil
}

func (p *peer) path(name string) string { return filepath.Join(p.root, "db.db", name) }

// write makes a table and writes rows into it, in batches of 1000; what is timed
// is from opening the writer to its closing.
func (p *peer) write(name string, rows, commits int) (seconds float64, each []float64, err error) {
	ctx := context.Background()
	if err := os.RemoveAll(p.path(name)); err != nil {
		return 0, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		return 0, nil, err
	}
	t, err := tideline.Create(ctx, p.path(name), tideline.Definition{
		Columns: p.table.Schema, PrimaryKey: []string{"k"},
		Options: map[string]string{
			"bucket": "1", "file.format": "parquet", "file.compression": "zstd",
			"file.compression.zstd-level": "1", "merge-engine": "deduplicate", "write-only": "true",
		},
	}, p.options)
	if err != nil {
		return 0, nil, err
	}
	runtime.GC()
	begun := time.Now()
	w, err := t.Writer(ctx)
	if err != nil {
		return 0, nil, err
	}
	per := rows / commits / batchRows
	for k := range commits {
		from := time.Now()
		for _, b := range p.batches[k*per : (k+1)*per] {
			if _, err := w.Write(ctx, b); err != nil {
				return 0, nil, err
			}
		}
		if _, err := w.Commit(ctx); err != nil {
			return 0, nil, err
		}
		each = append(each, time.Since(from).Seconds())
	}
	err = errors.Join(w.Close(ctx), t.Close(ctx))
	return time.Since(begun).Seconds(), each, err
}

// read opens a table and reads it, keeping every batch.
func (p *peer) read(path string, columns ...string) (out []arrow.RecordBatch, seconds float64, err error) {
	ctx := context.Background()
	runtime.GC()
	begun := time.Now()
	t, err := tideline.Open(ctx, path, p.options)
	if err != nil {
		return nil, 0, err
	}
	s := t.Scan()
	if len(columns) > 0 {
		s = s.Select(columns...)
	}
	r, err := s.Read(ctx)
	if err != nil {
		return nil, 0, err
	}
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		out = append(out, b)
	}
	err = r.Err()
	r.Release()
	return out, time.Since(begun).Seconds(), errors.Join(err, t.Close(ctx))
}

// scan decodes the user columns of the data files of a table, no merge.
func (p *peer) scan(name string) (rows int, seconds float64, err error) {
	ctx := context.Background()
	fields, err := schema.FromArrow(p.table.Schema)
	if err != nil {
		return 0, 0, err
	}
	runtime.GC()
	begun := time.Now()
	files, err := filepath.Glob(filepath.Join(p.path(name), "bucket-0", "data-*"))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		n, err := p.scanFile(ctx, file, fields)
		if err != nil {
			return 0, 0, err
		}
		rows += n
	}
	return rows, time.Since(begun).Seconds(), nil
}

func (p *peer) scanFile(ctx context.Context, name string, fields []schema.Field) (rows int, err error) {
	f, err := p.options.IO.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := datafile.Open(ctx, f, datafile.ReaderOptions{})
	if err != nil {
		return 0, err
	}
	batches, err := r.Read(ctx, fields, datafile.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer batches.Close()
	for {
		b, err := batches.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return 0, err
		}
		rows += int(b.NumRows())
		b.Release()
	}
}

// plan times opening a table and planning a read of it.
func (p *peer) plan(name string) error {
	ctx := context.Background()
	var samples []float64
	for range planSamples {
		begun := time.Now()
		t, err := tideline.Open(ctx, p.path(name), p.options)
		if err != nil {
			return err
		}
		plan, err := t.Scan().Plan(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, time.Since(begun).Seconds())
		plan.Close(ctx)
		if err := t.Close(ctx); err != nil {
			return err
		}
	}
	p.emit("open_plan", 0, median(samples), nil)
	return nil
}

// check is the hash of an answer, compared by whoever reads the lines.
func (p *peer) check(out []arrow.RecordBatch) map[string]any {
	if p.silent {
		return nil
	}
	r := p.table.Hash(out)
	return map[string]any{"hash": r.Hash, "ordered": r.Ordered}
}

func (p *peer) size(name string) map[string]any {
	files, bytes, data := 0, int64(0), int64(0)
	err := filepath.Walk(p.path(name), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		files, bytes = files+1, bytes+info.Size()
		if strings.HasPrefix(info.Name(), "data-") {
			data += info.Size()
		}
		return nil
	})
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"files": files, "bytes": bytes, "data_bytes": data}
}

func (p *peer) emit(name string, rows int, seconds float64, extra map[string]any) {
	if p.silent {
		return
	}
	if extra == nil {
		extra = map[string]any{}
	}
	line, err := json.Marshal(struct {
		Peer    string         `json:"peer"`
		Case    string         `json:"case"`
		Rows    int            `json:"rows"`
		Seconds float64        `json:"seconds"`
		Rate    int64          `json:"rows_per_s"`
		Extra   map[string]any `json:"extra"`
	}{"tideline", p.table.Name + "_" + name, rows, seconds, int64(float64(rows) / seconds), extra})
	if err != nil { // strings and numbers only
		panic(err)
	}
	fmt.Println(string(line))
}

func count(batches []arrow.RecordBatch) (rows int) {
	for _, b := range batches {
		rows += int(b.NumRows())
	}
	return rows
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
